"""The AUC protocol of Bell et al. 2020 (arXiv 1910.03861) for local privacy.

Whom to trust: nobody. Every client draws one level of a binary tree over [0, 1] and sends its
node there through a frequency oracle (optimal unary encoding, over label x node: here labels are
private too). Pairs are counted at the node where their paths part: negatives in its left child
times positives in its right one, each estimated at that level; pairs in one leaf count one half.
"""

from math import exp

import numpy as np

from fedassay.examples import FloatArray, IntArray

SETTINGS = (4, 6, 8, 10)
"""Heights of the tree."""


def bell_area(leaves: IntArray, *, epsilon: float, generator: np.random.Generator) -> float:
    """ROC AUC of counts by label x leaf, 2^height leaves."""
    height = int(leaves.shape[1]).bit_length() - 1
    groups = split_rows(leaves, height, generator)
    levels = [
        height * oracle(nodes_of(rows, level), epsilon, generator)
        for level, rows in enumerate(groups, start=1)
    ]
    N, P = np.mean([level.sum(axis=1) for level in levels], axis=0)
    return pairs(levels) / float(N * P)


def pairs(levels: list[FloatArray]) -> float:
    """Pairs of a negative below a positive, from label x node of levels 1 to h."""
    parted = sum(float(level[0, 0::2] @ level[1, 1::2]) for level in levels)
    return parted + float(levels[-1][0] @ levels[-1][1]) / 2.0


def nodes_of(leaves: IntArray, level: int) -> IntArray:
    """Counts of the 2^level nodes: label x node."""
    nodes: IntArray = leaves.reshape(2, 2**level, -1).sum(axis=2)
    return nodes


def split_rows(leaves: IntArray, groups: int, generator: np.random.Generator) -> list[IntArray]:
    """Every row goes to one of so many groups, drawn evenly."""
    left, found = leaves, []
    for remaining in range(groups, 1, -1):
        taken = generator.binomial(left, 1.0 / remaining)
        found.append(taken)
        left = left - taken
    return [*found, left]


def oracle(counts: IntArray, epsilon: float, generator: np.random.Generator) -> FloatArray:
    """Unbiased counts from optimal unary encoding: p = 1/2, q = 1/(e^epsilon + 1)."""
    rows, q = int(counts.sum()), 1.0 / (exp(epsilon) + 1.0)
    seen = generator.binomial(counts, 0.5) + generator.binomial(rows - counts, q)
    estimate: FloatArray = (seen.astype(np.float64) - rows * q) / (0.5 - q)
    return estimate
