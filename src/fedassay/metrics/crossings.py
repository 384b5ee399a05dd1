"""Where a noisy curve may cross a goal: every cutoff that its noise allows, not only one.

At a cutoff c a class has D(c) = (those above c) - goal (all of them) more above it than wanted:
a sum of counts, whose noise is known. At the true cutoff D is 0, so a cutoff whose noisy D is more
than 1.96 standard deviations from 0 is refused, and the true one in 5 of 100 surveys (Fieller
1954). Where the curve is steep against its noise, a part of a bucket or two are left, and a slope
says the same (`metrics.cutoffs`). Where the class is small against its noise the curve crosses the
goal again and again, and many buckets are left.
"""

from dataclasses import dataclass, replace
from math import ceil, floor, hypot

import numpy as np

from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.along_the_curve import beside_ties, ends_along, rates_at_goal
from fedassay.metrics.range_noise import range_noise
from fedassay.metrics.spans import clear_spikes, spans
from fedassay.noise import DenseNoise

# So many points of each bucket are tried; between edges what is too many runs straight, as does its
# standard deviation, which is 0 at the ends.
_POINTS = 8
_TINY = 1e-300
# Around a crossing inside a bucket, so many buckets are what a slope is read from anyway.
_LONG = 2.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """The cutoffs at which a class may have its wanted share above, and the other class there."""

    first: float
    last: float
    """From here to there, in buckets from the left."""
    low: float
    high: float
    """The other class's rates above them, lowest and highest, with what buckets hide."""
    apart: float
    """How far apart these are without what buckets hide."""
    leaps: bool
    """Whether a bucket of tied scores begins or ends among them."""

    @property
    def is_long(self) -> bool:
        """Whether a slope at one place cannot stand for all of them."""
        return self.last - self.first > _LONG


def crossing(
    histogram: ScoreHistogram, fixed: int, share: float, *, reach: float = REACH
) -> Crossing | None:
    """All cutoffs at which `share` of the fixed class may lie above, by eighths of a bucket.

    Noise reaches so many standard deviations. None where it allows none of them: the curve crosses
    its goal at once.

    >>> from fedassay.noise import DenseNoise
    >>> counts, noise = np.full((2, 4), 100.0), DenseNoise(400.0 * np.eye(8))
    >>> found = crossing(ScoreHistogram(np.arange(5) / 4, counts, noise), 1, 0.5)
    >>> round(found.low, 2), round(found.high, 2)
    (0.4, 0.6)
    """
    total = histogram.cumulative[:, -1]
    above = total[:, None] - histogram.cumulative
    excess = above[fixed] - share * total[fixed]
    at = np.arange(histogram.buckets * _POINTS + 1) / _POINTS
    edges = np.arange(histogram.buckets + 1)
    deviation = np.interp(at, edges, excess) / np.interp(
        at, edges, _excess_sd(histogram, fixed, share)
    )
    allowed = np.flatnonzero(np.abs(deviation) <= reach)
    if not len(allowed):
        return None
    first = _end(deviation, reach, int(allowed[0]), -1) / _POINTS
    last = _end(deviation, reach, int(allowed[-1]), 1) / _POINTS
    rate = above[1 - fixed] / total[1 - fixed]
    here = np.interp([last, first], edges, rate).tolist()
    taken = fixed == 1  # a wanted recall takes in the tie that reaches it
    low = _open_end(histogram, rate, last, 1, taken=taken)
    high = _open_end(histogram, rate, first, -1, taken=taken)
    ends = min(low, high), max(low, high)
    found = Crossing(
        first, last, *ends, apart=abs(here[1] - here[0]), leaps=_leaps(histogram, first, last)
    )
    return found if histogram.doubts is None else _smoothly(histogram, found, fixed, share)


def _smoothly(histogram: ScoreHistogram, found: Crossing, fixed: int, share: float) -> Crossing:
    """The same of smoothed counts, whose errors go along the ROC curve, but for ties."""
    noise, doubts, cutoffs = histogram.noise, histogram.doubts, (found.first, found.last)
    if doubts is None or not isinstance(noise, DenseNoise):
        return found
    rates = rates_at_goal(histogram, noise, fixed, share)
    cutoffs = _whole(histogram, cutoffs, taken=fixed == 1)
    low, high = ends_along(doubts, rates, cutoffs, (found.low, found.high))
    seen, unseen = beside_ties(histogram, doubts, 1 - fixed, cutoffs)
    half = 0.5 * (high - low) + seen
    more = seen + hypot(half, unseen) - half
    return replace(found, low=max(low - more, 0.0), high=min(high + more, 1.0), apart=high - low)


def _whole(
    histogram: ScoreHistogram, cutoffs: tuple[float, float], *, taken: bool
) -> tuple[float, float]:
    """The same, but inside a tie at its edge: it is taken or left as a whole."""
    tied = np.append(histogram.ties.any(axis=0), False)
    low, high = ((floor(at) if taken else ceil(at)) if tied[int(at)] else at for at in cutoffs)
    return float(low), float(high)


def _excess_sd(histogram: ScoreHistogram, fixed: int, share: float) -> FloatArray:
    """The noise of the class above each edge, less its share of all."""
    noise, buckets, rest = range_noise(histogram), histogram.buckets, 1.0 - share
    if noise.covariances is None:
        below = np.arange(buckets + 1)
        squares = noise.each_sd**2 * (below * share**2 + (buckets - below) * rest**2)
    else:
        # Less (those below) and more the rest of (all).
        form = noise.covariances[fixed]
        squares = np.diag(form) - 2.0 * rest * form[:, -1] + rest**2 * form[-1, -1]
    return np.sqrt(np.maximum(squares, _TINY))


def _end(deviation: FloatArray, reach: float, inside: int, step: int) -> float:
    """Where deviations leave what is allowed, between the last point inside and the next."""
    outside = inside + step
    if not 0 <= outside < len(deviation):
        return float(inside)
    limit = reach if deviation[outside] > 0.0 else -reach
    part = (limit - deviation[inside]) / (deviation[outside] - deviation[inside])
    return inside + step * float(part)


def _leaps(histogram: ScoreHistogram, first: float, last: float) -> bool:
    """Whether a bucket that towers, as of one score, has an edge between two cutoffs."""
    towers = np.append(clear_spikes(histogram).any(axis=0), False)
    edges = np.arange(int(np.ceil(first)), int(last) + 1)
    return bool((towers[edges] | towers[edges - 1]).any())


def _open_end(
    histogram: ScoreHistogram, rate: FloatArray, end: float, side: int, *, taken: bool
) -> float:
    """The rate at an end of the cutoffs; as far as its bucket is open, that at the bucket's end.

    A bucket of tied scores is taken or left as a whole.
    """
    bucket = min(max(int(np.ceil(end)) - 1 if side > 0 else int(end), 0), histogram.buckets - 1)
    here = float(np.interp(end, np.arange(histogram.buckets + 1), rate))
    beyond = float(rate[bucket + 1] if side > 0 else rate[bucket])
    if clear_spikes(histogram)[:, bucket].any():
        return float(rate[bucket] if taken else rate[bucket + 1])
    return here + float(spans(histogram).openness[bucket]) * (beyond - here)
