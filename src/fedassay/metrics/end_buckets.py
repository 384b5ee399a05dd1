"""Where scores lie in the first and the last bucket: a logarithm has no end there.

A row that contradicts a score of exactly 0 or 1 costs -log(eps), 36 nats, as in scikit-learn;
one in the middle of a bucket of a tenth costs 3. Its class is rare there, and noise hides where
it lies. But it contradicts the scores no worse than they say nothing: at most as near to the
end as the other class, whose counts beside the bucket show whether it thins out or stands there.
"""

from dataclasses import dataclass, replace
from math import hypot, log, log1p, sqrt

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.heaps import heaped_share
from fedassay.metrics.log_odds import EPS
from fedassay.metrics.range_noise import CLEAR, range_noise
from fedassay.noise import is_smoothed
from fedassay.ties import AT_THE_END

# Scores of 1e-13 are not impossible, only rare beside exact zeros.
_UNLIKE_ZERO = 0.125
_BEYOND_DOUBT = 6.0
_STEP = 1e-4
_LEAST_POWER, _LARGEST_POWER = 0.1, 8.0
_EDGES = 3
# Edges twice as far from the end as the one before, if that is three times before the other end.
_APART, _EVENLY = 2.0, 0.4
# So many times the other class in an end bucket need no look at it.
_MOSTLY = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class EndLoss:
    """The mean log loss of the rows that contradict the end bucket that they are in."""

    likely: float
    room: float
    """How far from the likely one it may be, either way."""
    slopes: FloatArray
    """How the likely one moves with each count of the other class, by bucket."""


def end_loss(histogram: ScoreHistogram, label: int) -> EndLoss:
    """How much a row of a class loses in the end bucket that contradicts it: 1 at 0, or 0 at 1.

    That of even scores is 1 - log e, with e the bucket's width. With F(x) of a class below x,
    F = A x^a beyond the bucket, A e^a are inside it by the same power, whose mean of -log x is
    1/a - log e; those that it has more may all be at the very end. The loss is from the least to
    the largest of three: of even scores, of the other class, and of its own where that thins
    out towards the end. Where little is known of its own, all may lie at the inner edge; where
    the other class is seen in the bucket and not beyond it, or its own is heaped there
    (`metrics.heaps`), at the very end. A class that is mostly by itself there speaks for itself.
    A bucket as narrow as 2^-30 holds nothing else, unless scores come to it in steps of so many
    times (`far_flung`): then these are anywhere from its edge on, by their logarithms.

    >>> flat = ScoreHistogram(np.arange(9) / 8, np.full((2, 8), 1000.0))
    >>> end = end_loss(flat, 1)
    >>> round(end.likely, 2), round(end.room, 2)  # 1 - log(1/8)
    (3.08, 0.0)
    >>> crowd = np.array([[9000.0] + [1000.0] * 7, [1000.0] * 8])
    >>> end = end_loss(ScoreHistogram(np.arange(9) / 8, crowd), 1)  # 8/9 of 36.04, 1/9 of 3.08
    >>> round(end.likely + end.room, 2), round(end.likely - end.room, 2)
    (32.38, 3.08)
    """
    end = float(histogram.edges[1] if label else 1.0 - histogram.edges[-2])
    slopes, most = np.zeros(histogram.buckets), -log(EPS)
    if histogram.holds_an_end[1 - label]:
        reach = most + log(max(end, EPS))
        flung = 0.5 * float(histogram.far_flung[1 - label]) * reach
        return EndLoss(most - flung, max(reach * _UNLIKE_ZERO, flung), slopes)
    even = min(1.0 - log(end), most)
    # A power tells how a class thins out over a wide range, and a crowd only close to the end.
    own = _tail(histogram, label, at=1 - label, apart=min(_APART, end**-_EVENLY))
    other = _tail(histogram, 1 - label, at=1 - label, apart=1.0)
    thins = -log(end)
    # Rows that were heaped there whatever their label are no thinner towards the end.
    heaped = heaped_share(histogram, 1 - label)
    furthest = heaped * most + (1.0 - heaped) * even
    if own is not None and own.has_shape:
        if own.held > _MOSTLY * (other.held if other else 0.0):
            return _by_itself(own, even, furthest, slopes)
        thins = min(own.loss(), *own.thinning(), even)
    if other is None:
        return EndLoss(0.5 * (thins + furthest), 0.5 * (furthest - thins), slopes)

    def ends(tail: _Tail) -> tuple[float, float]:
        loss = tail.loss()
        return min(loss, thins), max(loss, furthest)

    lowest, highest = ends(other)
    for index, (start, stop) in enumerate(other.ranges if other.has_shape else []):
        step = _STEP * other.sums[index]
        up, down = (sum(ends(other.moved(index, by))) for by in (step, -step))
        slopes[start:stop] = 0.5 * (up - down) / (2.0 * step)
    return EndLoss(0.5 * (lowest + highest), 0.5 * (highest - lowest), slopes)


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """A class near an end: how many are up to three edges from it, and how sure that is."""

    places: list[float]
    """The distances of the edges from the end."""
    sums: list[float]
    """Up to the first edge, and between."""
    sds: list[float]
    """What noise does to the sums."""
    ranges: list[tuple[int, int]]
    """The buckets that they add up."""

    @property
    def has_shape(self) -> bool:
        """Whether enough is seen beyond the end bucket to know how the class thins out."""
        return len(self.sums) == _EDGES

    @property
    def held(self) -> float:
        """How many are in the end bucket."""
        return self.sums[0]

    def moved(self, index: int, by: float) -> "_Tail":
        """The same with more in one of the sums."""
        sums = [each + by * (place == index) for place, each in enumerate(self.sums)]
        return replace(self, sums=sums)

    def expected(self) -> tuple[float, float]:
        """The power of the distance from the end beyond its bucket, and how many it puts inside."""
        (near, middle, far), (_, first, second) = self.places, self.sums
        power = _power(near, middle, far, first, second)
        return power, float(first / ((middle / near) ** power - 1.0))

    def loss(self) -> float:
        """The mean of -log x inside the end bucket, by the power beyond it."""
        if not self.has_shape:
            return -log(EPS)
        near, (here, first, _) = self.places[0], self.sums
        power, expected = self.expected()
        # By chance and noise there are more as well.
        chance = hypot(sqrt(expected), self.sds[0], self.sds[1] * expected / first)
        share = 1.0 - expected / here if here - expected > CLEAR * chance else 0.0
        return share * -log(EPS) + (1.0 - share) * min(1.0 / power - log(near), -log(EPS))

    def thinning(self) -> tuple[float, float]:
        """The same by two powers more: that beside the end bucket, and one as much steeper again.

        Classes that thin out do so ever faster, as the tails of a normal density of log-odds.
        """
        (near, middle, far), (here, first, second) = self.places, self.sums
        beside = log1p(first / here) / log(middle / near)
        steeper = max(beside, 2.0 * beside - _power(near, middle, far, first, second))
        powers = np.clip([beside, steeper], _LEAST_POWER, _LARGEST_POWER)
        losses = np.minimum(1.0 / powers - log(near), -log(EPS))
        return float(losses[0]), float(losses[1])


