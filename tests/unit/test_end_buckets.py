"""What rows in the end buckets lose, against powers that are known and scikit-learn's log loss."""

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import log_loss

from fedassay import Grid, ScoreHistogram, TooCoarse, metrics
from fedassay.metrics.end_buckets import at_end, end_loss, without_empty_ends
from fedassay.metrics.heaps import heaped_share
from fedassay.noise import DenseNoise

Floats = npt.NDArray[np.float64]
MOST = -np.log(np.finfo(float).eps)


def of_power(power: float, *, at_zero: float = 0.0, mirrored: bool = False) -> ScoreHistogram:
    """A million of the class that belongs to 0, F = x^power, and some at exactly 0."""
    edges = np.arange(9) / 8
    counts = np.full((2, 8), 1000.0)
    counts[0] = 1e6 * np.diff(edges**power)
    counts[0, 0] += at_zero
    if mirrored:
        return ScoreHistogram(edges, counts[::-1, ::-1].copy())
    return ScoreHistogram(edges, counts)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("power", [0.3, 0.5, 0.8])
def test_a_class_that_thins_out_by_a_power_loses_as_its_integral_says(
    power: float, mirrored: bool
) -> None:
    """The mean of -log x of x^power on [0, 1/8], by a sum over a million quantiles."""
    quantiles = (np.arange(1_000_000) + 0.5) / 1_000_000
    expected = float(-np.log(0.125 * quantiles ** (1.0 / power)).mean())
    end = end_loss(of_power(power, mirrored=mirrored), 0 if mirrored else 1)
    assert end.likely + end.room == pytest.approx(expected, rel=1e-3)
    assert end.likely - end.room == pytest.approx(1.0 + np.log(8.0))


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_what_is_more_than_the_power_lets_expect_may_be_at_exactly_0(power: float) -> None:
    inside = 1e6 * 0.125**power
    end = end_loss(of_power(power, at_zero=3.0 * inside), 1)
    expected = 0.75 * MOST + 0.25 * (1.0 / power + np.log(8.0))
    assert end.likely + end.room == pytest.approx(expected, rel=1e-3)


def test_a_bucket_as_narrow_as_zero_holds_zeros() -> None:
    counts = np.ones((2, 3))
    histogram = ScoreHistogram(np.array([0.0, 2.0**-40, 0.5, 1.0]), counts)
    assert end_loss(histogram, 1).likely == pytest.approx(MOST)


@pytest.mark.parametrize("power", [0.4, 0.9])
def test_the_likely_loss_moves_with_the_other_class_as_differences_say(power: float) -> None:
    histogram = of_power(power)
    slopes = end_loss(histogram, 1).slopes
    for bucket in range(8):
        ends = []
        for step in (5.0, -5.0):
            counts = histogram.counts.copy()
            counts[0, bucket] += step
            ends.append(end_loss(ScoreHistogram(histogram.edges.copy(), counts), 1).likely)
        assert slopes[bucket] == pytest.approx((ends[0] - ends[1]) / 10.0, rel=1e-3, abs=1e-12)


def contradicted(seed: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """A third of the scores is exactly 0, and one in fifty of those is positive."""
    generator = np.random.default_rng(seed)
    scores = np.where(generator.random(50_000) < 1 / 3, 0.0, generator.beta(0.8, 1.2, 50_000))
    return (generator.random(50_000) < 0.02 + 0.94 * scores).astype(np.int64), scores


@pytest.mark.parametrize("noise_sd", [0.0, 30.0, 300.0])
@pytest.mark.parametrize("cells", [8, 32])
def test_labels_that_contradict_zeros_are_spanned_or_the_grid_is_too_coarse(
    cells: int, noise_sd: float
) -> None:
    labels, scores = contradicted(3)
    exact = log_loss(labels, scores)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(cells))
    noisy = histogram.counts + noise_sd * np.random.default_rng(1).normal(size=(2, cells))
    noise = DenseNoise(noise_sd**2 * np.eye(2 * cells))
    estimate = metrics.log_loss(ScoreHistogram(histogram.edges, noisy, noise))
    assert isinstance(estimate, TooCoarse) or exact in estimate.interval(population=False)


def test_noise_where_no_scores_are_is_not_blown_up_by_36_nats() -> None:
    """Scores in [0.2, 0.8], on a grid with cells down to 2^-40: the ends' noise alone would be 1.

    Eight draws of noise within 5 of what is said to be its standard deviation: 5e-6.
    """
    generator = np.random.default_rng(6)
    scores = 0.2 + 0.6 * generator.random(20_000)
    labels = (generator.random(20_000) < scores).astype(np.int64)
    exact = log_loss(labels, scores)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.octaves(2))
    cells = histogram.buckets
    noise = DenseNoise(100.0 * np.eye(2 * cells))
    blown_up = 10.0 * MOST * np.sqrt(2.0) / 20_000
    for _ in range(8):
        noisy = histogram.counts + 10.0 * generator.normal(size=(2, cells))
        estimate = metrics.log_loss(ScoreHistogram(histogram.edges, noisy, noise))
        told = np.hypot(estimate.noise_sd, estimate.binning_sd)
        assert abs(estimate.value - exact) < 5.0 * told
        assert estimate.noise_sd < blown_up
    assert without_empty_ends(ScoreHistogram(histogram.edges, noisy, noise)).buckets < cells


