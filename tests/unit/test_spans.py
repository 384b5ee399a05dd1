"""What a bucket hides, against curves and densities that are tried one by one."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fedassay import Estimate, Grid, ScoreHistogram, TooCoarse, metrics
from fedassay.doubts import Doubts
from fedassay.estimate import REACH
from fedassay.metrics.below import possible_below, possible_lumps, roughness
from fedassay.metrics.range_noise import RangeNoise
from fedassay.metrics.spans import _groups, clear_spikes, possible_pairs, spans
from fedassay.noise import DenseNoise, NoNoise

Floats = npt.NDArray[np.float64]


def three(negatives: list[float], positives: list[float]) -> ScoreHistogram:
    """Three even buckets."""
    return ScoreHistogram(np.arange(4) / 3, np.array([negatives, positives], dtype=float))


def middle_openness(above: float, below: float) -> float:
    """Of a bucket with 1,000 of each class, beside likelihood ratios of `below` and `above`."""
    histogram = three([1000.0] * 3, [1000.0 * below, 1000.0, 1000.0 * above])
    return float(spans(histogram).openness[1])


@given(st.floats(1.05, 20.0), st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
def test_curves_that_bend_one_way_stay_inside_the_triangle(
    above: float, below: float, seed: int
) -> None:
    """Curves of falling slopes between the neighbours', from corner to corner, by brute force."""
    generator = np.random.default_rng(seed)
    slopes = np.sort(generator.uniform(below, above, 40))[::-1]
    steep, flat = slopes[slopes >= 1.0], slopes[slopes < 1.0]
    if len(steep) == 0 or len(flat) == 0:
        return
    # So much of the width is steep that the curve ends in the corner (1, 1).
    gain, loss = steep.mean() - 1.0, 1.0 - flat.mean()
    width = np.concatenate(
        [np.full(len(steep), loss / len(steep)), np.full(len(flat), gain / len(flat))]
    ) / (gain + loss)
    height = np.concatenate([[0.0], np.cumsum(width * slopes)])
    area = float((width * (height[:-1] + height[1:])).sum() / 2.0)
    assert height[-1] == pytest.approx(1.0)
    assert -1e-9 <= area - 0.5 <= 0.5 * middle_openness(above, below) + 1e-9


def test_the_triangle_itself_is_reached() -> None:
    """Slopes 4, then 1/4: the corner lies at (1/5, 4/5), and the triangle is 0.6 of the half."""
    assert middle_openness(4.0, 0.25) == pytest.approx(0.6)


def test_neighbours_alike_leave_nothing_open_and_strangers_everything() -> None:
    assert middle_openness(1.0, 1.0) == pytest.approx(0.0)
    assert middle_openness(1e6, 1e-6) == pytest.approx(1.0, abs=1e-5)
    # A ratio above both neighbours may lean either way.
    assert middle_openness(0.1, 0.1) == pytest.approx(np.tanh(np.log(10.0) / 2.0))


def test_the_end_of_the_grid_has_no_neighbour() -> None:
    """Beyond the first bucket anything may come: a third of its order is open."""
    histogram = three([1000.0] * 3, [1000.0, 1500.0, 1500.0])
    assert spans(histogram).openness[0] == pytest.approx(1.0 / 3.0)


@pytest.mark.parametrize("cells", [50, 400])
def test_many_thin_buckets_are_as_open_as_their_part_of_a_group(cells: int) -> None:
    """Few examples in each: the groups' ratios differ, and a bucket has its part of that."""
    counts = np.ones((2, cells))
    counts[1] = np.linspace(0.2, 1.8, cells)
    histogram = ScoreHistogram(np.arange(cells + 1) / cells, counts)
    assert spans(histogram).openness.max() < 0.1


def test_crowded_buckets_may_hide_any_order_and_fine_ones_hide_little() -> None:
    crowded = three([9000.0, 90.0, 10.0], [300.0, 300.0, 300.0])
    assert possible_pairs(crowded) > 0.8 * 0.5 * 9000 * 300
    lean = np.linspace(0.9, 1.1, 100)
    fine = ScoreHistogram(np.arange(101) / 100, 1000.0 * np.stack([lean[::-1], lean]))
    assert possible_pairs(fine) < 1e-6 * (1000 * 100) ** 2


