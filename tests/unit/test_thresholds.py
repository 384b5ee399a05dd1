"""What a threshold inside a bucket leaves open, and intervals at the very ends."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
from scipy.stats import binom

from fedassay import Estimate, Grid, ScoreHistogram, TooCoarse, metrics
from fedassay.examples import FloatArray
from fedassay.metrics.confusion import confusion
from fedassay.noise import DenseNoise

Z = 1.959963984540054


def by_hand(histogram: ScoreHistogram, threshold: float, label: int) -> float:
    """The variance of the interpolated count below a threshold, for rows even inside buckets.

    A row moves the estimate by the derivative of `below` with respect to its bucket's count,
    taken by a difference, and the truth by whether it lies below.
    """
    counts, edges = histogram.counts, histogram.edges
    variance = 0.0
    for bucket in range(histogram.buckets):
        moved = counts.copy()
        step = 1e-4 * counts[label].max()
        moved[label, bucket] += step
        up = ScoreHistogram(edges, moved).below(threshold)[0][label]
        moved[label, bucket] -= 2.0 * step
        down = ScoreHistogram(edges, moved).below(threshold)[0][label]
        slope = float(up - down) / (2.0 * step)
        lo, hi = edges[bucket], edges[bucket + 1]
        below = min(max((threshold - lo) / (hi - lo), 0.0), 1.0)
        variance += counts[label, bucket] * (below * (slope - 1.0) ** 2 + (1.0 - below) * slope**2)
    return variance


@pytest.mark.parametrize("threshold", [0.37, 0.4375, 0.49])
def test_the_spread_at_a_threshold_knows_the_neighbours_that_bend_the_curve(
    threshold: float,
) -> None:
    """Equal counts: no spike, and the curve is straight, so that chance is all there is.

    It is there three times: for how often each row was drawn, and twice for where the table's own
    lie. Of so many rows no share is off by more than a ten-thousandth.
    """
    histogram = ScoreHistogram(Grid.uniform(8).edges, np.full((2, 8), 1e8))
    for label in (0, 1):
        expected = sqrt(3.0 * by_hand(histogram, threshold, label))
        spread = confusion(histogram, threshold).spread[label]
        assert spread == pytest.approx(expected, rel=1e-3)


def test_a_threshold_in_a_bucket_of_rows_that_come_again_is_held() -> None:
    """1,000 tables, each drawn again with replacement inside eight even buckets and read at 0.43.

    False alarms: below 1e-6, if 93 % are held. With rows that fall each for itself 83 % are.
    """
    generator = np.random.default_rng(11)
    trials, held = 1000, 0
    histogram = ScoreHistogram(Grid.uniform(8).edges, np.full((2, 8), 50.0))
    found = metrics.specificity(histogram, 0.43).interval(population=False)
    for _ in range(trials):
        table = (np.arange(8)[:, None] + generator.random((8, 50))) / 8
        scores = np.take_along_axis(table, generator.integers(0, 50, (8, 50)), axis=1)
        held += float((scores <= 0.43).mean()) in found
    assert held >= binom.ppf(1e-6, trials, 0.93)


def test_a_table_with_luck_of_its_own_is_held_again_and_again() -> None:
    """Of 1,000 rows in a bucket 2.3 deviations more than half lie below its middle, in every draw.

    A draw has a binomial number of them below. With the table's luck counted once 70 % are held.
    """
    histogram = ScoreHistogram(Grid.uniform(8).edges, np.full((2, 8), 1000.0))
    found = metrics.specificity(histogram, 0.4375).interval(population=False)
    share = 0.5 + 2.3 * sqrt(0.25 / 1000)
    low, high = (8000 * end - 3000 for end in found)
    held = binom.cdf(high, 1000, share) - binom.cdf(low, 1000, share)
    assert 0.84 < held < 0.95


def test_few_rows_vary_as_much_as_where_a_table_has_more_of_them() -> None:
    """A quarter of a bucket is below; of 40 rows 0.3125 of them may be, and many are a quarter."""
    few, many = (
        confusion(ScoreHistogram(Grid.uniform(8).edges, np.full((2, 8), rows)), 0.40625).spread[0]
        for rows in (40.0, 4e9)
    )
    more = 3.0 * 40.0 * (0.3125 * 0.6875 - 0.25 * 0.75)
    assert few**2 - many**2 / 1e8 == pytest.approx(more, rel=1e-3)


def test_a_perfect_f1_of_few_rows_is_not_certain() -> None:
    labels = [0] * 20 + [1] * 20
    scores = [0.1] * 20 + [0.9] * 20
    histogram = ScoreHistogram.from_scores(labels, scores)
    for metric, rows in ((metrics.f1, 20), (metrics.precision, 20), (metrics.accuracy, 40)):
        estimate = metric(histogram, 0.5)
        assert estimate.value == 1.0
        low, high = estimate.interval(0.95)
        # Wilson's interval for all of so many.
        assert low == pytest.approx(rows / (rows + Z * Z), rel=1e-6)
        assert high == pytest.approx(1.0)


def test_an_f1_of_nothing_is_not_certain() -> None:
    histogram = ScoreHistogram.from_scores([1] * 20 + [0] * 20, [0.1] * 20 + [0.9] * 20)
    estimate = metrics.f1(histogram, 0.5)
    assert estimate.value == 0.0
    low, high = estimate.interval(0.95)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert 0.05 < high < 0.25


def test_a_precision_among_few_is_read_at_both_ends_of_what_is_possible() -> None:
    """All negatives in one bucket: above its middle there may be 1,000 of them, or none.

    The slope at 500 negatives and 100 positives says 0.12 for 400 fewer; none at all is 0.83.
    """
    counts = np.array([[1000.0, 0.0, 0.0, 0.0], [25.0, 25.0, 25.0, 25.0]])
    histogram = ScoreHistogram(np.arange(5) / 4, counts)
    found = metrics.precision(histogram, 0.125)
    assert isinstance(found, TooCoarse)
    assert Z * found.binning_sd > 0.6  # of 0.83 - 0.17
    assert isinstance(metrics.precision(histogram, 0.25), Estimate)


def test_both_classes_may_lie_on_one_side_of_a_threshold() -> None:
    """A crowd of both in one bucket: all of it above, or none, and the number flagged with it."""
    edges = np.array([0.0, 0.4, 0.6, 1.0])
    counts = np.array([[0.0, 1000.0, 0.0], [0.0, 1000.0, 0.0]])
    flagged = metrics.flagged(ScoreHistogram(edges, counts), 0.5)
    # Half of all either way and some for spikes, not the root of two quarters' squares.
    assert Z * flagged.binning_sd > 0.6


def counted_in_fours(counts: FloatArray, leaf_sd: float) -> ScoreHistogram:
    """Leaves in cells of four, whose sums are nearly exact while leaves themselves are not."""
    apart = np.kron(np.eye(8), np.eye(4) - 0.25)
    noise = DenseNoise(np.eye(32) + leaf_sd**2 * apart)
    return ScoreHistogram(np.linspace(0.0, 1.0, 17), counts, noise, cells=np.arange(0, 17, 4))


def test_inside_a_cell_of_even_scores_the_noise_of_leaves_is_not_read() -> None:
    off = 80.0 * np.tile([1.0, -1.0, 1.0, -1.0], 4)
    histogram = counted_in_fours(np.full((2, 16), 500.0) + off, leaf_sd=80.0)
    found = metrics.recall(histogram, 5 / 16)
    assert found.value == pytest.approx(11 / 16, abs=1e-9)  # a leaf would be off by 80 of 8,000
    # Two in sqrt(8000) of noise, and what 2,000 even scores do by chance: no leaf's 80.
    assert found.noise_sd < 0.002
    assert found.binning_sd > 0.0


def test_inside_a_cell_where_scores_are_heaped_leaves_are_read() -> None:
    counts = np.full((2, 16), 500.0)
    counts[:, 4:8] = [[0.0, 0.0, 6000.0, 0.0], [0.0, 0.0, 6000.0, 0.0]]
    found = metrics.recall(counted_in_fours(counts, leaf_sd=80.0), 6 / 16)
    assert found.value == pytest.approx(10_000 / 12_000)
    assert found.noise_sd > 80.0 / 12_000 / 2.0


def test_on_an_edge_of_a_cell_both_readings_are_one() -> None:
    histogram = counted_in_fours(np.full((2, 16), 500.0), leaf_sd=80.0)
    alone = metrics.recall(histogram.by_cells(), 0.25)
    both = metrics.recall(histogram, 0.25)
    assert both.value == pytest.approx(alone.value)
    assert both.noise_sd == pytest.approx(alone.noise_sd)
    assert both.binning_sd == 0.0


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        *((metrics.balanced_accuracy, each) for each in (0.5, 1.0, 2.0, 3.5, 6.0)),
        *((metrics.lr_minus, each) for each in (0.5, 1.0, 2.0)),
    ],
)
def test_of_few_above_a_threshold_the_population_is_held(
    figure: Callable[[ScoreHistogram, float], Estimate], expected: float
) -> None:
    """The chance that an interval holds, summed over every count of 800 positives above.

    Counts are whole, so that it jumps: 0.93 is as near to 0.95 as it comes for each of them.
    """
    size, held = 800, 0.0
    for above in range(21):
        counts = np.array([[150_000.0, 40.0], [size - above, above]])
        found = figure(ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts), 0.5)
        recall, specificity = expected / size, 150_000 / 150_040
        ratio = (1.0 - recall) / specificity
        truth = ratio if figure is metrics.lr_minus else 0.5 * (recall + specificity)
        held += float(binom.pmf(above, size, recall)) * (truth in found.interval())
    assert held > 0.93


def test_of_many_above_a_threshold_the_variance_is_the_usual_one() -> None:
    counts = np.array([[9_000.0, 1_000.0], [400.0, 600.0]])
    found = metrics.balanced_accuracy(ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts), 0.5)
    usual = 0.5 * sqrt(0.09 / 10_000 + 0.24 / 1_000)
    assert found.sampling_sd == pytest.approx(usual, rel=0.002)


def test_a_threshold_inside_a_cell_of_smoothed_counts_knows_what_the_cell_may_hide() -> None:
    """Four cells of eight leaves: of three that show no lump the next has one, as 1 in 6.

    A cell's 800 negatives, 300 of them below, may then all lie above: sqrt(1/6) of 500.
    """
    edges, noise = np.arange(33) / 32, DenseNoise(1e-9 * np.eye(64), is_smoothed=True)
    smoothed = ScoreHistogram(edges, np.full((2, 32), 100.0), noise, cells=np.arange(0, 33, 8))
    at = confusion(smoothed, 11 / 32)
    assert at.counts == pytest.approx((2100.0, 2100.0, 1100.0, 1100.0))
    assert (*at.lowest, *at.highest) == pytest.approx((1600.0, 1600.0, 2400.0, 2400.0))
    assert at.lumps == pytest.approx((500.0 / 6.0**0.5,) * 2, rel=1e-3)
    reach = metrics.recall(smoothed, 11 / 32).interval(population=False)
    assert reach.high - reach.low > 2 * 300 / 3200
    for on_an_edge in (0.0, 0.25, 0.5, 1.0):
        assert confusion(smoothed, on_an_edge).hidden == pytest.approx((0.0, 0.0), abs=1.0)