def _by_itself(own: _Tail, even: float, furthest: float, slopes: FloatArray) -> EndLoss:
    """From its own counts: as far as its powers are apart, chance, half of the way to even.

    Or all of the way to the furthest, where that is further.
    """
    losses = (own.loss(), *own.thinning())
    likely = 0.5 * (losses[1] + losses[2])
    luck = [
        0.5 * abs(own.moved(index, by).loss() - own.moved(index, -by).loss())
        for index, (each, sd) in enumerate(zip(own.sums, own.sds, strict=True))
        for by in (min(hypot(sqrt(each), sd), 0.5 * each),)
    ]
    apart = 0.5 * max(abs(even - likely), max(losses) - min(losses))
    heaped = furthest - likely if furthest > even else 0.0
    return EndLoss(likely, hypot(max(apart, heaped), *luck), slopes)


@dataclass(frozen=True, slots=True)
class AtEnd:
    """Rows in the buckets next to 0 or 1 that may have exactly that score."""

    start: int
    stop: int
    """From this bucket up to before that one."""
    share: float
    """The part of their rows that a power of the distance from the end does not explain."""


def at_end(histogram: ScoreHistogram, end: int) -> AtEnd | None:
    """What the class that belongs there, 0 or 1, has more at an end than beside it explains.

    Less a standard deviation of the noise: what noise alone piles up is no tower. Where the other
    class is heaped there (`metrics.heaps`), that part of it, if it is more. None where neither is.

    >>> crowd = np.array([[9000.0] + [1000.0] * 7, [1000.0] * 8])
    >>> round(at_end(ScoreHistogram(np.arange(9) / 8, crowd), 0).share, 3)
    0.889
    """
    tail, heaped = _tail(histogram, end, at=end, apart=1.0), heaped_share(histogram, end)
    if tail is None or not tail.has_shape:
        first = end * (histogram.buckets - 1)
        return AtEnd(first, first + 1, heaped) if heaped > 0.0 else None
    _, expected = tail.expected()
    beside = 1.0 + tail.sds[1] / tail.sums[1]
    here = tail.held - tail.sds[0]
    return AtEnd(*tail.ranges[0], max(1.0 - expected * beside / here, heaped, 0.0))


