"""Precision, recall, accuracy and their kin at any threshold chosen at query time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, inf, isnan, nan, sqrt
from operator import itemgetter

from fedassay.errors import SettingInvalid
from fedassay.estimate import REACH, Estimate, NotEnoughData, Shape, unless_too_coarse
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import (
    Confusion,
    ConfusionCounts,
    confusion,
    confusion_weights,
)
from fedassay.metrics.delta_method import why_one_class, why_undefined

# A bucket's class may lie on one side but for so much: where cells were merged, nearly all of a
# rare event's scores lie next to the denser neighbour.
_TAIL = 0.0025

_SIDES: dict[ConfusionCounts, str] = {
    (1.0, 1.0, 0.0, 0.0): "examples above the threshold",
    (1.0, 0.0, 1.0, 0.0): "positives",
    (0.0, 1.0, 0.0, 1.0): "negatives",
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
    divisor = confusion_weights(at, (1.0 + square, 1.0, square, 0.0))
    tp, fp, fn, _ = at.counts
    bottom = (1.0 + square) * tp + square * fn + fp
    undefined = why_undefined(histogram, divisor, "positives, true or predicted,", size=bottom)
    if undefined is not None:
        return undefined
    score = value(at.counts)
    slope = (
        _ratio((1.0 + square) * (1.0 - score), bottom),
        _ratio(-score, bottom),
        _ratio(-square * score, bottom),
        0.0,
    )
    return from_confusion(at, value, slope, Kind(Shape.LOGIT, max(bottom / (1.0 + square), 1.0)))


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
    kind = Kind(Shape.LOGIT, max(min(tp + fn, fp + tn), 1.0), is_straight=True)
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
    for (side, of), size in zip(_SIDES.items(), sides, strict=True):
        undefined = why_undefined(histogram, confusion_weights(at, side), of, size=size)
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
    return from_confusion(at, _mcc, slope, Kind(Shape.PLAIN, span=2.0, is_straight=True))


@dataclass(frozen=True, slots=True)
class Kind:
    """How the interval of a figure at a threshold is drawn."""

    shape: Shape
    trials: float = inf
    span: float = 1.0
    """How far apart the figure's possible values are."""
    is_straight: bool = False
    """Whether a count of few moves it as much as one of many does, and its interval, too."""


def proportion(
    at: Confusion,
    value: Callable[[ConfusionCounts], float],
    top: ConfusionCounts,
    bottom: ConfusionCounts,
    of: str,
) -> Estimate:
    """A ratio of sums of confusion counts, with a score interval.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> at, top, bottom = confusion(h, 0.3), (0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0)
    >>> proportion(at, lambda quad: quad[1] / (quad[1] + quad[3]), top, bottom, "negatives").value
    0.5
    """
    trials = sum(b * c for b, c in zip(bottom, at.counts, strict=True))
    undefined = why_undefined(at.histogram, confusion_weights(at, bottom), of, size=trials)
    if undefined is not None:
        return undefined
    share = value(at.counts)
    slope = tuple((t - share * b) / trials for t, b in zip(top, bottom, strict=True))
    return from_confusion(at, value, slope, Kind(Shape.SCORE, trials))


def from_confusion(
    at: Confusion, value: Callable[[ConfusionCounts], float], slope: tuple[float, ...], kind: Kind
) -> Estimate:
    """An estimate from a function of the confusion counts and its gradient.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> at, kind = confusion(h, 0.3), Kind(Shape.PLAIN, span=inf)
    >>> from_confusion(at, lambda quad: quad[0] + quad[1], (1.0, 1.0, 0.0, 0.0), kind).value
    3.0
    """
    centre = value(at.counts)
    total = sum(at.counts)
    mean = sum(c * g for c, g in zip(at.counts, slope, strict=True))
    square = sum(c * g * g for c, g in zip(at.counts, slope, strict=True))
    variance = max(square - mean * mean / total, 0.0) if total > 0.0 else 0.0
    # Moving one example above the threshold changes TP and FN, or FP and TN.
    moves = (slope[1] - slope[3], slope[0] - slope[2])
    tp, fp, fn, tn = at.counts
    variance += moves[0] ** 2 * _of_few(fp, fp + tn, kind)
    variance += moves[1] ** 2 * _of_few(tp, tp + fn, kind)
    corners = [value(_at_corner(at, fp, tp)) for fp in _ends(at, 0) for tp in _ends(at, 1)]
    estimate = Estimate(
        value=centre,
        noise_sd=_noise_sd(at, slope),
        sampling_sd=sqrt(variance),
        binning_bound=max(_distance(centre, corner) for corner in corners),
        binning_sd=_binning_sd(at, at.spread, value, moves),
        shape=kind.shape,
        trials=kind.trials,
    )
    # A ratio has no largest value: half of it either way says nothing.
    span = 2.0 * abs(centre) if kind.shape is Shape.LOG else kind.span
    # At 0 all examples are above, or nearly: no finer cell would say more.
    span = inf if at.threshold == 0.0 else span
    found = unless_too_coarse(estimate, f"the figure at {at.threshold:.4g}", span)
    if isinstance(found, NotEnoughData):
        return found
    return replace(found, binning_sd=_binning_sd(at, at.hidden, value, moves))