def test_few_rows_near_an_end_are_not_taken_together_with_empty_buckets() -> None:
    """A small federation with hardly any noise: seven rows above 0.6, and none above 0.8."""
    counts = np.array([[300.0, 90.0, 40.0, 9.0, 0.0], [4.0, 9.0, 12.0, 7.0, 0.0]])
    small = ScoreHistogram(np.arange(6) / 5, counts, DenseNoise(0.16 * np.eye(10)))
    assert without_empty_ends(small).edges.tolist() == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    loud = ScoreHistogram(np.arange(6) / 5, counts, DenseNoise(16.0 * np.eye(10)))
    assert without_empty_ends(loud).buckets < 5


@pytest.mark.parametrize("power", [1.5, 3.0, 6.0])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_class_that_thins_out_towards_the_end_loses_less_there_than_even_scores(
    power: float, mirrored: bool
) -> None:
    """Its own power says how much: the mean of -log x of x^power on [0, 1/8]."""
    edges = np.arange(9) / 8
    counts = np.stack([np.full(8, 5.0), 1e8 * np.diff(edges**power)])
    if mirrored:
        counts = counts[::-1, ::-1].copy()
    end = end_loss(ScoreHistogram(edges, counts), 0 if mirrored else 1)
    quantiles = (np.arange(1_000_000) + 0.5) / 1_000_000
    expected = float(-np.log(0.125 * quantiles ** (1.0 / power)).mean())
    assert end.likely == pytest.approx(expected, rel=2e-3)
    assert end.room == pytest.approx(0.5 * (1.0 + np.log(8.0) - expected), rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_of_a_class_by_itself_chance_puts_nobody_at_the_very_end(seed: int) -> None:
    """Scores that rank wrongly: a hundred positives near 0, beside a few negatives."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(50_000) < 0.3).astype(np.int64)
    scores = 1.0 / (1.0 + np.exp(-generator.normal(0.5 - 0.8 * labels, 1.0)))
    grid = Grid.explicit([0.0, *(i / 100 for i in range(6, 96)), 1.0])
    histogram = ScoreHistogram.from_scores(labels, scores, grid=grid)
    near = scores[(labels == 1) & (scores <= 0.06)]
    end = end_loss(histogram, 1)
    assert abs(end.likely - float(-np.log(near).mean())) < end.room
    assert end.room < 0.5
    assert log_loss(labels, scores) in metrics.log_loss(histogram).interval(population=False)


def test_a_few_more_than_expected_in_an_end_bucket_are_chance() -> None:
    """A hundred negatives in each bucket: 15 more are within three deviations, 100 are not."""
    for more, least, most in ((0.0, 3.07, 3.09), (15.0, 3.07, 3.09), (100.0, 15.0, 25.0)):
        counts = np.stack([np.full(8, 100.0), np.full(8, 5.0)])
        counts[0, 0] += more
        end = end_loss(ScoreHistogram(np.arange(9) / 8, counts), 1)
        assert least < end.likely + end.room < most


def test_a_class_that_is_seen_in_the_end_bucket_alone_may_be_at_the_very_end() -> None:
    """All negatives below 1/8, some positives among them: whether at 0.1 or at 1e-9 nobody saw."""
    counts = np.zeros((2, 8))
    counts[0, 0], counts[1, 0], counts[1, 7] = 30_000.0, 3000.0, 20_000.0
    for noise in (DenseNoise(1e4 * np.eye(16)), DenseNoise(np.zeros((16, 16)))):
        histogram = ScoreHistogram(np.arange(9) / 8, counts, noise)
        end = end_loss(histogram, 1)
        assert end.likely + end.room == pytest.approx(MOST)
        assert end.likely - end.room == pytest.approx(np.log(8.0))
        assert isinstance(metrics.log_loss(histogram), TooCoarse)


def heap_at_1(held: float, *, noise_sd: float = 30.0) -> ScoreHistogram:
    """Negatives that thin out towards 1, and as many more in the last bucket as are given."""
    edges = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
    counts = np.array([[40e3, 20e3, 8e3, 3e3, 600.0, 20.0], [1e3, 3e3, 5e3, 6e3, 5e3, 80.0]])
    counts[0, -1] += held
    return ScoreHistogram(edges, counts, DenseNoise(noise_sd**2 * np.eye(12)))


def test_rows_heaped_at_an_end_that_they_contradict_may_be_at_the_very_end() -> None:
    """A thousand negatives more above 0.95, where ever fewer are expected: scored 1 by default."""
    heaped = heap_at_1(1000.0)
    assert heaped_share(heaped, 1) > 0.6
    end = end_loss(heaped, 0)
    assert end.likely + end.room > 0.6 * MOST
    tower = at_end(heaped, 1)
    assert tower is not None
    assert (tower.start, tower.stop) == (5, 6)
    assert tower.share > 0.6
    # The same where the class that belongs there has a shape by which nothing towers.
    belongs = heaped.counts.copy()
    belongs[1] = [1e3, 2e3, 4e3, 7e3, 9e3, 4e3]
    shaped = at_end(ScoreHistogram(heaped.edges, belongs, heaped.noise), 1)
    assert shaped is not None
    assert shaped.share > 0.6
    # As few as noise makes, or as thin out, are no heap.
    for held, noise_sd in ((1000.0, 600.0), (0.0, 30.0)):
        thin = heap_at_1(held, noise_sd=noise_sd)
        assert heaped_share(thin, 1) == 0.0
    assert end_loss(heap_at_1(0.0), 0).likely < 6.0


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_heap_hidden_from_the_leaves_is_in_the_interval_of_log_loss(mirrored: bool) -> None:
    """Leaves beside 1 whose noise hides a heap, in a cell that shows it; scikit-learn's loss."""
    edges = np.append(np.arange(20) / 20, [0.96, 0.97, 0.98, 0.99, 0.995, 1.0])
    scores = 0.5 * (edges[:-1] + edges[1:])
    counts = 2e5 * np.stack([(1 - scores) ** 5, 0.2 * scores * (1 - scores)]) * np.diff(edges)
    truth_scores = np.append(np.repeat(scores, 2), 1.0)
    labels, weights = np.append(np.tile([0, 1], 25), 0), np.append(counts.T.ravel(), 1500.0)
    truth = log_loss(labels, truth_scores, sample_weight=weights)
    counts[0, -1] += 1500.0
    each = np.full(25, 20.0**2)
    each[-6:] = 900.0**2
    noise = np.diag(np.tile(each, 2))
    for label in (0, 1):  # the sum of the last six is known as well as any other
        last = slice(25 * label + 19, 25 * label + 25)
        noise[last, last] -= (6 * 900.0**2 - 20.0**2) / 36
    cells = np.append(np.arange(20), 25)
    if mirrored:
        edges, counts = (1.0 - edges)[::-1], counts[::-1, ::-1].copy()
        noise, cells = noise[::-1, ::-1].copy(), np.append(0, np.arange(6, 26))
    h = ScoreHistogram(edges, counts, DenseNoise(noise), cells=cells)
    found = metrics.log_loss(h)
    assert not found.is_available or truth in found.interval(population=False)


@pytest.mark.parametrize(("held", "noise_sd"), [(60.0, 5.0), (0.0, 5.0), (60.0, 60.0)])
def test_in_a_wide_cell_a_class_far_commoner_than_beside_it_may_be_a_heap(
    held: float, noise_sd: float
) -> None:
    """Small hospitals, eight cells: positives below 0.04 that no cell beside lets expect."""
    edges = np.array([0.0, 0.04, 0.1, 0.3, 0.5, 0.7, 0.85, 0.96, 1.0])
    counts = np.array([[150.0, 300, 800, 300, 60, 9, 2, 1], [4.0, 15, 150, 120, 70, 20, 6, 3]])
    counts[:, 0] += held
    small = ScoreHistogram(edges, counts, DenseNoise(noise_sd**2 * np.eye(16)))
    is_heap = held > 0.0 and noise_sd < held / 2.0
    assert heaped_share(small, 0) == (1.0 if is_heap else 0.0)
    assert isinstance(metrics.log_loss(small), TooCoarse) is is_heap
    # Exact counts have heaps in buckets of their own.
    assert heaped_share(ScoreHistogram(edges, counts), 0) < 1.0


@pytest.mark.parametrize("end", [0, -1])
@pytest.mark.parametrize(("count", "buckets"), [(14.0, 4), (10.0, 3)])
def test_a_counter_of_exactly_0_or_1_is_believed_from_three_deviations_on(
    end: int, count: float, buckets: int
) -> None:
    """Heaps between three and six deviations were spread over the bucket beside them."""
    edges = np.array([0.0, 0.4, 0.9, 1.0 - 2.0**-52, 1.0])
    counts = np.array([[200.0, 90.0, 2.0, count], [40.0, 70.0, 3.0, 0.0]])
    if end == 0:
        edges, counts = np.array([0.0, 2.0**-52, 0.1, 0.6, 1.0]), counts[::-1, ::-1].copy()
    noisy = ScoreHistogram(edges, counts, DenseNoise(16.0 * np.eye(8)))
    assert without_empty_ends(noisy).buckets == buckets