def without_empty_ends(histogram: ScoreHistogram) -> ScoreHistogram:
    """The buckets beyond the outermost scores that stand clear of the noise, as one at either end.

    Where neither class has any scores, what counts show is noise, which a loss of 36 nats
    would blow up.

    >>> from fedassay.noise import DenseNoise
    >>> counts = np.array([[1.0, 2.0, 90.0, 50.0, 0.0], [-2.0, 1.0, 9.0, 80.0, 60.0]])
    >>> noisy = ScoreHistogram(np.arange(6) / 5, counts, DenseNoise(4.0 * np.eye(10)))
    >>> without_empty_ends(noisy).edges.tolist()
    [0.0, 0.4, 0.6, 0.8, 1.0]
    """
    if histogram.noise.is_zero:
        return histogram
    first, last = 0, histogram.buckets
    while first < last - 1 and not _is_clear(histogram, 0, first + 1, belongs=0):
        first += 1
    while first < last - 1 and not _is_clear(histogram, last - 1, histogram.buckets, belongs=1):
        last -= 1
    kept = np.concatenate([[0], np.arange(first, last + 1), [histogram.buckets]])
    return histogram.merge(np.unique(kept))


def _is_clear(histogram: ScoreHistogram, start: int, stop: int, *, belongs: int) -> bool:
    """Whether the class that belongs there has scores, or the other one without any doubt.

    That of many sums of noise some stand out a little is no doubt about the one, whose losses are
    small, but about the other. Few rows are enough, as long as they are no noise: taken together
    with empty buckets they would lie anywhere in them.
    """
    noise, sums = range_noise(histogram), histogram.counts[:, start:stop].sum(axis=1)
    # A counter of exactly 0 or 1 is one sum, and not the largest of many; a smoothed one is none.
    is_one = stop - start == 1 and not is_smoothed(histogram.noise)
    is_heap = is_one and float(histogram.widths[start]) <= AT_THE_END
    contradicts = CLEAR if is_heap else _BEYOND_DOUBT
    return any(
        sums[label] >= max(by * noise.sd(label, start, stop), 1.0)
        for label, by in ((belongs, CLEAR), (1 - belongs, contradicts))
    )


def _tail(histogram: ScoreHistogram, label: int, *, at: int, apart: float) -> _Tail | None:
    """What is seen of a class near the end 0 or 1; None where it is not there.

    Each edge is at least so many times as far from the end as the one before, and counts
    between them are clear of the noise.
    """
    buckets, noise = histogram.buckets, range_noise(histogram)
    edges = histogram.edges if at == 0 else (1.0 - histogram.edges)[::-1]
    taken, tail = 0, _Tail([], [], [], [])
    for stop in range(1, buckets + 1):
        if tail.places and edges[stop] < apart * tail.places[-1] * (1.0 - _STEP):
            continue
        start, end = (taken, stop) if at == 0 else (buckets - stop, buckets - taken)
        count = float(histogram.counts[label, start:end].sum())
        if noise.is_clear(count, label, start, end):
            tail.places.append(float(edges[stop]))
            tail.sums.append(count)
            tail.sds.append(noise.sd(label, start, end))
            tail.ranges.append((start, end))
            taken = stop
        elif not taken:
            return None
        if tail.has_shape:
            break
    return tail


def _power(near: float, middle: float, far: float, first: float, second: float) -> float:
    """The power a of F = A x^a from what lies between three edges, by bisection.

    The ratio of the two counts, (far^a - middle^a) / (middle^a - near^a), rises with a.
    """
    low, high = _LEAST_POWER, _LARGEST_POWER
    for _ in range(60):
        a = 0.5 * (low + high)
        ratio = ((far / middle) ** a - 1.0) / (1.0 - (near / middle) ** a)
        low, high = (a, high) if ratio < second / first else (low, a)
    return 0.5 * (low + high)
