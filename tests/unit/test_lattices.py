"""Rounded scores: buckets that show their ties speak for those that are too wide to."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.metrics import average_precision_score, roc_auc_score

from fedassay import Estimate, Grid, ScoreHistogram, metrics
from fedassay.examples import FloatArray
from fedassay.metrics import calibration_in_the_large, oe_ratio
from fedassay.metrics.lattices import Lattice, lattice, unseen_rounding
from fedassay.noise import DenseNoise

# Wide buckets below 0.2, which hold two values of hundredths each, narrow ones above.
EDGES = np.append(np.arange(10) / 50, np.arange(400, 2001) / 2000)
Rows = tuple[FloatArray, FloatArray]


def rounded(places: int | None) -> Rows:
    """60,000 rows, rounded up to so many places or not; a higher score is more often positive."""
    generator = np.random.default_rng(3)
    scores = generator.beta(0.8, 4.0, 60_000)
    if places is not None:
        scores = np.ceil(scores * 10**places) / 10**places
    return (generator.random(len(scores)) < 0.05 + 0.6 * scores).astype(float), scores


def counted(rows: Rows) -> ScoreHistogram:
    """Counts of (lo, hi]."""
    labels, scores = rows
    cells = np.maximum(np.searchsorted(EDGES, scores) - 1, 0)
    counts = [np.bincount(cells[labels == label], minlength=len(EDGES) - 1) for label in (0, 1)]
    return ScoreHistogram(EDGES, np.array(counts, dtype=float))


def held(estimate: Estimate, truth: float) -> bool:
    return truth in estimate.interval(population=False)


def test_buckets_that_can_tell_say_how_many_are_ties() -> None:
    """By hand: of scores to hundredths every narrow bucket with rows is one value, 0.01 apart."""
    seen = lattice(counted(rounded(2)))
    assert seen.share == 1.0
    assert seen.spacing == pytest.approx(0.01)
    assert lattice(counted(rounded(None))).share < 0.05


def test_two_ties_are_not_yet_a_lattice() -> None:
    counts = np.zeros((2, 2000))
    counts[:, [700, 1300]] = 500.0
    assert lattice(ScoreHistogram(Grid.uniform(2000).edges, counts)).share == 0.0
    counts[:, 1000] = 500.0
    assert lattice(ScoreHistogram(Grid.uniform(2000).edges, counts)).share == 1.0


@pytest.mark.parametrize("threshold", [0.024, 0.039, 0.079, 0.119, 0.144])
def test_a_threshold_at_a_tie_that_no_bucket_shows_is_held(threshold: float) -> None:
    """Close to an edge of a bucket with two values, one of them is on either side."""
    labels, scores = rounded(2)
    histogram = counted((labels, scores))
    for label, metric in ((0, metrics.specificity), (1, metrics.recall)):
        share = float((scores[labels == label] <= threshold + 1e-9).mean())
        assert held(metric(histogram, threshold), share if label == 0 else 1.0 - share)


def test_a_threshold_among_smooth_scores_is_not_widened_for_ties() -> None:
    """The same scores before they are rounded: an interval three times as narrow, or more."""
    smooth, tied = (
        metrics.specificity(counted(rounded(places)), 0.139).interval(population=False)
        for places in (None, 2)
    )
    assert 3.0 * (smooth.high - smooth.low) < tied.high - tied.low


def test_a_tie_is_as_large_as_one_seen_or_as_even_ones() -> None:
    """By hand: two places in a bucket twice as wide as ties are apart; 700 of one seen at most."""
    counts = np.zeros((2, 1000))
    counts[0, 200::10], counts[1, 200::10] = 600.0, 20.0
    counts[0, 500] = 700.0
    seen = lattice(ScoreHistogram(Grid.uniform(1000).edges, counts))
    assert seen.spacing == pytest.approx(0.01)
    assert seen.largest(np.array([5000.0, 10.0]), 0.02) == pytest.approx([2500.0, 10.0])
    assert seen.largest(np.array([1000.0, 30.0]), 0.02) == pytest.approx([700.0, 20.0])


@pytest.mark.parametrize("wanted", [0.6, 0.7, 0.75, 0.8, 0.85])
def test_a_goal_inside_a_bucket_of_ties_is_held(wanted: float) -> None:
    """Rows have the rate of a whole tie, wherever in the bucket the goal is crossed."""
    labels, scores = rounded(2)
    histogram = counted((labels, scores))
    cuts = np.unique(scores)
    recalls = np.array([(scores[labels == 1] > cut).mean() for cut in cuts])
    cut = cuts[recalls >= wanted - 1e-12][-1]
    truth = float((scores[labels == 0] <= cut).mean())
    assert held(metrics.specificity_at_recall(histogram, wanted), truth)


def test_sums_of_rounded_scores_at_the_same_side_of_all_buckets_are_held() -> None:
    """Rounded up, every row lies at the upper edge of its bucket, or in a wide one's middle."""
    labels, scores = rounded(2)
    histogram = counted((labels, scores))
    assert held(metrics.oe_ratio(histogram), float(labels.sum() / scores.sum()))
    assert held(metrics.brier(histogram), float(((labels - scores) ** 2).mean()))
    precision = float(average_precision_score(labels, scores))
    assert held(metrics.average_precision(histogram), precision)


