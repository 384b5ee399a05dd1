"""Where a bucket's scores may crowd to one side, intervals reach there; else they do not grow."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq
from sklearn.metrics import brier_score_loss, log_loss

from fedassay import Grid, ScoreHistogram, TooCoarse, metrics, simulate
from fedassay.metrics.below import possible_below
from fedassay.metrics.crowding import crowded_below, crowded_places, crowded_sums
from fedassay.metrics.log_odds import in_pieces
from fedassay.noise import DenseNoise

Floats = npt.NDArray[np.float64]


def both(scores: Floats) -> Floats:
    return np.stack([scores, scores])


@pytest.mark.parametrize("rate", [-2.0, -0.4, 0.4, 2.0, 3.0])
def test_the_second_guess_of_an_exponential_density_is_its_mean(rate: float) -> None:
    """By a sum over a million quantiles of the density exp(-rate x) inside the middle third."""
    quantiles = (np.arange(1_000_000) + 0.5) / 1_000_000
    inside = -np.log1p(quantiles * np.expm1(-rate / 3.0)) / rate
    expected = float(inside.mean())
    edges = np.arange(4) / 3
    falling = np.exp(-rate * edges)
    counts = 1e6 * np.abs(np.diff(falling))
    histogram = ScoreHistogram(edges, np.stack([counts, counts]))
    guessed = np.tile([0.0, 1.0 / 3.0, 0.0], (2, 1))  # all of the middle at its left edge
    apart = crowded_sums(histogram, both, guessed)[:, 1]
    doubt = min(abs(rate) / 3.0 / np.log(4.0), 1.0)  # of densities less than four times apart
    np.testing.assert_allclose(apart, doubt * counts[1] * expected, rtol=0.02)


@pytest.mark.parametrize("rate", [-9.0, -0.3, 1e-5, 0.3, 9.0])
def test_the_second_guess_in_a_narrow_bucket_is_the_same(rate: float) -> None:
    """By a million quantiles of a density that falls within 1/60 of the axis, of s^2."""
    edges = 0.4 + np.arange(4) / 60
    falling = np.exp(-rate * np.arange(4))
    counts = 1e12 * np.abs(np.diff(falling)) + 100.0 * (abs(rate) < 1e-4)
    histogram = ScoreHistogram(edges, np.stack([counts, counts]))
    quantiles = (np.arange(1_000_000) + 0.5) / 1_000_000
    steep = 2.0 * np.sinh(0.5 * rate)  # beside a neighbour so much denser it falls faster
    inside = edges[1] + -np.log1p(quantiles * np.expm1(-steep)) / steep / 60
    expected = abs(float((inside**2).mean()) - 0.5 * float(edges[1] ** 2 + edges[2] ** 2))
    straight = 1e-4  # what s^2 bends by in the bucket
    apart = crowded_sums(histogram, lambda s: both(s**2), np.zeros((2, 3)))[:, 1] / counts[1]
    doubt = min(abs(rate) / np.log(4.0), 1.0)
    np.testing.assert_allclose(apart, doubt * expected, rtol=0.02, atol=straight * doubt)


def test_beside_a_neighbour_a_thousand_times_as_dense_all_may_lie_at_its_side() -> None:
    edges = np.array([0.0, 0.001, 1.0])
    histogram = ScoreHistogram(edges, np.array([[9000.0, 9000.0], [10.0, 100.0]]))
    even = np.tile([0.0005, 0.5005], (2, 1))
    apart = crowded_sums(histogram, both, even) / np.maximum(histogram.counts, 1.0)
    assert apart[0, 1] > 0.4  # of at most 0.4995


def heaped_and_not(end: int) -> tuple[ScoreHistogram, ScoreHistogram]:
    """Counts that thin out towards an end, with a heap of rows at exactly that, and without."""
    edges = np.array([0.0, 0.1, 0.3, 0.6, 1.0]) if end == 0 else np.array([0.0, 0.4, 0.7, 0.9, 1.0])
    counts = np.array([[90.0, 400.0, 900.0, 900.0], [20.0, 60.0, 300.0, 900.0]])
    counts = counts if end == 0 else counts[:, ::-1]
    heap, at = (2.0**-52, 1) if end == 0 else (1.0 - 2.0**-52, -1)
    with_heap = np.insert(counts, 0 if end == 0 else 4, [500.0, 40.0], axis=1)
    return (
        ScoreHistogram(np.insert(edges, at, heap), with_heap),
        ScoreHistogram(edges, counts.copy()),
    )


@pytest.mark.parametrize("end", [0, 1])
def test_a_heap_at_exactly_0_or_1_draws_nobody_beside_it(end: int) -> None:
    """Everything about the others is as if the heap were not there."""
    heaped, without = heaped_and_not(end)
    assert heaped.heaps == (end == 0, end == 1)
    beside = slice(1, None) if end == 0 else slice(None, -1)
    np.testing.assert_allclose(heaped.parts(8)[:, beside], without.parts(8), rtol=1e-9)
    means = np.tile(without.edges[:-1] + 0.5 * without.widths, (2, 1))
    with_means = np.insert(means, 0 if end == 0 else 4, float(end), axis=1)
    np.testing.assert_allclose(
        crowded_sums(heaped, both, with_means)[:, beside],
        crowded_sums(without, both, means),
        rtol=1e-9,
    )
    for bucket in range(without.buckets):
        inside = 0.5 * without.counts[:, bucket]
        at = bucket + 1 if end == 0 else bucket
        for below in (crowded_below, possible_below):
            np.testing.assert_allclose(
                below(heaped, at, 0.5, inside), below(without, bucket, 0.5, inside), rtol=1e-9
            )
    doubt = [crowded_places(each)[1] for each in (heaped, without)]
    np.testing.assert_allclose(doubt[0][:, beside], doubt[1], rtol=1e-9)


@pytest.mark.parametrize("end", [0, 1])
def test_beside_a_heap_log_odds_are_as_doubtful_as_at_an_end(end: int) -> None:
    heaped, without = heaped_and_not(end)
    beside = slice(1, None) if end == 0 else slice(None, -1)
    doubts = [
        in_pieces(each).doubts(np.broadcast_to(in_pieces(each).odds, (2, each.buckets, 8)))
        for each in (heaped, without)
    ]
    np.testing.assert_allclose(doubts[0][beside], doubts[1], rtol=1e-6)


@pytest.mark.parametrize("heap", [False, True])
def test_where_scores_end_inside_the_outermost_cells_intervals_reach_there(heap: bool) -> None:
    """Few positives have low scores, and few negatives high ones: cells of a tenth and more."""
    rng = np.random.default_rng(5)
    labels = (rng.random(100_000) < 0.05).astype(np.int64)
    scores = 1.0 / (1.0 + np.exp(2.5 - 2.5 * labels - 0.8 * rng.normal(size=len(labels))))
    if heap:
        scores[rng.random(len(labels)) < 0.01] = 1.0
    result = simulate(labels, scores, seed=0)
    histogram = result.histogram()
    assert histogram.heaps == (False, heap)
    assert histogram.edges[1] > 0.05
    clipped = np.clip(scores, 2.0**-52, 1.0 - 2.0**-52)
    for name, value in (
        ("brier", brier_score_loss(labels, scores)),
        ("log_loss", log_loss(labels, clipped)),
        ("oe_ratio", labels.sum() / scores.sum()),
    ):
        low, high = result[name].interval(population=False)
        assert low <= value <= high
        assert high - low < 0.5 * value


def test_an_empty_or_noisy_bucket_at_an_end_is_no_heap() -> None:
    heaped, _ = heaped_and_not(0)
    counts = heaped.counts.copy()
    counts[:, 0] = 0.0
    assert ScoreHistogram(heaped.edges, counts).heaps == (False, False)
    noisy = ScoreHistogram(heaped.edges, heaped.counts, DenseNoise(np.eye(10)))
    assert noisy.heaps == (False, False)
    assert ScoreHistogram.from_scores([0, 1], [0.2, 0.7], grid=Grid.uniform(1)).heaps == (
        False,
        False,
    )


def test_where_a_class_is_not_in_the_heap_its_curve_never_falls() -> None:
    edges = np.array([0.0, 2.0**-31, 0.25, 1.0])
    histogram = ScoreHistogram(edges, np.array([[9.0, 9.0, 9.0], [0.0, 9.0, 9.0]]))
    assert histogram.heaps == (True, False)
    assert histogram.parts(64).min() >= 0.0


def rare(seed: int, rows: int = 60_000) -> tuple[npt.NDArray[np.int64], Floats]:
    """One in fifty positive; no score above 0.05."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(rows) < 0.02).astype(np.int64)
    scores = np.exp(generator.normal(-8.0 + 2.5 * labels, 0.7)).clip(0.0, 0.05)
    return labels, scores


