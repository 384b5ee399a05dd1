"""What is drawn: the band, the line of chance, and figures in the legend."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

from fedassay import Grid, ScoreHistogram
from fedassay.metrics import PrecisionRecallDisplay, RocCurveDisplay

ROWS = 400


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    scores = rng.random(ROWS)
    return (rng.random(ROWS) < 0.5 * scores).astype(int), scores


def histogram() -> ScoreHistogram:
    return ScoreHistogram.from_scores(*rows(), grid=Grid.uniform(32))


def test_the_band_is_that_of_a_proportion_of_the_positives_and_stays_in_the_picture() -> None:
    ax = Figure().subplots()
    display = RocCurveDisplay.from_histogram(histogram(), ax=ax)
    (band,) = ax.collections
    corners = np.asarray(band.get_paths()[0].vertices)
    assert corners.min() >= 0.0
    assert corners.max() <= 1.0
    labels, _ = rows()
    middle = int(np.argmin(np.abs(display.curve.y - 0.5)))
    x, y = display.curve.x[middle], display.curve.y[middle]
    at = corners[np.abs(corners[:, 0] - x) < 1e-12][:, 1]
    # Both rates vary; the band is of the true positive rate, with no noise.
    own = 1.959964 * np.sqrt(y * (1 - y) / labels.sum())
    assert at.max() - y == pytest.approx(own, rel=0.1)
    assert y - at.min() == pytest.approx(own, rel=0.1)


def test_chance_is_the_diagonal_and_the_share_of_positives() -> None:
    left, right = Figure().subplots(1, 2)
    RocCurveDisplay.from_histogram(histogram(), ax=left)
    PrecisionRecallDisplay.from_histogram(histogram(), ax=right)
    chance = {line.get_label(): line for line in left.get_lines()}["chance"]
    assert chance.get_xydata().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    chance = {line.get_label(): line for line in right.get_lines()}["chance"]
    assert chance.get_ydata() == pytest.approx([rows()[0].mean()] * 2)


def test_the_legend_says_the_area_with_its_interval() -> None:
    ax = Figure().subplots()
    RocCurveDisplay.from_histogram(histogram(), name="clinic", ax=ax)
    label = str(ax.get_lines()[0].get_label())
    area = float(roc_auc_score(*rows()))
    name, _, figures = label.partition(" (AUC = ")
    value, low, high = (float(part.strip("[],)")) for part in figures.split()[:3])
    assert name == "clinic"
    assert value == pytest.approx(area, abs=2e-3)
    # Hanley and McNeil's spread of some 400 rows is 0.02 to 0.04 on either side.
    assert low < area - 0.02 < area + 0.02 < high
    assert "monotone" not in label
