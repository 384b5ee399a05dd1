"""What a bucket hides of a threshold inside it: how far counts below it may be off, per label.

A density between its neighbours' keeps a cumulative count in an envelope; what towers above both,
and scores that many rows share, may lie on either side as a whole. How likely that is where no
bucket is narrow enough to show it, neighbours say that jump, or a rule of succession.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import copysign, hypot, inf, log, sqrt

import numpy as np

from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.copies import COPIES
from fedassay.metrics.lattices import lattice
from fedassay.metrics.range_noise import CLEAR, FEW, cell_noise_sd, range_noise
from fedassay.ties import FEWEST_TIED

_MOST_TIMES = 1e100  # so much wider than a neighbour of hardly any width, squared, is a number
_LUMP = 0.5
# A class that has so little of itself in a bucket, beside what the other has, ends there. Of so
# much of the other the near edge says nothing.
_ENDS, _NEARLY_ALL = 1.0 / 3.0, 2.0 / 3.0
_THREE = 3
_TINY = 1e-300


def possible_below(
    histogram: ScoreHistogram, bucket: int, part: float, inside: FloatArray
) -> FloatArray:
    """How far the counts below a point inside a bucket may be from the interpolated ones.

    Per label. A density between its neighbours' keeps the cumulative count between the chord
    and the corner that the neighbours' densities make; what towers above both may sit
    anywhere. The cubic is off by some share of that room, the larger the more of the
    bucket it is; scores are lumpier than any cubic, by half of what a bucket has more or
    less than the mean of its neighbours. Of exact counts, chance explains a part of that, and
    counts that rise or fall all the way show no lump.

    >>> even = ScoreHistogram(np.arange(5) / 4, np.full((2, 4), 100.0))
    >>> possible_below(even, 1, 0.5, np.array([50.0, 50.0])).tolist()
    [0.0, 0.0]
    >>> spike = ScoreHistogram(np.arange(4) / 3, np.array([[0.0, 90.0, 0.0], [30.0, 30.0, 30.0]]))
    >>> possible_below(spike, 1, 0.5, np.array([45.0, 15.0])).round(1).tolist()
    [63.1, 0.0]
    """
    own = np.maximum(histogram.counts[:, bucket], 0.0)
    shares = own / np.maximum(histogram.cumulative[:, -1], _TINY)
    width = float(histogram.widths[bucket])
    noise, rooms = range_noise(histogram), []
    towers = _is_tower(histogram.counts.sum(axis=0), histogram, bucket)
    for label, below in enumerate(np.clip(inside, 0.0, own)):
        around = [_beside(histogram, label, bucket, step) for step in (-1, 1)]
        seen = _Around.of(float(own[label]), around, histogram)
        room = _room(seen, part, float(below))
        if shares[1 - label] < _ENDS * shares[label]:
            share = float(shares[label])
            room = max(room, _room_where_the_other_ends(seen, part, float(below), share))
        # Classes share their scores: one that noise hides is where both together are.
        count = float(histogram.counts[label, bucket])
        is_hidden = not noise.is_clear(count, label, bucket, bucket + 1)
        if towers and (is_hidden or _is_tower(histogram.counts[label], histogram, bucket)):
            whole = max(float(below), float(own[label] - below))
            room = max(room, whole + REACH * noise.sd(label, bucket, bucket + 1))
        rooms.append(room)
    # Where buckets that can tell hold ties, one at this very point is on its lower side: off by
    # all of it, and not by some part. Twice as much, so that what is possible ends the interval.
    ties = lattice(histogram)
    lumps = np.minimum(ties.largest(own, width), np.maximum(inside, own - inside))
    return np.maximum(rooms, 2.0 * ties.part * lumps)


def possible_lumps(histogram: ScoreHistogram, bucket: int, inside: FloatArray) -> FloatArray:
    """How far lumps may take the counts below a point inside a bucket, as standard deviations.

    Of few buckets that look smooth, another may not be. A bucket with a share s of a class is as
    one of 1/s, and no more than there are; of k that showed no lump the next has one with a
    chance of 1 / (k + 2), by Laplace's rule of succession; of k that j are rough among
    (`roughness`), of (j + 1) / (k + 2). Then all of it may lie on one side.
    Counts that noise hides are as large as it. Where a curve through the counts tells how likely
    lumps are (`doubts`), that counts if it is more. Exact counts come in so many buckets that
    lumps show, and have none here.

    >>> from fedassay.noise import DenseNoise
    >>> counts, noise = np.full((2, 4), 100.0), DenseNoise(1e-9 * np.eye(8))
    >>> even = ScoreHistogram(np.arange(5) / 4, counts, noise)
    >>> possible_lumps(even, 1, np.array([50.0, 50.0])).round(1).tolist()  # root of 1/6
    [20.4, 20.4]
    """
    if histogram.noise.is_zero:
        return np.zeros(2)
    noise = [range_noise(histogram).sd(label, bucket, bucket + 1) for label in (0, 1)]
    own = np.maximum(histogram.counts[:, bucket], 0.0) + noise
    total = np.maximum(histogram.cumulative[:, -1], own)
    share = np.divide(own, total, out=np.zeros(2), where=total > 0.0)
    below = np.clip(inside, 0.0, own)
    share = np.maximum(share, 1.0 / histogram.buckets)
    rough = roughness(histogram) if histogram.doubts is None else histogram.doubts.lumps
    chance = np.maximum(share / (1.0 + 2.0 * share), rough)
    lumps: FloatArray = np.sqrt(chance) * np.maximum(below, own - below)
    return lumps


@lru_cache(maxsize=4)
def roughness(histogram: ScoreHistogram) -> float:
    """The chance that a bucket holds lumps, by those that hold twice or half what neighbours say.

    The logarithm of a smooth density runs nearly straight from one neighbour's middle to the
    other's. Of k buckets of which j are off by a factor of two, beyond noise and chance, another
    is with a chance of (j + 1) / (k + 2); 0 where none is.

    >>> from fedassay.noise import DenseNoise
    >>> rows, noise = np.array([300.0, 400.0, 30.0, 500.0, 450.0]), DenseNoise(np.eye(10))
    >>> edges = np.arange(6) / 5
    >>> round(roughness(ScoreHistogram(edges, np.stack([rows, rows]), noise)), 2)  # three of three
    0.8
    >>> roughness(ScoreHistogram(edges, np.full((2, 5), 100.0), noise))
    0.0
    """
    rows, noise_sd = histogram.counts.sum(axis=0), sqrt(2.0) * cell_noise_sd(histogram)
    if len(rows) < _THREE:
        return 0.0
    least = FEW + noise_sd
    held = np.maximum(rows, least)
    density = np.log(held / histogram.widths)
    chance = 1.0 / held + (noise_sd / held) ** 2
    middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
    part = (middle[1:-1] - middle[:-2]) / (middle[2:] - middle[:-2])
    apart = density[1:-1] - (1.0 - part) * density[:-2] - part * density[2:]
    variance = chance[1:-1] + (1.0 - part) ** 2 * chance[:-2] + part**2 * chance[2:]
    # Where nobody is seen on either side of nobody there is nothing to judge.
    is_seen = np.maximum(rows[1:-1], np.maximum(rows[:-2], rows[2:])) > 2.0 * least
    is_rough = is_seen & (np.abs(apart) > log(2.0) + 2.0 * np.sqrt(variance))
    found = int(is_rough.sum())
    return (found + 1.0) / (int(is_seen.sum()) + 2.0) if found else 0.0


def _is_tower(rows: FloatArray, histogram: ScoreHistogram, bucket: int) -> bool:
    """Whether most rows of a bucket are more than its neighbours explain, clear of the noise."""
    density, stretch = np.maximum(rows, 0.0) / histogram.widths, histogram.stretch
    density[: stretch.start], density[stretch.stop :] = 0.0, 0.0
    beside = float(np.pad(density, 1)[[bucket, bucket + 2]].max())
    spike = float(rows[bucket] - 2.0 * beside * histogram.widths[bucket])
    noise_sd = hypot(*(range_noise(histogram).sd(label, bucket, bucket + 1) for label in (0, 1)))
    return spike > 0.5 * rows[bucket] and spike >= FEWEST_TIED + CLEAR * noise_sd


@dataclass(frozen=True, slots=True)
class _Beside:
    """The next buckets on one side that have enough of a class, as one as wide as the middle."""

    count: float
    chance: float
    """What chance makes the count vary by."""
    distance: float
    """Between the middles."""


@dataclass(frozen=True, slots=True)
class _Around:
    """What a bucket holds of a class, and what its neighbours let expect."""

    own: float
    beside: tuple[float | None, float | None]
    """Counts to the left and to the right at the bucket's width; None beyond an end."""
    lump: float
    """How many more or fewer it holds than its neighbours' mean."""
    is_exact: bool

    @classmethod
    def of(cls, own: float, sides: list[_Beside | None], histogram: ScoreHistogram) -> "_Around":
        """Of exact counts, without what chance explains: that is counted by itself.

        Their neighbours are as wide as they come: a mean is that of the line between their middles.
        """
        known = [side for side in sides if side is not None]
        if not histogram.noise.is_zero:
            mean = sum(side.count for side in known) / max(len(known), 1)
            first, last = (None if side is None else side.count for side in sides)
            return cls(own, (first, last), abs(own - mean), is_exact=False)
        first, last = (
            None if side is None else own + _beyond_chance(side.count - own, own + side.chance)
            for side in sides
        )
        inverse = [1.0 / side.distance for side in known]
        weights = [each / sum(inverse) for each in inverse]
        mean = sum(w * side.count for w, side in zip(weights, known, strict=True))
        chance = own + sum(w * w * side.chance for w, side in zip(weights, known, strict=True))
        return cls(own, (first, last), abs(_beyond_chance(own - mean, chance)), is_exact=True)


