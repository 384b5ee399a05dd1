"""Private empirical distribution functions (Barczewski, Mawass and Ramon 2025, arXiv 2502.06651).

Whom to trust: secure aggregation, as ours under distributed privacy. Counts above each of N even
thresholds, for each class; threshold i gets the sum of noises eta(floor(i / 2^l), l) over
L = ceil(log2 N) + 1 levels, Laplace with epsilon / L each. Then the nearest rising curve (least
squares) within [0, 1].
"""

from math import ceil, log2

import numpy as np
from scipy.optimize import isotonic_regression

from experiments.peers.roc import RocCurve
from fedassay.examples import FloatArray, IntArray

SETTINGS = (8, 32, 128, 1024)
"""Numbers of thresholds."""


def dp_ecdf(cells: IntArray, *, epsilon: float, generator: np.random.Generator) -> RocCurve:
    """The curve of counts by label x even cell, as many cells as thresholds."""
    above = np.cumsum(cells[:, ::-1], axis=1)
    rates = []
    for each in above:
        noisy = each + tree_noise(len(each), epsilon, generator)
        share = noisy / max(float(noisy.max()), 1.0)
        rates.append(np.clip(isotonic_regression(share).x, 0.0, 1.0))
    return RocCurve.through(*rates)


def tree_noise(points: int, epsilon: float, generator: np.random.Generator) -> FloatArray:
    """One draw for every block of 2^l points, added to all points of the block, for every l."""
    levels = ceil(log2(points)) + 1
    total = np.zeros(points)
    for level in range(levels):
        blocks = generator.laplace(0.0, levels / epsilon, -(-points // 2**level))
        total += np.repeat(blocks, 2**level)[:points]
    return total
