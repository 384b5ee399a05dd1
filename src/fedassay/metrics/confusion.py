"""True and false positives and negatives at a threshold, and what its bucket leaves open."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import expm1, hypot, sqrt

import numpy as np

from fedassay.doubts import part_of_error
from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.below import possible_below, possible_lumps
from fedassay.metrics.beside_counters import Reading, beside_counters
from fedassay.metrics.copies import copies_of
from fedassay.metrics.crowding import crowded_below
from fedassay.metrics.range_noise import range_noise
from fedassay.metrics.spans import clear_spikes
from fedassay.noise import is_smoothed

# True positives, false positives, false negatives, true negatives.
ConfusionCounts = tuple[float, float, float, float]

_FEWEST, _FURTHEST = 1e-9, 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """The confusion counts at one threshold, with what binning leaves open.

    The classifier says 1 when the score is above the threshold (`sec:defs`); a threshold
    inside a bucket is interpolated.
    """

    histogram: ScoreHistogram
    threshold: float
    counts: ConfusionCounts
    lowest: tuple[float, float]
    """Fewest negatives and positives that can lie above the threshold."""
    highest: tuple[float, float]
    spread: tuple[float, float]
    """Standard deviations of negatives and positives above it, from binning."""
    chance: tuple[float, float]
    """The part of these that is the luck of single rows: each class has its own."""
    lumps: tuple[float, float]
    """More of them, for lumps that no bucket has shown and for scores that crowd to a bucket's
    denser side: both classes may share these, so that they move a point along a ROC curve and not
    away from it."""
    above: FloatArray
    """How the counts above the threshold move with each count, label x bucket."""
    noise: FloatArray
    """Covariance of the four counts from privacy noise, in their order."""

    @property
    def hidden(self) -> tuple[float, float]:
        """Standard deviations of both counts at this threshold, from all that a bucket hides."""
        return hypot(self.spread[0], self.lumps[0]), hypot(self.spread[1], self.lumps[1])

    def sum_of(self, weights: Sequence[float]) -> float:
        """A sum of the four counts."""
        return sum(weight * count for weight, count in zip(weights, self.counts, strict=True))

    def noise_sd(self, weights: Sequence[float]) -> float:
        """The standard deviation that noise gives such a sum."""
        flat = np.asarray(weights)
        return sqrt(max(float(flat @ self.noise @ flat), 0.0))


@lru_cache(maxsize=1)
def confusion(histogram: ScoreHistogram, threshold: float) -> Confusion:
    """Count true and false positives and negatives at a threshold (`thm:pra`).

    Of two surveys, a threshold inside a cell of the second is read from the leaves, which the
    first one's noise is in, or from the curve through the cells, which may hide something:
    whichever errs less. The last answer is kept, because several metrics ask for it one after
    the other.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> confusion(h, 0.5).counts  # tp, fp, fn, tn
    (1.0, 0.0, 1.0, 2.0)
    """
    require_histogram(histogram)
    by_leaf = _interpolated(histogram, threshold)
    if histogram.cells is None or threshold in histogram.edges[histogram.cells]:
        counted = histogram.counted
        return by_leaf if counted is None else _beside_counters(by_leaf, counted.counted_cells)
    if is_smoothed(histogram.noise):
        return _hidden_by_cell(by_leaf)
    by_cell = _interpolated(histogram.by_cells(), threshold)
    # A cell's count is the sum of its leaves: their noise is known, and it moves with each alike.
    above = np.repeat(by_cell.above, np.diff(histogram.cells), axis=1)
    return min(by_leaf, replace(by_cell, histogram=histogram, above=above), key=_squared_error)


def _beside_counters(at: Confusion, counted: ScoreHistogram) -> Confusion:
    """The same at a cut of the second survey, where counters tell without any curve, too."""
    raw = _interpolated(counted, at.threshold)
    at = _with_few(at, raw)
    joined = beside_counters(
        Reading(np.array(at.counts), at.noise), Reading(np.array(raw.counts), raw.noise)
    )
    tp, fp, fn, tn = joined.counts.tolist()
    return replace(
        at, counts=(tp, fp, fn, tn), lowest=(fp, tp), highest=(fp, tp), noise=joined.noise
    )


def _with_few(at: Confusion, counters: Confusion) -> Confusion:
    """The same with as much noise on a class's smaller side as its logarithm leaves open.

    Few rows on one side of a threshold are known by their logarithm: with a deviation r of it they
    may be e^(1.96 r) times as many, which is further than a straight line leads, and no further
    than counters say without any curve. Where log-odds bend no more than is usual, r is cautious
    anyway: so it is done as far as cliffs are likely.
    """
    doubts = at.histogram.doubts
    part = 1.0 if doubts is None else part_of_error(doubts.cliffs)
    noise = at.noise.copy()
    for sides in ((0, 2), (1, 3)):
        few, many = sorted(sides, key=lambda side: at.counts[side])
        own, by_counters = (sqrt(max(float(each.noise[few, few]), 0.0)) for each in (at, counters))
        if not 0.0 < own < by_counters:
            continue
        reach = min(REACH * own / max(at.counts[few], _FEWEST), _FURTHEST)
        rise = 1.0 + part * (min(expm1(reach) / reach, by_counters / own) - 1.0)
        # Who is more on one side is fewer on the other: how many there are in all stays as it was.
        crossing = np.zeros(4)
        crossing[few], crossing[many] = 1.0, -1.0
        noise += (rise * rise - 1.0) * own * own * np.outer(crossing, crossing)
    return replace(at, noise=noise)


def _hidden_by_cell(at: Confusion) -> Confusion:
    """The same, with what its whole cell may hide: smooth counts inside it are a guess.

    Where a curve is smooth lumps do not show, and counters tell of none inside a cell.
    """
    cells = at.histogram.counted_cells
    cell = int(np.searchsorted(cells.edges, at.threshold)) - 1
    above = cells.cumulative[:, -1] - cells.cumulative[:, cell + 1]
    most = cells.cumulative[:, -1] - cells.cumulative[:, cell]
    below = np.array([at.counts[3], at.counts[2]]) - cells.cumulative[:, cell]
    lumps = possible_lumps(cells, cell, below)
    return replace(
        at,
        lowest=(float(above[0]), float(above[1])),
        highest=(float(most[0]), float(most[1])),
        lumps=(max(at.lumps[0], float(lumps[0])), max(at.lumps[1], float(lumps[1]))),
    )


def _squared_error(at: Confusion) -> float:
    """Of both rates together: noise, and what a bucket hides."""
    squared = 0.0
    for label, total in enumerate(at.histogram.cumulative[:, -1].tolist()):
        own = np.zeros_like(at.above)
        own[label] = at.above[label]
        squares = at.histogram.noise.variance(own) + at.spread[label] ** 2
        squared += squares / max(total, 1.0) ** 2
    return squared


def _interpolated(histogram: ScoreHistogram, threshold: float) -> Confusion:
    below, bucket, part = histogram.below(threshold)
    total = histogram.cumulative[:, -1]
    shares = histogram.shares_below(bucket, part)
    # The first bucket also holds 0, so even a threshold of 0 may lie inside it.
    is_inside = 0.0 < part < 1.0 or bucket == part == 0
    own = histogram.counts[:, bucket] if is_inside else np.zeros(2)
    least = total - histogram.cumulative[:, bucket]
    if is_inside or part == 1.0:
        least = least - histogram.counts[:, bucket]
    spread = chance = lumps = np.zeros(2)
    if is_inside:
        chance = _chance(histogram, bucket, part, shares)
        spread = np.hypot(chance, _open(histogram, bucket, part, below))
    if 0.0 < part < 1.0:
        inside = below - histogram.cumulative[:, bucket]
        crowded = crowded_below(histogram, bucket, part, inside)
        # Both say where scores lie in a bucket: the larger counts, not the sum.
        further = np.sqrt(np.maximum(crowded**2 - spread**2, 0.0))
        lumps = np.maximum(further, _unseen_ties(histogram, bucket, inside))
    (fp, tp), (tn, fn) = total - below, below
    return Confusion(
        histogram,
        threshold,
        (float(tp), float(fp), float(fn), float(tn)),
        (float(least[0]), float(least[1])),
        (float(least[0] + own[0]), float(least[1] + own[1])),
        (float(spread[0]), float(spread[1])),
        (float(chance[0]), float(chance[1])),
        (float(lumps[0]), float(lumps[1])),
        1.0 - shares,
        _noise(histogram, 1.0 - shares),
    )


def _unseen_ties(histogram: ScoreHistogram, bucket: int, inside: FloatArray) -> FloatArray:
    """How far ties that no bucket shows take counts below a point inside it, as deviations.

    Of scores in hundredths, or of a tree's leaves, every bucket holds one or two, and all look
    smooth: a threshold at one of them is off by all of its rows. Noisy counts come in buckets so
    wide, exact ones do not; and for whoever asked before the threshold is an edge. Of smoothed
    counts a curve tells how likely that is.
    """
    if histogram.noise.is_zero or is_smoothed(histogram.noise):
        return possible_lumps(histogram, bucket, inside)
    own = np.maximum(histogram.counts[:, bucket], 0.0)
    below = np.clip(inside, 0.0, own)
    noise = [range_noise(histogram).sd(label, bucket, bucket + 1) for label in (0, 1)]
    either: FloatArray = np.maximum(below, own - below) / REACH + noise
    return np.maximum(either, possible_lumps(histogram, bucket, inside))


def _noise(histogram: ScoreHistogram, above: FloatArray) -> FloatArray:
    """Of true and false positives, false and true negatives."""
    if histogram.noise.is_zero:
        return np.zeros((4, 4))
    weights = np.zeros((4, *above.shape))
    weights[0, 1], weights[1, 0] = above[1], above[0]
    weights[2, 1], weights[3, 0] = 1.0 - above[1], 1.0 - above[0]
    return histogram.noise.covariances(weights)


def _chance(histogram: ScoreHistogram, bucket: int, part: float, shares: FloatArray) -> FloatArray:
    """Standard deviations of the interpolated counts, per label, as rows fall to both sides.

    Chance is that of a share a deviation nearer to a half, but by a quarter of it at most: few rows
    vary by more where a table happens to have more of them on that side.
    """
    counts = np.maximum(histogram.counts, 0.0)
    own, g = counts[:, bucket], shares[:, bucket]
    share = min(part, 1.0 - part)
    luck = np.sqrt(share * (1.0 - share) / np.maximum(own, 1.0))
    nearer = np.minimum(0.5, share + np.minimum(luck, share / 4.0))
    chance = own * (nearer * (1.0 - nearer) + (part - g) ** 2)
    if bucket:
        chance = chance + counts[:, bucket - 1] * (1.0 - shares[:, bucket - 1]) ** 2
    if bucket + 1 < histogram.buckets:
        chance = chance + counts[:, bucket + 1] * shares[:, bucket + 1] ** 2
    return np.sqrt(copies_of(histogram)[:, 0] * chance)


def _open(histogram: ScoreHistogram, bucket: int, part: float, below: FloatArray) -> FloatArray:
    """The same of a curve that is wrong by what its neighbours leave open."""
    if part == 0.0:
        # At 0 itself only what towers there may be exactly 0.
        return clear_spikes(histogram)[:, bucket] / 2.0
    inside = below - histogram.cumulative[:, bucket]
    return possible_below(histogram, bucket, part, inside) / REACH


def confusion_weights(at: Confusion, slope: tuple[float, ...]) -> FloatArray:
    """A sum over the confusion counts as weights of the histogram's counts, label x bucket.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.ones((2, 2)))
    >>> confusion_weights(confusion(h, 0.5), (1.0, 0.0, 0.0, 0.0)).tolist()  # true positives
    [[0.0, 0.0], [0.0, 1.0]]
    """
    negatives = slope[3] + (slope[1] - slope[3]) * at.above[0]
    positives = slope[2] + (slope[0] - slope[2]) * at.above[1]
    return np.stack([negatives, positives])
