"""How far a bucket's scores may crowd to its denser side, where a cubic cannot follow.

A monotone cubic starts a bucket with at most three times its mean density. Where a neighbour is
a hundred times as dense, as beside the last published cell of a rare event's scores, nearly all
rows may lie at that side. The second guess is a density that falls exponentially, at the rate
which it has between the middles of the two buckets or faster. Where neighbours are alike both
guesses agree to third order, and the first is trusted; where densities are four times apart,
what the guesses are apart is taken as a standard deviation. A heap of scores of exactly 0 or 1 is
no neighbour: however dense, it draws nobody. The outermost buckets of exact counts have a third
guess: where few of a class are on its wrong side they are wide, and scores end somewhere in them.
"""

from collections.abc import Callable
from itertools import product
from math import log

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.range_noise import cell_noise_sd

# A mean over as many rows as this, at even shares of a bucket's, stands for all of them.
_PLACES = (np.arange(8) + 0.5) / 8.0
_FLAT = 1e-6
# Here the two terms of a mean place cancel to half of the digits; its series has as many right.
_NEARLY_FLAT = 1e-3
# In a bucket that is so small a part of its distance from 0 or 1 all that is summed up is nearly
# straight, and the mean of many places is the value at their mean.
_NARROW = 1.0 / 16.0
# More of a bucket lies at its very edge than floating point tells.
_STEEPEST = 500.0
_NEAREST = 1e-300
# Logarithms of densities so far apart are of no smooth stretch of scores.
_UNLIKE = log(4.0)
# That all buckets at once lean to their denser sides takes more.
_ALL_UNLIKE = 2.0 * _UNLIKE


def crowded_sums(
    histogram: ScoreHistogram, of_scores: Callable[[FloatArray], FloatArray], means: FloatArray
) -> FloatArray:
    """How far sums over a bucket's rows are from those of a crowded one, label x bucket.

    Counts that noise hides are as large as it. Of scores: bucket x place to what a row there
    adds, label x bucket x place. Means: what the first guess has for it, label x bucket.

    >>> even = ScoreHistogram(np.arange(4) / 3, np.full((2, 3), 100.0))
    >>> middles = np.tile([1 / 6, 1 / 2, 5 / 6], (2, 1))
    >>> bool(crowded_sums(even, lambda s: np.stack([s, s]), middles).max() < 1e-9)
    True
    """
    counts = np.maximum(histogram.counts, 0.0)
    steps = _steps(histogram)
    middle = histogram.edges[:-1] + 0.5 * histogram.widths
    is_wide = histogram.widths > _NARROW * np.minimum(middle, 1.0 - middle)
    wide, narrow = np.flatnonzero(is_wide), np.flatnonzero(~is_wide)
    at_middles = of_scores(middle[narrow, None])[..., 0]
    apart = np.zeros_like(counts)
    for side, label in product((0, 1), (0, 1)):
        falls = -_beside(steps[label], side)
        rates = _rates(histogram, falls, side)
        crowded = of_scores(_places(histogram, wide, _falling(rates[wide])))[label].mean(axis=-1)
        centred = of_scores(_places(histogram, narrow, _mean_place(rates[narrow])))[label, :, 0]
        further = np.zeros(histogram.buckets)
        further[wide] = np.abs(crowded - means[label, wide])
        further[narrow] = np.abs(centred - at_middles[label])
        doubt = np.minimum(np.abs(falls) / _UNLIKE, 1.0)
        apart[label] = np.maximum(apart[label], doubt * further)
    for bucket, parts, weights in _thinning(histogram, steps):
        thinned = of_scores(_places(histogram, np.array([bucket]), parts))[:, 0].mean(axis=-1)
        further = np.abs(thinned - means[:, bucket])
        apart[:, bucket] = np.maximum(apart[:, bucket], weights * further)
    sums: FloatArray = counts * apart
    return sums


def crowded_below(
    histogram: ScoreHistogram, bucket: int, part: float, inside: FloatArray
) -> FloatArray:
    """How far counts below a part of a bucket are from those of a crowded one, per label.

    Inside: what the first guess has below it. Below a part t, of a density that falls at a rate r,
    lies the share (1 - e^-rt) / (1 - e^-r).

    >>> even = ScoreHistogram(np.arange(4) / 3, np.full((2, 3), 100.0))
    >>> crowded_below(even, 1, 0.5, np.array([50.0, 50.0])).round(6).tolist()
    [0.0, 0.0]
    >>> steep = ScoreHistogram(np.array([0.0, 0.1, 1.0]), np.array([[900.0, 90.0], [90.0, 90.0]]))
    >>> crowded_below(steep, 1, 0.1, np.array([9.0, 9.0])).round(1).tolist()
    [80.7, 36.7]
    """
    least, apart = max(cell_noise_sd(histogram), 1.0), np.zeros(2)
    counts, middles = np.maximum(histogram.counts, 0.0), histogram.edges[:-1] + histogram.edges[1:]
    stretch = histogram.stretch
    for beside in (bucket - 1, bucket + 1):
        if beside not in stretch or bucket not in stretch:
            continue
        both = [bucket, beside]
        dense, other = np.log(np.maximum(counts[:, both], least) / histogram.widths[both]).T
        falls = (dense - other) * (1.0 if beside > bucket else -1.0)
        distance = max(0.5 * abs(float(middles[beside] - middles[bucket])), _NEAREST)
        rates = _faster(falls * histogram.widths[bucket] / distance)
        steep = np.where(np.abs(rates) < _FLAT, _FLAT, rates)
        shares = np.expm1(-steep * part) / np.expm1(-steep)
        doubt = np.minimum(np.abs(falls) / _UNLIKE, 1.0)
        apart = np.maximum(apart, doubt * np.abs(counts[:, bucket] * shares - inside))
    return apart


