"""The privacy noise in a histogram, as the variance of any linear functional of it.

A tree here is one array per level, label x cell, coarsest first; a `Hierarchy` says which
cells make up which.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.hierarchy import Hierarchy

# Of so many sums one is of more than one row: then it is quicker to copy all others.
_MOSTLY = 8


class NoiseModel(Protocol):
    """What is known about the error of every cell's count."""

    @property
    def is_zero(self) -> bool:
        """Whether the counts are exact."""
        ...

    def variance(self, weights: FloatArray) -> float:
        """Variance of the sum of weights x counts; weights are (label x cell)."""
        ...

    def covariances(self, weights: FloatArray) -> FloatArray:
        """Covariances of several such sums at once; weights are (sum x label x cell)."""
        ...

    @property
    def local_epsilon(self) -> float | None:
        """Epsilon of every report's own noise, under local DP; None where noise is added once."""
        ...

    def reports_for(self, growth: float) -> float:
        """How many times the reports it takes for counts to grow so much against their noise."""
        ...


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Exact counts."""

    @property
    def is_zero(self) -> bool:
        """Always true."""
        return True

    def variance(self, weights: FloatArray) -> float:
        """Always zero."""
        return 0.0

    def covariances(self, weights: FloatArray) -> FloatArray:
        """Always zero."""
        return np.zeros((len(weights), len(weights)))

    @property
    def local_epsilon(self) -> None:
        """There is no noise."""

    def reports_for(self, growth: float) -> float:
        """There is no noise to outgrow."""
        return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class MergedNoise:
    """The noise of buckets that are sums of neighbouring cells."""

    base: NoiseModel
    sizes: IntArray

    @property
    def is_zero(self) -> bool:
        """As for the cells."""
        return self.base.is_zero

    def variance(self, weights: FloatArray) -> float:
        """Give every cell its bucket's weight."""
        return self.base.variance(np.repeat(weights, self.sizes, axis=1))

    def covariances(self, weights: FloatArray) -> FloatArray:
        """Give every cell its bucket's weights."""
        return self.base.covariances(np.repeat(weights, self.sizes, axis=2))

    @property
    def local_epsilon(self) -> float | None:
        """As for the cells."""
        return self.base.local_epsilon

    def reports_for(self, growth: float) -> float:
        """As for the cells."""
        return self.base.reports_for(growth)


