"""Precision, recall, accuracy and their kin at any threshold chosen at query time."""

from math import inf, nan, sqrt
from operator import itemgetter

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, Shape
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import ConfusionCounts, confusion
from fedassay.metrics.confusion_figures import Kind, from_confusion, proportion, why_not_clear
from fedassay.metrics.delta_method import why_one_class

_POSITIVES: ConfusionCounts = (1.0, 0.0, 1.0, 0.0)
_NEGATIVES: ConfusionCounts = (0.0, 1.0, 0.0, 1.0)
_SIDES: dict[ConfusionCounts, str] = {
    (1.0, 1.0, 0.0, 0.0): "examples above the threshold",
    _POSITIVES: "positives",
    _NEGATIVES: "negatives",
    (0.0, 0.0, 1.0, 1.0): "examples at or below the threshold",
}


def confusion_counts(histogram: ScoreHistogram, threshold: float) -> dict[str, Estimate]:
    """The four counts as estimates, by name: tp, fp, fn, tn.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> {name: count.value for name, count in confusion_counts(h, 0.5).items()}
    {'tp': 1.0, 'fp': 0.0, 'fn': 1.0, 'tn': 2.0}
    """
    at = confusion(histogram, threshold)
    return {
        name: from_confusion(
            at, itemgetter(index), _unit(index), Kind(Shape.PLAIN, span=inf, is_straight=True)
        )
        for index, name in enumerate(("tp", "fp", "fn", "tn"))
    }


def accuracy(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The share of examples classified correctly.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> accuracy(h, 0.5).value
    0.75
    """
    at = confusion(histogram, threshold)
    return proportion(at, _accuracy, (1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0), "examples")


def precision(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The share of positives among examples above the threshold.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(precision(h, 0.3).value, 3)
    0.667
    """
    at = confusion(histogram, threshold)
    where = f"examples above threshold {threshold:g}"
    return proportion(at, _precision, (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0), where)


def recall(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The share of positives above the threshold; the true positive rate.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> recall(h, 0.5).value
    0.5
    """
    at = confusion(histogram, threshold)
    return proportion(at, _recall, (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0), "positives")


def specificity(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The share of negatives at or below the threshold; one minus the false positive rate.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> specificity(h, 0.3).value
    0.5
    """
    at = confusion(histogram, threshold)
    return proportion(at, _specificity, (0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0), "negatives")


def f_beta(histogram: ScoreHistogram, threshold: float, *, beta: float = 1.0) -> Estimate:
    """The weighted harmonic mean of precision and recall.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(f_beta(h, 0.5, beta=2.0).value, 3)
    0.556
    """
    if not 0.0 < beta < inf:
        raise SettingInvalid(f"beta must be positive and finite; found {beta}. F1 has beta=1.")
    square = beta * beta

    def value(quad: ConfusionCounts) -> float:
        tp, fp, fn, _ = quad
        return _ratio((1.0 + square) * tp, (1.0 + square) * tp + square * fn + fp)

    at = confusion(histogram, threshold)
    divisor = (1.0 + square, 1.0, square, 0.0)
    undefined = why_not_clear(at, divisor, "positives, true or predicted,")
    if undefined is not None:
        return undefined
    bottom, score = at.sum_of(divisor), value(at.counts)
    slope = (
        _ratio((1.0 + square) * (1.0 - score), bottom),
        _ratio(-score, bottom),
        _ratio(-square * score, bottom),
        0.0,
    )
    trials = max(bottom / (1.0 + square), 1.0)
    return from_confusion(at, value, slope, Kind(Shape.LOGIT, trials, divisors=(divisor,)))


def f1(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The harmonic mean of precision and recall.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(f1(h, 0.5).value, 3)
    0.667
    """
    return f_beta(histogram, threshold)


def balanced_accuracy(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The mean of recall and specificity.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> balanced_accuracy(h, 0.5).value
    0.75
    """
    at = confusion(histogram, threshold)
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    tp, fp, fn, tn = at.counts
    slope = (
        0.5 * fn / (tp + fn) ** 2,
        -0.5 * tn / (fp + tn) ** 2,
        -0.5 * tp / (tp + fn) ** 2,
        0.5 * fp / (fp + tn) ** 2,
    )
    trials, divisors = max(min(tp + fn, fp + tn), 1.0), (_POSITIVES, _NEGATIVES)
    kind = Kind(Shape.LOGIT, trials, is_straight=True, divisors=divisors)
    return from_confusion(at, _balanced, slope, kind)


def mcc(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """Matthews' correlation between label and prediction.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(mcc(h, 0.5).value, 3)
    0.577
    """
    at = confusion(histogram, threshold)
    tp, fp, fn, tn = at.counts
    sides = (tp + fp, tp + fn, tn + fp, tn + fn)
    for side, of in _SIDES.items():
        undefined = why_not_clear(at, side, of)
        if undefined is not None:
            return undefined
    value, root = _mcc(at.counts), sqrt(sides[0] * sides[1] * sides[2] * sides[3])
    pull = [0.5 * value / side for side in sides]
    slope = (
        tn / root - pull[0] - pull[1],
        -fn / root - pull[0] - pull[2],
        -fp / root - pull[1] - pull[3],
        tp / root - pull[2] - pull[3],
    )
    kind = Kind(Shape.PLAIN, span=2.0, is_straight=True, divisors=tuple(_SIDES))
    return from_confusion(at, _mcc, slope, kind)


def _unit(index: int) -> tuple[float, ...]:
    return tuple(1.0 if i == index else 0.0 for i in range(4))


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom != 0.0 else nan


def _accuracy(quad: ConfusionCounts) -> float:
    return _ratio(quad[0] + quad[3], sum(quad))


def _precision(quad: ConfusionCounts) -> float:
    return _ratio(quad[0], quad[0] + quad[1])


def _recall(quad: ConfusionCounts) -> float:
    return _ratio(quad[0], quad[0] + quad[2])


def _specificity(quad: ConfusionCounts) -> float:
    return _ratio(quad[3], quad[3] + quad[1])


def _balanced(quad: ConfusionCounts) -> float:
    return 0.5 * (_recall(quad) + _specificity(quad))


def _mcc(quad: ConfusionCounts) -> float:
    tp, fp, fn, tn = quad
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / sqrt(product) if product > 0.0 else nan
