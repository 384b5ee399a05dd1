"""ROC and precision-recall curves."""

from dataclasses import dataclass

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import check_confidence, normal_quantile
from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.confusion import confusion
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

    Of two surveys, edges inside the second one's cells are on the smooth curve through these:
    the first one's noise would make the curve rougher than it is. Its deviations then join what
    the cells hide. A noisy curve may go backwards; `monotone` draws the nearest one that does not.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> curve = roc_curve(h)
    >>> curve.x.max(), curve.y.max()
    (np.float64(1.0), np.float64(1.0))
    """
    drawn = _drawn(histogram, points, monotone=monotone)
    read = drawn.histogram
    P, N = read.total_positives, read.total_negatives
    fpr, tpr = drawn.above[0] / N, drawn.above[1] / P
    return Curve(
        x=fpr,
        y=tpr,
        thresholds=drawn.thresholds,
        x_sd=_share_sd(drawn, fpr, label=0),
        y_sd=_share_sd(drawn, tpr, label=1),
        monotone=monotone and not read.noise.is_zero,
    )


def precision_recall_curve(
    histogram: ScoreHistogram, *, points: int = 512, monotone: bool = False
) -> Curve:
    """Recall against precision; thresholds with nothing above them are left out.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> precision_recall_curve(h).y.min()
    np.float64(0.5)
    """
    drawn = _drawn(histogram, points, monotone=monotone)
    read, has_some = drawn.histogram, drawn.above.sum(axis=0) > 0.0
    called = np.where(has_some, drawn.above.sum(axis=0), 1.0)
    share = drawn.above[1] / called
    noise = np.zeros(len(called))
    if not read.noise.is_zero:
        for i in np.flatnonzero(has_some).tolist():
            negatives, positives = drawn.moves(i) / called[i]
            weights = np.stack([-share[i] * negatives, (1.0 - share[i]) * positives])
            noise[i] = read.noise.variance(weights)
    sampling = np.maximum(share * (1.0 - share), 0.0) / called
    hidden = np.hypot(share * drawn.spread[0], (1.0 - share) * drawn.spread[1]) / called
    tpr = drawn.above[1] / read.total_positives
    return Curve(
        x=tpr[has_some],
        y=share[has_some],
        thresholds=drawn.thresholds[has_some],
        x_sd=_share_sd(drawn, tpr, label=1)[has_some],
        y_sd=np.sqrt(noise + sampling + hidden**2)[has_some],
        monotone=monotone and not read.noise.is_zero,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """The points of a curve, before they become rates."""

    histogram: ScoreHistogram
    """What is read: the cells that were counted, where leaves inside are known from less."""
    thresholds: FloatArray
    above: FloatArray
    """Counts above each threshold, label x point."""
    spread: FloatArray
    """What a cell around a point hides of them, as standard deviations, label x point."""

    def moves(self, point: int) -> FloatArray:
        """How the counts above a point move with each count, label x bucket."""
        _, bucket, part = self.histogram.below(float(self.thresholds[point]))
        moves: FloatArray = 1.0 - self.histogram.shares_below(bucket, part)
        return moves


def _drawn(histogram: ScoreHistogram, points: int, *, monotone: bool) -> _Drawn:
    """Points at the histogram's edges; of two surveys, on the smooth curve through the cells."""
    require_histogram(histogram)
    read = histogram.by_cells()
    is_plain = read is histogram
    if monotone:
        read = read.monotone()
    kept = _edges_to_draw(read if is_plain else histogram, points)
    thresholds = histogram.edges[kept]
    if is_plain:
        return _Drawn(read, thresholds, above_edges(read, kept), np.zeros((2, len(kept))))
    points_at = [confusion(read, float(threshold)) for threshold in thresholds]
    above = np.array([at.counts[1::-1] for at in points_at]).T
    # Nothing lies below 0 or above 1, whatever the end cells hide.
    inside = (thresholds > 0.0) & (thresholds < 1.0)
    return _Drawn(read, thresholds, above, np.array([at.spread for at in points_at]).T * inside)


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


def _share_sd(drawn: _Drawn, share: FloatArray, *, label: int) -> FloatArray:
    read = drawn.histogram
    total = read.cumulative[label, -1]
    variance: FloatArray = np.maximum(share * (1.0 - share), 0.0) / total
    variance += (drawn.spread[label] / total) ** 2
    if not read.noise.is_zero:
        for i in range(len(share)):
            weights = np.zeros((2, read.buckets))
            weights[label] = (drawn.moves(i)[label] - share[i]) / total
            variance[i] += read.noise.variance(weights)
    return np.sqrt(variance)


def require_classes(histogram: ScoreHistogram) -> None:
    """Raise unless both classes stand clear of the noise.

    >>> require_classes(ScoreHistogram.from_scores([0, 1], [0.2, 0.7]))
    """
    undefined = why_one_class(histogram)
    if undefined is not None:
        raise SettingInvalid(undefined.reason)
