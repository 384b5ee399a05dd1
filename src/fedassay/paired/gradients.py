"""How each metric that is compared moves with the counts of its own model's histogram.

A row moves a figure by the gradient at its cell, so that the difference of two models' figures
moves by the difference of two gradients at the row's two cells. For ROC AUC the gradient is the
placement of DeLong, DeLong and Clarke-Pearson (1988).
"""

from collections.abc import Callable, Mapping

import numpy as np

from fedassay.calibration.calibration_error import ece_gradient
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import ConfusionCounts, confusion, confusion_weights
from fedassay.metrics.named import threshold_of
from fedassay.metrics.roc_auc import area_gradient
from fedassay.metrics.weak_calibration import oe_gradient, regression_gradient

Gradient = Callable[[ScoreHistogram], FloatArray]


def brier_gradient(histogram: ScoreHistogram) -> FloatArray:
    """How the Brier score moves with each count, label x bucket, for even scores in a bucket.

    >>> h = ScoreHistogram(np.array([0.0, 1.0]), np.array([[1.0], [1.0]]))
    >>> abs(brier_gradient(h)).max() < 1e-15  # every row's loss is 1/3
    np.True_
    """
    lo, hi = histogram.edges[:-1], histogram.edges[1:]
    of_zero = (lo * lo + lo * hi + hi * hi) / 3.0
    losses = np.stack([of_zero, of_zero - (lo + hi) + 1.0])
    mean = float((losses * histogram.counts).sum()) / histogram.total
    return (losses - mean) / histogram.total


SMOOTH: Mapping[str, Gradient] = {"roc_auc": area_gradient, "brier": brier_gradient}
"""Those that vary inside a bucket: they are read on finer ones."""

OF_CELLS: Mapping[str, Gradient] = {
    "calibration_in_the_large": lambda histogram: regression_gradient(histogram, slope=False),
    "calibration_slope": lambda histogram: regression_gradient(histogram, slope=True),
    "oe_ratio": oe_gradient,
    "ece": ece_gradient,
}

AT_THRESHOLD = ("precision", "recall", "specificity", "accuracy", "net_benefit")


def compared_metrics(thresholds: tuple[float, ...]) -> list[str]:
    """The names of the metrics whose differences are given.

    >>> compared_metrics((0.5,))[-2:]
    ['accuracy@0.5', 'net_benefit@0.5']
    """
    at = [f"{name}@{threshold!r}" for threshold in thresholds for name in AT_THRESHOLD]
    return [*SMOOTH, *OF_CELLS, *at]


def metric_gradient(histogram: ScoreHistogram, name: str) -> FloatArray:
    """How a compared metric moves with each count, label x bucket.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> metric_gradient(h, "recall@0.5").tolist()  # 3 of 4: 1/16 more, or 3/16 less
    [[0.0, 0.0], [-0.1875, 0.0625]]
    """
    known = {**SMOOTH, **OF_CELLS}
    if name in known:
        return known[name](histogram)
    threshold = threshold_of(name)
    at = confusion(histogram, 0.5 if threshold is None else threshold)
    slope = _slope(name.partition("@")[0], at.counts, at.threshold)
    return confusion_weights(at, slope)


def _slope(name: str, counts: ConfusionCounts, threshold: float) -> tuple[float, ...]:
    """How a figure moves with true and false positives, false and true negatives."""
    total = sum(counts)
    top, bottom = {
        "precision": ((1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)),
        "recall": ((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0)),
        "specificity": ((0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0)),
        "accuracy": ((1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
        "net_benefit": (
            (1.0, -threshold / max(1.0 - threshold, 1e-12), 0.0, 0.0),
            (1.0, 1.0, 1.0, 1.0),
        ),
    }[name]
    size = float(np.dot(bottom, counts)) or total
    value = float(np.dot(top, counts)) / size
    return tuple((t - value * b) / size for t, b in zip(top, bottom, strict=True))
