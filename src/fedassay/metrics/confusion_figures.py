"""From the four confusion counts to a figure with its errors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, inf, isnan, log, sqrt

import numpy as np

from fedassay.estimate import (
    REACH,
    Estimate,
    NotEnoughData,
    Shape,
    as_far_as_possible,
    too_coarse,
    unless_too_coarse,
)
from fedassay.examples import FloatArray
from fedassay.metrics.confusion import Confusion, ConfusionCounts
from fedassay.metrics.delta_method import CLEAR_OF_NOISE, why_lost_in_noise
from fedassay.metrics.given_clear import reach_given_clear

# A bucket's class may lie on one side but for so much: where cells were merged, nearly all of a
# rare event's scores lie next to the denser neighbour.
_TAIL = 0.0025
_TINY = 1e-300
# A ratio that cells leave open by a factor of more than twenty is not told.
_MOST_LOGARITHMS = log(20.0)
# Nor is a rate that they leave open by more than half of its scale, either way.
_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Kind:
    """How the interval of a figure at a threshold is drawn."""

    shape: Shape
    trials: float = inf
    span: float = 1.0
    """How far apart the figure's possible values are."""
    is_straight: bool = False
    """Whether a count of few moves it as much as one of many does, and its interval, too."""
    is_ratio: bool = False
    """Whether it has no largest value: half of it either way says nothing."""
    divisors: tuple[tuple[float, ...], ...] = ()
    """Sums of counts that had to stand clear of the noise for an answer."""


def why_not_clear(at: Confusion, divisor: tuple[float, ...], of: str) -> NotEnoughData | None:
    """Why a ratio to this sum of confusion counts is meaningless, if it is.

    >>> from fedassay.histogram import ScoreHistogram
    >>> from fedassay.metrics.confusion import confusion
    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> why_not_clear(confusion(h, 0.9), (1.0, 1.0, 0.0, 0.0), "examples above 0.9").reason[:57]
    'there must be examples above 0.9 to divide by; the tally '
    """
    size, noise_sd = at.sum_of(divisor), at.noise_sd(divisor)
    return why_lost_in_noise(size, noise_sd, of, at.histogram.noise.reports_for)


def proportion(
    at: Confusion,
    value: Callable[[ConfusionCounts], float],
    top: ConfusionCounts,
    bottom: ConfusionCounts,
    of: str,
) -> Estimate:
    """A ratio of sums of confusion counts, with a score interval.

    >>> from fedassay.histogram import ScoreHistogram
    >>> from fedassay.metrics.confusion import confusion
    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> at, top, bottom = confusion(h, 0.3), (0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0)
    >>> proportion(at, lambda quad: quad[1] / (quad[1] + quad[3]), top, bottom, "negatives").value
    0.5
    """
    undefined = why_not_clear(at, bottom, of)
    if undefined is not None:
        return undefined
    trials, share = at.sum_of(bottom), value(at.counts)
    slope = tuple((t - share * b) / trials for t, b in zip(top, bottom, strict=True))
    return from_confusion(at, value, slope, Kind(Shape.SCORE, trials, divisors=(bottom,)))


