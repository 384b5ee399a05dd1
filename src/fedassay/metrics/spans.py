"""What a bucket hides: how far the order of the scores inside it is open, given its neighbours.

Inside a bucket the cubic guesses. Where neighbours are alike the guess is good to second order;
where a bucket holds much of a class and its neighbours little, nothing is known, and an
interval must reach whatever is possible.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import expm1, hypot, sqrt

import numpy as np

from fedassay.estimate import REACH
from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.copies import DRAWN
from fedassay.metrics.lattices import lattice
from fedassay.metrics.range_noise import FEW, RangeNoise, cell_noise_sd, range_noise
from fedassay.ties import FEWEST_TIED

_CLEAR = 3.0
_TINY = 1e-300
_STEEP = 300.0


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Every bucket's open share of the order between classes, from 0 (known) to 1 (anything)."""

    openness: FloatArray
    loose: FloatArray
    """Counts whose place is open, label x bucket: what noise may hide too, without ties."""
    tied_elsewhere: FloatArray
    """Of the rows in all other buckets, the share that is tied, by bucket; or of the buckets that
    would show a tie, those that do."""


@lru_cache(maxsize=4)
def spans(histogram: ScoreHistogram) -> Spans:
    """How far neighbours leave open in which order a bucket's positives and negatives lie.

    In a bucket the ROC curve goes from one corner of a rectangle to the other. With slopes of
    the neighbours' likelihood ratios, a and b times the bucket's own, a >= 1 >= b, a curve
    that bends one way stays between the chord and a triangle above it, whose area is
    (a - 1)(1 - b)/(a - b) of the half rectangle: the openness. At either end of the grid there
    is no neighbour, and a is infinite or b is 0.

    The last answers are kept, because several metrics ask for it one after the other.

    >>> even = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.full((2, 2), 100.0))
    >>> spans(even).openness.tolist()
    [0.0, 0.0]
    >>> crowded = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[1e6, 1e2], [1e2, 1e4]]))
    >>> spans(crowded).openness.round(3).tolist()
    [1.0, 1.0]
    """
    noise_sd = cell_noise_sd(histogram)
    counts = np.maximum(histogram.counts, 0.0)
    seen = lattice(histogram)
    tied = seen.tied
    # Noise cancels in sums, unless each count is cut off at 0 before.
    starts = _groups(histogram.counts, range_noise(histogram))
    grouped = np.maximum(np.add.reduceat(histogram.counts, starts, axis=1), 0.0)
    sizes = np.diff(np.append(starts, histogram.buckets))
    whole = np.repeat(np.maximum(grouped, 1e-300), sizes, axis=1)
    # Among several buckets that must stand together to be clear, each has its part of the bend.
    part = (counts / whole).max(axis=0)
    openness = np.repeat(_openness(grouped), sizes) * np.minimum(part, 1.0)
    elsewhere = np.maximum(counts.sum() - counts.sum(axis=0), _TINY)
    tied_elsewhere = np.maximum((tied.sum() - tied.sum(axis=0)) / elsewhere, seen.share)
    return Spans(openness, counts - tied + noise_sd, np.clip(tied_elsewhere, 0.0, 1.0))


def openness_of_one_class(histogram: ScoreHistogram) -> FloatArray:
    """Every bucket's openness where one class stands clear of the noise, and the other may be none.

    Buckets are taken together until either class is clear; what noise hides of the other is as
    large as it. Where one class ends, `spans` has no group with both, and knows nothing.

    >>> even = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.full((2, 2), 100.0))
    >>> openness_of_one_class(even).tolist()
    [0.0, 0.0]
    """
    noise, starts = range_noise(histogram), [0]
    for bucket in range(1, histogram.buckets + 1):
        here = (starts[-1], bucket)
        sums = histogram.counts[:, here[0] : bucket].sum(axis=1).tolist()
        if any(noise.is_clear(each, label, *here) for label, each in enumerate(sums)):
            starts.append(bucket)
    if len(starts) > 1:
        starts.pop()
    sizes = np.diff(np.append(starts, histogram.buckets))
    hidden = [
        [noise.sd(label, start, start + size) for start, size in zip(starts, sizes, strict=True)]
        for label in (0, 1)
    ]
    grouped = np.maximum(np.add.reduceat(histogram.counts, starts, axis=1), hidden)
    return np.repeat(_openness(grouped), sizes)


def possible_pairs(histogram: ScoreHistogram) -> float:
    """How many pairs the cubic may have put into the wrong order, if all goes wrong.

    The third power: a triangle's area, and the cubic's error within it, which is of
    second order while neighbours are alike. Where scores are tied elsewhere, those of a bucket
    are a few values rather than a cubic: then it is the triangle itself. So it is in the first and
    the last cell of exact sums, which have one neighbour and all octaves down to 0 or up to 1; but
    for what towers there, which is a heap at the very end unless it is far-flung.

    >>> even = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.full((2, 2), 100.0))
    >>> possible_pairs(even)
    0.0
    """
    each = spans(histogram)
    part = each.openness ** (3.0 - 2.0 * each.tied_elsewhere)
    pairs = 0.5 * each.loose[0] * each.loose[1] * part
    ends = [0, -1]
    apart = histogram.far_flung * np.maximum(histogram.counts, 0.0)[:, ends]
    heaps = clear_spikes(histogram) if histogram.noise.is_zero else histogram.ties
    n, p = np.maximum((each.loose - heaps)[:, ends], apart)
    pairs[ends] = np.maximum(pairs[ends], 0.5 * n * p * each.openness[ends])
    return float(pairs.sum())


