"""ROC curves from private quantiles (Xu and Cormode 2025, arXiv 2510.04979).

Whom to trust: secure aggregation, as ours under distributed privacy. Each class has a tree of
counts of its own, epsilon split evenly over its levels, discrete Laplace noise, made consistent.
Its quantiles at even fractions, joined by a monotone cubic, are the class's distribution.
Where quantiles coincide it steps, and the cubic starts anew: as in the authors' own program.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, exp, log

import numpy as np
from scipy.interpolate import PchipInterpolator

from experiments.peers.roc import RocCurve
from fedassay.examples import FloatArray, IntArray

SETTINGS = tuple((quantiles, fanout) for quantiles in (8, 32, 128) for fanout in (2, 4))
"""Quantiles and fan-outs: of these six the best one counts."""
_HAIR = 1e-9
_PIECES = 64


def height_of(quantiles: int, fanout: int) -> int:
    """Two levels more than quantiles need, as the publication has it.

    >>> height_of(8, 2)
    5
    """
    return ceil(round(log(quantiles, fanout), 9)) + 2


def fedcurve(
    leaves: IntArray,
    *,
    quantiles: int,
    fanout: int,
    epsilon: float,
    generator: np.random.Generator,
) -> RocCurve:
    """The curve of counts by label x leaf, where leaves are those of the tree."""
    height = height_of(quantiles, fanout)
    fractions = np.linspace(0.0, 1.0, quantiles)
    found = []
    for each in leaves:
        levels = [each.reshape(fanout**level, -1).sum(axis=1) for level in range(1, height + 1)]
        noises = [discrete_laplace(epsilon / height, len(level), generator) for level in levels]
        noisy = [level + noise for level, noise in zip(levels, noises, strict=True)]
        found.append(quantile_edges(consistent(noisy, fanout), fractions))
    places = _between(np.unique(np.concatenate([[0.0, 1.0], *found])))
    fpr, tpr = (1.0 - distribution(edges, fractions, places) for edges in found)
    return RocCurve.through(fpr, tpr)


def discrete_laplace(epsilon: float, size: int, generator: np.random.Generator) -> IntArray:
    """The difference of two geometric draws: P(k) proportional to e^(-epsilon |k|)."""
    one, other = generator.geometric(1.0 - exp(-epsilon), (2, size))
    difference: IntArray = one - other
    return difference


def consistent(levels: Sequence[IntArray], fanout: int) -> list[FloatArray]:
    """Levels by least squares from all of them, with noise alike (Hay et al. 2010)."""
    means = [np.asarray(levels[-1], dtype=np.float64)]
    for size, level in enumerate(reversed(levels[:-1]), start=2):
        own = (fanout**size - fanout ** (size - 1)) / (fanout**size - 1)
        below = means[0].reshape(-1, fanout).sum(axis=1)
        means.insert(0, own * level + (1.0 - own) * below)
    agreed = means[:1]
    for mean in means[1:]:
        gap = agreed[-1] - mean.reshape(-1, fanout).sum(axis=1)
        agreed.append(mean + np.repeat(gap / fanout, fanout))
    return agreed


def quantile_edges(levels: Sequence[FloatArray], fractions: FloatArray) -> FloatArray:
    """The left edge of the node that each fraction leads to, from the top down.

    On the way a node below zero counts as empty. The way ends where less than half of a leaf's
    even share is left to find.
    """
    fanout, total = len(levels[0]), float(levels[0].sum())
    wanted = fractions * total
    enough = total / (2.0 * len(levels[-1]))
    node = np.zeros(len(fractions), dtype=np.int64)
    has_ended = np.zeros(len(fractions), dtype=np.bool_)
    for level in levels:
        node = node * fanout
        for _ in range(fanout - 1):
            size = np.maximum(level[node], 0.0)
            goes_on = (wanted > size) & (node % fanout < fanout - 1) & ~has_ended
            wanted = np.where(goes_on, wanted - size, wanted)
            node = np.where(goes_on, node + 1, node)
        has_ended |= np.abs(wanted) < enough
    edges: FloatArray = node / len(levels[-1])
    return edges


def distribution(edges: FloatArray, fractions: FloatArray, places: FloatArray) -> FloatArray:
    """The share at or below places: a cubic for every run of quantiles that differ.

    >>> edges, fractions = np.array([0.2, 0.5, 0.5]), np.array([0.0, 0.4, 1.0])
    >>> distribution(edges, fractions, np.array([0.1, 0.35, 0.4999999, 0.5])).round(3).tolist()
    [0.0, 0.2, 0.4, 1.0]
    """
    share = np.where(places >= edges[-1], 1.0, 0.0)
    steps = np.flatnonzero(np.diff(edges) == 0.0) + 1
    for start, stop in pairwise([0, *steps, len(edges)]):
        if stop - start > 1:
            inside = (places >= edges[start]) & (places < edges[stop - 1])
            cubic = PchipInterpolator(edges[start:stop], fractions[start:stop])
            share[inside] = cubic(places[inside])
    return np.clip(share, 0.0, 1.0)


def _between(edges: FloatArray) -> FloatArray:
    """Edges, a hair before each, and places between: where the curve is drawn."""
    share = np.arange(_PIECES) / _PIECES
    inner = (edges[:-1, None] + np.diff(edges)[:, None] * share).ravel()
    return np.unique(np.concatenate([inner, edges, edges - _HAIR]))
