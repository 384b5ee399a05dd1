"""DPAUC (Sun et al. 2022, arXiv 2208.12294): every site adds its own noise at every threshold.

Whom to trust: one's own site. What it protects: labels alone, epsilon split evenly over four
statistics (true and false positives and negatives) at every threshold. Noise of all sites adds up.
"""

import numpy as np

from experiments.peers.roc import RocCurve
from fedassay.examples import FloatArray, IntArray

STATISTICS = 4
SETTINGS = (10, 25, 50, 100)
"""Numbers of thresholds that the publication tries."""


def dpauc(
    counts: IntArray,
    distinct: FloatArray,
    *,
    thresholds: int,
    epsilon: float,
    sites: int,
    generator: np.random.Generator,
) -> RocCurve:
    """The curve through noisy rates at evenly spaced thresholds; negative sums become zero."""
    sums = quadruples(counts, distinct, thresholds)
    scale = STATISTICS * thresholds / epsilon
    sums = sums + generator.laplace(0.0, scale, (sites, *sums.shape)).sum(axis=0)
    tp, fp, tn, fn = np.maximum(sums, 0.0)
    return RocCurve.through(_rate(fp, tn), _rate(tp, fn))


def quadruples(counts: IntArray, distinct: FloatArray, thresholds: int) -> FloatArray:
    """True and false positives, true and false negatives: statistic x threshold."""
    ends = np.searchsorted(distinct, np.linspace(0.0, 1.0, thresholds), side="left")
    below = np.concatenate([np.zeros((2, 1)), np.cumsum(counts, axis=1)], axis=1)[:, ends]
    above = counts.sum(axis=1, keepdims=True) - below
    return np.stack([above[1], above[0], below[0], below[1]])


def _rate(part: FloatArray, other: FloatArray) -> FloatArray:
    whole = part + other
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)