def _beyond_chance(apart: float, variance: float) -> float:
    """What is left of a difference of counts once its square is less by what chance makes of it."""
    return copysign(sqrt(max(apart * apart - COPIES * variance, 0.0)), apart)


def _room(around: _Around, part: float, below: float) -> float:
    own, known = around.own, [count for count in around.beside if count is not None]
    if own == 0.0 or not known:
        return max(below, own - below)
    # Beyond an end nothing is known: a density that falls towards it may end at 0, one that
    # rises may be all in one place.
    beyond = inf if own > known[0] else 0.0
    first, last = (beyond if count is None else count for count in around.beside)
    low, high = _envelope(own, first, last, max(part, _TINY))
    room = max(high - below, below - low, 0.0)
    bend = room * min(room / max(below, own - below), 1.0)
    lump = _LUMP * min(around.lump, own) * 4.0 * part * (1.0 - part)
    if around.is_exact and min(first, last) <= own <= max(first, last):
        # Counts that rise or fall all the way show no lump, and no such density goes further.
        lump = min(lump, room)
    return hypot(bend, lump)


def _room_where_the_other_ends(around: _Around, part: float, below: float, share: float) -> float:
    """The same in the first or last bucket of exact counts that is wide since one class ends there.

    Most of the other may be in it, unseen but for its near edge. Up to the point it may be twice
    as dense as beside; all the rest may be anywhere beyond. Of nearly all of it that edge says
    nothing.
    """
    if not around.is_exact or None not in around.beside or around.beside == (None, None):
        return 0.0
    if share > _NEARLY_ALL:
        return max(below, around.own - below)
    from_left = around.beside[1] is None
    near, length = (below, part) if from_left else (around.own - below, 1.0 - part)
    beside = next(count for count in around.beside if count is not None)
    return max(min(2.0 * length * beside, around.own) - near, 0.0)


