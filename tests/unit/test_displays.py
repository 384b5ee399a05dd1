"""What is drawn: the band, the line of chance, and figures in the legend."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

from fedassay import Grid, ScoreHistogram
from fedassay.calibration import CalibrationDisplay
from fedassay.metrics import (
    DecisionCurveDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
    ScoreHistogramDisplay,
)
from tests.pages import assessment

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


DISPLAYS: list[Any] = [
    RocCurveDisplay,
    PrecisionRecallDisplay,
    CalibrationDisplay,
    DecisionCurveDisplay,
    ScoreHistogramDisplay,
]
every_display = pytest.mark.parametrize("kind", DISPLAYS)


@every_display
def test_rows_are_drawn_as_their_histogram_is(kind: Any) -> None:
    left, right = Figure().subplots(1, 2)
    kind.from_predictions(*rows(), name="same", ax=left)
    kind.from_histogram(ScoreHistogram.from_scores(*rows()), name="same", ax=right)
    for one, other in zip(left.get_lines(), right.get_lines(), strict=True):
        # A decision curve of rows has its thresholds for edges; all else has the same grid.
        assert np.asarray(one.get_ydata()) == pytest.approx(
            np.asarray(other.get_ydata()), abs=2e-3, nan_ok=True
        )
    assert labels_of(left) == labels_of(right) or kind is DecisionCurveDisplay


def labels_of(ax: Any) -> list[str]:
    labels: list[str] = ax.get_legend_handles_labels()[1]
    return labels


@every_display
def test_the_axes_and_their_figure_are_kept_and_names_stand_in_the_legend(kind: Any) -> None:
    ax = Figure().subplots()
    display = kind.from_histogram(histogram(), name="clinic", ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert any(label.startswith("clinic") for label in labels_of(ax))
    assert repr(display).startswith(f"<{kind.__name__} clinic: ")


@every_display
def test_several_on_one_axis_say_what_is_common_once(kind: Any) -> None:
    ax = Figure().subplots()
    for name in ("north", "south"):
        kind.from_histogram(histogram(), name=name, ax=ax)
    labels = labels_of(ax)
    assert len(labels) == len(set(labels))
    assert sum(label.startswith(("north", "south")) for label in labels) in (2, 4)


@every_display
def test_what_is_left_over_goes_to_the_line(kind: Any) -> None:
    ax = Figure().subplots()
    kind.from_predictions(*rows(), ax=ax, label="mine", alpha=0.5)
    handles, labels = ax.get_legend_handles_labels()
    assert "mine" in labels
    if kind is not CalibrationDisplay:
        assert handles[labels.index("mine")].get_alpha() == 0.5


def test_scores_of_each_class_add_up_to_one_and_lie_where_the_rows_do() -> None:
    labels, scores = rows()
    display = ScoreHistogramDisplay.from_predictions(
        labels, scores, bins=10, ax=Figure().subplots()
    )
    for label in (0, 1):
        counted, _ = np.histogram(scores[labels == label], bins=10, range=(0.0, 1.0))
        assert display.shares[label] == pytest.approx(counted / counted.sum(), abs=0.01)
        assert display.shares[label].sum() == pytest.approx(1.0)


def test_the_four_of_an_assessment_are_on_one_figure() -> None:
    figure = Figure(figsize=(10, 10), layout="constrained")
    four = assessment("distributed").plot(name="clinics", figure=figure)
    assert four.figure_ is figure
    axes = [each.ax_ for each in (four.roc, four.calibration, four.decision, four.scores)]
    assert axes == figure.axes
    assert [ax.get_xlabel() for ax in axes] == [
        "False positive rate",
        "Predicted probability",
        "Threshold",
        "Score",
    ]
    assert "clinics: AUC" in repr(four)
    assert (four._repr_png_() or b"").startswith(b"\x89PNG")


def test_what_is_not_drawn_yet_has_no_picture() -> None:
    histogram = ScoreHistogram.from_scores(*rows())
    display = RocCurveDisplay.from_histogram(histogram)
    assert (display._repr_png_() or b"")[:8] == b"\x89PNG\r\n\x1a\n"
    undrawn = replace(display, ax_=None)
    assert undrawn.figure_ is None
    assert undrawn._repr_png_() is None
