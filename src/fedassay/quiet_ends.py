"""Counters of exactly 0 and of exactly 1 that say nothing but noise.

Some tables have such scores, a default for what was not scored or a rounded 0.0004, and log loss
and calibration depend on them more than on all other rows. So a survey with added noise counts
them apart. Most tables have none: then these counters hold noise alone, at the ends of the
scale, where it weighs most in an area. A counter that noise explains is read as nobody.
"""

from dataclasses import replace

import numpy as np

from fedassay.estimate import REACH
from fedassay.grid_rules import EPS
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.noise import TreeNoise

# In deviations of its noise. Of Laplace's law 3 % are beyond two, one in 2,400 beyond five.
_CLEAR, _SURE = 2.0, 5.0
# What is read as nobody may be few: so much of its counter's variance stays.
_STAYS = 0.5
_FEWEST = 4


def without_quiet_ends(histogram: ScoreHistogram) -> ScoreHistogram:
    """The same without buckets of exactly 0 and 1 in which nobody stands clear of the noise.

    What is left reaches to the end of the scale instead; half of the variance of the counter that
    was left out is added to the bucket beside, since few rows may have been there. Where
    either class is clear both stay; but one that is clear came out large, by noise perhaps: below
    five deviations its variance lets an interval reach to nobody. Of counts of one
    level only: those of several levels have been fitted to each other.

    >>> noise = TreeNoise(Hierarchy.flat(4), (np.full((2, 4), 2.0),))
    >>> edges = np.array([0.0, 2.0**-52, 0.5, 1.0 - 2.0**-52, 1.0])
    >>> counts = np.array([[1.0, 60.0, 40.0, -2.0], [2.0, 20.0, 50.0, 30.0]])
    >>> read = without_quiet_ends(ScoreHistogram(edges, counts, noise))
    >>> read.edges[:2].tolist(), read.counts.tolist()
    ([0.0, 0.5], [[60.0, 40.0, -2.0], [20.0, 50.0, 30.0]])
    """
    noise = histogram.noise
    if not (isinstance(noise, TreeNoise) and _is_flat(noise)) or histogram.buckets < _FEWEST:
        return histogram
    narrow = np.less_equal(histogram.widths, EPS)
    narrow[1:-1] = False
    if not narrow.any():
        return histogram
    variances = noise.variances[0].copy()
    stands = histogram.counts / np.sqrt(variances)
    doubted = narrow & (stands > _CLEAR) & (stands < _SURE)
    variances[doubted] = (histogram.counts[doubted] / REACH) ** 2
    quiet = narrow & np.all(stands <= _CLEAR, axis=0)
    first, last = int(quiet[0]), int(quiet[-1])
    variances[:, 1] += first * _STAYS * variances[:, 0]
    variances[:, -2] += last * _STAYS * variances[:, -1]
    kept = slice(first, histogram.buckets - last)
    edges = histogram.edges[kept.start : kept.stop + 1].copy()
    edges[[0, -1]] = histogram.edges[[0, -1]]
    fewer = replace(
        noise, hierarchy=Hierarchy.flat(len(edges) - 1), variances=(variances[:, kept],)
    )
    return replace(histogram, edges=edges, counts=histogram.counts[:, kept].copy(), noise=fewer)


def _is_flat(noise: TreeNoise) -> bool:
    """Whether every counter has a noise of its own."""
    return noise.hierarchy.levels == 1 and noise.table is None and not noise.total_is_known
