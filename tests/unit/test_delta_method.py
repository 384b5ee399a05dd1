"""Errors rest on gradients; these are compared with differences of the metrics themselves."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from fedassay import Estimate, NotEnoughData, ScoreHistogram, metrics
from fedassay.metrics.delta_method import sampling_variance
from fedassay.noise import DenseNoise

Metric = Callable[[ScoreHistogram], Estimate]
T = 0.5

METRICS: dict[str, Metric] = {
    "roc_auc": metrics.roc_auc,
    "average_precision": metrics.average_precision,
    "brier": metrics.brier,
    "log_loss": metrics.log_loss,
    "ks": metrics.ks,
    "prevalence": metrics.prevalence,
    "precision": lambda h: metrics.precision(h, T),
    "recall": lambda h: metrics.recall(h, T),
    "accuracy": lambda h: metrics.accuracy(h, T),
    "specificity": lambda h: metrics.specificity(h, T),
    "f1": lambda h: metrics.f1(h, T),
    "f2": lambda h: metrics.f_beta(h, T, beta=2.0),
    "balanced_accuracy": lambda h: metrics.balanced_accuracy(h, T),
    "mcc": lambda h: metrics.mcc(h, T),
    "tp": lambda h: metrics.confusion_counts(h, T)["tp"],
    "tn": lambda h: metrics.confusion_counts(h, T)["tn"],
    "partial area": lambda h: metrics.roc_auc(h, max_fpr=0.2),
    "npv": lambda h: metrics.npv(h, T),
    "lr_plus": lambda h: metrics.lr_plus(h, T),
    "lr_minus": lambda h: metrics.lr_minus(h, T),
    "flagged": lambda h: metrics.flagged(h, T),
    "net_benefit": lambda h: metrics.net_benefit(h, T),
    "net_benefit_over_all": lambda h: metrics.net_benefit_over_all(h, T),
    "recall_at_specificity": lambda h: metrics.recall_at_specificity(h, 0.7),
    "specificity_at_recall": lambda h: metrics.specificity_at_recall(h, 0.7),
    "gain": lambda h: metrics.gain(h, 0.3),
    "lift": lambda h: metrics.lift(h, 0.3),
    "calibration_in_the_large": metrics.calibration_in_the_large,
    "calibration_intercept": metrics.calibration_intercept,
    "calibration_slope": metrics.calibration_slope,
    "oe_ratio": metrics.oe_ratio,
}
# These order examples within a bucket by a model of their own, so their gradients, or for
# roc_auc that of its sampling error, are those of halves: close for small buckets.
# Where a goal sets the threshold, how it moves is read from a chord as wide as chance moves it.
NEARLY = {
    "recall_at_specificity": 0.03,
    "specificity_at_recall": 0.03,
    "gain": 0.03,
    "lift": 0.03,
    "roc_auc": 0.01,
    # From 200 draws of the noise, exact for what is linear in it: these bend.
    "average_precision": 0.04,
    "ks": 0.04,
    "partial area": 0.05,
}


class UnitNoise:
    """Independent errors of variance one in every count."""

    is_zero = False
    local_epsilon = None

    def variance(self, weights: npt.NDArray[np.float64]) -> float:
        return float((weights**2).sum())

    def covariances(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        flat = weights.reshape(len(weights), -1)
        table: npt.NDArray[np.float64] = flat @ flat.T
        return table

    def reports_for(self, growth: float) -> float:
        return growth


def expected_counts(buckets: int = 64) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    edges = np.arange(buckets + 1) / buckets
    middle = (edges[1:] + edges[:-1]) / 2
    negatives = 40 + 3000 * middle * (1 - middle) ** 3
    positives = 20 + 900 * middle**2 * (1 - middle)
    return edges, np.stack([negatives, positives])


def differences(metric: Metric) -> npt.NDArray[np.float64]:
    edges, counts = expected_counts()
    step = 0.01
    slopes = np.zeros_like(counts)
    for place in np.ndindex(counts.shape):
        ends = []
        for sign in (1.0, -1.0):
            moved = counts.copy()
            moved[place] += sign * step
            ends.append(metric(ScoreHistogram(edges.copy(), moved)).value)
        slopes[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes


@pytest.mark.parametrize("name", METRICS)
def test_noise_reaches_a_metric_through_its_derivative(name: str) -> None:
    edges, counts = expected_counts()
    found = METRICS[name](ScoreHistogram(edges, counts, UnitNoise())).noise_sd
    expected = np.sqrt((differences(METRICS[name]) ** 2).sum())
    assert found == pytest.approx(expected, rel=NEARLY.get(name, 1e-4))


@pytest.mark.parametrize("name", METRICS)
def test_sampling_reaches_a_metric_through_its_derivative(name: str) -> None:
    """Rows are a multinomial sample; recall and its kin condition on their class."""
    edges, counts = expected_counts()
    found = METRICS[name](ScoreHistogram(edges, counts)).sampling_sd
    slopes = differences(METRICS[name])
    mean = (counts * slopes).sum() / counts.sum()
    expected = np.sqrt((counts * (slopes - mean) ** 2).sum())
    assert found == pytest.approx(expected, rel=NEARLY.get(name, 1e-3))


def test_noise_of_merged_buckets_is_that_of_their_cells() -> None:
    edges, counts = expected_counts()
    fine = ScoreHistogram(edges, counts, UnitNoise())
    coarse = fine.merge(np.array([0, 16, 32, 48, 64]))
    assert metrics.recall(coarse, T).noise_sd == pytest.approx(metrics.recall(fine, T).noise_sd)


def test_curves_carry_noise() -> None:
    edges, counts = expected_counts()
    quiet = metrics.roc_curve(ScoreHistogram(edges.copy(), counts.copy()))
    noisy = metrics.roc_curve(ScoreHistogram(edges, counts, UnitNoise()))
    middle = len(noisy.x) // 2
    recall = METRICS["recall"](ScoreHistogram(edges.copy(), counts.copy(), UnitNoise()))
    assert noisy.thresholds[middle] == T
    expected = np.sqrt(quiet.y_sd[middle] ** 2 + recall.noise_sd**2)
    assert noisy.y_sd[middle] == pytest.approx(expected)


def test_a_ratio_needs_a_denominator_clear_of_its_noise() -> None:
    """Four standard deviations of the predicted positives are the least for a precision."""
    edges = np.array([0.0, 0.5, 1.0])
    noise_sd = np.sqrt(2.0)
    for above, available in ((4.01 * noise_sd, True), (3.99 * noise_sd, False)):
        counts = np.array([[50.0, above / 2], [50.0, above / 2]])
        found = metrics.precision(ScoreHistogram(edges.copy(), counts, UnitNoise()), T)
        assert found.is_available == available
        assert isinstance(found, NotEnoughData) != available
        if isinstance(found, NotEnoughData):
            assert "About 1.1 times the reports would do" in found.reason


def test_what_is_lost_in_the_noise_asks_for_at_least_so_many_reports() -> None:
    edges = np.array([0.0, 0.5, 1.0])
    for above in (-3.0, 0.1):
        counts = np.array([[50.0, above], [50.0, 0.0]])
        found = metrics.precision(ScoreHistogram(edges.copy(), counts, UnitNoise()), T)
        assert isinstance(found, NotEnoughData)
        assert "At least 4 times the reports would do" in found.reason


def test_rows_that_only_change_places_vary_as_a_multinomial() -> None:
    """The covariance of counts whose sum is fixed, diag(c) - c c' / M, written out."""
    generator = np.random.default_rng(2)
    counts = generator.uniform(1.0, 40.0, (2, 5))
    histogram = ScoreHistogram(np.arange(6) / 5, counts)
    flat = counts.ravel()
    covariance = np.diag(flat) - np.outer(flat, flat) / flat.sum()
    for gradient in (generator.normal(3.0, 1.0, (2, 5)), np.ones((2, 5))):
        expected = float(gradient.ravel() @ covariance @ gradient.ravel())
        assert sampling_variance(histogram, gradient) == pytest.approx(expected, abs=1e-9)


def test_noise_where_hardly_any_row_is_does_not_take_the_sampling_error_away() -> None:
    """Steep at both ends, where noise left -30 and -20 of nothing: the sum itself is below 0."""
    rows = np.array([[0.0, 400.0, 400.0, 0.0], [0.0, 400.0, 400.0, 0.0]])
    gradient = np.array([[9.0, 1.0, -1.0, -9.0], [9.0, 1.0, -1.0, -9.0]])
    off = np.array([[-30.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -20.0]])
    edges = np.linspace(0.0, 1.0, 5)
    noisy = ScoreHistogram(edges, rows + off, DenseNoise(400.0 * np.eye(8)))
    assert sampling_variance(noisy, gradient) == pytest.approx(1600.0, rel=0.5)
    assert sampling_variance(ScoreHistogram(edges, rows), gradient) == pytest.approx(1600.0)
