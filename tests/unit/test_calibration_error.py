"""Calibration error from a histogram against brute force on rows, and under noise."""

from dataclasses import replace
from math import sqrt

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from fedassay import Grid, ScoreHistogram
from fedassay.calibration import (
    Bins,
    CalibrationDisplay,
    Calibrator,
    Method,
    brier_parts,
    ece,
    fit_isotonic,
    log_loss_parts,
    mce,
    reliability_diagram,
    signed_gap,
)
from fedassay.calibration.gap_intervals import LargestSize
from fedassay.errors import SettingInvalid
from fedassay.hierarchy import Hierarchy
from fedassay.metrics import ici, ks
from fedassay.noise import DenseNoise, TreeNoise
from tests.laws import FALSE_ALARM, full

Floats = npt.NDArray[np.float64]
CELLS = 200


def rows_on_cells(rows: int, *, power: float = 1.4, seed: int = 0) -> tuple[Floats, Floats]:
    """Labels, and scores in the middle of cells."""
    generator = np.random.default_rng(seed)
    scores = (np.floor(generator.beta(1.3, 1.7, rows) * CELLS) + 0.5) / CELLS
    return (generator.random(rows) < scores**power).astype(np.float64), scores


def exact(labels: Floats, scores: Floats) -> ScoreHistogram:
    counted = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(CELLS))
    return ScoreHistogram(counted.edges, counted.counts, smooth=False)


def by_rows(labels: Floats, predicted: Floats, bins: int) -> tuple[Floats, Floats, Floats]:
    """Share, observed and mean predicted of every bin of equal width that has rows."""
    found = []
    for k in range(bins):
        inside = (predicted <= (k + 1) / bins) & ((predicted > k / bins) | (k == 0))
        if inside.any():
            found.append((inside.mean(), labels[inside].mean(), predicted[inside].mean()))
    share, observed, mean = np.array(found).T
    return share, observed, mean


@pytest.mark.parametrize("bins", [1, 7, 20, 100])
def test_plain_errors_equal_brute_force_on_rows(bins: int) -> None:
    labels, scores = rows_on_cells(3000)
    histogram = exact(labels, scores)
    for calibrator in (None, fit_isotonic(histogram)):
        predicted = scores if calibrator is None else calibrator.predict(scores)
        share, o, e = by_rows(labels, predicted, bins)
        found = ece(histogram, bins=bins, calibrator=calibrator, debiased=False)
        assert found.value == pytest.approx(share @ np.abs(o - e), abs=1e-12)
        worst = mce(histogram, bins=bins, calibrator=calibrator, debiased=False)
        assert worst.value == pytest.approx(np.abs(o - e).max(), abs=1e-12)
        gap = signed_gap(histogram, calibrator=calibrator)
        assert gap.value == pytest.approx(labels.mean() - predicted.mean(), abs=1e-12)


def test_equal_mass_bins_hold_about_equally_many() -> None:
    labels, scores = rows_on_cells(20_000)
    diagram = reliability_diagram(exact(labels, scores), bins=10, strategy=Bins.MASS)
    assert len(diagram.share) == 10
    assert np.abs(diagram.share - 0.1).max() < 0.02
    assert (np.diff(diagram.prob_pred) > 0.0).all()


def test_parts_add_up_to_the_score_of_the_binned_rows() -> None:
    labels, scores = rows_on_cells(3000)
    histogram = exact(labels, scores)
    # One bin per cell: predictions are equal within bins, so the parts are exact.
    brier = brier_parts(histogram, bins=CELLS, debiased=False)
    assert brier.score == pytest.approx(np.mean((labels - scores) ** 2), abs=1e-12)
    log = log_loss_parts(histogram, bins=CELLS, debiased=False)
    rows = -np.mean(np.where(labels == 1.0, np.log(scores), np.log1p(-scores)))
    assert log.score == pytest.approx(rows, abs=1e-9)
    assert brier.uncertainty.value == pytest.approx(labels.mean() * (1 - labels.mean()))


def noisy(histogram: ScoreHistogram, sd: float, generator: np.random.Generator) -> ScoreHistogram:
    drawn = generator.normal(0.0, sd, histogram.counts.shape)
    model = TreeNoise(Hierarchy.flat(histogram.buckets), (np.full(histogram.counts.shape, sd**2),))
    return ScoreHistogram(histogram.edges, histogram.counts + drawn, model)