def test_nothing_lies_beyond_either_end() -> None:
    """With a neighbour on one side alone the triangle is 1 - 1/4 of the half rectangle."""
    rising = three([1000.0] * 3, [250.0, 1000.0, 4000.0])
    assert spans(rising).openness[[0, 2]] == pytest.approx(0.75)


def test_noise_alone_opens_nothing() -> None:
    """Three hundred buckets of much noise and few positives: 1 / 300 of the pairs at the most."""
    generator = np.random.default_rng(3)
    cells, noise_sd = 300, 30.0
    truth = np.stack([np.full(cells, 1000.0), np.full(cells, 10.0)])
    noisy = truth + generator.normal(0.0, noise_sd, truth.shape)
    noise = DenseNoise(noise_sd**2 * np.eye(2 * cells))
    histogram = ScoreHistogram(np.arange(cells + 1) / cells, noisy, noise)
    pairs = histogram.total_positives * histogram.total_negatives
    assert possible_pairs(histogram) < pairs / 300
    assert not clear_spikes(histogram).any()


@given(st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
def test_densities_between_their_neighbours_stay_within_the_room(part: float, seed: int) -> None:
    """Falling densities of 100 pieces, between 40 and 4 a bucket, by brute force."""
    generator = np.random.default_rng(seed)
    density = np.sort(generator.uniform(4.0, 40.0, 100))[::-1]
    own = float(density.mean())
    histogram = three([40.0, own, 4.0], [1.0, 1.0, 1.0])
    cumulative = np.concatenate([[0.0], np.cumsum(density) / 100.0])
    below = float(np.interp(part, np.arange(101) / 100.0, cumulative))
    chord = own * part
    corner = min(40.0 * part, own - 4.0 * (1.0 - part))
    assert chord - 1e-9 <= below <= corner + 1e-9
    # From the middle of that room nothing in it is further than half of it.
    room = possible_below(histogram, 1, part, np.array([(chord + corner) / 2.0, 0.5]))
    assert room[0] <= own


def test_what_towers_above_its_neighbours_may_sit_anywhere() -> None:
    histogram = three([0.0, 1000.0, 0.0], [50.0, 50.0, 50.0])
    assert possible_below(histogram, 1, 0.25, np.array([250.0, 12.5]))[0] >= 750.0
    assert possible_below(histogram, 1, 0.25, np.array([250.0, 12.5]))[1] < 1e-9


def test_what_is_more_than_its_neighbours_may_lean_to_either_side() -> None:
    """Four times as many as beside it, which is no tower yet: of 300 above, nearly all."""
    histogram = three([100.0, 400.0, 100.0], [50.0, 50.0, 50.0])
    assert possible_below(histogram, 1, 0.25, np.array([100.0, 12.5]))[0] >= 250.0


def test_even_buckets_hide_nothing_below_a_threshold() -> None:
    histogram = ScoreHistogram(np.arange(9) / 8, np.full((2, 8), 500.0))
    assert possible_below(histogram, 3, 0.5, np.array([250.0, 250.0])).tolist() == [0.0, 0.0]


def test_tied_scores_on_a_lattice_are_known_and_one_hump_is_not() -> None:
    """Ten buckets apart from each other are ten scores; one bucket may be anything."""
    counts = np.zeros((2, 100))
    counts[:, 5::10] = 200.0
    counts[1, 55::10] = 600.0
    lattice = ScoreHistogram(np.arange(101) / 100, counts)
    assert metrics.roc_auc(lattice).binning_sd < 0.01
    alone = np.zeros((2, 100))
    alone[:, 5] = 2000.0
    alone[1, 90] = 20.0
    hump = ScoreHistogram(np.arange(101) / 100, alone)
    assert isinstance(metrics.roc_auc(hump), TooCoarse)
    assert (spans(hump).loose == alone).all()
    assert spans(lattice).loose.sum() == 0.0


def test_a_ratio_far_below_both_neighbours_may_lean_either_way() -> None:
    """Both steps alike: nothing to divide by, and no warning."""
    dip = three([1000.0] * 3, [1e9, 1000.0, 1e9])
    assert spans(dip).openness[1] == pytest.approx((1e6 - 1.0) / (1e6 + 1.0), rel=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30),
    st.sampled_from([0.0, 1e-9]),
)
def test_a_group_ends_as_soon_as_it_has_sixteen_of_both_classes(
    counts: list[tuple[int, int]], noise_sd: float
) -> None:
    """Bucket by bucket; what is left at the end joins the last group. With noise and without."""
    expected, held = [0], [0, 0]
    for bucket, both in enumerate(counts):
        held = [sum(pair) for pair in zip(held, both, strict=True)]
        # Noise of 1e-9 is three of them away from an exact 16.
        if min(held) >= 16 + 1e-7 * (noise_sd > 0):
            expected.append(bucket + 1)
            held = [0, 0]
    expected = expected[:-1] if len(expected) > 1 else expected
    table = np.array(counts, dtype=float).T
    assert _groups(table, RangeNoise(noise_sd, None)).tolist() == expected


