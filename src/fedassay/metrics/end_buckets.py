"""Where scores lie in the first and the last bucket: a logarithm has no end there.

A row that contradicts a score of exactly 0 or 1 costs -log(eps), 36 nats, as in scikit-learn;
one in the middle of a bucket of a tenth costs 3. Its class is rare there, and noise hides where
it lies. But it contradicts the scores no worse than they say nothing: at most as near to the
end as the other class, whose counts beside the bucket show whether it thins out or stands there.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.log_odds import EPS
from fedassay.metrics.range_noise import CLEAR, range_noise

_AT_THE_END = 2.0**-30
# Scores of 1e-13 are not impossible, only rare beside exact zeros.
_UNLIKE_ZERO = 0.125
_BEYOND_DOUBT = 6.0
_STEP = 1e-4
_LEAST_POWER, _LARGEST_POWER = 0.1, 8.0


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
    out towards the end. A bucket as narrow as 2^-30 holds nothing else.

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
    if end <= _AT_THE_END:
        return EndLoss(most, (most + log(max(end, EPS))) * _UNLIKE_ZERO, slopes)
    even = min(1.0 - log(end), most)
    own, below = (_below(histogram, each, at=1 - label) for each in (label, 1 - label))
    # Exact counts that tell nothing of their own class leave open that all lie at the far edge.
    unknown = -log(end) if histogram.noise.is_zero else even
    thins = unknown if own is None else min(_loss_of(own[0], own[1]), even)
    if below is None:
        return EndLoss(0.5 * (thins + even), 0.5 * (even - thins), slopes)
    places, sums, ranges = below

    def ends(sums: list[float]) -> tuple[float, float]:
        other = _loss_of(places, sums)
        return min(other, thins), max(other, even)

    lowest, highest = ends(sums)
    for index, (start, stop) in enumerate(ranges):
        step = _STEP * sums[index]
        moved = [[s + sign * step * (i == index) for i, s in enumerate(sums)] for sign in (1, -1)]
        up, down = (sum(ends(each)) for each in moved)
        slopes[start:stop] = 0.5 * (up - down) / (2.0 * step)
    return EndLoss(0.5 * (lowest + highest), 0.5 * (highest - lowest), slopes)


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

    Less a standard deviation of the noise: what noise alone piles up is no tower. None where its
    counts do not stand clear of the noise.

    >>> crowd = np.array([[9000.0] + [1000.0] * 7, [1000.0] * 8])
    >>> round(at_end(ScoreHistogram(np.arange(9) / 8, crowd), 0).share, 3)
    0.889
    """
    below = _below(histogram, end, at=end)
    if below is None:
        return None
    places, sums, ranges = below
    noise, power = range_noise(histogram), _share_and_power(places, sums)[1]
    here = sums[0] - noise.sd(end, *ranges[0])
    beside = sums[1] + noise.sd(end, *ranges[1])
    return AtEnd(*ranges[0], _share(places, here, beside, power))


def _loss_of(places: list[float], sums: list[float]) -> float:
    """The mean of -log x of a class inside the first of three edges from an end."""
    share, power = _share_and_power(places, sums)
    return share * -log(EPS) + (1.0 - share) * min(1.0 / power - log(places[0]), -log(EPS))


def _share_and_power(places: list[float], sums: list[float]) -> tuple[float, float]:
    """How much of a class lies at the very end, and the power of the rest."""
    (near, middle, far), (here, first, second) = places, sums
    power = _power(near, middle, far, first, second)
    return _share(places, here, first, power), power


def _share(places: list[float], here: float, beside: float, power: float) -> float:
    """What a power of the distance, with so many beside, leaves of those next to an end."""
    growth: float = (places[1] / places[0]) ** power
    return max(1.0 - beside / (growth - 1.0) / here, 0.0)


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
    return any(
        sums[label] >= max(by * noise.sd(label, start, stop), 1.0)
        for label, by in ((belongs, CLEAR), (1 - belongs, _BEYOND_DOUBT))
    )


def _below(
    histogram: ScoreHistogram, label: int, *, at: int
) -> tuple[list[float], list[float], list[tuple[int, int]]] | None:
    """Three edges from the end 0 or 1, counts of a class up to the first and between, and where.

    None where they do not stand clear of the noise.
    """
    buckets, noise = histogram.buckets, range_noise(histogram)
    taken, sums, ranges = [0], [], []
    while len(taken) < 4:
        for stop in range(taken[-1] + 1, buckets + 1):
            start, end = (taken[-1], stop) if at == 0 else (buckets - stop, buckets - taken[-1])
            count = float(histogram.counts[label, start:end].sum())
            if noise.is_clear(count, label, start, end):
                taken.append(stop)
                sums.append(count)
                ranges.append((start, end))
                break
            if taken == [0]:
                return None
        else:
            return None
    edges = histogram.edges if at == 0 else (1.0 - histogram.edges)[::-1]
    return [float(edges[place]) for place in taken[1:]], sums, ranges


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