def _places(histogram: ScoreHistogram, buckets: IntArray, parts: FloatArray) -> FloatArray:
    """Scores at parts of some buckets, bucket x part."""
    at = histogram.edges[buckets, None] + histogram.widths[buckets, None] * parts
    return np.minimum(at, 1.0)


def crowded_places(histogram: ScoreHistogram) -> tuple[FloatArray, FloatArray]:
    """Scores at which a bucket's rows lie if they crowd to its denser side, and how likely that is.

    Scores are label x bucket x place; what is likely, label x bucket, is 0 between alike neighbours
    and 1 beside one that is sixteen times as dense or thin. Of two slopes the steeper is taken.

    >>> even = ScoreHistogram(np.arange(4) / 3, np.full((2, 3), 100.0))
    >>> crowded_places(even)[1].max()
    np.float64(0.0)
    """
    low, width = histogram.edges[:-1, None], histogram.widths[:, None]
    places, doubts = [], []
    for row in _steps(histogram):
        falls = [-_beside(row, side) for side in (0, 1)]
        rates = [_rates(histogram, falls[side], side) for side in (0, 1)]
        steeper = np.where(np.abs(rates[1]) > np.abs(rates[0]), rates[1], rates[0])
        places.append(np.minimum(low + width * _falling(steeper), 1.0))
        doubts.append(np.minimum(np.abs(falls).max(axis=0) / _ALL_UNLIKE, 1.0))
    return np.stack(places), np.stack(doubts)


def _steps(histogram: ScoreHistogram) -> FloatArray:
    """How far logarithms of densities rise from bucket to bucket, 0 beside heaps; label x step.

    Counts that noise hides are as large as it.
    """
    least = max(cell_noise_sd(histogram), 1.0)
    density = np.log(np.maximum(histogram.counts, least) / histogram.widths)
    steps: FloatArray = np.diff(density, axis=1)
    steps[:, : histogram.stretch.start] = 0.0
    steps[:, histogram.stretch.stop - 1 :] = 0.0
    return steps


def _thinning(
    histogram: ScoreHistogram, steps: FloatArray
) -> list[tuple[int, FloatArray, FloatArray]]:
    """The outermost buckets of exact counts, parts of them that are inside, how likely per label.

    Towards 0 and 1 nothing says where scores end: they may all lie in the inner half. It is as
    likely as the next bucket is dense, compared with both, and as far as that one is narrower.
    """
    stretch = histogram.stretch
    if not histogram.noise.is_zero or len(stretch) == 1:
        return []
    inner = np.multiply(0.5, _PLACES[None], dtype=np.float64)
    outer: FloatArray = 0.5 + inner
    rises = np.stack([steps[:, stretch[0]], -steps[:, stretch[-1] - 1]])
    widths = histogram.widths[list(stretch[:2]) + list(stretch[:-3:-1])].reshape(2, 2)
    wider = np.maximum(1.0 - widths[:, 1] / widths[:, 0], 0.0)[:, None]
    likely: FloatArray = wider / (1.0 + np.exp(-np.clip(rises, -_STEEPEST, _STEEPEST)))
    return [(stretch[0], outer, likely[0]), (stretch[-1], inner, likely[1])]


def _beside(between: FloatArray, side: int) -> FloatArray:
    """What lies between buckets, for each bucket that on its left (0) or right; beyond an end 0."""
    return np.append(between, 0.0) if side else np.insert(between, 0, 0.0)


def _rates(histogram: ScoreHistogram, falls: FloatArray, side: int) -> FloatArray:
    """How fast density falls towards the right, per bucket width."""
    middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
    distance = np.maximum(_beside(np.diff(middle), side), _NEAREST)
    return _faster(falls * histogram.widths / distance)


def _faster(steep: FloatArray) -> FloatArray:
    """The rate at which density falls in a bucket, from its fall over a bucket's width beside it.

    Between alike neighbours they are the same; beside one R times as dense it tends to the root
    of R, which starts at the mean of both densities on the logarithmic scale.
    """
    most = np.clip(steep, -_STEEPEST, _STEEPEST)
    rates: FloatArray = np.clip(2.0 * np.sinh(0.5 * most), -_STEEPEST, _STEEPEST)
    return rates


def _falling(rates: FloatArray) -> FloatArray:
    """Parts of a bucket below which even shares of its rows lie, bucket x place."""
    steep = np.where(np.abs(rates) < _FLAT, 1.0, rates)[:, None]
    falling = -np.log1p(_PLACES * np.expm1(-steep)) / steep
    parts: FloatArray = np.where(np.abs(rates)[:, None] < _FLAT, _PLACES, falling)
    return parts


def _mean_place(rates: FloatArray) -> FloatArray:
    """The mean part of a bucket that rows lie at, bucket x 1: 1/r - 1/(e^r - 1)."""
    is_flat = np.abs(rates) < _NEARLY_FLAT
    steep = np.where(is_flat, 1.0, rates)
    means: FloatArray = np.where(is_flat, 0.5 - rates / 12.0, 1.0 / steep - 1.0 / np.expm1(steep))
    return means[:, None]