@pytest.mark.parametrize("seed", range(3))
def test_two_tied_scores_in_one_bucket_are_in_the_interval_of_roc_auc(seed: int) -> None:
    """Scores in hundredths; nobody at 0 is positive, so that 0 and 0.01 are published together."""
    generator = np.random.default_rng(seed)
    scores = np.round(generator.beta(0.6, 6.0, 80_000), 2)
    labels = (generator.random(80_000) < 0.8 * scores).astype(np.int64)
    beside = np.ravel([[i / 100 - 1e-4, i / 100] for i in range(2, 61)])
    grid = Grid.explicit([0.0, 0.01, *beside, 1.0])
    estimate = metrics.roc_auc(ScoreHistogram.from_scores(labels, scores, grid=grid))
    exact = roc_auc_score(labels, scores)
    assert abs(estimate.value - exact) > 5e-4  # the guess alone is far off
    assert exact in estimate.interval(population=False)
    assert estimate.binning_sd < 1.5e-3


def test_of_a_tie_all_rows_may_lie_on_one_side_and_as_many_more_as_noise_hides() -> None:
    """One score among empty buckets: positives, lost in the noise, share it with negatives."""
    counts = np.array([[20.0, -30.0, 9000.0, 10.0, -15.0], [5.0, 20.0, 60.0, -10.0, 30.0]])
    noisy = ScoreHistogram(np.arange(6) / 5, counts, DenseNoise(30.0**2 * np.eye(10)))
    rooms = possible_below(noisy, 2, 0.25, np.array([2250.0, 15.0]))
    assert rooms[0] >= 6750.0 + 1.9 * 30.0
    assert rooms[1] >= 45.0 + 1.9 * 30.0


def test_of_few_buckets_one_may_hide_a_lump_and_of_many_it_hides_little() -> None:
    """Of k even buckets without a lump, the next has one with a chance of 1 / (k + 2)."""
    for k in (4, 16, 256):
        even = ScoreHistogram(
            np.arange(k + 1) / k, np.full((2, k), 1000.0), DenseNoise(1e-6 * np.eye(2 * k))
        )
        lumps = possible_lumps(even, 1, np.array([250.0, 500.0]))
        assert lumps == pytest.approx([750.0 / np.sqrt(k + 2), 500.0 / np.sqrt(k + 2)], rel=1e-3)
        assert not possible_lumps(replace(even, noise=NoNoise()), 1, np.array([250.0, 500.0])).any()


