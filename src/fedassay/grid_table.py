"""Counting rows by tables instead of by search; exact, and many times as fast.

A table cuts [0, 1] into fine cells that need no search. Rows in a fine cell that an edge splits
go on to the next table, and those that are left to a search. The first table is even: one
multiplication by a power of two, which is exact. Where edges crowd at 0 and 1 a second one reads
exponent and leading bits of the distance from the nearer end: octaves in equal parts, again exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.examples import FloatArray, IntArray, LabelArray

FINEST_BITS = 18
_CHUNK_ROWS = 2**16
_FEW_SPLITS = 16
_MANTISSA_BITS = 52
# Distances from an end below this are one fine cell; from 1 the smallest is 2^-53.
_NEAREST = 2.0**-54
_FIRST_PARTS, _LAST_PARTS = 6, 10


def cells_of(edges: FloatArray, values: FloatArray) -> IntArray:
    """The leaf cell (lo, hi] of each value in [0, 1], by search; the first also holds 0."""
    cells = np.searchsorted(edges, values, side="left") - 1
    return np.maximum(cells, 0, out=cells)


def count_by_search(edges: FloatArray, scores: FloatArray, labels: LabelArray) -> IntArray:
    """Counts per label and leaf cell, without any table."""
    leaves = len(edges) - 1
    places = cells_of(edges, scores) + np.multiply(labels, leaves, dtype=np.intp)
    return np.bincount(places, minlength=2 * leaves).reshape(2, leaves)


@dataclass(frozen=True, slots=True, eq=False)
class EvenCells:
    """Fine cells (k - 1, k] / scale; the scale is a power of two."""

    scale: float

    def places(self, scores: FloatArray) -> IntArray:
        """The fine cell of each score."""
        return np.ceil(scores * self.scale).astype(np.intp)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest score of each fine cell."""
        last = np.arange(int(self.scale) + 1) / self.scale
        return np.concatenate([[0.0], np.nextafter(last[:-1], 1.0)]), last


@dataclass(frozen=True, slots=True, eq=False)
class OctaveCells:
    """Fine cells by exponent and leading bits of a score, above 1/2 of its distance from 1.

    As whole numbers the patterns of positive doubles rise with them. Up to 1/2 a fine cell
    holds its upper end, so it goes by the pattern before; 1 - score, exact above 1/2, holds
    its lower one.
    """

    bits: int

    @property
    def _shift(self) -> int:
        return _MANTISSA_BITS - self.bits

    @property
    def _first(self) -> int:
        """The shifted pattern of what is nearest to an end."""
        return (_pattern(_NEAREST) - 1) >> self._shift

    @property
    def _side(self) -> int:
        """How many fine cells there are up to 1/2."""
        return (_pattern(0.5) >> self._shift) - self._first

    def places(self, scores: FloatArray) -> IntArray:
        """The fine cell of each score: those up to 1/2 first, both from the end inwards."""
        is_high = scores > 0.5
        distance = np.minimum(scores, 1.0 - scores)
        np.maximum(distance, _NEAREST, out=distance)
        words = distance.view(np.int64)
        words -= 1
        words += is_high
        words >>= self._shift
        words -= self._first
        words += np.multiply(is_high, self._side, dtype=np.int64)
        return words

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest score of each fine cell, or what lies beyond them."""
        begin = np.arange(self._first, self._first + self._side + 1, dtype=np.int64) << self._shift
        low_first, low_last = (begin[:-1] + 1).view(np.float64), begin[1:].view(np.float64)
        low_first[0] = 0.0
        distance = begin.view(np.float64)
        mirrored = 1.0 - distance
        is_exact = 1.0 - mirrored == distance
        above, below = np.nextafter(mirrored, 1.0), np.nextafter(mirrored, 0.0)
        high_first = np.where(is_exact, above, below)[1:]
        high_last = np.where(is_exact, mirrored, above)[:-1]
        return np.concatenate([low_first, high_first]), np.concatenate([low_last, high_last])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """For each fine cell its leaf cell, and whether an edge splits it."""

    fine: EvenCells | OctaveCells
    cells: IntArray
    is_split: npt.NDArray[np.bool_]
    splits: IntArray
    """Places of the split ones, over label x fine cell."""

    @classmethod
    def of(cls, fine: EvenCells | OctaveCells, edges: FloatArray) -> "Table":
        """The table of a grid's edges."""
        first, last = (cells_of(edges, end) for end in fine.ends())
        is_split = first != last
        inside = np.flatnonzero(is_split)
        return cls(fine, last, is_split, np.concatenate([inside, inside + len(last)]))


