"""What the evidence of several priors says against a smooth curve of log-odds."""

from collections.abc import Sequence

import numpy as np

from fedassay.doubts import Doubts
from fedassay.examples import FloatArray
from fedassay.smooth_odds import Read, most_evident

# Points of a normal law that expectations are taken over, and log-odds that nothing is beyond.
_NODES, _FURTHEST = 15, 50.0


def doubts_of(tried: Sequence[Read]) -> Doubts:
    """What speaks against the prior that is usual, and against the best one's likeliest counts.

    Priors are as likely as their evidence is large. Where every leaf's pooled count is free,
    these were lumps from the beginning.
    """
    best = most_evident(tried)
    chances = np.exp([each.evidence - best.evidence for each in tried])
    sizes = np.array([each.family.sizes for each in tried])
    lumps, cliffs = (chances @ (sizes > 1.0) / chances.sum()).tolist()
    return Doubts(cliffs, 1.0 if best.family.is_lumpy else lumps, _skew(best))


def _skew(best: Read) -> FloatArray:
    """How many more positives there are to be expected than are likeliest, per leaf.

    Log-odds vary about evenly to either side, and rates then do not: of one in a thousand, e times
    as many are further away than e times as few.
    """
    first, of_odds = best.family.of_pooled.shape[1], best.family.of_odds
    covariance = np.linalg.inv(best.precision)[first:, first:]
    spread = np.sqrt(np.maximum(((of_odds @ covariance) * of_odds).sum(axis=1), 0.0))
    pooled, (_, positives) = best.counts.sum(axis=0), np.maximum(best.counts, 1e-300)
    odds = np.log(positives) - np.log(np.maximum(pooled - positives, 1e-300))
    at, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    moved = np.clip(odds[:, None] + spread[:, None] * at, -_FURTHEST, _FURTHEST)
    expected = pooled * (1.0 / (1.0 + np.exp(-moved)) @ weights) / weights.sum()
    skew: FloatArray = expected - best.counts[1]
    return skew
