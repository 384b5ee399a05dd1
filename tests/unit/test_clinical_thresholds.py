"""Predictive values, likelihood ratios and flags: their intervals, and where there are none.

Their values are compared with rows in test_metrics.py, as those of all metrics at a threshold.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest

from fedassay import Estimate, Grid, ScoreHistogram
from fedassay.estimate import TooCoarse
from fedassay.metrics import flagged, lr_minus, lr_plus, npv, recall, specificity
from fedassay.noise import DenseNoise
from tests.unit.test_delta_method import UnitNoise

# 40 positives, 30 above the threshold; 160 negatives, 20 above it.
COUNTS = np.array([[140.0, 20.0], [10.0, 30.0]])
EDGES = np.array([0.0, 0.5, 1.0])


def histogram(counts: np.ndarray = COUNTS) -> ScoreHistogram:
    return ScoreHistogram(EDGES.copy(), counts.copy())


def test_shares_have_wilsons_interval() -> None:
    wilson = binomtest(140, 150).proportion_ci(0.95, method="wilson")
    assert npv(histogram(), 0.5).interval() == pytest.approx((wilson.low, wilson.high))
    wilson = binomtest(50, 200).proportion_ci(0.95, method="wilson")
    found = flagged(histogram(), 0.5)
    assert found.value == 250.0
    assert found.interval() == pytest.approx((1000 * wilson.low, 1000 * wilson.high))


@pytest.mark.parametrize(
    ("ratio", "value", "variance"),
    [
        (lr_plus, (30 / 40) / (20 / 160), 1 / 30 - 1 / 40 + 1 / 20 - 1 / 160),
        (lr_minus, (10 / 40) / (140 / 160), 1 / 10 - 1 / 40 + 1 / 140 - 1 / 160),
    ],
)
def test_likelihood_ratios_have_the_usual_interval_of_their_logarithm(
    ratio: Callable[[ScoreHistogram, float], Estimate], value: float, variance: float
) -> None:
    """Simel, Samsa and Matchar 1991."""
    found = ratio(histogram(), 0.5)
    assert found.value == pytest.approx(value)
    half = 1.959964 * np.sqrt(variance)
    expected = (value * np.exp(-half), value * np.exp(half))
    assert found.interval() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("ratio", [lr_plus, lr_minus])
def test_a_ratio_without_positives_on_its_side_is_0_and_not_for_certain(
    ratio: Callable[[ScoreHistogram, float], Estimate],
) -> None:
    counts = np.array([[140.0, 20.0], [40.0, 0.0] if ratio is lr_plus else [0.0, 40.0]])
    found = ratio(histogram(counts), 0.5)
    assert found.value == 0.0
    # Against 20 or 140 of 160 negatives; of 40 positives Wilson's interval of none ends at 3.5.
    one = 160 / 40 / (20 if ratio is lr_plus else 140)
    wilson = 40 * binomtest(0, 40).proportion_ci(method="wilson").high
    assert found.interval().high == pytest.approx(one * wilson / np.sqrt(2.0), rel=1e-6)


@pytest.mark.parametrize(
    ("figure", "threshold", "lacking"),
    [
        (npv, 0.0, "examples at or below threshold 0"),
        (lr_plus, 1.0, "negatives above threshold 1"),
        (lr_minus, 0.0, "negatives at or below threshold 0"),
    ],
)
def test_a_ratio_to_nobody_says_what_is_lacking_and_what_to_do(
    figure: Callable[[ScoreHistogram, float], Estimate], threshold: float, lacking: str
) -> None:
    h = ScoreHistogram.from_scores([0, 1, 0, 1], [0.2, 0.3, 0.6, 0.9], grid=Grid.uniform(10))
    found = figure(h, threshold)
    assert not found.is_available
    assert lacking in str(found)
    assert "Choose another threshold" in str(found)


def test_a_ratio_to_what_noise_drowns_says_how_many_reports_would_do() -> None:
    counts = np.array([[140.0, 3.0], [10.0, 30.0]])
    noisy = ScoreHistogram(EDGES.copy(), counts, UnitNoise())
    found = lr_plus(noisy, 0.5)
    assert not found.is_available
    assert "4 standard deviations" in str(found)
    assert lr_minus(noisy, 0.5).is_available


def test_nothing_is_known_of_one_class_or_of_nobody() -> None:
    for labels in ([0, 0], [1, 1]):
        h = ScoreHistogram.from_scores(labels, [0.2, 0.8])
        assert not lr_plus(h, 0.5).is_available
        assert not lr_minus(h, 0.5).is_available
        assert flagged(h, 0.5).value == 500.0
    empty = ScoreHistogram(EDGES.copy(), np.zeros((2, 2)))
    assert not any(f(empty, 0.5).is_available for f in (npv, lr_plus, lr_minus, flagged))


def test_a_ratio_that_noise_may_have_made_of_nothing_may_be_0() -> None:
    """Twelve positives below the threshold with a noise of ten: there may be none at all."""
    noise = DenseNoise(100.0 * np.eye(4))
    few = ScoreHistogram(EDGES.copy(), np.array([[9000.0, 1000.0], [12.0, 1000.0]]), noise)
    found = lr_minus(few, 0.5)
    assert 0.0 in found.interval(population=False)
    assert 0.0 in found.interval()
    # Noise is added: where it is a third of the figure, it goes as far down as up.
    some = ScoreHistogram(EDGES.copy(), np.array([[9000.0, 1000.0], [30.0, 1000.0]]), noise)
    ratio = lr_minus(some, 0.5)
    assert sum(ratio.interval(population=False)) / 2.0 == pytest.approx(ratio.value)
    many = ScoreHistogram(EDGES.copy(), np.array([[9000.0, 1000.0], [120.0, 1000.0]]), noise)
    assert lr_minus(many, 0.5).interval().low > 0.0


def test_a_ratio_that_cells_leave_open_by_a_factor_of_twenty_is_too_coarse() -> None:
    """A smooth curve shows no lump; that all negatives of a cell lie below is possible."""
    edges = np.arange(9) / 8
    counts = np.array([[2000.0] * 4 + [500.0] * 4, [100.0] * 4 + [400.0] * 4])
    noise = DenseNoise(4.0 * np.eye(16), is_smoothed=True)
    wide = ScoreHistogram(edges, counts, noise, cells=np.array([0, 4, 8]))
    assert isinstance(lr_plus(wide, 0.75), TooCoarse)
    asked = ScoreHistogram(edges.copy(), counts, noise, cells=np.array([0, 4, 6, 8]))
    assert lr_plus(asked, 0.75).value == pytest.approx((800 / 2000) / (1000 / 10000))


def test_a_rate_that_cells_leave_open_by_half_of_its_scale_is_too_coarse() -> None:
    """61 of 100 negatives are in a cell with none beside it, and may all lie at its lower end."""
    edges = np.array([0.0, 0.02, 0.2, 0.54, 1.0])
    crowded = ScoreHistogram(edges, np.array([[154.0, 440.0, 930.0, 0.0], [3.0, 1.0, 6.0, 55.0]]))
    found = specificity(crowded, 0.22)
    assert isinstance(found, TooCoarse)
    assert found.binning_bound == pytest.approx(0.57, abs=0.01)
    assert specificity(crowded, 0.5).is_available
    assert recall(crowded, 0.22).is_available


def test_the_luck_of_both_classes_rows_beside_a_threshold_is_each_classs_own() -> None:
    """Rows of three copies each that fall evenly into a cell, 2,000 times, against what is said."""
    generator, rows, cells = np.random.default_rng(3), 400, 20
    counts = np.full((2, cells), float(rows))
    evenly = ScoreHistogram(np.arange(cells + 1) / cells, counts)
    found = flagged(evenly, 0.525)
    below = 3 * generator.binomial(rows // 3, 0.5, size=(2000, 2))
    spread = 1000.0 * float(below.sum(axis=1).std()) / float(counts.sum())
    assert 0.9 * spread < found.binning_sd < 1.15 * spread
