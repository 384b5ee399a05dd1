"""Recall where the specificity is as wanted, and specificity where the recall is.

On rows, recall at a wanted specificity is the most that any threshold with at least that
specificity has; the other way round likewise. With estimates the threshold is itself an
estimate: a row more above it moves it, and both rates with it. Where the class is small against
its noise, many thresholds may be the one: the interval then holds the other rate at all of
them (`metrics.crossings`). Of two surveys the cells are read, not the leaves inside, in whose noise
a goal is crossed anywhere.
"""

from dataclasses import replace
from math import hypot, inf, sqrt
from statistics import fmean

import numpy as np

from fedassay.checks import require_number
from fedassay.doubts import Doubts, part_of_error
from fedassay.errors import SettingInvalid
from fedassay.estimate import (
    REACH,
    Estimate,
    NotEnoughData,
    Shape,
    as_far_as_possible,
    too_coarse,
)
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.below import roughness
from fedassay.metrics.copies import COPIES
from fedassay.metrics.crossings import Crossing, crossing
from fedassay.metrics.cutoffs import Cutoff, chords, cutoff
from fedassay.metrics.delta_method import (
    CLEAR_OF_NOISE,
    sampling_variance,
    why_one_class,
    why_undefined,
)
from fedassay.metrics.given_clear import reach_given_clear
from fedassay.metrics.lattices import lattice, unseen_rounding
from fedassay.metrics.range_noise import CLEAR, FEW, cell_noise_sd

_ROUNDING = 1e-9
_NAMES = ("negatives", "positives")
_RATES = ("specificity", "recall")
# Where thresholds that noise allows have rates this far apart, an interval says nothing.
_WIDEST = 0.8
# Neither does one that covers so much of all rates that there are.
_EVERYTHING = 0.9
# Where so many of the buckets that can tell hold one score, those that cannot do, too.
_MOSTLY = 0.5
# So many buckets on either side say whether scores are close to each other.
_NEAREST = 2


def recall_at_specificity(histogram: ScoreHistogram, wanted: float) -> Estimate:
    """The recall at the lowest threshold whose specificity is at least what is wanted.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1] * 9, [0.1, 0.4, 0.35, 0.8] * 9)
    >>> recall_at_specificity(h, 0.6).value
    0.5
    """
    _check_share(wanted, "specificity")
    return _rate(histogram, fixed=0, share=1.0 - wanted)


def specificity_at_recall(histogram: ScoreHistogram, wanted: float) -> Estimate:
    """The specificity at the highest threshold whose recall is at least what is wanted.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1] * 9, [0.1, 0.4, 0.35, 0.8] * 9)
    >>> specificity_at_recall(h, 0.6).value
    0.5
    """
    _check_share(wanted, "recall")
    return _rate(histogram, fixed=1, share=wanted)


def _rate(histogram: ScoreHistogram, *, fixed: int, share: float) -> Estimate:
    """The other class's rate where this share of the fixed class lies above the threshold."""
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    histogram = histogram.by_cells()
    labels, other = np.eye(2)[fixed], 1 - fixed
    totals = histogram.cumulative[:, -1]
    wanted = share * float(totals[fixed])
    undefined = _why_few(histogram, fixed, share, wanted)
    if undefined is not None:
        return undefined
    found = cutoff(histogram, labels, wanted, reached=fixed == 1)
    own = np.zeros_like(histogram.counts)
    own[fixed] = found.at.above[fixed] - share
    undefined = why_undefined(
        histogram, own + share * labels[:, None], f"{_NAMES[fixed]} above it", size=wanted
    )
    if undefined is not None:
        return undefined
    beside = chords(histogram, labels, found, own)
    steps = [float(each[other] / totals[other]) for each in (beside.fewer, beside.more)]
    above_n, above_p = found.at.counts[1], found.at.counts[0]
    rate = float((above_n, above_p)[other] / totals[other])
    # Noisy counts at the threshold found are not quite those wanted: go along the chord.
    missing = wanted - found.above
    rate += float(beside.towards(missing)[other] / totals[other]) * missing
    edges = totals[other] - histogram.cumulative[other, found.bucket : found.bucket + 2]
    if found.is_tied:
        rate = _beside(histogram, found, fixed)
    # Where the curve has a kink, what errs goes along either side of it as often.
    gradients = [-step * own for step in steps]
    for gradient in gradients:
        gradient[other] = (found.at.above[other] - rate) / totals[other]
    furthest = float(np.abs(edges / totals[other] - rate).max())
    own_spread = hypot(found.at.spread[fixed], _to_the_next_row(histogram, found))
    spread = hypot(
        max(steps) * own_spread,
        found.at.spread[other] / totals[other],
        _rounded(histogram, found, other) / totals[other],
        _in_a_lump(histogram, furthest),
    )
    noise_sd = sqrt(fmean(histogram.noise.variance(each) for each in gradients))
    sampling_sd = sqrt(fmean(sampling_variance(histogram, each) for each in gradients))
    leaping_sd = 0.0
    if found.is_tied or lattice(histogram).share > _MOSTLY:
        leaping_sd = _from_tie_to_tie(histogram, found, own, gradients[0], fixed=fixed)
    above = Estimate(
        rate,
        noise_sd=max(noise_sd, _given_clear(histogram, other, rate)),
        sampling_sd=max(sampling_sd, leaping_sd),
        binning_bound=furthest,
        binning_sd=_beside_tie(histogram, found, other, furthest) if found.is_tied else spread,
        # A rate that may leap is at one place or the other, and either may be 0 or 1.
        shape=Shape.PLAIN if leaping_sd > sampling_sd else Shape.LOGIT,
        trials=max(float(totals[other]), 1.0),
    )
    if REACH * min(above.binning_sd, furthest) > _WIDEST:
        return too_coarse(above, _RATES[other], furthest)
    # What a bucket does not hide cannot be wrong.
    above = as_far_as_possible(above)
    allowed = crossing(histogram, fixed, share) if above.noise_sd > 0.0 else None
    if allowed is not None and (allowed.is_long or (allowed.leaps and histogram.doubts is None)):
        if allowed.apart > _WIDEST:
            return _why_anywhere(fixed, share, allowed.low, allowed.high)
        if histogram.doubts is not None:
            # Counts of a curve lean: a class that noise lifted clear takes its cutoff along.
            reach = _reach(histogram, fixed)
            allowed = crossing(histogram, fixed, share, reach=reach) or allowed
        above = _over_all(above, allowed, histogram.doubts)
    low, high = (min(max(end, 0.0), 1.0) for end in above.interval(population=False))
    if high - low > _EVERYTHING and above.noise_sd > 0.0:
        return _why_anywhere(fixed, share, low, high)
    return _as_asked(above, is_specificity=fixed == 1)