@pytest.mark.statistical
def test_noise_raises_the_plain_error_and_hardly_the_debiased_one() -> None:
    generator = np.random.default_rng(7)
    trials = full(200, 40)
    plain, debiased, parts = [], [], []
    for trial in range(trials):
        labels, scores = rows_on_cells(20_000, power=1.0, seed=trial)
        histogram = noisy(exact(labels, scores), 40.0, generator)
        plain.append(ece(histogram, debiased=False).value)
        debiased.append(ece(histogram).value)
        parts.append(brier_parts(histogram).reliability.value)
    # The scores are calibrated. Seeds are fixed, so this does not vary between runs.
    assert np.mean(plain) > 0.03
    assert np.mean(debiased) < 0.3 * np.mean(plain)
    assert abs(np.mean(parts)) < 6.0 * np.std(parts) / sqrt(trials) + 1e-4


MIDDLES = (np.arange(CELLS) + 0.5) / CELLS
MASS = np.diff(stats.beta(1.3, 1.7).cdf(np.linspace(0.0, 1.0, CELLS + 1)))


def drawn_table(
    rows: int, sd: float, generator: np.random.Generator, *, power: float
) -> tuple[ScoreHistogram, Floats]:
    """A noisy histogram of rows in the middles of cells, and how many rows each cell has."""
    sizes = generator.multinomial(rows, MASS)
    positives = generator.binomial(sizes, MIDDLES**power)
    counts = np.stack([sizes - positives, positives]).astype(np.float64)
    histogram = ScoreHistogram(np.linspace(0.0, 1.0, CELLS + 1), counts, smooth=False)
    return noisy(histogram, sd, generator), sizes.astype(np.float64)


@pytest.mark.statistical
def test_a_real_error_survives_debiasing() -> None:
    """Predictions too high everywhere: ECE is their mean gap.

    False alarm once in a million where 92 % or more are covered (it is made for 95 %); of 120
    trials it fails below 94, so that an interval of half the width, which would cover 67 %, is
    seen. Too wide ones are seen by statistical/test_gap_intervals.py.
    """
    generator = np.random.default_rng(8)
    errors, covered = [], 0
    trials = full(1_000, 120)
    for _ in range(trials):
        histogram, sizes = drawn_table(40_000, 20.0, generator, power=2.0)
        estimate = ece(histogram, bins=10)
        truth = float(sizes @ (MIDDLES - MIDDLES**2) / sizes.sum())
        errors.append(estimate.value - truth)
        covered += truth in estimate.interval()
    # Its bias is below a sixth of its standard deviation.
    assert abs(np.mean(errors)) < np.std(errors) / 6.0 + 5.0 * np.std(errors) / sqrt(trials)
    assert covered >= stats.binom.ppf(FALSE_ALARM, trials, 0.92)


def largest_gap(sizes: Floats, power: float, bins: int) -> float:
    """The population's largest gap of any bin, at the scores that were drawn."""
    gaps = (sizes * (MIDDLES**power - MIDDLES)).reshape(bins, -1).sum(axis=1)
    return float(np.abs(gaps / sizes.reshape(bins, -1).sum(axis=1)).max())


@pytest.mark.statistical
def test_the_largest_errors_interval_covers_and_one_without_noise_or_twice_as_wide_does_not() -> (
    None
):
    """Holds for all five bins at once, so it covers at least as often as it says.

    And not much more often: where one bin is the worst by far, a confidence of c covers
    1 - (1 - c) / 5, which is 0.84 at c = 0.2. False alarms once in a million on either side; of
    400 trials it fails below 356 at 95 %, and above 369 at 20 %, where an interval twice as wide
    would cover 398.
    """
    generator = np.random.default_rng(9)
    trials = full(2_000, 400)
    covered, briefly, forgetful, wide = np.zeros(4)
    for _ in range(trials):
        histogram, sizes = drawn_table(20_000, 25.0, generator, power=1.3)
        estimate = mce(histogram, bins=5)
        assert isinstance(estimate, LargestSize)
        truth = largest_gap(sizes, 1.3, 5)
        covered += truth in estimate.interval(0.95)
        briefly += truth in estimate.interval(0.2)
        without = replace(estimate, rate_noise=np.zeros_like(estimate.rate_noise))
        forgetful += truth in without.interval(0.95)
        twice = replace(
            estimate,
            rate_noise=4.0 * estimate.rate_noise,
            rate_sampling=4.0 * estimate.rate_sampling,
        )
        wide += truth in twice.interval(0.2)
    least = stats.binom.ppf(FALSE_ALARM / 2.0, trials, 0.95)
    most = stats.binom.isf(FALSE_ALARM / 2.0, trials, 0.84)
    assert forgetful < least <= covered
    assert briefly <= most < wide


