"""What a clinic asks of a threshold: how many are flagged, and what a flag or none is worth."""

from math import inf

from fedassay.estimate import Estimate, Shape
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import Confusion, ConfusionCounts, confusion
from fedassay.metrics.confusion_figures import Kind, from_confusion, proportion, why_not_clear
from fedassay.metrics.delta_method import CLEAR_OF_NOISE, why_one_class
from fedassay.metrics.multiples import multiple

PER = 1000.0
_POSITIVES: ConfusionCounts = (1.0, 0.0, 1.0, 0.0)
_TRUE_POSITIVES: ConfusionCounts = (1.0, 0.0, 0.0, 0.0)
_FALSE_POSITIVES: ConfusionCounts = (0.0, 1.0, 0.0, 0.0)
_FALSE_NEGATIVES: ConfusionCounts = (0.0, 0.0, 1.0, 0.0)
_TRUE_NEGATIVES: ConfusionCounts = (0.0, 0.0, 0.0, 1.0)


def npv(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """Negative predictive value, TN / (TN + FN): the share of negatives among the unflagged.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(npv(h, 0.5).value, 3)
    0.667
    """
    at = confusion(histogram, threshold)
    where = f"examples at or below threshold {threshold:g}"
    return proportion(at, _npv, (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0), where)


def flagged(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """How many of 1,000 examples lie above the threshold.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> flagged(h, 0.5).value
    250.0
    """
    at = confusion(histogram, threshold)
    share = proportion(at, _called, (1.0, 1.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0), "examples")
    return multiple(share, PER)


def lr_plus(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """Positive likelihood ratio, recall / (1 - specificity): what a flag does to the odds.

    Its interval is symmetric on the logarithmic scale.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> lr_plus(h, 0.3).value
    2.0
    """
    at = confusion(histogram, threshold)
    undefined = why_one_class(histogram) or why_not_clear(
        at, _FALSE_POSITIVES, f"negatives above threshold {threshold:g}"
    )
    if undefined is not None:
        return undefined
    tp, fp, fn, tn = at.counts
    P, N = tp + fn, fp + tn
    value = _lr_plus(at.counts)
    slope = (
        fn / P**2 * N / fp,
        -value * tn / (fp * N),
        -tp / P**2 * N / fp,
        value / N,
    )
    return from_confusion(at, _lr_plus, slope, _kind(at, _TRUE_POSITIVES, _FALSE_POSITIVES))


def lr_minus(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """Negative likelihood ratio, (1 - recall) / specificity: what no flag does to the odds.

    Its interval is symmetric on the logarithmic scale.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> lr_minus(h, 0.5).value
    0.5
    """
    at = confusion(histogram, threshold)
    undefined = why_one_class(histogram) or why_not_clear(
        at, _TRUE_NEGATIVES, f"negatives at or below threshold {threshold:g}"
    )
    if undefined is not None:
        return undefined
    tp, fp, fn, tn = at.counts
    P, N = tp + fn, fp + tn
    value = _lr_minus(at.counts)
    slope = (
        -fn / P**2 * N / tn,
        value / N,
        tp / P**2 * N / tn,
        -value * fp / (tn * N),
    )
    return from_confusion(at, _lr_minus, slope, _kind(at, _FALSE_NEGATIVES, _TRUE_NEGATIVES))


def _kind(at: Confusion, top: ConfusionCounts, bottom: ConfusionCounts) -> Kind:
    """A ratio of two counts is drawn on the logarithmic scale, unless its top may be nobody.

    A ratio to no rows at all has no logarithm. Nor is one that noise may have made of
    none: noise is added and knows no logarithm.
    """
    is_clear = at.sum_of(top) >= max(CLEAR_OF_NOISE * at.noise_sd(top), 1.0)
    shape = Shape.LOG if is_clear else Shape.PLAIN
    return Kind(shape, is_ratio=True, divisors=(bottom, _POSITIVES))


def _npv(quad: ConfusionCounts) -> float:
    return quad[3] / (quad[2] + quad[3]) if quad[2] + quad[3] != 0.0 else float("nan")


def _called(quad: ConfusionCounts) -> float:
    return (quad[0] + quad[1]) / sum(quad)


def _lr_plus(quad: ConfusionCounts) -> float:
    tp, fp, fn, tn = quad
    return tp / (tp + fn) * (fp + tn) / fp if fp != 0.0 else inf


def _lr_minus(quad: ConfusionCounts) -> float:
    tp, fp, fn, tn = quad
    return fn / (tp + fn) * (fp + tn) / tn if tn != 0.0 else inf