def _given_clear(histogram: ScoreHistogram, other: int, rate: float) -> float:
    """A standard deviation that reaches the rate of the smallest class that would have answered.

    A class is told from noise where it came out clear of it. One that noise lifted has that noise
    among its counts, below the threshold as a rule: there is more room than above it.
    """
    stands, reach = _stands(histogram, other), _reach(histogram, other)
    if reach <= REACH * (1.0 + _ROUNDING):
        return 0.0
    return max(min(rate * stands / (stands - reach), 1.0) - rate, 0.0) / REACH


def _reach(histogram: ScoreHistogram, label: int) -> float:
    """How many standard deviations noise may have lifted a class that came out clear of it."""
    return reach_given_clear(_stands(histogram, label), CLEAR_OF_NOISE)


def _stands(histogram: ScoreHistogram, label: int) -> float:
    """How many standard deviations of its noise a class is, as counters have it."""
    seen = histogram if histogram.counted is None else histogram.counted
    ones = np.zeros_like(seen.counts)
    ones[label] = 1.0
    sd = sqrt(seen.noise.variance(ones))
    return float(seen.counts[label].sum()) / sd if sd > 0.0 else inf


def _to_the_next_row(histogram: ScoreHistogram, found: Cutoff) -> float:
    """The standard deviation of the fixed class's rows beside an edge, where counts are exact.

    The threshold is at one of them, and not where a share of its bucket is reached: that of the
    j-th of n, j (n - j + 1) / (n + 2), is one row more than a share's, j (n - j) / n, at an edge
    and as much in the middle.
    """
    if not histogram.noise.is_zero:
        return 0.0
    _, _, part = histogram.below(found.at.threshold)
    return sqrt(COPIES * abs(1.0 - 2.0 * part))


def _rounded(histogram: ScoreHistogram, found: Cutoff, other: int) -> float:
    """The other class's rows in a tie that no bucket shows, which is above or below as a whole."""
    part = min(unseen_rounding(histogram) / float(histogram.widths[found.bucket]), 1.0)
    return part * max(float(histogram.counts[other, found.bucket]), 0.0) / REACH


def _beside(histogram: ScoreHistogram, found: Cutoff, fixed: int) -> float:
    """The other class's rate above a threshold beside a tie, which a wanted recall takes in."""
    above = histogram.cumulative[1 - fixed, -1] - histogram.cumulative[1 - fixed]
    return float(above[found.bucket + 1 - fixed] / histogram.cumulative[1 - fixed, -1])


def _from_tie_to_tie(
    histogram: ScoreHistogram, found: Cutoff, own: FloatArray, gradient: FloatArray, *, fixed: int
) -> float:
    """The standard deviation from sampling of a rate beside a tie, which goes by leaps.

    Sampling moves the number wanted by rows of the fixed class; while the same tie has it, the
    rate stays, but for the other class's own rows, and at the next one it is another.
    """
    labels, total = np.eye(2)[fixed], float(histogram.cumulative[fixed, -1])
    moved = REACH * sqrt(sampling_variance(histogram, own))
    here, leap = _beside(histogram, found, fixed), 0.0
    for wanted in (found.wanted - moved, found.wanted + moved):
        there = cutoff(histogram, labels, min(max(wanted, 0.0), total), reached=fixed == 1)
        leap = max(leap, abs(_beside(histogram, there, fixed) - here))
    of_others = gradient * (1.0 - labels[:, None])
    return leap / REACH + sqrt(sampling_variance(histogram, of_others))


