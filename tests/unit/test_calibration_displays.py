"""What is drawn is what was computed, cut off only where no rate can lie."""

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from fedassay import Grid, ScoreHistogram
from fedassay.calibration import CalibrationDisplay, fit_isotonic
from fedassay.hierarchy import Hierarchy
from fedassay.noise import TreeNoise


def noisy() -> ScoreHistogram:
    """Few rows of high scores, so that bars reach beyond 1."""
    generator = np.random.default_rng(2)
    scores = generator.beta(1.0, 1.5, 1_500)
    labels = (generator.random(1_500) < scores).astype(np.int64)
    exact = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(16))
    model = TreeNoise(Hierarchy.flat(16), (np.full((2, 16), 25.0),))
    noise = generator.normal(0.0, 5.0, (2, 16))
    return ScoreHistogram(exact.edges, exact.counts + noise, model)


def test_bars_reach_from_the_lower_to_the_upper_end_within_0_and_1() -> None:
    axes = Figure().subplots()
    shown = CalibrationDisplay.from_histogram(noisy(), bins=8, ax=axes)
    (bars,) = axes.containers
    assert isinstance(bars, ErrorbarContainer)
    line, _, (segments,) = bars.lines
    drawn = np.array([segment[:, 1] for segment in segments.get_segments()])
    diagram = shown.diagram
    assert (diagram.high > 1.0).any()
    assert np.allclose(drawn[:, 0], np.clip(diagram.low, 0.0, 1.0))
    assert np.allclose(drawn[:, 1], np.clip(diagram.high, 0.0, 1.0))
    assert np.allclose(line.get_xdata(), diagram.prob_pred)
    assert np.allclose(line.get_ydata(), np.clip(diagram.prob_true, 0.0, 1.0))


def test_the_legend_tells_the_error_of_what_is_drawn() -> None:
    """By brute force on rows: the calibrated scores' ECE, not that of the raw ones."""
    generator = np.random.default_rng(3)
    scores = (generator.integers(0, 50, 4_000) + 0.5) / 50
    labels = (generator.random(4_000) < scores**3).astype(np.int64)
    counted = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(50))
    histogram = ScoreHistogram(counted.edges, counted.counts, smooth=False)
    calibrator = fit_isotonic(histogram)
    axes = Figure().subplots()
    raw = CalibrationDisplay.from_histogram(histogram, ax=axes)
    after = CalibrationDisplay.from_histogram(
        histogram, calibrator=calibrator, name="calibrated", ax=axes
    )
    place = np.minimum(np.ceil(scores * 20) - 1, 19)
    gaps = [(labels - scores)[place == k].sum() / 4_000 for k in range(20)]
    assert raw.ece.value == pytest.approx(np.abs(gaps).sum(), rel=0.05)
    assert after.ece.value < 0.1 * raw.ece.value
    legend = axes.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert any(f"calibrated (ECE = {after.ece.value:.4f}" in text for text in texts)
