"""The decision curve as it is drawn: its lines, its band, and what it says of itself."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedassay import Grid, ScoreHistogram
from fedassay.metrics import DecisionCurveDisplay, RocCurveDisplay

ROWS = 2000


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    scores = rng.random(ROWS)
    return (rng.random(ROWS) < scores).astype(int), scores


def benefit(threshold: float) -> float:
    labels, scores = rows()
    above = scores > threshold
    odds = threshold / (1 - threshold)
    return float((labels[above].sum() - odds * (1 - labels)[above].sum()) / ROWS)


def test_lines_are_net_benefit_of_the_score_of_all_and_of_nobody() -> None:
    ax = Figure().subplots()
    display = DecisionCurveDisplay.from_predictions(*rows(), name="clinic", ax=ax)
    lines = {str(line.get_label()): np.asarray(line.get_xydata()) for line in ax.get_lines()}
    x, y = lines["clinic"].T
    assert x.tolist() == pytest.approx([k / 100 for k in range(1, 100)])
    assert y[[9, 49, 89]] == pytest.approx([benefit(t) for t in (0.1, 0.5, 0.9)], abs=1e-12)
    share = rows()[0].mean()
    assert lines["act on all"][49, 1] == pytest.approx(share - (1 - share))
    assert set(lines["act on nobody"][:, 1]) == {0.0}
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_ylim()[0] < 0.0 < ax.get_ylim()[1]


def test_the_band_is_that_of_a_mean() -> None:
    ax = Figure().subplots()
    DecisionCurveDisplay.from_predictions(*rows(), ax=ax)
    (band,) = ax.collections
    corners = np.asarray(band.get_paths()[0].vertices)
    at = corners[np.abs(corners[:, 0] - 0.5) < 1e-12][:, 1]
    labels, scores = rows()
    worth = np.where(labels == 1, 1.0, -1.0) * (scores > 0.5)
    half = 1.959964 * worth.std() / np.sqrt(ROWS)
    assert (at.min(), at.max()) == pytest.approx((benefit(0.5) - half, benefit(0.5) + half))


def test_it_says_where_the_score_is_surely_better() -> None:
    h = ScoreHistogram.from_scores(*rows(), grid=Grid.uniform(100))
    display = DecisionCurveDisplay.from_histogram(h, thresholds=[0.3, 0.5], ax=Figure().subplots())
    assert repr(display) == (
        "<DecisionCurveDisplay federation: surely better than both simple ways at 2 of 2 "
        "thresholds, 0.3 to 0.5>"
    )
    rng = np.random.default_rng(1)
    useless = ScoreHistogram.from_scores(rng.integers(0, 2, 300), rng.random(300))
    shown = DecisionCurveDisplay.from_histogram(useless, ax=Figure().subplots())
    assert "nowhere surely better" in repr(shown)


def test_a_display_has_no_figure_before_it_is_drawn() -> None:
    h = ScoreHistogram.from_scores(*rows())
    drawn = RocCurveDisplay.from_histogram(h, ax=Figure().subplots())
    assert drawn.figure_ is not None
    assert RocCurveDisplay(drawn.curve, drawn.roc_auc).figure_ is None
