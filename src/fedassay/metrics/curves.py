"""ROC and precision-recall curves."""

from dataclasses import dataclass

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import check_confidence, normal_quantile
from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.delta_method import why_one_class


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Curve:
    """Points of a curve, from the highest threshold to the lowest.

    `x_sd` and `y_sd` join privacy noise and sampling; `band()` gives a pointwise band in y.
    """

    x: FloatArray
    y: FloatArray
    thresholds: FloatArray
    x_sd: FloatArray
    y_sd: FloatArray
    monotone: bool = False
    """Whether counts were made non-negative first; never for exact counts."""

    def band(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper values of y, as they come."""
        check_confidence(confidence)
        half = normal_quantile(0.5 + confidence / 2.0) * self.y_sd
        return self.y - half, self.y + half


def roc_curve(histogram: ScoreHistogram, *, points: int = 512, monotone: bool = False) -> Curve:
    """False against true positive rates at the histogram's edges, thinned to `points`.

    A noisy curve may go backwards; `monotone` draws the nearest one that does not.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> curve = roc_curve(h)
    >>> curve.x.max(), curve.y.max()
    (np.float64(1.0), np.float64(1.0))
    """
    require_histogram(histogram)
    if monotone:
        histogram = histogram.monotone()
    kept = _edges_to_draw(histogram, points)
    above = above_edges(histogram, kept)
    P, N = histogram.total_positives, histogram.total_negatives
    fpr, tpr = above[0] / N, above[1] / P
    return Curve(
        x=fpr,
        y=tpr,
        thresholds=histogram.edges[kept],
        x_sd=_share_sd(histogram, kept, fpr, label=0),
        y_sd=_share_sd(histogram, kept, tpr, label=1),
        monotone=monotone and not histogram.noise.is_zero,
    )


def precision_recall_curve(
    histogram: ScoreHistogram, *, points: int = 512, monotone: bool = False
) -> Curve:
    """Recall against precision; thresholds with nothing above them are left out.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> precision_recall_curve(h).y.min()
    np.float64(0.5)
    """
    require_histogram(histogram)
    if monotone:
        histogram = histogram.monotone()
    kept = _edges_to_draw(histogram, points)
    above = above_edges(histogram, kept)
    kept = kept[above.sum(axis=0) > 0.0]
    above = above_edges(histogram, kept)
    called = above.sum(axis=0)
    share = above[1] / called
    noise = np.zeros(len(kept))
    if not histogram.noise.is_zero:
        for i, edge in enumerate(kept):
            inside = (np.arange(histogram.buckets) >= edge) / called[i]
            weights = np.stack([-share[i] * inside, (1.0 - share[i]) * inside])
            noise[i] = histogram.noise.variance(weights)
    sampling = np.maximum(share * (1.0 - share), 0.0) / called
    tpr = above[1] / histogram.total_positives
    return Curve(
        x=tpr,
        y=share,
        thresholds=histogram.edges[kept],
        x_sd=_share_sd(histogram, kept, tpr, label=1),
        y_sd=np.sqrt(noise + sampling),
        monotone=monotone and not histogram.noise.is_zero,
    )


def _edges_to_draw(histogram: ScoreHistogram, points: int) -> IntArray:
    """Edges from high to low: all of them, or about `points` spread over the ROC curve."""
    require_classes(histogram)
    everything = np.arange(histogram.buckets, -1, -1)
    if len(everything) <= points:
        return everything
    rate = np.maximum.accumulate(histogram.cumulative, axis=1)
    progress = (rate[0] / rate[0, -1] + rate[1] / rate[1, -1]) / 2.0
    kept = np.searchsorted(progress, np.linspace(0.0, 1.0, points))
    return np.unique(np.concatenate([[0, histogram.buckets], kept]))[::-1]


def above_edges(histogram: ScoreHistogram, edges: IntArray) -> FloatArray:
    """Counts above each edge, label x edge.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 2.0]]))
    >>> above_edges(h, np.array([1])).tolist()
    [[1.0], [2.0]]
    """
    total: FloatArray = histogram.cumulative[:, -1:]
    above: FloatArray = total - histogram.cumulative[:, edges]
    return above


def _share_sd(
    histogram: ScoreHistogram, edges: IntArray, share: FloatArray, *, label: int
) -> FloatArray:
    total = histogram.cumulative[label, -1]
    variance: FloatArray = np.maximum(share * (1.0 - share), 0.0) / total
    if not histogram.noise.is_zero:
        weights = np.zeros((2, histogram.buckets))
        for i, edge in enumerate(edges):
            weights[label] = ((np.arange(histogram.buckets) >= edge) - share[i]) / total
            variance[i] += histogram.noise.variance(weights)
    return np.sqrt(variance)


def require_classes(histogram: ScoreHistogram) -> None:
    """Raise unless both classes stand clear of the noise.

    >>> require_classes(ScoreHistogram.from_scores([0, 1], [0.2, 0.7]))
    """
    undefined = why_one_class(histogram)
    if undefined is not None:
        raise SettingInvalid(undefined.reason)