def clear_spikes(histogram: ScoreHistogram) -> FloatArray:
    """Spikes that neither chance nor noise makes, label x bucket.

    >>> h = ScoreHistogram(np.arange(4) / 3, np.array([[0.0, 9.0, 0.0], [3.0, 3.0, 3.0]]))
    >>> clear_spikes(h).tolist()
    [[0.0, 9.0, 0.0], [0.0, 0.0, 0.0]]
    """
    least = FEWEST_TIED + _CLEAR * cell_noise_sd(histogram)
    return np.where(histogram.spikes >= least, histogram.spikes, 0.0)


def _groups(counts: FloatArray, noise: RangeNoise) -> IntArray:
    """Where groups of buckets begin that have enough of both classes to compare."""
    if noise.is_zero and (counts >= 0.0).all():
        return exact_groups(counts)
    starts, negatives, positives = [0], 0.0, 0.0
    for bucket, (n, p) in enumerate(counts.T.tolist()):
        negatives += n
        positives += p
        if negatives < FEW or positives < FEW:
            continue
        here = (starts[-1], bucket + 1)
        if noise.is_clear(negatives, 0, *here) and noise.is_clear(positives, 1, *here):
            starts.append(bucket + 1)
            negatives = positives = 0.0
    # What is left at the end is not enough: it belongs to the last group.
    if len(starts) > 1:
        starts.pop()
    return np.array(starts)


def exact_groups(counts: FloatArray) -> IntArray:
    """The same without noise, where each bucket's group ends is known for all buckets at once.

    >>> exact_groups(np.full((2, 5), 10.0)).tolist()  # at least 16 of both
    [0, 2]
    """
    below = np.zeros((2, counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=below[:, 1:])
    ends = np.maximum(*(np.searchsorted(each, each[:-1] + FEW) for each in below)).tolist()
    starts, at, buckets = [], 0, len(ends)
    while at < buckets:
        starts.append(at)
        at = ends[at]
    # What is left at the end is not enough: it belongs to the last group.
    if at > buckets and len(starts) > 1:
        starts.pop()
    return np.array(starts)


def _openness(grouped: FloatArray) -> FloatArray:
    """The triangle's share of the half rectangle, from likelihood ratios of neighbours."""
    return openness_of_groups(grouped, np.array([grouped.shape[1] - 1]))


def openness_of_groups(grouped: FloatArray, lasts: IntArray) -> FloatArray:
    """The same of several histograms' groups in one row; `lasts` are where each one's end.

    >>> openness_of_groups(np.full((2, 3), 100.0), np.array([1, 2])).tolist()  # the last is alone
    [0.0, 0.0, 1.0]
    """
    n, p = grouped
    ratio = np.log(np.maximum(p, _TINY)) - np.log(np.maximum(n, _TINY))
    step = np.zeros(len(ratio) + 1)
    step[1:-1] = np.minimum(np.maximum(ratio[1:] - ratio[:-1], -_STEEP), _STEEP)
    ends = np.append(0, lasts + 1)
    step[ends] = 0.0
    # A ratio above or below both neighbours may lean either way, as far as the larger step.
    size = np.abs(step)
    beside = np.maximum(size[1:], size[:-1])
    step[ends] = _STEEP
    above, below = np.expm1(step[1:]), -np.expm1(-step[:-1])
    either: FloatArray = np.tanh(beside / 2.0)
    is_between = above * below >= 0.0
    sides = np.maximum(np.abs(above + below), _TINY)
    np.divide(above * below, sides, out=either, where=is_between)
    return np.minimum(either, 1.0)


def open_top(histogram: ScoreHistogram) -> float:
    """The openness of the highest scores, if their likelihood ratio is not what few counts say.

    Between two neighbours chance opens a triangle by itself. At an end it may hide one: two ratios
    that look alike may be apart by 1.96 deviations of their logarithms, whose variance is the
    sum of one over each count. Rows come in copies, which double it.

    >>> even = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.full((2, 2), 1e6))
    >>> round(open_top(even), 3)
    0.006
    >>> round(open_top(ScoreHistogram(even.edges, np.full((2, 2), 25.0))), 3)
    0.67
    """
    starts = _groups(histogram.counts, range_noise(histogram))
    if len(starts) == 1:
        return 1.0
    grouped = np.maximum(np.add.reduceat(histogram.counts, starts[-2:], axis=1), 1.0)
    logs = np.log(grouped)
    step = float(logs[1, 1] - logs[0, 1] - logs[1, 0] + logs[0, 0])
    return -expm1(-hypot(step, REACH * sqrt(DRAWN * float((1.0 / grouped).sum()))))
