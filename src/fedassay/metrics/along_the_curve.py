"""Cutoffs of smoothed counts: where noise moves both classes together, and where ties are.

A curve leaves open where its examples lie far more than which class they are of: errors in both
classes' counts above a cutoff go together, along the ROC curve. With D what the fixed class has too
many above a cutoff, and r the other class's rate there, one at which D is 0 in truth has, in the
mean, the rate

    r - cov(r, D) / var(D) * D,

so that all cutoffs that noise allows have nearly the same. Tied scores are taken or left as a
whole, and no smooth curve shows them. Those that counters show by themselves stick out of it; where
its evidence says that there may be some, more are unseen, as far as that is likely.
"""

import numpy as np

from fedassay.doubts import Doubts, part_of_error
from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.noise import DenseNoise

# A leaf sticks out by so many standard deviations: of 300, one does by chance in 15 surveys.
_STICKS_OUT = 3.5


def rates_at_goal(
    histogram: ScoreHistogram, noise: DenseNoise, fixed: int, share: float
) -> FloatArray:
    """The other class's rate above every edge, if the fixed one has its share above it in truth.

    >>> counts = np.full((2, 2), 100.0)
    >>> moved = np.array([-1.0, 1.0, -1.0, 1.0])  # both classes' examples lie higher, or lower
    >>> noise = DenseNoise(25.0 * np.outer(moved, moved), is_smoothed=True)
    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts + [[-8.0, 8.0]] * 2, noise)
    >>> rates_at_goal(h, noise, 0, 0.5).round(3).tolist()  # 54 % of either class are above 0.5
    [1.0, 0.5, 0.0]
    """
    other, total = 1 - fixed, histogram.cumulative[:, -1]
    above = total[:, None] - histogram.cumulative
    rate = above[other] / total[other]
    own, crossed = noise.below(fixed), noise.below(fixed, other)
    rest, gone, place = 1.0 - share, 1.0 - rate, np.arange(len(rate))
    # D and r have what is below with a minus, and of all a part.
    variance = np.diag(own) - 2.0 * rest * own[:, -1] + rest**2 * own[-1, -1]
    covariance = (
        crossed[place, place]
        - rest * crossed[-1]
        - gone * crossed[:, -1]
        + rest * gone * crossed[-1, -1]
    )
    excess = above[fixed] - share * total[fixed]
    known = variance > 1e-12 * max(float(variance.max()), 1e-300)
    shift = np.where(known, covariance / np.where(known, variance, 1.0), 0.0) * excess
    moved: FloatArray = rate - shift / total[other]
    return moved


def ends_along(
    doubts: Doubts,
    rates: FloatArray,
    cutoffs: tuple[float, float],
    ends: tuple[float, float],
) -> tuple[float, float]:
    """The lowest and highest rate between two cutoffs, no further than `ends`.

    As far as lumps are likely, it is the ends themselves: beside a lump rates are not the curve's.

    >>> doubts, rates = Doubts(0.0, 0.5, np.zeros(1)), np.array([0.6, 0.4])
    >>> [round(end, 2) for end in ends_along(doubts, rates, (0.0, 1.0), (0.2, 0.8))]
    [0.23, 0.77]
    """
    edges = np.arange(len(rates))
    inside = np.arange(np.ceil(cutoffs[0]), np.floor(cutoffs[1]) + 1.0)
    found = np.interp(np.concatenate([cutoffs, inside]), edges, rates)
    low = min(max(float(found.min()), ends[0]), ends[1])
    high = max(min(float(found.max()), ends[1]), ends[0])
    part = part_of_error(doubts.lumps)
    return low - part * (low - ends[0]), high + part * (ends[1] - high)


def beside_ties(
    histogram: ScoreHistogram, doubts: Doubts, other: int, cutoffs: tuple[float, float]
) -> tuple[float, float]:
    """Shares of the other class in ties between two cutoffs: seen by counters, and unseen.

    Both labels of a leaf stick out together; the curve says how many of them are of the other
    class. Leaves at the very ends are no ties but crowds.

    >>> edges, curve = np.arange(4) / 3, np.full((2, 3), 100.0)
    >>> told = ScoreHistogram(edges, curve + [0.0, 40.0, 0.0], DenseNoise(25.0 * np.eye(6)))
    >>> smooth = DenseNoise(np.eye(6), is_smoothed=True)
    >>> h = ScoreHistogram(edges, curve, smooth, counted=told)
    >>> seen, _ = beside_ties(h, Doubts(0.0, 0.0, np.zeros(3)), 1, (0.0, 3.0))
    >>> round(seen, 3)  # 40 of 300
    0.133
    """
    counted = histogram.counted
    if counted is None or not isinstance(counted.noise, DenseNoise):
        return 0.0, 0.0
    first = max(int(cutoffs[0]), 1)
    leaves = slice(first, max(min(int(np.ceil(cutoffs[1])), histogram.buckets - 1), first))
    pooled = histogram.counts.sum(axis=0)[leaves]
    if not len(pooled):
        return 0.0, 0.0
    sd = np.sqrt(np.maximum(np.diag(counted.noise.of_both_labels())[leaves], 0.0))
    beyond = counted.counts.sum(axis=0)[leaves] - pooled
    part = histogram.counts[other, leaves] / np.maximum(pooled, 1e-300)
    total = float(histogram.cumulative[other, -1])
    seen = float(np.where(beyond > _STICKS_OUT * sd, beyond * part, 0.0).max()) / total
    unseen = part_of_error(doubts.lumps) * REACH * float(np.median(sd * part)) / total
    return seen, unseen
