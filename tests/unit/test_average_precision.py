"""Average precision's likely binning error and noise, against errors that are known."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.doubts import Doubts
from fedassay.estimate import REACH
from fedassay.hierarchy import Hierarchy
from fedassay.metrics.average_precision import precision_gradient
from fedassay.noise import DenseNoise, TreeNoise


def test_crowded_buckets_tell_little_of_the_mean_precision() -> None:
    """Three full buckets: the order inside each is open, and a million rows do not close it.

    So many rows that the luck of a random order explains nothing, and no bucket is a spike.
    """
    histogram = ScoreHistogram(Grid.uniform(3).edges, np.full((2, 3), 1e6))
    estimate = metrics.average_precision(histogram)
    assert estimate.value == pytest.approx(0.5, abs=0.01)
    assert estimate.binning_bound / 20 < estimate.binning_sd < estimate.binning_bound


@pytest.mark.parametrize(("buckets", "most"), [(5, 2.5), (40, 1.5)])
def test_placing_rows_at_random_inside_buckets_errs_as_much_as_is_said(
    buckets: int, most: float
) -> None:
    """600 placements, even inside buckets, read by scikit-learn; of few buckets less is known.

    At the top are no negatives: what few of them may hide is another matter.
    """
    generator = np.random.default_rng(8)
    middle = (np.arange(buckets) + 0.5) / buckets
    n = np.maximum(1, 60 * (1 - middle) ** 1.5).round().astype(int)
    n[-1] = 0
    p = np.maximum(1, 6 * (middle + 0.2)).round().astype(int)
    edges = Grid.uniform(buckets).edges
    histogram = ScoreHistogram(edges, np.stack([n, p]).astype(float), smooth=False)
    estimate = metrics.average_precision(histogram)
    labels = np.repeat([0, 1], [n.sum(), p.sum()])
    places = np.concatenate([np.repeat(np.arange(buckets), each) for each in (n, p)])
    errors = [
        average_precision_score(labels, (places + generator.random(len(places))) / buckets)
        - estimate.value
        for _ in range(600)
    ]
    spread = float(np.sqrt(np.mean(np.square(errors))))
    assert spread / 1.5 < estimate.binning_sd < most * spread


def test_noise_that_swamps_the_top_does_not_make_the_noise_of_the_mean_explode() -> None:
    """Noisy counts drawn 400 times: the figure's own spread against what it is said to be."""
    generator = np.random.default_rng(9)
    edges = Grid.uniform(32).edges
    middle = (edges[1:] + edges[:-1]) / 2
    counts = np.stack([40_000 * (1 - middle) ** 8, 6_000 * middle * (1 - middle) ** 4])
    hierarchy = Hierarchy.flat(32)
    noise = TreeNoise(hierarchy, (np.full((2, 32), 900.0),))
    values, said = [], []
    for _ in range(400):
        noisy = counts + generator.normal(0.0, 30.0, counts.shape)
        estimate = metrics.average_precision(ScoreHistogram(edges, noisy, noise))
        values.append(estimate.value)
        said.append(estimate.noise_sd)
    spread, typical = float(np.std(values)), float(np.median(said))
    assert spread / 2.0 < typical < 2.0 * spread
    # Not even the unluckiest draw says something absurd.
    assert max(said) < 6.0 * spread