def test_ten_values_in_eight_buckets_are_in_the_interval_at_one_of_them() -> None:
    """Nothing shows that the scores are tied: a bucket may hold two of them."""
    generator = np.random.default_rng(6)
    values = [0.02, 0.05, 0.08, 0.13, 0.21, 0.34, 0.45, 0.55, 0.72, 0.91]
    shares = [0.22, 0.18, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02]
    scores = generator.choice(values, 200_000, p=shares)
    labels = generator.random(200_000) < scores
    edges = np.array([0.0, 0.043, 0.1, 0.3164, 0.5, 0.6836, 0.8438, 0.957, 1.0])
    counts = np.stack([np.histogram(scores[labels == each], edges)[0] for each in (False, True)])
    noisy = ScoreHistogram(edges, counts.astype(np.float64), DenseNoise(500.0**2 * np.eye(16)))
    for threshold in (0.08, 0.34):
        truth = float((scores[~labels] <= threshold).mean())
        found = metrics.specificity(noisy, threshold)
        assert abs(found.value - truth) > 0.03
        assert truth in found.interval(population=False)


def crowded_beside(threshold: float) -> ScoreHistogram:
    """A class that ends in one cell, and the other that begins there, with a little noise."""
    counts = np.array([[1.5e5, 3e4, 60.0, 30.0], [100.0, 300.0, 8e3, 1.2e4]])
    edges = np.array([0.0, 0.001, 0.05, 0.4, 1.0])
    assert edges[1] < threshold < edges[2]
    return ScoreHistogram(edges, counts, DenseNoise(40.0**2 * np.eye(8)))


@pytest.mark.parametrize("metric", [metrics.f1, metrics.mcc, metrics.specificity])
def test_no_lump_takes_a_figure_further_than_rows_can_lie(
    metric: Callable[[ScoreHistogram, float], Estimate],
) -> None:
    """All rows of the cell on one side of the threshold, or all on the other: brute force."""
    noisy = crowded_beside(0.02)
    found = metric(noisy, 0.02)
    values = []
    for sides in product((0, 2), repeat=2):
        moved = noisy.counts.copy()
        for label, side in enumerate(sides):
            moved[label, side] += moved[label, 1]
            moved[label, 1] = 0.0
        values.append(metric(replace(noisy, counts=moved, noise=NoNoise()), 0.05).value)
    furthest = max(abs(value - found.value) for value in values)
    low, high = found.interval(population=False)
    assert high - found.value < 1.02 * furthest + 3.0 * REACH * found.noise_sd
    assert low < found.value - 0.98 * furthest


def test_a_rate_that_a_cell_leaves_open_is_not_told() -> None:
    """Nearly all other negatives may lie above 0.02, and nearly all below."""
    counts = np.array([[5e3, 9e4, 60.0, 30.0], [100.0, 300.0, 8e3, 1.2e4]])
    noisy = replace(crowded_beside(0.045), counts=counts)
    found = metrics.specificity(noisy, 0.045)
    assert isinstance(found, TooCoarse)
    assert "by up to 0.9" in found.reason
    assert metrics.specificity(noisy, 0.05).is_available


def test_what_chance_explains_is_no_lump() -> None:
    """112 rows beside 91 and 87 may be even ones; a hundred times as many are not."""
    few = possible_below(three([91, 112, 87], [100] * 3), 1, 0.5, np.array([56.0, 50.0]))
    many = possible_below(three([9100, 11200, 8700], [100] * 3), 1, 0.5, np.array([5600.0, 50.0]))
    assert few[0] < 1.0
    assert many[0] > 0.5 * (11200 - 8900) * 0.9


def test_a_wider_neighbour_is_read_at_its_middle() -> None:
    """A density of 1 - x is no lump in any bucket, however wide the one beside it is."""
    edges = np.array([0.0, 0.2, 0.3, 0.4])
    row = 1e6 * np.diff(edges - edges**2 / 2)
    below = 1e6 * (0.05 - (0.25**2 - 0.2**2) / 2)
    room = possible_below(
        ScoreHistogram(edges, np.stack([row, row])), 1, 0.5, np.array([below, below])
    )
    # The corner of its neighbours' densities is 4,375 rows away, which is squared.
    assert room[0] < 1.2 * 4375**2 / below


