"""Levels reconciled: one set of leaves from every level's counters.

Least squares over a tree (`reconcile`) or over any levels (`fit_leaves`), and the paper's
naive prefix sums (`prefix_leaves`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedassay.examples import FloatArray
from fedassay.hierarchy import Hierarchy


def reconcile(
    hierarchy: Hierarchy,
    values: tuple[FloatArray, ...],
    variances: tuple[FloatArray, ...],
    *,
    total: float | None = None,
) -> FloatArray:
    """The least-squares leaves from every level's counters, weighted by their variances.

    Up the tree each cell averages its own counter with the sum of its children; down the
    tree the difference is shared among the children in proportion to their variance
    (Hay et al. 2010, with a variance of its own for every counter). A known total stands
    above both labels as one more counter, without variance.
    """
    totals, spreads = [values[-1]], [variances[-1]]
    for level in range(hierarchy.levels - 2, -1, -1):
        starts = hierarchy.child_starts(level)
        below = np.add.reduceat(totals[-1], starts, axis=1)
        spread = np.add.reduceat(spreads[-1], starts, axis=1)
        whole = spread + variances[level]
        totals.append((spread * values[level] + variances[level] * below) / whole)
        spreads.append(spread * variances[level] / whole)
    final, spread = totals.pop(), spreads.pop()
    if total is not None:
        final = final + spread * (total - final.sum()) / spread.sum()
    for level in range(hierarchy.levels - 1):
        starts = hierarchy.child_starts(level)
        children, spread = totals.pop(), spreads.pop()
        sizes = np.diff(np.append(starts, children.shape[1]))
        missing = final - np.add.reduceat(children, starts, axis=1)
        shares = spread / np.repeat(np.add.reduceat(spread, starts, axis=1), sizes, axis=1)
        final = children + shares * np.repeat(missing, sizes, axis=1)
    return final


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Counters of one level: how they add leaves up, what they say, and how sure it is."""

    rows: FloatArray
    """Label x cell x leaf."""
    values: FloatArray
    """Label x cell."""
    variances: FloatArray
    """Label x cell; infinite for a counter that says nothing."""


def fit_leaves(
    observed: Sequence[Observed], *, total: float | None
) -> tuple[FloatArray, FloatArray]:
    """Least-squares leaves from any counters, and their covariance, by dense algebra.

    Differs: no tree is needed, so levels of several surveys of the same leaves go together.
    """
    count = observed[0].rows.shape[-1]
    precision = np.zeros((2, count, count))
    target = np.zeros((2, count))
    for level in observed:
        for label in (0, 1):
            rows = level.rows[label]
            weighted = rows / level.variances[label][:, None]
            precision[label] += rows.T @ weighted
            target[label] += level.values[label] @ weighted
    free = leaf_covariance(precision, total_is_known=False)
    leaves = (free @ target.ravel()).reshape(2, count)
    if total is None:
        return leaves, free
    row = free.sum(axis=1)
    leaves = leaves + (row * (total - leaves.sum()) / row.sum()).reshape(2, count)
    return leaves, _given_total(free)


def leaf_covariance(precision: FloatArray, *, total_is_known: bool) -> FloatArray:
    """Of fitted leaves, negatives then positives, from what counters say (label x leaf x leaf)."""
    count = precision.shape[-1]
    covariance = np.zeros((2 * count, 2 * count))
    covariance[:count, :count], covariance[count:, count:] = np.linalg.inv(precision)
    return _given_total(covariance) if total_is_known else covariance


def _given_total(covariance: FloatArray) -> FloatArray:
    """The same once the sum of all leaves is known."""
    row = covariance.sum(axis=1)
    given: FloatArray = covariance - np.outer(row, row) / row.sum()
    return given


def prefix_leaves(hierarchy: Hierarchy, values: tuple[FloatArray, ...]) -> FloatArray:
    """Leaves as differences of the paper's naive prefix sums (`app:scorehist`)."""
    # The count before each cell of a level: that before its parent plus its earlier siblings.
    before = np.zeros((2, 1))
    for level, own in enumerate(values):
        running = np.cumsum(own, axis=1) - own
        if level:
            starts = hierarchy.child_starts(level - 1)
            sizes = np.diff(np.append(starts, own.shape[1]))
            running = running - np.repeat(running[:, starts] - before, sizes, axis=1)
        before = running
    end = values[0].sum(axis=1, keepdims=True)
    return np.diff(np.concatenate([before, end], axis=1), axis=1)