def test_noisy_leaves_inside_cells_that_were_counted_are_not_ranked() -> None:
    """Leaves whose noise is large but cancels within cells: the cells say all that is known."""
    generator = np.random.default_rng(8)
    truth = np.array([[900.0, 700.0, 500.0, 300.0] * 2, [30.0, 60.0, 90.0, 200.0] * 2])
    truth[0] *= np.linspace(2.0, 0.2, 8)
    apart = np.kron(np.eye(8), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    noise = DenseNoise(np.eye(16) + 40.0**2 * apart)
    off = np.repeat(generator.normal(0.0, 40.0, (2, 4)), 2, axis=1) * np.tile([1.0, -1.0], 4)
    cells = np.array([0, 2, 4, 6, 8])
    edges = np.linspace(0.0, 1.0, 9)
    noisy = ScoreHistogram(edges, truth + off, noise, cells=cells)
    exact = ScoreHistogram(edges, truth, noise, cells=cells)
    found, wanted = metrics.average_precision(noisy), metrics.average_precision(exact)
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
    assert found.noise_sd == pytest.approx(wanted.noise_sd, rel=1e-12)
    blind = metrics.average_precision(ScoreHistogram(edges, truth + off, noise))
    assert blind.noise_sd > 2.0 * found.noise_sd


def test_how_average_precision_moves_with_counts_is_what_differences_say() -> None:
    counts = np.array([[40.0, 30.0, 20.0, 5.0], [2.0, 8.0, 15.0, 9.0]])
    edges = np.linspace(0.0, 1.0, 5)

    def tied(table: np.ndarray) -> float:
        above = table[:, ::-1].cumsum(axis=1)[:, ::-1]
        return float((table[1] * above[1] / above.sum(axis=0)).sum() / table[1].sum())

    found = precision_gradient(ScoreHistogram(edges, counts))
    for label, bucket in np.ndindex(2, 4):
        step = np.zeros_like(counts)
        step[label, bucket] = 1e-5
        wanted = (tied(counts + step) - tied(counts - step)) / 2e-5
        assert found[label, bucket] == pytest.approx(wanted, rel=1e-6)


def test_where_few_negatives_hide_that_positives_come_first_at_the_top_they_are_held() -> None:
    """The likelihood ratio of the last bucket looks like that below it; its negatives lie low."""
    generator = np.random.default_rng(5)
    edges = np.array([*np.arange(95) / 100, 0.95, 0.98, 1.0])
    lower = np.arange(95)
    negatives = [*(2000.0 * 0.95**lower).astype(int), 21, 14]
    positives = [*(10 + lower).astype(int), 280, 210]
    parts = {
        label: [
            generator.uniform(low, high, count)
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        for label, counts in enumerate((negatives, positives))
    }
    parts[0][-1] = generator.uniform(0.98, 0.982, 14)
    scores = np.concatenate([*parts[0], *parts[1]])
    labels = np.repeat([0, 1], [sum(negatives), sum(positives)])
    exact = average_precision_score(labels, scores)
    grid = Grid.explicit(edges.tolist())
    found = metrics.average_precision(ScoreHistogram.from_scores(labels, scores, grid=grid))
    assert exact - found.value > 0.001
    assert exact in found.interval(population=False)
    assert found.interval(population=False).high - found.value < 3.0 * (exact - found.value)


def test_negatives_that_come_first_are_in_the_interval_under_noise() -> None:
    """The surest scores are wrong: in the top one of 48 cells a third of the negatives leads.

    Mean precision is that of brute force, with all other cells mixed evenly.
    """
    middle = (np.arange(48) + 0.5) / 48
    counts = np.stack([9000.0 * np.exp(-6.0 * middle), 90.0 * np.exp(3.0 * middle)]).round()
    edges = np.arange(49) / 48
    noisy = ScoreHistogram(edges, counts, DenseNoise(4.0 * np.eye(96)))
    cells = [(int(n), int(p)) for n, p in counts.T[::-1]]
    generator = np.random.default_rng(1)
    mixed = [generator.permutation(np.repeat([1, 0], [p, n])) for n, p in cells[1:]]
    n, p = cells[0]
    rest = generator.permutation(np.repeat([1, 0], [p, n - n // 3]))
    ranked = np.concatenate([np.zeros(n // 3), rest, *mixed])
    precisions = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    truth = float(precisions[ranked == 1].mean())
    found = metrics.average_precision(noisy)
    assert found.value - truth > 1e-3
    assert truth in found.interval(population=False)
    low, high = found.interval(population=False)
    assert high - low < 4.0 * (found.value - truth)


def test_ties_at_the_very_top_have_no_order_that_noise_could_hide() -> None:
    """Scores of exactly 1 in both classes: noise drawn 200 times, against what scikit-learn says.

    The same rows in a wide bucket may be in any order, and their interval says so.
    """
    generator, sd = np.random.default_rng(4), 30.0
    labels = np.repeat([0, 1, 0, 1], [4000, 1000, 600, 9000])
    scores = np.concatenate([generator.random(5000) * 0.999, np.ones(9600)])
    inner = np.linspace(0.0, 0.999, 31)
    truth = average_precision_score(labels, scores)
    narrow, wide = np.concatenate([inner, [1.0 - 1e-12, 1.0]]), np.append(inner, 1.0)
    widths = {}
    for edges in (narrow, wide):
        counts = np.stack([np.histogram(scores[labels == each], edges)[0] for each in (0, 1)])
        noise = DenseNoise(sd**2 * np.eye(counts.size))
        noisy = [counts + generator.normal(0.0, sd, counts.shape) for _ in range(200)]
        found = [metrics.average_precision(ScoreHistogram(edges, each, noise)) for each in noisy]
        spans = [each.interval(population=False) for each in found]
        widths[len(edges)] = float(np.median([span.high - span.low for span in spans]))
        held = sum(truth in span for span in spans)
        assert held >= 180
        if edges is narrow:
            spread = float(np.std([each.value for each in found]))
            assert widths[len(edges)] < 2 * 1.96 * 1.5 * spread
    assert widths[len(wide)] > 3.0 * widths[len(narrow)]


def test_of_rare_events_the_highest_cell_with_anybody_in_it_has_nobody_beside() -> None:
    """All scores lie below 0.2; cells above are published, and empty: nobody tells who comes first.

    The highest 38 positives may come before all of 282 negatives, or be mixed with them.
    """
    counts = np.array([[9000.0, 1009.0, 520.0, 282.0], [10.0, 16.0, 20.0, 38.0]])
    edges = np.array([0.0, 0.002, 0.003, 0.005, 0.2])
    alone = ScoreHistogram(np.append(edges[:-1], 1.0), counts)
    empty = ScoreHistogram(np.append(edges, [0.5, 1.0]), np.pad(counts, ((0, 0), (0, 2))))
    wide, found = (metrics.average_precision(each) for each in (alone, empty))
    assert found.value == pytest.approx(wide.value, abs=0.02)
    assert found.binning_sd == pytest.approx(wide.binning_sd, rel=0.1)


def test_few_cells_do_not_hide_the_highest_positives() -> None:
    """Of 16 cells with a noise of 2 the highest are no longer one with a hundred negatives."""
    few = [[1519, 896, 280, 128, 61, 45, 10, 4, 3, 1], [4, 22, 6, 7, 3, 0, 2, 2, 9, 9]]
    counts = np.hstack([np.array(few, dtype=np.float64), np.zeros((2, 6))])
    edges = np.array([0.0, 0.01, 0.05, 0.1, 0.17, 0.23, *np.linspace(0.3, 1.0, 11)])
    exact = metrics.average_precision(ScoreHistogram(edges, counts))
    noise = DenseNoise(4.0 * np.eye(32))
    noisy = metrics.average_precision(ScoreHistogram(edges, counts, noise))
    assert noisy.value == pytest.approx(exact.value, rel=0.25)


@pytest.mark.parametrize("rows", [40, 120])
@pytest.mark.parametrize("above", [0, 1])
def test_other_rows_of_a_ties_bucket_may_all_be_above_it(rows: int, above: int) -> None:
    """All positives have one score; negatives lie evenly around it, or all of its bucket's above.

    How many rows of the bucket are in no tie says nothing of how the tied ones mix: read so,
    average precision was below all that is possible.
    """
    edges = np.array([0.0, 0.29, 0.3, 0.3005, 0.301, 0.311, 1.0])
    counts = np.array([[3000, 20 * rows, rows, rows, 20 * rows, 1000], [0, 0, 2000, 0, 0, 0]])
    middle = 0.5 * (edges[1:] + edges[:-1])
    at = np.where(np.arange(6) == 2, 0.3004 if above else 0.3001, middle)
    scores = np.append(np.repeat(at, counts[0]), np.full(2000, 0.3002))
    labels = np.repeat([0, 1], counts.sum(axis=1))
    exact = average_precision_score(labels, scores)
    h = ScoreHistogram(edges, counts.astype(float), DenseNoise(0.25 * np.eye(12)))
    found = metrics.average_precision(h)
    low, high = found.interval(population=False)
    assert low <= exact <= high
    # Both are about as far away, and chance adds a third to that at most.
    assert abs(found.value - exact) > 0.3 * (high - low)


@pytest.mark.parametrize(("cliffs", "is_open"), [(0.3, False), (0.99, True)])
def test_where_a_usual_curve_is_refuted_average_precision_is_as_open_as_its_cells(
    cliffs: float, is_open: bool
) -> None:
    """Beyond all negatives lie a seventh of the positives, inside the highest cell."""
    edges = np.array([0.0, 0.3, 0.6, 0.8, 0.9, 1.0])
    counts = np.array([[9000.0, 6000, 2500, 900, 780], [400.0, 500, 350, 220, 240]])
    noise = DenseNoise(25.0**2 * np.eye(10), is_smoothed=True)
    doubts = Doubts(cliffs, 0.0, np.zeros(5))
    h = ScoreHistogram(edges, counts, noise, cells=np.arange(6), doubts=doubts)
    found = metrics.average_precision(h)
    assert (REACH * found.binning_sd == pytest.approx(found.binning_bound)) is is_open
