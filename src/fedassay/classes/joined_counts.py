"""Histograms of classes put together: scaled up, joined from two parts, pooled over classes."""

from typing import NamedTuple

import numpy as np

from fedassay.classes.part_noise import JoinedNoise, SummedNoise, ThinnedNoise
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram


def scaled_up(histogram: ScoreHistogram, scale: float) -> ScoreHistogram:
    """The counts of all rows, from those of a share of the clients drawn at random.

    >>> h = ScoreHistogram(np.array([0.0, 1.0]), np.array([[30.0], [10.0]]))
    >>> scaled_up(h, 4.0).total, scaled_up(h, 4.0).noise.variance(np.array([[0.0], [1.0]]))
    (160.0, 120.0)
    """
    counts = histogram.counts * scale
    return ScoreHistogram(
        histogram.edges, counts, ThinnedNoise(histogram.noise, scale, counts), histogram.smooth
    )


def join_own(rest: ScoreHistogram, own: ScoreHistogram, number: int) -> ScoreHistogram:
    """A class's negatives from its own part, and its positives from the part of all.

    >>> rest = ScoreHistogram(np.array([0.0, 1.0]), np.array([[30.0], [11.0]]))
    >>> own = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[0.0, 0.0], [10.0, 20.0]]))
    >>> join_own(rest, own, 1).counts.tolist()
    [[30.0], [20.0]]
    """
    first = number * rest.buckets
    positives = own.counts[1, first : first + rest.buckets]
    counts = np.stack([rest.counts[0], positives])
    noise = JoinedNoise(rest.noise, own.noise, first, own.buckets)
    return ScoreHistogram(rest.edges, counts, noise, rest.smooth)


def pooled(histograms: list[ScoreHistogram]) -> ScoreHistogram:
    """All classes' histograms added up, over the edges that all of them have.

    >>> h = ScoreHistogram.from_scores([0, 1], [0.2, 0.7])
    >>> pooled([h, h]).total
    4.0
    """
    shared = histograms[0].edges
    for histogram in histograms[1:]:
        shared = np.intersect1d(shared, histogram.edges)
    merged = [h.merge(np.searchsorted(h.edges, shared)) for h in histograms]
    counts: FloatArray = np.sum([h.counts for h in merged], axis=0)
    noise = SummedNoise(tuple(h.noise for h in merged))
    return ScoreHistogram(shared, counts, noise, merged[0].smooth)


class AreaParts(NamedTuple):
    """A ROC AUC's sampling variance, from the positives and from the negatives (DeLong)."""

    of_positives: float
    of_negatives: float


def area_gradient(histogram: ScoreHistogram) -> tuple[float, FloatArray]:
    """The ROC AUC by trapezoids, and how it moves with each count, label x bucket.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> area_gradient(h)[0]
    0.75
    """
    below = histogram.cumulative
    P, N = histogram.total_positives, histogram.total_negatives
    negatives_below = 0.5 * (below[0, :-1] + below[0, 1:]) / N
    positives_above = 1.0 - 0.5 * (below[1, :-1] + below[1, 1:]) / P
    value = float(histogram.positives @ negatives_below) / P
    return value, np.stack([(positives_above - value) / N, (negatives_below - value) / P])


def area_parts(histogram: ScoreHistogram) -> AreaParts:
    """DeLong's two variances of a class's ROC AUC."""
    _, gradient = area_gradient(histogram)
    negatives, positives = (np.maximum(histogram.counts, 0.0) * gradient**2).sum(axis=1)
    return AreaParts(float(positives), float(negatives))