@dataclass(frozen=True, slots=True, eq=False)
class TreeNoise:
    """The noise of leaves reconciled by least squares from every level of a tree."""

    hierarchy: Hierarchy
    variances: tuple[FloatArray, ...]
    """Variance of every counter's own estimate, per level, label x cell."""
    table: FloatArray | None = None
    """The leaf counts, when variances are those of a population's sample: the part that the
    table of all clients has too is no noise."""
    total_is_known: bool = False
    """Whether all counts together are known without noise."""
    local_epsilon: float | None = None
    """Under local DP, epsilon of every report: the variance grows with their number."""

    @property
    def is_zero(self) -> bool:
        """Whether the leaves themselves are exact."""
        return not self.variances[-1].any()

    def variance(self, weights: FloatArray) -> float:
        """The quadratic form w' (sum over cells of 1 1' / v)^-1 w, by recursion over the tree.

        Below each cell let s = 1'K^-1 1, t = 1'K^-1 w, q = w'K^-1 w. Sums over children
        give S, T, Q; the cell's own counter, of variance v, then shrinks them: s = S v/(S+v),
        t = T v/(S+v), q = Q - T^2/(S+v).
        """
        own = self.variances[-1]
        s, t, q = own, own * weights, own * weights**2
        for level in range(self.hierarchy.levels - 2, -1, -1):
            own = self.variances[level]
            starts = self.hierarchy.child_starts(level)
            s, t, q = (np.add.reduceat(x, starts, axis=1) for x in (s, t, q))
            whole = s + own
            s, t, q = s * own / whole, t * own / whole, q - t**2 / whole
        form = float(q.sum())
        if self.total_is_known:
            form -= float(t.sum()) ** 2 / float(s.sum())
        return max(form - _table_variance(self.table, weights), 0.0)

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same recursion for all pairs of sums, as products of matrices."""
        own = self.variances[-1]
        s, t = own, own * weights
        form = _products(t, weights)
        for level in range(self.hierarchy.levels - 2, -1, -1):
            own = self.variances[level]
            starts = self.hierarchy.child_starts(level)
            s = np.add.reduceat(s, starts, axis=1)
            t = np.add.reduceat(t, starts, axis=2)
            whole = s + own
            form -= _products(t / whole, t)
            s, t = s * own / whole, t * (own / whole)
        if self.total_is_known:
            sums = t.sum(axis=(1, 2))
            form -= np.outer(sums, sums) / s.sum()
        return form - _table_covariance(self.table, weights)

    def reports_for(self, growth: float) -> float:
        """Linear when the noise stays as it is, quadratic when every report adds some."""
        return growth if self.local_epsilon is None else growth**2


@dataclass(frozen=True, slots=True, eq=False)
class DenseNoise:
    """The noise of leaves fitted from levels that form no tree, as a covariance matrix."""

    covariance: FloatArray
    """Square, over negatives then positives per leaf."""
    table: FloatArray | None = None
    local_epsilon: float | None = None
    is_smoothed: bool = False
    """Whether counts are the likeliest ones already, so that there is no noise to take out."""

    @property
    def is_zero(self) -> bool:
        """Whether the leaves themselves are exact: none of them varies."""
        # Nearly always the first one does, and no other need be looked at.
        return not (self.covariance[0, 0] or np.diag(self.covariance).any())

    def of_sums(self, sizes: IntArray) -> "DenseNoise":
        """The noise of sums of so many neighbouring leaves, as a smaller matrix.

        >>> DenseNoise(np.eye(6)).of_sums(np.array([2, 1])).covariance.diagonal().tolist()
        [2.0, 1.0, 2.0, 1.0]
        """
        starts = np.append(0, np.cumsum(sizes)[:-1])
        both, of_both = np.append(starts, starts + len(self.covariance) // 2), np.tile(sizes, 2)
        summed = _summed(_summed(self.covariance, both, of_both, 0), both, of_both, 1)
        table = None if self.table is None else np.add.reduceat(self.table, starts, axis=1)
        return DenseNoise(summed, table, self.local_epsilon, self.is_smoothed)

    def variance(self, weights: FloatArray) -> float:
        """The quadratic form of the weights."""
        flat = weights.ravel()
        form = float(flat @ self.covariance @ flat)
        return max(form - _table_variance(self.table, weights), 0.0)

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The quadratic form of all pairs of weights."""
        flat = weights.reshape(len(weights), -1)
        form: FloatArray = flat @ self.covariance @ flat.T
        return form - _table_covariance(self.table, weights)

    def of_both_labels(self) -> FloatArray:
        """Covariances of every leaf's negatives and positives taken together, leaf x leaf.

        >>> DenseNoise(np.eye(4)).of_both_labels().tolist()
        [[2.0, 0.0], [0.0, 2.0]]
        """
        leaves = len(self.covariance) // 2
        summed: FloatArray = self.covariance.reshape(2, leaves, 2, leaves).sum(axis=(0, 2))
        return summed

    def below(self, label: int, other: int | None = None) -> FloatArray:
        """Of one label's counts below an edge and its own, or the other's, below any.

        Sums of sums, without a product.

        >>> DenseNoise(np.eye(4)).below(0).tolist()
        [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 2.0]]
        >>> DenseNoise(np.ones((4, 4))).below(0, 1).tolist()
        [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]
        """
        leaves, other = len(self.covariance) // 2, label if other is None else other
        rows, columns = (slice(each * leaves, (each + 1) * leaves) for each in (label, other))
        form = np.zeros((leaves + 1, leaves + 1))
        form[1:, 1:] = self.covariance[rows, columns].cumsum(axis=0).cumsum(axis=1)
        if self.table is None:
            return form
        below = [np.append(0.0, np.cumsum(self.table[each])) for each in (label, other)]
        place = np.arange(leaves + 1)
        both = below[0][np.minimum(place[:, None], place)] if other == label else 0.0
        shared: FloatArray = both - np.outer(*below) / max(float(self.table.sum()), 1.0)
        return form - shared

    def reports_for(self, growth: float) -> float:
        """Linear when the noise stays as it is, quadratic when every report adds some."""
        return growth if self.local_epsilon is None else growth**2