def test_scores_in_64ths_are_at_the_same_side_of_wide_buckets_as_of_narrow_ones() -> None:
    """No decimals: that the wide ones hold ties as well, only the narrow ones say."""
    labels, scores = rounded(None)
    scores = np.ceil(scores * 64) / 64
    edges = np.append(np.arange(8) / 32, np.arange(512, 2049) / 2048)
    counts = np.stack([np.histogram(scores[labels == y], edges - 1e-9)[0] for y in (0, 1)])
    histogram = ScoreHistogram(edges, counts.astype(np.float64))
    assert unseen_rounding(histogram) < 1e-4
    assert held(metrics.oe_ratio(histogram), float(labels.sum() / scores.sum()))


@pytest.mark.parametrize(("digits", "rows"), [(3, 60_000), (2, 12_000)])
def test_scores_in_decimals_that_no_bucket_shows_are_in_the_intervals(
    digits: int, rows: int
) -> None:
    """Buckets as wide as the last digit hold their scores at the right edge: none looks tied."""
    generator = np.random.default_rng(digits)
    scores = np.round(generator.beta(2.0, 5.0, rows), digits)
    labels = (generator.random(rows) < 0.03 + 0.9 * scores).astype(np.int8)
    inside = np.flatnonzero((scores > 0.1) & (scores < 0.6))
    labels, scores = labels[inside], scores[inside]
    edges = np.linspace(0.0, 1.0, 10**digits + 1)
    counts = np.stack([np.histogram(scores[labels == y], edges - 1e-9)[0] for y in (0, 1)])
    histogram = ScoreHistogram(edges, counts.astype(np.float64))
    assert unseen_rounding(histogram) == pytest.approx(10.0**-digits)
    expected = float(labels.sum()) / float(scores.sum())
    odds = np.log(scores / (1.0 - scores))
    large = brentq(lambda a: float((labels - expit(a + odds)).sum()), -3.0, 3.0)
    assert expected in oe_ratio(histogram).interval(population=False)
    found = calibration_in_the_large(histogram)
    low, high = found.interval(population=False)
    # Half a digit is the end of the interval, to first order.
    assert abs(large - found.value) < 1.01 * (high - low) / 2.0
    wide = oe_ratio(histogram).interval(population=False)
    assert wide.high - wide.low < 4.0 * 10.0**-digits / float(scores.mean())


def test_noise_hides_every_rounding() -> None:
    noisy = ScoreHistogram(np.arange(5) / 4, np.full((2, 4), 90.0), DenseNoise(np.eye(8)))
    assert unseen_rounding(noisy) == 0.0


def test_a_merged_bucket_among_empty_ones_is_no_tie() -> None:
    """Exact sums of four values: of the highest two, few negatives at one, a bucket up to 0.1.

    All of its positives may lie above all of its negatives: scikit-learn's area then is 0.98.
    """
    edges = [0.0, 9.8e-5, 1e-4, 9.8e-4, 1e-3, 3.8e-3, 4e-3, 9.8e-3, 0.1, 1.0]
    counts = np.zeros((2, 9))
    counts[:, [1, 3, 5, 7]] = [[8000, 8000, 8000, 6500], [20, 50, 100, 9900]]
    found = metrics.roc_auc(ScoreHistogram(np.array(edges), counts))
    scores = np.repeat([1e-4, 1e-3, 4e-3, 0.01, 1e-4, 1e-3, 4e-3, 0.05],
                       [8000, 8000, 8000, 6500, 20, 50, 100, 9900])  # fmt: skip
    truth = roc_auc_score(np.repeat([0, 1], [30_500, 10_070]), scores)
    assert abs(found.value - truth) > 0.02
    assert held(found, truth)


@pytest.mark.parametrize(("threshold", "truth"), [(0.4991, 4 / 9), (0.4999, 5 / 9)])
def test_a_threshold_in_a_bucket_of_one_score_has_all_of_it_on_one_side(
    threshold: float, truth: float
) -> None:
    """Nine scores in thousandths, nobody between: an interval ends where the tie does.

    That of the population ends by its sampling beyond, which a root of squares would swallow.
    """
    tied = np.arange(1, 10) / 10
    edges = np.unique(np.concatenate([[0.0, 1.0], tied, tied - 0.001]).round(6))
    counts = np.zeros((2, len(edges) - 1))
    counts[:, np.searchsorted(edges, tied) - 1] = 2000.0
    found = metrics.recall(ScoreHistogram(edges, counts), threshold)
    assert held(found, truth)
    sampling = 1.96 * np.sqrt(truth * (1.0 - truth) / 18_000)
    low, high = found.interval()
    assert low <= truth - 0.9 * sampling
    assert truth + 0.9 * sampling <= high


@pytest.mark.parametrize(("share", "part"), [(0.0, 0.0), (0.05, 0.25), (0.1, 1.0), (0.7, 1.0)])
def test_ties_as_likely_as_one_in_ten_count_whole(share: float, part: float) -> None:
    assert Lattice(np.zeros((2, 1)), share, 0.1).part == pytest.approx(part)
