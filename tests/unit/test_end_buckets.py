"""What rows in the end buckets lose, against powers that are known and scikit-learn's log loss."""

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import log_loss

from fedassay import Grid, ScoreHistogram, TooCoarse, metrics
from fedassay.metrics.end_buckets import end_loss, without_empty_ends
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