@pytest.mark.parametrize("seed", range(5))
def test_a_last_cell_that_hides_where_its_scores_lie_is_in_the_interval(seed: int) -> None:
    """As published cells of a rare event's scores are: the last from 0.006 to 1."""
    labels, scores = rare(seed)
    grid = Grid.explicit([0.0, *(i * 2e-4 for i in range(1, 31)), 1.0])
    histogram = ScoreHistogram.from_scores(labels, scores, grid=grid)
    exact = {
        metrics.brier: brier_score_loss(labels, scores),
        metrics.log_loss: log_loss(labels, np.clip(scores, 2**-52, 1 - 2**-52)),
        metrics.oe_ratio: labels.sum() / scores.sum(),
    }
    for metric, value in exact.items():
        estimate = metric(histogram)
        if isinstance(estimate, TooCoarse):
            continue
        assert value in estimate.interval(0.95, population=False), metric
        assert abs(estimate.value - value) > 1e-4  # the guess alone is far off
    assert not isinstance(metrics.brier(histogram), TooCoarse)


def test_where_neighbours_are_alike_the_interval_of_brier_stays_narrow() -> None:
    """64 cells of a smooth score: an error of 1e-4 is not told to be larger than 1e-3."""
    generator = np.random.default_rng(3)
    scores = generator.beta(1.2, 2.0, 100_000)
    labels = (generator.random(100_000) < scores).astype(np.int64)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(64))
    estimate = metrics.brier(histogram)
    assert abs(estimate.value - brier_score_loss(labels, scores)) < 1e-4
    assert estimate.binning_sd < 1e-4