def from_confusion(
    at: Confusion, value: Callable[[ConfusionCounts], float], slope: tuple[float, ...], kind: Kind
) -> Estimate:
    """An estimate from a function of the confusion counts and its gradient.

    >>> from fedassay.histogram import ScoreHistogram
    >>> from fedassay.metrics.confusion import confusion
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
        noise_sd=_noise_sd(at, value, slope, kind),
        sampling_sd=sqrt(variance),
        binning_bound=max(_distance(centre, corner) for corner in corners),
        binning_sd=_binning_sd(at, at.spread, value, moves),
        shape=kind.shape,
        trials=kind.trials,
    )
    span = 2.0 * abs(centre) if kind.is_ratio else kind.span
    # At 0 all examples are above, or nearly: no finer cell would say more.
    span = inf if at.threshold == 0.0 else span
    found = unless_too_coarse(estimate, f"the figure at {at.threshold:.4g}", span)
    if isinstance(found, NotEnoughData):
        return found
    # Straight on, a slope leads further than rows can lie.
    found = as_far_as_possible(replace(found, binning_sd=_binning_sd(at, at.hidden, value, moves)))
    reach = REACH * found.binning_sd
    if kind.shape is Shape.LOG:
        says_nothing = reach > _MOST_LOGARITHMS * abs(centre)
    else:
        is_noise = found.binning_sd <= 2.0 * found.noise_sd
        reach = min(reach, found.binning_bound)
        says_nothing = reach > _MOST * span and not is_noise
    # Twenty times as much or as little, or as good as anything.
    return too_coarse(found, f"the figure at {at.threshold:.4g}", reach) if says_nothing else found


def _of_few(above: float, size: float, kind: Kind) -> float:
    """What the variance n p (1 - p) of a count above the threshold lacks where it is small.

    None of n have no deviation, and yet 1.96^2 = 3.8 may be expected. The mean square of the
    distances of both ends of Wilson's interval, over 1.96^2, is more by 1.96^2 / 2 near an end and
    by nothing in the middle. A logarithm knows how few counts err, unless there are none; score
    intervals know it, and net benefit has a rule of its own.
    """
    knows_few = kind.shape is Shape.LOGIT or kind.is_ratio
    is_nobody = knows_few and not 1.0 <= above <= size - 1.0
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

    Either class may lie higher or lower there, each for itself or both together, but for the luck
    of their rows. A ratio bends, and its slope says too little: it is read at both ends of what is
    likely.
    """
    if spread == (0.0, 0.0):
        return 0.0
    lucky = [each / max(sd, each, _TINY) for each, sd in zip(at.chance, spread, strict=True)]
    open_sds = [sd * sqrt(1.0 - part * part) for sd, part in zip(spread, lucky, strict=True)]
    ways = [(spread[0], 0.0), (0.0, spread[1]), (open_sds[0], open_sds[1])]
    if _holds_most(at):
        ways.append((open_sds[0], -open_sds[1]))
    each = [
        max(
            abs(moves[0] * way[0] + moves[1] * way[1]),
            *(_moved(at, value, (side * way[0], side * way[1])) for side in (-1.0, 1.0)),
        )
        for way in ways
    ]
    luck = hypot(lucky[0] * each[0], lucky[1] * each[1])
    return max(hypot(each[0], each[1]), *(hypot(moved, luck) for moved in each[2:]))


def _holds_most(at: Confusion) -> bool:
    """Whether most of both classes are in the threshold's bucket: it may part them there.

    In a bucket of some, a class that lies higher than its neighbours say draws no other down.
    """
    tp, fp, fn, tn = at.counts
    inside = [high - low for low, high in zip(at.lowest, at.highest, strict=True)]
    return inside[0] > _MOST * (fp + tn) and inside[1] > _MOST * (tp + fn)


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


def _noise_sd(
    at: Confusion,
    value: Callable[[ConfusionCounts], float],
    slope: tuple[float, ...],
    kind: Kind,
) -> float:
    """By the slope, or as far as a divisor may be off that came out clear of its noise."""
    plain = at.noise_sd(slope)
    if plain == 0.0:
        return 0.0
    return max(plain, *(_off(at, value, slope, each, kind.shape) for each in kind.divisors), 0.0)


def _off(
    at: Confusion,
    value: Callable[[ConfusionCounts], float],
    slope: tuple[float, ...],
    divisor: tuple[float, ...],
    shape: Shape,
) -> float:
    """A standard deviation whose interval reaches the figure of the smallest likely divisor.

    All counts go there as the noise that they share with the divisor takes them; what noise they
    have beside it is as the slope says.
    """
    sd = at.noise_sd(divisor)
    reach = reach_given_clear(at.sum_of(divisor) / sd, CLEAR_OF_NOISE) if sd > 0.0 else REACH
    if reach <= REACH:
        return 0.0
    shared: FloatArray = at.noise @ np.array(divisor) / sd
    tp, fp, fn, tn = (
        max(count - reach * each, min(count, 0.0))
        for count, each in zip(at.counts, shared.tolist(), strict=True)
    )
    here, there = value(at.counts), value((tp, fp, fn, tn))
    along = float(np.array(slope) @ shared)
    beside = max(at.noise_sd(slope) ** 2 - along * along, 0.0)
    return hypot(_between(here, there, shape) / REACH, sqrt(beside))


def _between(here: float, there: float, shape: Shape) -> float:
    """The distance of two values as an interval of that shape measures it."""
    if isnan(there):
        return 0.0
    if shape is Shape.LOG and here > 0.0 and there > 0.0:
        return here * abs(log(there / here))
    return abs(there - here)


def _ends(at: Confusion, label: int) -> tuple[float, float]:
    return at.lowest[label], at.highest[label]


def _at_corner(at: Confusion, fp: float, tp: float) -> ConfusionCounts:
    old_tp, old_fp, fn, tn = at.counts
    return tp, fp, fn + old_tp - tp, tn + old_fp - fp


def _distance(centre: float, corner: float) -> float:
    """How far an extreme is; where it is undefined, anything in [0, 1] may be meant."""
    return max(abs(centre), abs(1.0 - centre)) if isnan(corner) else abs(corner - centre)