def test_the_arrays_feed_scikit_learns_display() -> None:
    from matplotlib.figure import Figure
    from sklearn.calibration import CalibrationDisplay as Theirs

    labels, scores = rows_on_cells(2000)
    diagram = reliability_diagram(exact(labels, scores), bins=10)
    shown = Theirs(diagram.prob_true, diagram.prob_pred, scores).plot(ax=Figure().subplots())
    assert np.allclose(shown.line_.get_xdata(), diagram.prob_pred)


def test_a_coarse_histogram_gives_whole_buckets_to_bins() -> None:
    labels, scores = rows_on_cells(5000)
    coarse = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(8))
    diagram = reliability_diagram(coarse, bins=20)
    assert len(diagram.share) <= 8
    assert diagram.share.sum() == pytest.approx(1.0)


def test_a_diagram_is_drawn_with_its_error() -> None:
    from matplotlib.figure import Figure

    labels, scores = rows_on_cells(2000)
    axes = Figure().subplots()
    display = CalibrationDisplay.from_histogram(exact(labels, scores), ax=axes)
    assert display.ax_ is axes
    assert any("ECE" in text.get_text() for text in axes.get_legend().get_texts())
    assert (display.diagram.low <= display.diagram.prob_true).all()


def test_settings_out_of_range_are_refused() -> None:
    histogram = exact(*rows_on_cells(100))
    for bins in (0, -3, 10**6):
        with pytest.raises(SettingInvalid, match="bins"):
            ece(histogram, bins=bins)
    with pytest.raises(SettingInvalid, match="values must lie"):
        Calibrator(Method.BINNING, np.array([0.0, 1.0]), np.array([0.0, 1.1]))


def test_of_counts_that_are_smoothed_already_no_noise_is_taken_out() -> None:
    """Gaps of 0.05 everywhere, within the noise: smoothed counts mean them, noisy ones may not."""
    edges = np.arange(21) / 20
    middle = 0.5 * (edges[1:] + edges[:-1])
    rates = np.clip(middle + 0.05, 0.0, 1.0)
    counts = 1000.0 * np.stack([1.0 - rates, rates])
    wanted = float(np.abs(rates - middle).mean())
    for is_smoothed in (True, False):
        noise = DenseNoise(60.0**2 * np.eye(40), None, 1.0, is_smoothed)
        found = ece(ScoreHistogram(edges, counts, noise)).value
        assert (abs(found - wanted) < 0.004) == is_smoothed
        merged = ScoreHistogram(edges, counts, noise).merge(np.arange(0, 21, 2))
        assert isinstance(merged.noise, DenseNoise)
        assert merged.noise.is_smoothed == is_smoothed


def test_smoothed_counts_have_no_noise_to_take_out_of_any_figure() -> None:
    """KS and the mean gap of a curve: noise of the same size lowers what noisy counts say."""
    edges = np.arange(21) / 20
    middle = 0.5 * (edges[1:] + edges[:-1])
    rates = np.clip(0.8 * middle + 0.1, 0.0, 1.0)
    counts = 1000.0 * np.stack([1.0 - rates, rates])
    exactly = ScoreHistogram(edges, counts)
    for figure, sd in ((ks, 200.0), (ici, 30.0)):
        wanted, size = figure(exactly).value, sd**2 * np.eye(40)
        smoothed, noisy = (
            figure(ScoreHistogram(edges, counts, DenseNoise(size, None, 1.0, each)))
            for each in (True, False)
        )
        assert smoothed.value == pytest.approx(wanted, rel=0.02)
        assert noisy.value < 0.97 * wanted