def test_counts_that_fall_all_the_way_leave_no_more_open_than_a_falling_density_does() -> None:
    """Next to 0 density falls by half and by half again: below lies no more than at the corner."""
    histogram = three([86876, 25326, 15336], [100] * 3)
    part, below = 0.68, 19103.0
    corner = 25326 - 15336 * (1 - part)
    furthest = max(corner - below, below - 25326 * part)
    room = possible_below(histogram, 1, part, np.array([below, 68.0]))
    assert room[0] <= 1.1 * furthest


def test_a_lump_is_as_likely_as_the_evidence_of_a_curve_says() -> None:
    """Of 256 even buckets one hides little by itself; where a curve found lumps, all of it."""
    noise = DenseNoise(1e-6 * np.eye(512), is_smoothed=True)
    even = ScoreHistogram(np.arange(257) / 256, np.full((2, 256), 1000.0), noise)
    for chance, expected in ((0.0, 750.0 / np.sqrt(258)), (0.25, 375.0), (1.0, 750.0)):
        doubts = Doubts(0.0, chance, np.zeros(256))
        lumps = possible_lumps(replace(even, doubts=doubts), 1, np.array([250.0, 250.0]))
        assert lumps == pytest.approx([expected, expected], rel=1e-3)


def test_buckets_that_jump_make_lumps_likely_and_smooth_ones_do_not() -> None:
    """Ten scores in twelve wide buckets, or a beta density in as many, with noise of epsilon 1."""
    generator, edges = np.random.default_rng(2), np.arange(13) / 12
    noise = DenseNoise(2.0 * np.eye(24))
    values = generator.choice(generator.random(10), 5000, p=generator.dirichlet(np.ones(10)))
    smooth = generator.beta(1.5, 3.0, 5000)
    found = []
    for scores in (values, smooth):
        rows = np.histogram(scores, edges)[0].astype(float)
        found.append(roughness(ScoreHistogram(edges, np.stack([0.8 * rows, 0.2 * rows]), noise)))
    assert found[0] > 0.5
    assert found[1] == 0.0


@pytest.mark.parametrize("start", [0.05, 0.14])
def test_where_one_class_ends_most_of_the_other_may_lie_next_to_its_end(start: float) -> None:
    """Hardly a positive is below .3; of the negatives nine in ten, evenly, from here or there on.

    Cells that hold ten of each label are one down to 0, and show its near edge alone.
    """
    generator = np.random.default_rng(4)
    negatives = np.concatenate(
        [generator.uniform(start, 0.3, 90_000), generator.uniform(0.3, 0.3 + 0.3 - start, 10_000)]
    )
    edges = np.array([0.0, 0.3, 0.302, 0.304, 0.31, 0.4, 1.0])
    n, _ = np.histogram(negatives, edges)
    p = np.array([12.0, 12.0, 15.0, 40.0, 900.0, 3000.0])
    # The next bucket is as dense as this one is where anybody is in it.
    n[1:3] = 90_000 * 0.002 / (0.3 - start)
    h = ScoreHistogram(edges, np.stack([n.astype(float), p]))
    at = 0.2
    exact = float((negatives <= at).sum()) / n.sum()
    found = metrics.specificity(h, at)
    low, high = found.interval(population=False) if found.is_available else (0.0, 1.0)
    assert low <= exact <= high
    # With as many of both classes in it, one does not end there.
    shared = ScoreHistogram(edges, np.stack([n.astype(float), p + 40_000 * (edges[:-1] == 0.0)]))
    narrow_low, narrow_high = metrics.specificity(shared, at).interval(population=False)
    assert narrow_high - narrow_low < 0.5 * (high - low)


def test_of_a_class_that_lies_in_one_cell_a_threshold_inside_tells_nothing() -> None:
    """All of the last cell's positives are at its near edge, though the next is hardly as dense."""
    edges = np.array([0.0, 0.296, 0.3, 0.302, 0.305, 1.0])
    counts = np.array([[9e4, 3500.0, 1700, 1400, 800], [20.0, 22, 20, 21, 3100]])
    found = metrics.recall(ScoreHistogram(edges, counts), 0.5)
    assert isinstance(found, TooCoarse) or found.interval(population=False).low < 0.03
