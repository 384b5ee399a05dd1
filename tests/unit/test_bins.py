"""Bins of predictions and the bars of a reliability diagram, by hand."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from fedassay import Grid, ScoreHistogram
from fedassay.calibration import Calibrator, Interpolation, Method, ece, mce, reliability_diagram
from fedassay.calibration.bins import bin_table
from fedassay.noise import DenseNoise

# 100 scores at 0.25 of which 50 are positive, 100 at 0.75 of which 10 are.
LABELS = [1] * 50 + [0] * 50 + [1] * 10 + [0] * 90
SCORES = [0.25] * 100 + [0.75] * 100


def predicting(low: float, high: float) -> Calibrator:
    """A map of the lower and of the upper half of the scores to one prediction each."""
    edges = np.array([0.0, 0.5, 1.0])
    return Calibrator(Method.BINNING, edges, np.array([low, high]), Interpolation.STEP)


@pytest.mark.parametrize("low", [0.25, 0.2500001])
def test_a_prediction_on_an_edge_belongs_to_the_bin_below_it(low: float) -> None:
    """Gaps of +0.25 and -0.25 cancel in one bin, and do not in two."""
    histogram = ScoreHistogram.from_scores(LABELS, SCORES, grid=Grid.uniform(64))
    error = ece(histogram, bins=4, calibrator=predicting(low, 0.35), debiased=False)
    assert error.value == pytest.approx(0.25 if low == 0.25 else 0.0, abs=1e-6)
    worst = mce(histogram, bins=4, calibrator=predicting(low, 0.35), debiased=False)
    assert worst.value == pytest.approx(0.25 if low == 0.25 else 0.0, abs=1e-6)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_bars_are_as_long_as_a_binomials_interval(confidence: float) -> None:
    """3,000 of 10,000 at a prediction of 0.3, beside as many others: z sqrt(p (1 - p) / n)."""
    labels = [1] * 3_000 + [0] * 7_000 + [1] * 8_000 + [0] * 2_000
    scores = [0.25] * 10_000 + [0.75] * 10_000
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(64))
    diagram = reliability_diagram(
        histogram, bins=10, calibrator=predicting(0.3, 0.8), confidence=confidence
    )
    z = stats.norm.isf((1.0 - confidence) / 2.0)
    expected = [z * sqrt(0.3 * 0.7 / 10_000), z * sqrt(0.8 * 0.2 / 10_000)]
    assert diagram.prob_true == pytest.approx([0.3, 0.8])
    assert diagram.high - diagram.prob_true == pytest.approx(expected, rel=0.01)
    assert diagram.prob_true - diagram.low == pytest.approx(expected, rel=0.01)
    assert diagram.share == pytest.approx([0.5, 0.5])


def test_many_bins_err_apart_each_by_the_noise_of_its_own_gap() -> None:
    """A gap is (positives (1 - p) - negatives p) / n over the pieces of a bin."""
    cells, sd = 64, 3.0
    noise = DenseNoise(sd**2 * np.eye(2 * cells))
    counts = np.full((2, cells), 50.0)
    histogram = ScoreHistogram(np.arange(cells + 1) / cells, counts, noise)
    table = bin_table(histogram, bins=cells)
    middle = (np.arange(cells) + 0.5) / cells
    expected = sd**2 * (middle**2 + (1.0 - middle) ** 2) / histogram.total**2
    # Inside a cell scores lie evenly, so that its mean is its middle; the total is taken as known.
    assert table.gap_noise == pytest.approx(expected, rel=0.05)
    assert np.array_equal(table.gap_noise_covariance, np.diag(table.gap_noise))
