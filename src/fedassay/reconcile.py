"""Levels reconciled: one set of leaves from every level's counters.

Least squares over a tree (`reconcile`) or over any levels (`fit_leaves`), and the paper's
naive prefix sums (`prefix_leaves`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedassay.examples import FloatArray, IntArray
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

    @classmethod
    def joined(cls, levels: Sequence["Observed"]) -> "Observed":
        """All levels' counters as if they were of one."""
        return cls(
            np.concatenate([level.rows for level in levels], axis=1),
            np.concatenate([level.values for level in levels], axis=1),
            np.concatenate([level.variances for level in levels], axis=1),
        )


class Sums(NamedTuple):
    """Counters, each the sum of neighbouring leaves; all are label x counter."""

    starts: IntArray
    """The leaf that each begins at, with those of negatives and an end before all positives'."""
    ends: IntArray
    values: FloatArray
    variances: FloatArray
    told: FloatArray
    """The sum of what they say over their variances, of all that a leaf is in: label x leaf."""
    lone: FloatArray
    """The precision of counters of one leaf, label x leaf."""
    wide: FloatArray
    """How all others add leaves up, over their standard deviations: label x counter x leaf."""

    @classmethod
    def of(cls, observed: Observed) -> "Sums":
        """All counters of a level, or of several that were joined.

        >>> one = Observed(np.ones((2, 1, 2)), np.full((2, 1), 6.0), np.full((2, 1), 2.0))
        >>> Sums.of(one).told.round(9).tolist()
        [[3.0, 3.0], [3.0, 3.0]]
        """
        starts = observed.rows.argmax(axis=2)
        ends = starts + np.count_nonzero(observed.rows, axis=2)
        values, variances = observed.values, observed.variances
        is_lone = (ends - starts == 1).all(axis=0)
        one, more = np.flatnonzero(is_lone), np.flatnonzero(~is_lone)
        wide = observed.rows[:, more] / np.sqrt(variances[:, more, None])
        told = (values[:, None, more] / np.sqrt(variances[:, None, more]) @ wide)[:, 0]
        lone = np.zeros_like(told)
        at = (np.array([[0], [1]]), starts[:, one])
        np.add.at(lone, at, 1.0 / variances[:, one])
        np.add.at(told, at, values[:, one] / variances[:, one])
        label = np.array([[0], [lone.shape[1] + 1]])
        return cls(starts + label, ends + label, values, variances, told, lone, wide)

    def over(self, leaves: FloatArray) -> FloatArray:
        """What counters have of something per leaf, label x leaf."""
        below = np.zeros((2, leaves.shape[1] + 1))
        np.cumsum(leaves, axis=1, out=below[:, 1:])
        over: FloatArray = below.take(self.ends) - below.take(self.starts)
        return over

    def felt(self, leaves: FloatArray) -> FloatArray:
        """As `told`, if counters said what they have of leaves: label x leaf x more."""
        among: FloatArray = self.wide.swapaxes(1, 2) @ (self.wide @ leaves)
        return among + self.lone[..., None] * leaves


def fit_leaves(
    observed: Sequence[Observed], *, total: float | None
) -> tuple[FloatArray, FloatArray]:
    """Least-squares leaves from any counters, and their covariance, by dense algebra.

    Differs: no tree is needed, so levels of several surveys of the same leaves go together.
    """
    count = observed[0].rows.shape[-1]
    target = np.zeros((2, count))
    for level in observed:
        for label in (0, 1):
            target[label] += (level.values[label] / level.variances[label]) @ level.rows[label]
    free = _free_covariance(observed)
    leaves = np.einsum("lij,lj->li", free, target)
    if total is not None:
        rows = free.sum(axis=2)
        leaves = leaves + rows * (total - leaves.sum()) / rows.sum()
    return leaves, of_both_labels(free, total_is_known=total is not None)


def leaves_covariance(observed: Sequence[Observed], *, total_is_known: bool) -> FloatArray:
    """The covariance alone of `fit_leaves`, which what counters say has no part in."""
    return of_both_labels(_free_covariance(observed), total_is_known=total_is_known)


def _free_covariance(observed: Sequence[Observed]) -> FloatArray:
    """Of leaves that were fitted with nothing known of their total, label x leaf x leaf."""
    count = observed[0].rows.shape[-1]
    single = next((level for level in observed if _counts_each_leaf(level)), None)
    others = [level for level in observed if level is not single]
    more = sum(level.rows.shape[1] for level in others)
    if single is None or not 0 < more < count:
        precision = np.zeros((2, count, count))
        for level in observed:
            precision += level.rows.swapaxes(1, 2) @ (level.rows / level.variances[..., None])
        inverse: FloatArray = np.linalg.inv(precision).astype(np.float64, copy=False)
        return inverse
    rows = np.concatenate([level.rows for level in others], axis=1)
    variances = np.concatenate([level.variances for level in others], axis=1)
    news = News.of(rows, variances, seen=rows * single.variances[:, None, :])
    covariance = -news.of_leaves()
    covariance[:, np.arange(count), np.arange(count)] += single.variances
    return covariance


def _counts_each_leaf(level: Observed) -> bool:
    """Whether every leaf has a counter of its own."""
    count = level.rows.shape[-1]
    return (
        level.rows.shape[1] == count
        and bool((np.diagonal(level.rows, axis1=1, axis2=2) == 1.0).all())
        and np.count_nonzero(level.rows) == 2 * count
        and bool(np.isfinite(level.variances).all())
    )


@dataclass(frozen=True, slots=True, eq=False)
class News:
    """What more counters take off the covariance K of leaves (label x leaf x leaf).

    With counters R of precisions W (both as in `Observed`), the leaves' covariance becomes
    K - Y'(1 + Y R' W^1/2)^-1 Y, where Y = W^1/2 R K (Woodbury): few counters, small matrices.
    """

    scaled: FloatArray
    """Y: label x counter x leaf."""
    whole: FloatArray
    """What is inverted: label x counter x counter."""

    @classmethod
    def of(cls, rows: FloatArray, variances: FloatArray, *, seen: FloatArray) -> "News":
        """From counters, their variances, and R K, how they vary with the leaves as known."""
        weights = 1.0 / np.sqrt(variances)[..., None]
        scaled = weights * seen
        whole = scaled @ (weights * rows).swapaxes(1, 2)
        counters = np.arange(whole.shape[-1])
        whole[:, counters, counters] += 1.0
        return cls(scaled, whole)

    def of_leaves(self) -> FloatArray:
        """Off the covariance of all leaves, label x leaf x leaf."""
        less: FloatArray = self.scaled.swapaxes(1, 2) @ np.linalg.solve(self.whole, self.scaled)
        return less


def of_both_labels(covariance: FloatArray, *, total_is_known: bool) -> FloatArray:
    """Of fitted leaves, label x leaf x leaf, in one matrix: negatives, then positives.

    >>> of_both_labels(np.ones((2, 1, 1)), total_is_known=True).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    count = covariance.shape[-1]
    both = np.zeros((2 * count, 2 * count))
    if total_is_known:
        row = covariance.sum(axis=2).ravel()
        np.outer(row, row / -row.sum(), out=both)
    for label, own in enumerate((slice(count), slice(count, None))):
        both[own, own] += covariance[label]
    return both


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