def _of_few(above: float, size: float, kind: Kind) -> float:
    """What the variance n p (1 - p) of a count above the threshold lacks where it is small.

    None of n have no deviation, and yet 1.96^2 = 3.8 may be expected. The mean square of the
    distances of both ends of Wilson's interval, over 1.96^2, is more by 1.96^2 / 2 near an end and
    by nothing in the middle. A logarithm knows how few counts err, unless there are none; score
    intervals know it, and net benefit has a rule of its own.
    """
    is_nobody = kind.shape in (Shape.LOG, Shape.LOGIT) and not 1.0 <= above <= size - 1.0
    if not (kind.is_straight or is_nobody):
        return 0.0
    n = max(size, 1.0)
    share = min(max(above / n, 0.0), 1.0)
    plain = n * share * (1.0 - share)
    ends = plain + REACH * REACH * (0.25 + (0.5 - share) ** 2)
    return max(ends / (1.0 + REACH * REACH / n) ** 2 - plain, 0.0)


def _binning_sd(
    at: Confusion,
    spread: tuple[float, float],
    value: Callable[[ConfusionCounts], float],
    moves: tuple[float, float],
) -> float:
    """The standard deviation of a figure from where scores lie inside a bucket.

    Either class may lie higher or lower there, each for itself or both together. A ratio bends,
    and its slope says too little: it is read at both ends of what is likely.
    """
    if spread == (0.0, 0.0):
        return 0.0
    slopes = [move * each for move, each in zip(moves, spread, strict=True)]
    ways = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    each = [
        max(
            abs(way[0] * slopes[0] + way[1] * slopes[1]),
            *(
                _moved(at, value, (side * way[0] * spread[0], side * way[1] * spread[1]))
                for side in (-1.0, 1.0)
            ),
        )
        for way in ways
    ]
    return max(hypot(each[0], each[1]), each[2])


def _moved(
    at: Confusion, value: Callable[[ConfusionCounts], float], sds: tuple[float, float]
) -> float:
    """How far a figure goes with each class at the end of what is likely, over 1.96."""
    ends = []
    for label, sd in enumerate(sds):
        low, high = at.lowest[label], at.highest[label]
        count, spare = at.counts[1 - label], _TAIL * (high - low)
        end = min(max(count + REACH * sd, low + spare), high - spare)
        ends.append(end if sd else count)
    there = value(_at_corner(at, ends[0], ends[1]))
    return 0.0 if isnan(there) else abs(there - value(at.counts)) / REACH


def _noise_sd(at: Confusion, slope: tuple[float, ...]) -> float:
    if at.histogram.noise.is_zero:
        return 0.0
    return sqrt(at.histogram.noise.variance(confusion_weights(at, slope)))


def _ends(at: Confusion, label: int) -> tuple[float, float]:
    return at.lowest[label], at.highest[label]


def _at_corner(at: Confusion, fp: float, tp: float) -> ConfusionCounts:
    old_tp, old_fp, fn, tn = at.counts
    return tp, fp, fn + old_tp - tp, tn + old_fp - fp


def _distance(centre: float, corner: float) -> float:
    """How far an extreme is; where it is undefined, anything in [0, 1] may be meant."""
    return max(abs(centre), abs(1.0 - centre)) if isnan(corner) else abs(corner - centre)


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