def test_a_last_bucket_that_towers_beside_nobody_leaves_open_where_its_rows_lie() -> None:
    """Rows at 0.1 and at 0.7 in one bucket from 0.099 to 1: nothing is known above 0.1."""
    edges = np.array([0.0, 0.05, 0.099, 1.0])
    counts = np.array([[0.0, 0.0, 5000.0], [0.0, 0.0, 600.0]])
    histogram = ScoreHistogram(edges, counts)
    for metric in (metrics.recall, metrics.specificity, metrics.accuracy, metrics.precision):
        assert isinstance(metric(histogram, 0.1), TooCoarse)
    assert isinstance(metrics.log_loss(histogram), TooCoarse)
    # All rows at 0.1, where they are next to nobody, or evenly up to 1.
    low, high = metrics.oe_ratio(histogram).interval(0.95, population=False)
    assert low < 600 / 5600 / 0.55 < 600 / 5600 / 0.1 < high


@pytest.mark.parametrize("seed", range(5))
def test_calibration_in_the_large_reaches_what_a_last_cell_hides(seed: int) -> None:
    labels, scores = rare(seed)
    grid = Grid.explicit([0.0, *(i * 2e-4 for i in range(1, 31)), 1.0])
    histogram = ScoreHistogram.from_scores(labels, scores, grid=grid)
    odds = np.log(scores / (1.0 - scores))

    def excess(shift: float) -> float:
        return float((1.0 / (1.0 + np.exp(-shift - odds))).sum() - labels.sum())

    exact = brentq(excess, -20.0, 20.0)
    assert exact in metrics.calibration_in_the_large(histogram).interval(0.95, population=False)