@dataclass(frozen=True, slots=True, eq=False)
class CellCounter:
    """The tables for one grid's edges, in the order in which rows go through them."""

    edges: FloatArray
    tables: tuple[Table, ...]

    @classmethod
    def of(cls, edges: FloatArray) -> "CellCounter":
        """Tables that leave few rows to a search, as small as may be.

        >>> counter = CellCounter.of(np.array([0.0, 0.25, 1.0]))
        >>> counter.count(np.array([0.25, 0.26]), np.array([0, 1], np.uint8)).tolist()
        [[1, 0], [0, 1]]
        """
        octaves = _octave_table(edges)
        for bits in range(10, FINEST_BITS + 1):
            few = _FEW_SPLITS if octaves is None else max(_FEW_SPLITS, 2**bits // 64)
            if _splits(edges, bits) <= few:
                break
        even = Table.of(EvenCells(2.0**bits), edges)
        return cls(edges, (even,) if octaves is None else (even, octaves))

    def count(self, scores: FloatArray, labels: LabelArray) -> IntArray:
        """Counts per label and leaf cell."""
        counts = np.zeros((2, len(self.edges) - 1), dtype=np.int64)
        fine = [np.zeros(2 * len(table.cells), dtype=np.int64) for table in self.tables]
        for rows in self._chunks(len(scores)):
            left, of = scores[rows], labels[rows]
            for table, counted in zip(self.tables, fine, strict=True):
                places = table.fine.places(left)
                by_label = places + np.multiply(of, len(table.cells), dtype=np.intp)
                np.add(counted, np.bincount(by_label, minlength=len(counted)), out=counted)
                # Looking for the rows in split cells costs a fifth of it all: only if any.
                if not counted[table.splits].any():
                    break
                counted[table.splits] = 0
                in_split = np.flatnonzero(table.is_split[places])
                left, of = left[in_split], of[in_split]
            else:
                counts += count_by_search(self.edges, left, of)
        for table, counted in zip(self.tables, fine, strict=True):
            for label, row in enumerate(counted.reshape(2, -1)):
                np.add.at(counts[label], table.cells, row)
        return counts

    def _chunks(self, rows: int) -> Iterator[slice]:
        # Larger arrays go back to the system after each chunk and cost page faults; with a
        # chunk much shorter than the table, adding up the table would cost most.
        chunk = max(_CHUNK_ROWS, *(len(table.cells) for table in self.tables))
        for start in range(0, rows, chunk):
            yield slice(start, start + chunk)


def _splits(edges: FloatArray, bits: int) -> int:
    """How many cells of width 2^-bits an edge splits."""
    scaled = edges * 2.0**bits
    return len(np.unique(np.ceil(scaled[scaled != np.floor(scaled)])))


def _octave_table(edges: FloatArray) -> Table | None:
    """The smallest that few edges split, where the even table is blind to many edges."""
    blind = 2.0 ** (2 - FINEST_BITS)
    if np.count_nonzero((edges < blind) | (edges > 1.0 - blind)) <= _FEW_SPLITS:
        return None
    for bits in range(_FIRST_PARTS, _LAST_PARTS + 1):
        table = Table.of(OctaveCells(bits), edges)
        if table.is_split.mean() <= 0.25:
            return table
    return None


def _pattern(value: float) -> int:
    return int(np.float64(value).view(np.int64))