def _envelope(own: float, first: float, last: float, part: float) -> tuple[float, float]:
    """The least and the most below a part of a bucket; densities are counts per bucket width."""
    chord = own * part
    if first <= own <= last:
        return max(first * part, own - last * (1.0 - part)), chord
    if first >= own >= last:
        return chord, min(first * part, own - last * (1.0 - part))
    if own > first:
        # The more it towers above its neighbours, the less they say about it.
        base = max(first, last) ** 2 / own
        return base * part, own - base * (1.0 - part)
    base = min(first, last)
    return max(base * part - (base - own), 0.0), min(base * part, own)


def _beside(histogram: ScoreHistogram, label: int, bucket: int, step: int) -> _Beside | None:
    """What lies on one side, over as many buckets as it takes to be clear of the noise.

    A heap at exactly 0 or 1 is none of them.
    """
    row, widths, stretch = histogram.counts[label], histogram.widths, histogram.stretch
    beside = slice(bucket + 1, stretch.stop) if step > 0 else slice(stretch.start, bucket)
    counts, widths = np.cumsum(row[beside][::step]), np.cumsum(widths[beside][::step])
    if not len(counts):
        return None
    noise, last = range_noise(histogram), len(counts) - 1
    for place in np.flatnonzero(counts >= FEW).tolist():
        start, stop = (bucket + 1, bucket + 2 + place) if step > 0 else (bucket - 1 - place, bucket)
        if noise.is_clear(float(counts[place]), label, start, stop):
            last = place
            break
    count, width = max(float(counts[last]), 0.0), float(widths[last])
    own = float(histogram.widths[bucket])
    times = min(own / width, _MOST_TIMES)
    return _Beside(count * times, count * times**2, 0.5 * (own + width))