@dataclass(frozen=True, slots=True, eq=False)
class PrefixNoise:
    """The noise of leaves read as differences of naive prefix sums, as in the paper.

    A prefix adds, at every level, the cells before it within its parent
    (`app:scorehist`), so a cell that is not its parent's last enters with the weight of the
    leaf at its end minus that of the leaf at its parent's end.
    """

    hierarchy: Hierarchy
    variances: tuple[FloatArray, ...]
    table: FloatArray | None = None
    local_epsilon: float | None = None

    @property
    def is_zero(self) -> bool:
        """Whether the leaves themselves are exact."""
        return not self.variances[-1].any()

    def variance(self, weights: FloatArray) -> float:
        """Sum over cells of their variance times their squared weight."""
        total = sum(
            float((own * used[0] ** 2).sum()) for own, used in self._used(weights[np.newaxis])
        )
        return max(total - _table_variance(self.table, weights), 0.0)

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same for all pairs of sums."""
        form = np.zeros((len(weights), len(weights)))
        for own, used in self._used(weights):
            form += _products(own * used, used)
        return form - _table_covariance(self.table, weights)

    def _used(self, weights: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Every level's variances, and the weights of its cells: sum x label x cell."""
        parent_end = np.zeros((len(weights), 2, 1))
        for level, own in enumerate(self.variances):
            at_end = weights[..., self.hierarchy.ends(level) - 1]
            used = at_end
            if level:
                starts = self.hierarchy.child_starts(level - 1)
                sizes = np.diff(np.append(starts, at_end.shape[2]))
                used = at_end - np.repeat(parent_end, sizes, axis=2)
            yield own, used
            parent_end = at_end

    def reports_for(self, growth: float) -> float:
        """Linear when the noise stays as it is, quadratic when every report adds some."""
        return growth if self.local_epsilon is None else growth**2


@dataclass(frozen=True, slots=True, eq=False)
class PartNoise:
    """The noise of one part of the leaves, or of all parts added up cell by cell."""

    leaves: NoiseModel
    """Of all leaves: the cells of the first part, then those of the next."""
    parts: int
    part: int | None
    """Which part; None for all together."""

    @property
    def is_zero(self) -> bool:
        """As for the leaves."""
        return self.leaves.is_zero

    def variance(self, weights: FloatArray) -> float:
        """Give the leaves of the part, or of all, the weights of its cells."""
        return self.leaves.variance(self._on_leaves(weights))

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same for several sums."""
        return self.leaves.covariances(self._on_leaves(weights))

    def _on_leaves(self, weights: FloatArray) -> FloatArray:
        spread = np.zeros((*weights.shape[:-1], self.parts, weights.shape[-1]))
        spread[..., slice(None) if self.part is None else self.part, :] = (
            weights[..., np.newaxis, :] if self.part is None else weights
        )
        return spread.reshape(*weights.shape[:-1], -1)

    @property
    def local_epsilon(self) -> float | None:
        """As for the leaves."""
        return self.leaves.local_epsilon

    def reports_for(self, growth: float) -> float:
        """As for the leaves."""
        return self.leaves.reports_for(growth)


def _summed(matrix: FloatArray, starts: IntArray, sizes: IntArray, axis: int) -> FloatArray:
    """As `np.add.reduceat`, to the last bit; where most rows, or columns, are single, by copying.

    Bits matter: noise that is drawn again for a covariance of another rounding is another draw.
    """
    places = np.flatnonzero(sizes > 1).tolist()
    if _MOSTLY * len(places) > len(sizes):
        return np.add.reduceat(matrix, starts, axis=axis)
    summed = matrix.take(starts, axis=axis)
    for place in places:
        of = slice(int(starts[place]), int(starts[place] + sizes[place]))
        if axis == 0:
            summed[place] = np.add.reduceat(matrix[of], [0], axis=0)[0]
        else:
            summed[:, place] = np.add.reduceat(matrix[:, of], [0], axis=1)[:, 0]
    return summed


def _table_variance(table: FloatArray | None, weights: FloatArray) -> float:
    """How much a sum varies over tables drawn from one population, their size given."""
    if table is None:
        return 0.0
    weighted = table * weights
    total = max(float(table.sum()), 1.0)
    return float((weighted * weights).sum()) - float(weighted.sum()) ** 2 / total


def _table_covariance(table: FloatArray | None, weights: FloatArray) -> FloatArray:
    """The same for several sums."""
    if table is None:
        return np.zeros((len(weights), len(weights)))
    weighted = table * weights
    sums = weighted.sum(axis=(1, 2))
    return _products(weighted, weights) - np.outer(sums, sums) / max(float(table.sum()), 1.0)


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Sums over labels and cells of the products of every two rows."""
    count = len(left)
    table: FloatArray = left.reshape(count, -1) @ right.reshape(count, -1).T
    return table


def is_smoothed(noise: NoiseModel) -> bool:
    """Whether counts are the likeliest ones already: then no figure has their noise in it.

    >>> is_smoothed(NoNoise()), is_smoothed(DenseNoise(np.eye(2), is_smoothed=True))
    (False, True)
    """
    return isinstance(noise, DenseNoise) and noise.is_smoothed


def merged(base: NoiseModel, sizes: IntArray) -> NoiseModel:
    """The noise after cells were summed into buckets of these sizes."""
    if base.is_zero:
        return base
    return base.of_sums(sizes) if isinstance(base, DenseNoise) else MergedNoise(base, sizes)
