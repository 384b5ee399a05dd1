"""Scores as good as 0 or 1 that are orders of magnitude apart, as naive Bayes has them."""

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.examples import FloatArray
from fedassay.metrics.end_buckets import end_loss
from fedassay.ties import far_flung_in
from tests.oracles import weak_calibration
from tests.tables import Table

ROWS = 60_000
WITH_ENDS = Grid.octaves(2).with_ends()
MOST = -np.log(np.finfo(float).eps)


def overconfident(seed: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Log-odds of -20 and 10, give or take 15: a tenth of all scores is 0 or 1 in 64 bits."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(ROWS) < 0.2).astype(np.int64)
    odds = -20.0 + 30.0 * labels + 15.0 * generator.normal(size=ROWS)
    return labels, 1.0 / (1.0 + np.exp(-odds))


@pytest.mark.parametrize("grid", [Grid.octaves(2), WITH_ENDS], ids=["octaves", "with ends"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_figures_of_overconfident_scores_are_held(grid: Grid, seed: int) -> None:
    labels, scores = overconfident(seed)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=grid)
    fitted = weak_calibration(Table(labels, scores))
    exact = {
        "log_loss": log_loss(labels, scores),
        "roc_auc": roc_auc_score(labels, scores),
        "average_precision": average_precision_score(labels, scores),
        "calibration_intercept": fitted["calibration_intercept"],
        "calibration_slope": fitted["calibration_slope"],
    }
    for name, value in exact.items():
        estimate = getattr(metrics, name)(histogram)
        assert value in estimate.interval(population=False), name
        assert estimate.binning_sd < 0.1 * abs(value), name


def test_rows_go_on_as_they_come_for_each_power_of_ten() -> None:
    edges = np.array([0.0, 1e-12, 1e-10, 0.5, 1.0 - 1e-11, 1.0 - 1e-12, 1.0])
    counts = np.array([[400.0, 200.0, 9.0, 9.0, 0.0, 0.0], [0.0, 0.0, 9.0, 9.0, 10.0, 1000.0]])
    # 3.65 powers of ten from 1e-12 to 2^-52: 365 go on from 100 each, and 37 from 10.
    assert far_flung_in(counts, edges) == pytest.approx([0.913, 0.0365], rel=0.01)


def test_a_wide_bucket_beside_says_nothing() -> None:
    edges = np.array([0.0, 1e-12, 0.1, 1.0])
    counts = np.array([[100.0, 9000.0, 9.0], [9.0, 9.0, 9.0]])
    assert far_flung_in(counts, edges).tolist() == [0.0, 0.0]
    assert end_loss(ScoreHistogram(edges, counts), 1).likely == pytest.approx(MOST)


def test_default_scores_of_exactly_0_are_not_far_flung() -> None:
    """Thousands at 0 itself, and nobody for powers of ten beside."""
    generator = np.random.default_rng(8)
    scores = np.where(generator.random(ROWS) < 0.3, 0.0, generator.beta(0.8, 1.2, ROWS))
    labels = (generator.random(ROWS) < 0.02 + 0.9 * scores).astype(np.int64)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.octaves(2))
    assert histogram.far_flung.max() < 0.01
    assert metrics.log_loss(histogram).value == pytest.approx(log_loss(labels, scores), rel=0.01)