def _in_a_lump(histogram: ScoreHistogram, furthest: float) -> float:
    """The standard deviation if a bucket's rows have one score, as far as that is likely.

    The bucket is then above the threshold or below it as a whole, so the rate is that at its end.
    Where no curve says how likely, rough neighbours do (`roughness`); exact counts show it.
    """
    if histogram.doubts is not None:
        lumps = histogram.doubts.lumps
    else:
        lumps = 0.0 if histogram.noise.is_zero else roughness(histogram)
    return part_of_error(lumps) * furthest / REACH


def _beside_tie(histogram: ScoreHistogram, found: Cutoff, other: int, furthest: float) -> float:
    """The standard deviation of a rate beside a tie, from the other rows of its bucket.

    What is no tie are twice as many as neighbours' densities explain: half of it may lie on one
    side, all of it, and as many more as chance puts there. Where there may be two ties, the
    threshold may be between them.
    """
    loose = max(float((histogram.counts - histogram.ties)[other, found.bucket]), 0.0) / 2.0
    beside = (loose / REACH + sqrt(loose)) / float(histogram.cumulative[other, -1])
    return max(beside, part_of_error(_chance_of_two(histogram, found.bucket)) * furthest / REACH)


def _chance_of_two(histogram: ScoreHistogram, bucket: int) -> float:
    """The chance that a tied bucket holds two scores, not one.

    Where all scores are ties, it is as likely as that one of the nearest other buckets holds any.
    """
    near = np.arange(max(bucket - _NEAREST, 0), min(bucket + _NEAREST + 1, histogram.buckets))
    held = histogram.counts.sum(axis=0)[near[near != bucket]]
    clear = held >= FEW + CLEAR * sqrt(2.0) * cell_noise_sd(histogram)
    return lattice(histogram).share * float(clear.mean()) if len(held) else 0.0


def _over_all(above: Estimate, allowed: Crossing, doubts: Doubts | None) -> Estimate:
    """The rate with an interval that holds it at all thresholds that noise allows.

    Chance moves the threshold as noise does. Along a smooth curve the value is amid all rates, so
    that no end is further away than the other; as far as it may fall off a cliff, it stays.
    """
    value = min(max(above.value, allowed.low), allowed.high)
    if doubts is not None:
        amid = 0.5 * (allowed.low + allowed.high)
        value = amid + part_of_error(doubts.cliffs) * (value - amid)
    reach = max(allowed.high - value, value - allowed.low)
    noise_sd = max(above.noise_sd, reach / REACH)
    return replace(
        above,
        value=value,
        noise_sd=noise_sd,
        sampling_sd=above.sampling_sd * noise_sd / above.noise_sd,
    )


def _why_anywhere(fixed: int, share: float, low: float, high: float) -> NotEnoughData:
    """Why there is no rate: noise allows nearly all of them above the threshold."""
    wanted = share if fixed else 1.0 - share
    low, high = (1.0 - high, 1.0 - low) if fixed else (low, high)
    return NotEnoughData(
        reason=f"the threshold with a {_RATES[fixed]} of {wanted:.3g} must stand clear of the "
        f"privacy noise; it may lie where the {_RATES[1 - fixed]} is {low:.2g} or {high:.2g}. "
        "Gather reports from more clients, or of a larger epsilon."
    )


def _as_asked(above: Estimate, *, is_specificity: bool) -> Estimate:
    """The rate above the threshold, or for specificity the rest of it."""
    if not is_specificity:
        return above
    return replace(above, value=1.0 - above.value)


def _why_few(
    histogram: ScoreHistogram, fixed: int, share: float, wanted: float
) -> NotEnoughData | None:
    """A rate that less than one row decides is nobody's."""
    total, name = float(histogram.cumulative[fixed, -1]), _NAMES[fixed]
    if 1.0 - _ROUNDING <= wanted <= total - 1.0 + _ROUNDING:
        return None
    return NotEnoughData(
        reason=f"at least one of the {name} must lie on either side of the threshold; {share:.3g} "
        f"of {total:.0f} {name} leaves less. Ask for a rate further from 0 and 1, or gather "
        "reports from more clients."
    )


def _check_share(wanted: float, name: str) -> None:
    if not 0.0 < require_number(wanted, f"the wanted {name}") <= 1.0:
        raise SettingInvalid(
            f"the wanted {name} must lie in (0, 1]; found {wanted}. Usual are 0.8 to 0.95."
        )