def test_expected_positives_may_all_be_those_of_scores_beside_the_dense_neighbour() -> None:
    """A hundred rows from 0.001 to 1 beside 9,010 below: if all are at 0.0011, 4.6 are expected."""
    edges = np.array([0.0, 0.001, 1.0])
    histogram = ScoreHistogram(edges, np.array([[9000.0, 90.0], [10.0, 10.0]]))
    exact = 20.0 / (9010.0 * 0.0005 + 100.0 * 0.0011)
    found = metrics.oe_ratio(histogram)
    assert exact > 4.0 * found.value
    assert exact in found.interval(0.95, population=False)


def test_observed_over_expected_is_read_where_its_denominator_is_least() -> None:
    """At least 0.1 positives are expected of these rows: all at the lower edges of their cells."""
    histogram = ScoreHistogram(
        np.array([0.0, 0.001, 1.0]), np.array([[9000.0, 90.0], [10.0, 10.0]])
    )
    low, high = metrics.oe_ratio(histogram).interval(0.95, population=False)
    assert high == pytest.approx(20.0 / 0.1)
    assert low > 0.0


@pytest.mark.parametrize("rate", [-2.0, -0.4, 0.4, 2.0, 3.0])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.8])
def test_the_second_guess_below_a_threshold_is_the_integral_of_an_exponential_density(
    rate: float, part: float
) -> None:
    edges = np.arange(4) / 3
    counts = 1e6 * np.abs(np.diff(np.exp(-rate * edges)))
    histogram = ScoreHistogram(edges, np.stack([counts, counts]))
    below = 1e6 * abs(np.exp(-rate / 3) - np.exp(-rate * (1.0 + part) / 3))
    doubt = min(abs(rate) / 3.0 / np.log(4.0), 1.0)
    apart = crowded_below(histogram, 1, part, np.zeros(2))
    np.testing.assert_allclose(apart, doubt * below, rtol=0.06)


def test_a_threshold_in_a_last_cell_beside_a_denser_one_is_held() -> None:
    """The edge at 0.1 is not published: eight positives above it are fewer than ten.

    Of 32 in the last cell 24 lie in its first twentieth, as many as in the cell before it.
    """
    generator = np.random.default_rng(3)
    below = [generator.uniform(0.0, 0.06, 687), generator.uniform(0.06, 0.08, 24)]
    positives = [*below, generator.uniform(0.08, 0.1, 24), generator.uniform(0.1, 0.2, 8)]
    negatives = [generator.uniform(0.0, 0.08, 90_000), generator.uniform(0.08, 0.12, 300)]
    scores = np.concatenate([*negatives, *positives])
    labels = np.repeat([0, 1], [90_300, 743])
    grid = Grid.explicit([*(i / 100 for i in range(9)), 0.5, 1.0])
    recall = metrics.recall(ScoreHistogram.from_scores(labels, scores, grid=grid), 0.1)
    assert recall.value > 2.0 * 8 / 743  # a cubic cannot follow so steep a fall
    assert 8 / 743 in recall.interval(0.95, population=False)


def test_a_threshold_between_alike_neighbours_is_known_as_well_as_before() -> None:
    counts = np.tile([400.0, 300.0, 225.0, 169.0], (2, 1))
    histogram = ScoreHistogram(np.arange(5) / 4, counts)
    inside = histogram.below(0.375)[0] - histogram.cumulative[:, 1]
    assert (crowded_below(histogram, 1, 0.5, inside) < 0.01 * counts[:, 1]).all()
