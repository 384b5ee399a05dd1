"""Recall at a wanted specificity and the other way round, against scikit-learn's ROC curve."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from fedassay import Estimate, Grid, ScoreHistogram
from fedassay.doubts import Doubts
from fedassay.errors import SettingInvalid
from fedassay.estimate import TooCoarse
from fedassay.metrics import recall_at_specificity, specificity_at_recall
from fedassay.metrics.crossings import crossing
from fedassay.metrics.cutoffs import chords, cutoff
from fedassay.noise import DenseNoise
from tests import oracles
from tests.tables import Table, tables
from tests.unit.test_delta_method import UnitNoise

Rate = Callable[[ScoreHistogram, float], Estimate]
BOTH: list[tuple[Rate, Callable[[Table, float], float]]] = [
    (recall_at_specificity, oracles.recall_at_specificity),
    (specificity_at_recall, oracles.specificity_at_recall),
]


@settings(max_examples=60)
@given(
    tables(),
    st.sampled_from([Grid.fine(2**12), Grid.uniform(16), Grid.uniform(3)]),
    st.floats(0.05, 0.95) | st.sampled_from([0.25, 0.5, 0.75, 0.9]),
)
def test_rates_of_any_rows_lie_within_their_binning_bound(
    table: Table, grid: Grid, wanted: float
) -> None:
    h = ScoreHistogram.from_scores(*table, grid=grid)
    for rate, of_rows in BOTH:
        found = rate(h, wanted)
        if found.is_available:
            assert abs(found.value - of_rows(table, wanted)) <= found.binning_bound + 1e-9


@pytest.mark.parametrize("rate", [None, 0.01])
@pytest.mark.parametrize("wanted", [0.5, 0.9, 0.99])
def test_rates_of_real_and_crowded_rows_are_near_scikit_learns(
    real_table: Table, rate: float | None, wanted: float
) -> None:
    table = real_table if rate is None else oracles.rare(real_table, rate)
    for grid in (Grid.fine(), Grid.warped(table.scores, 200)):
        h = ScoreHistogram.from_scores(*table, grid=grid)
        for found, of_rows in ((f(h, wanted), g) for f, g in BOTH):
            error = abs(found.value - of_rows(table, wanted))
            assert error <= found.binning_bound + 1e-9
            assert error <= 5.0 * found.binning_sd + 0.3 * found.sampling_sd


@pytest.mark.parametrize("grid", [Grid.fine(), Grid.uniform(1024)], ids=["fine", "1024"])
def test_of_ten_scores_no_part_of_a_tie_is_flagged(sample: Table, grid: Grid) -> None:
    table = Table(sample.labels, np.clip(np.round(sample.scores, 1), 0.1, 0.9))
    h = ScoreHistogram.from_scores(*table, grid=grid)
    for rate, of_rows in BOTH:
        assert rate(h, 0.8).value == pytest.approx(of_rows(table, 0.8), abs=1e-9)


def test_the_sampling_error_knows_that_the_threshold_is_an_estimate() -> None:
    """Scores normal at 0 and 1.5 with sd 1, and as many of both: the binormal ROC curve.

    The variance is r (1 - r) / P + slope^2 f (1 - f) / N, where slope is that of the curve.
    """
    from scipy.stats import norm

    edges = norm.cdf(np.linspace(-6, 8, 1401) / 2)
    edges[0], edges[-1] = 0.0, 1.0
    z = norm.ppf(edges) * 2
    rows = 10_000
    counts = rows * np.stack([np.diff(norm.cdf(z)), np.diff(norm.cdf(z - 1.5))])
    found = recall_at_specificity(ScoreHistogram(edges, counts), 0.9)
    at = norm.ppf(0.9)
    r = norm.sf(at - 1.5)
    slope = norm.pdf(at - 1.5) / norm.pdf(at)
    assert found.value == pytest.approx(r, abs=1e-5)
    expected = np.sqrt((r * (1 - r) + slope**2 * 0.09) / rows)
    assert found.sampling_sd == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("rate", [recall_at_specificity, specificity_at_recall])
def test_a_rate_that_no_row_decides_says_so(rate: Rate) -> None:
    h = ScoreHistogram.from_scores([0, 1] * 5, [0.1, 0.3, 0.2, 0.6, 0.5, 0.7, 0.4, 0.9, 0.8, 0.35])
    for wanted in (0.99, 1.0):
        found = rate(h, wanted)
        assert not found.is_available
        assert "must lie on either side" in str(found)
        assert "Ask for a rate further from 0 and 1" in str(found)
    assert rate(h, 0.8).is_available


@pytest.mark.parametrize("rate", [recall_at_specificity, specificity_at_recall])
@pytest.mark.parametrize("wanted", [0.0, -0.5, 1.5, float("nan")])
def test_a_wanted_rate_is_a_share(rate: Rate, wanted: float) -> None:
    h = ScoreHistogram.from_scores([0, 1], [0.2, 0.8])
    with pytest.raises(SettingInvalid):
        rate(h, wanted)


@pytest.mark.parametrize("rate", [recall_at_specificity, specificity_at_recall])
def test_what_noise_drowns_is_not_answered(rate: Rate) -> None:
    counts = np.full((2, 10), 3.0)
    noisy = ScoreHistogram(np.arange(11) / 10, counts, UnitNoise())
    found = rate(noisy, 0.9 if rate is recall_at_specificity else 0.1)
    assert not found.is_available
    assert "must stand clear of the privacy noise" in str(found)
    one_class = ScoreHistogram.from_scores([1, 1], [0.2, 0.8])
    assert not rate(one_class, 0.5).is_available


def test_beside_a_tie_other_rows_of_its_bucket_may_lie_on_one_side() -> None:
    """A third of all rows has one score, at the end of a bucket whose other rows lie below it."""
    generator = np.random.default_rng(8)
    scores = generator.random(60_000)
    scores[:20_000] = 0.3
    labels = (generator.random(60_000) < 0.02 + 0.9 * scores).astype(np.int64)
    h = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(2000))
    exact = oracles.specificity_at_recall(Table(labels, scores), 0.8)
    found = specificity_at_recall(h, 0.8)
    assert abs(found.value - exact) > 1e-5
    assert exact in found.interval(population=False)
    assert found.interval(population=False).high - found.value < 0.002


def test_a_cutoff_at_a_kink_has_a_slope_on_either_side() -> None:
    """By hand: above the middle six of ten rows are positive, below it two."""
    counts = np.array([[80.0, 40.0], [20.0, 60.0]])
    histogram = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, smooth=False)
    own = np.array([[-0.5, 0.5]] * 2)
    found = chords(histogram, np.ones(2), cutoff(histogram, np.ones(2), 100.0, reached=True), own)
    assert found.towards(-5.0) == pytest.approx([0.4, 0.6])
    assert found.towards(5.0) == pytest.approx([0.8, 0.2])


def test_all_cutoffs_that_noise_allows_are_in_the_interval_or_there_is_none() -> None:
    """300 positives in 40 buckets, each with a deviation of 8: the curve crosses many times."""
    edges, generator = np.arange(41) / 40, np.random.default_rng(5)
    middle = 0.5 * (edges[1:] + edges[:-1])
    shapes = np.exp(-0.5 * ((middle - [[0.35], [0.6]]) / [[0.18], [0.2]]) ** 2)
    counts = shapes / shapes.sum(axis=1, keepdims=True) * [[20_000.0], [300.0]]
    noise = DenseNoise(64.0 * np.eye(80))
    silent = 0
    for _ in range(30):
        drawn = counts + 8.0 * generator.standard_normal((2, 40))
        histogram = ScoreHistogram(edges, drawn, noise)
        estimate, allowed = specificity_at_recall(histogram, 0.9), crossing(histogram, 1, 0.9)
        assert allowed is not None
        if not estimate.is_available:
            silent += allowed.apart > 0.8
            continue
        interval = estimate.interval(population=False)
        assert interval.low <= 1.0 - allowed.high + 1e-9
        assert interval.high >= 1.0 - allowed.low - 1e-9
    assert silent


def test_a_rate_that_noise_leaves_anywhere_is_not_told() -> None:
    """In two buckets no cutoff is far from another, and yet the rate may be 0 or 1."""
    counts = np.array([[3000.0, 3000.0], [500.0, 500.0]])
    covariance = np.diag([0.0, 0.0, 100.0, 100.0])
    covariance[:2, :2] = 3000.0**2 * np.array([[1.0, -0.98], [-0.98, 1.0]])
    noisy = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, DenseNoise(covariance))
    assert "must stand clear" in str(specificity_at_recall(noisy, 0.6))
    calmer = replace(noisy, noise=DenseNoise(0.1 * covariance))
    assert specificity_at_recall(calmer, 0.6).is_available


def test_a_goal_that_is_reached_at_an_edge_is_at_the_next_row_of_its_class() -> None:
    """The lowest of 14 positives in a cell is the one with nine tenths above or at it.

    All rows lie anywhere in their cells. False alarms: below 1e-6, if 95 % of 400 are held.
    """
    generator, held = np.random.default_rng(4), 0
    edges = np.array([0.0, 0.4142, 0.5236, 0.6283, 1.0])
    counts = np.array([[5000, 700, 600, 300], [14, 14, 16, 96]])
    found = specificity_at_recall(ScoreHistogram(edges, counts.astype(float)), 0.9)
    for _ in range(400):
        lowest = generator.random(14).min()
        above = 900 + int((generator.random(700) > lowest).sum())
        held += 1.0 - above / 6600 in found.interval(population=False)
    assert held >= 354


def test_of_exact_counts_a_rate_errs_by_no_more_than_its_bucket_hides() -> None:
    """The cell in which nine tenths of the positives are reached holds one of 101 negatives."""
    counts = np.array([[50.0, 1.0, 50.0], [5.0, 10.0, 35.0]])
    found = specificity_at_recall(ScoreHistogram(np.array([0.0, 0.3, 0.6, 1.0]), counts), 0.9)
    low, high = found.interval(population=False)
    assert max(high - found.value, found.value - low) <= 1 / 101 + 1e-12


def test_a_rate_inside_a_cell_of_nearly_all_is_too_coarse() -> None:
    """Nine tenths of the positives are reached inside a cell that holds 97 % of the negatives."""
    counts = np.array([[30000.0, 500.0, 200.0], [240.0, 100.0, 60.0]])
    coarse = ScoreHistogram(np.array([0.0, 0.01, 0.5, 1.0]), counts)
    found = specificity_at_recall(coarse, 0.9)
    assert isinstance(found, TooCoarse)
    assert "moves specificity by up to 0.81 either way" in found.reason
    assert specificity_at_recall(coarse, 0.3).is_available


def lifted(sd: float) -> ScoreHistogram:
    """A curve that is sure of 1,000 positives, of counters that have noise in their sum."""
    edges, rising = np.arange(21) / 20, np.linspace(0.1, 1.9, 20)
    counts = np.stack([5000.0 * rising[::-1], 50.0 * rising])
    each = sd**2 / 20
    counted = ScoreHistogram(edges.copy(), counts, DenseNoise(each * np.eye(40)))
    noise = DenseNoise(np.eye(40), is_smoothed=True)
    return ScoreHistogram(edges, counts, noise, counted=counted)


def test_a_class_that_noise_may_have_lifted_leaves_room_above_its_rate() -> None:
    """At 5.4 deviations where 4 are asked for: as many above, of the fewest that answer so."""
    sd, sf = 185.0, stats.norm.sf
    clear, barely = (recall_at_specificity(lifted(each), 0.9) for each in (1.0, sd))
    assert clear.value == barely.value
    fewer = optimize.brentq(lambda t: sf(t) / sf(t - 1000.0 / sd + 4.0) - 0.05, 0.0, 9.0)
    highest = barely.value * 1000.0 / (1000.0 - fewer * sd)
    assert highest > barely.value + 0.2
    assert barely.value + 1.959964 * barely.noise_sd == pytest.approx(highest, rel=1e-4)
    assert clear.noise_sd < 0.01


def test_beside_ties_a_rate_leaps_from_one_to_the_next() -> None:
    """Scores in hundredths, nine tenths of the positives at or above one of them in truth.

    Drawn again, a tie more or less is needed in half of the tables, and specificity leaps by 0.04:
    93 of 100 intervals must hold, by a binomial test at 1e-6.
    """
    generator = np.random.default_rng(5)
    scores = np.round(generator.beta(0.7, 3.0, 20_000), 2)
    labels = (generator.random(len(scores)) < 0.02 + 0.9 * scores).astype(np.int64)
    above = [(labels * (scores >= t)).sum() / labels.sum() for t in np.arange(1, 60) / 100]
    wanted = float(min(above, key=lambda share: abs(share - 0.9)))
    truth = oracles.specificity_at_recall(Table(labels, scores), wanted)
    held = []
    for _ in range(200):
        drawn = generator.integers(0, len(scores), len(scores))
        h = ScoreHistogram.from_scores(labels[drawn], scores[drawn], grid=Grid.uniform(2000))
        held.append(truth in specificity_at_recall(h, wanted).interval())
    assert np.sum(held) > stats.binom.ppf(1e-6, 200, 0.93)


@pytest.mark.parametrize("lumps", [0.0, 1.0])
def test_in_a_lump_that_is_likely_a_rate_may_be_that_at_either_end(lumps: float) -> None:
    """A curve through counts whose leaves are known, and hold one score each, or not."""
    counts = np.full((2, 5), 1000.0)
    smooth = DenseNoise(np.eye(10), is_smoothed=True)
    doubts = Doubts(0.0, lumps, np.zeros(5))
    h = ScoreHistogram(np.arange(6) / 5, counts, smooth, doubts=doubts)
    low, high = recall_at_specificity(h, 0.5).interval(population=False)
    is_either = low <= 0.4 and high >= 0.6
    assert is_either is bool(lumps)


def test_a_class_that_hardly_stands_clear_has_all_cutoffs_that_let_it_answer() -> None:
    """At five deviations of its noise only surveys answer that noise lifted: it reaches further.

    Of smoothed counts, that is, which may fall off a cliff.
    """
    doubts = Doubts(1.0, 1.0, np.zeros(40))
    edges, place = np.arange(41) / 40, np.arange(40)
    positives = 30.0 * np.exp(-0.5 * ((place - 26.0) / 5.0) ** 2)
    counts = np.stack([np.linspace(900.0, 100.0, 40), positives])
    for stands, reaches_further in ((5.0, True), (12.0, False)):
        sd = positives.sum() / stands / np.sqrt(40)
        noise = DenseNoise(sd**2 * np.eye(80), is_smoothed=True)
        histogram = ScoreHistogram(edges, counts, noise, doubts=doubts)
        usual, lifted = crossing(histogram, 1, 0.5), crossing(histogram, 1, 0.5, reach=3.0)
        assert usual is not None
        assert lifted is not None
        assert usual.high < lifted.high
        interval = specificity_at_recall(histogram, 0.5).interval(population=False)
        assert interval.low <= 1.0 - usual.high + 1e-3
        assert (interval.low <= 1.0 - lifted.high + 1e-3) == reaches_further


def test_along_a_smooth_curve_a_rate_is_amid_all_that_noise_allows() -> None:
    """Both classes lie higher together, or lower: a curve without cliffs has its rate amid them."""
    edges, wave = np.arange(41) / 40, np.sin(2.0 * np.pi * (np.arange(40) + 0.5) / 40)
    counts = 4000.0 * np.stack([np.linspace(1.9, 0.1, 40), np.linspace(0.0, 0.4, 40) ** 2])
    moved = np.concatenate([counts[0] * wave, counts[1] * wave])
    noise = DenseNoise(0.04 * np.outer(moved, moved) + np.diag(counts.ravel()), is_smoothed=True)
    for cliffs in (0.0, 1.0):
        doubts = Doubts(cliffs, 1.0, np.zeros(40))
        histogram = ScoreHistogram(edges, counts, noise, doubts=doubts)
        allowed, found = crossing(histogram, 1, 0.8), specificity_at_recall(histogram, 0.8)
        assert allowed is not None
        assert allowed.is_long
        amid = 1.0 - 0.5 * (allowed.low + allowed.high)
        assert (found.value == pytest.approx(amid, abs=1e-9)) == (cliffs == 0.0)
        interval = found.interval(population=False)
        assert interval.low <= 1.0 - allowed.high + 1e-9
        assert interval.high >= 1.0 - allowed.low - 1e-9


def test_a_tied_cell_beside_others_may_hold_two_scores() -> None:
    """Of forty scores two share a cell, and nine tenths of the positives end between them."""
    near = np.array([0.02450149, 0.02501664, 0.02518436])
    others = np.linspace(0.1, 0.9, 17)
    scores = np.concatenate([np.repeat(near, [2000, 9000, 8000]), np.repeat(others, 1000)])
    labels = np.zeros(len(scores), np.int64)
    for start, positives in ((0, 60), (2000, 100), (11_000, 150)):
        labels[start : start + positives] = 1
    labels[np.arange(19_000, len(scores), 10)] = 1
    h = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(2000))
    exact = oracles.specificity_at_recall(Table(labels, scores), 0.9)
    found = specificity_at_recall(h, 0.9)
    assert abs(found.value - exact) > 0.1
    assert exact in found.interval(population=False)
    # Apart from each other, each is in a cell of its own.
    apart = scores.copy()
    apart[:19_000] = np.repeat([0.0245, 0.04, 0.06], [2000, 9000, 8000])
    alone = specificity_at_recall(
        ScoreHistogram.from_scores(labels, apart, grid=Grid.uniform(2000)), 0.9
    )
    assert alone.binning_sd < 1e-9


@pytest.mark.parametrize("flipped", [0.05, 0.2])
def test_a_classifier_that_says_0_or_1_has_no_threshold_between(flipped: float) -> None:
    """It flags all, those with 1, or nobody; noise and exact counts say which reaches the goal."""
    generator = np.random.default_rng(4)
    labels = (generator.random(20_000) < 0.1).astype(np.int64)
    scores = np.abs(labels - (generator.random(20_000) < flipped)).astype(float)
    exact = ScoreHistogram.from_scores(
        labels, scores, grid=Grid.explicit([0.0, 0.5, 1.0]).with_ends()
    )
    noisy = replace(exact, noise=DenseNoise(4.0 * np.eye(2 * exact.buckets)))
    for rate, of_rows in BOTH:
        truth = of_rows(Table(labels, scores), 0.9)
        for histogram in (exact, noisy):
            assert rate(histogram, 0.9).value == pytest.approx(truth, abs=1e-6)
