"""Levels chosen after a look at the scores: cells for each label, and weighted sums."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_type, require_whole
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import FloatArray, IntArray
from fedassay.files import Fields
from fedassay.hierarchy import (
    MAX_LEVELS,
    MAX_TREE_LEVELS,
    Hierarchy,
    Interleaved,
    Levels,
)
from fedassay.pair_levels import PairLevels

MAX_CUT_LEAVES = 2**11
MAX_CUT_LEVELS = 2**5
MAX_CUT_CELLS = 2**13
"""Of all levels together: the rows of a fit over them take 256 MiB, and their cuts fit a file."""
MAX_WEIGHT = 2**10
"""A weighted counter of 2 million examples stays below 2^31."""

PerLabel = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CutLevels(Levels):
    """Cells between cuts that are listed, for each level and label, and perhaps weighted sums.

    An example has one label, so cells of their own for each label cost nothing; the label
    with fewer cells leaves its last counters empty. On the last level, with `weights`, each
    label has one counter: the sum of its examples' whole-number weights. An example moves
    it by at most the largest weight, which is that level's sensitivity.

    Differs: the paper's cells are those of one tree. Cells that were chosen after a first
    survey feel several times less noise (docs/adr/0018-surveys-in-two-steps.md).

    >>> levels = CutLevels(4, cuts=(((0, 2), (0,)),), weights=((0, 0, 0, 0), (-3, -1, 1, 3)))
    >>> levels.at_level(np.array([[5, 1, 1, 1], [1, 1, 2, 2]]), 0).tolist()
    [[6, 2], [6, 0]]
    >>> levels.at_level(np.array([[5, 1, 1, 1], [1, 1, 2, 2]]), 1).tolist()
    [[0], [4]]
    """

    leaves: int
    cuts: tuple[PerLabel, ...]
    """For each level, the first leaf of every cell: of negatives, then of positives."""
    weights: PerLabel | None = None
    """Whole numbers for every leaf: of negatives, then of positives."""
    cells_per_level: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_whole(self.leaves, "the leaves of chosen levels", 1, MAX_CUT_LEAVES)
        require_type(self.cuts, tuple, "chosen cuts", "Write them as (((0, 2), (0,)),).")
        levels = len(self.cuts) + (self.weights is not None)
        if not 1 <= levels <= MAX_CUT_LEVELS:
            raise SettingInvalid(
                f"chosen levels are from 1 to {MAX_CUT_LEVELS}; found {levels}. Drop some."
            )
        for level in self.cuts:
            for starts in _both(level, "cuts"):
                _check_starts(starts, self.leaves)
        cells = tuple(max(len(starts) for starts in level) for level in self.cuts)
        if self.weights is not None:
            _check_weights(self.weights, self.leaves)
            cells += (1,)
        if sum(cells) > MAX_CUT_CELLS:
            raise SettingInvalid(
                f"chosen levels have at most {MAX_CUT_CELLS:,} cells together; found "
                f"{sum(cells):,}. Drop some."
            )
        object.__setattr__(self, "cells_per_level", cells)

    def is_weighted(self, level: int) -> bool:
        """Whether a level's counters are weighted sums."""
        return level == len(self.cuts)

    def largest_weight(self, level: int) -> int:
        """The most that one example moves a level's counters, all together."""
        if self.weights is None or not self.is_weighted(level):
            return 1
        return max(size for row in self.weights for size in (max(row), -min(row)))

    def cell_of(self, leaf: IntArray, level: int, label: int = 0) -> IntArray:
        """The cell of a level that each leaf lies in, for examples with a label."""
        return np.searchsorted(np.array(self.cuts[level][label]), leaf, side="right") - 1

    def at_level(self, leaf_counts: npt.NDArray[Any], level: int) -> npt.NDArray[Any]:
        """Sum leaf counts (label x leaf) to one level."""
        if self.weights is not None and self.is_weighted(level):
            sums: npt.NDArray[Any] = (leaf_counts * np.array(self.weights)).sum(
                axis=-1, keepdims=True
            )
            return sums
        cells = np.zeros((2, self.cells_per_level[level]), dtype=leaf_counts.dtype)
        for label, starts in enumerate(self.cuts[level]):
            cells[label, : len(starts)] = np.add.reduceat(leaf_counts[label], np.array(starts))
        return cells

    def rows(self, level: int) -> FloatArray:
        """How each counter of a level adds leaves up: label x cell x leaf."""
        if self.weights is not None and self.is_weighted(level):
            return np.array(self.weights, dtype=np.float64)[:, None, :]
        return Levels.rows(self, level)

    def to_json(self) -> dict[str, Any]:
        """The cuts of every level, and the weights if there are any."""
        content: dict[str, Any] = {
            "kind": "cuts",
            "levels": [[list(starts) for starts in level] for level in self.cuts],
        }
        if self.weights is not None:
            content["weights"] = [list(row) for row in self.weights]
        return content

    @classmethod
    def from_json(cls, fields: Fields, leaves: int) -> "CutLevels":
        """Rebuild chosen levels from untrusted JSON."""
        has_weights = fields.has("weights")
        fields.only("kind", "levels", *(["weights"] if has_weights else []))
        levels = _lists(fields.get("levels"), MAX_CUT_LEVELS)
        cuts = tuple(_pair(_lists(level, 2), leaves) for level in levels)
        weights = _pair(_lists(fields.get("weights"), 2), leaves) if has_weights else None
        return cls(leaves, cuts, weights)


AnyLevels = Hierarchy | Interleaved | CutLevels | PairLevels


def levels_from_json(fields: Fields, leaves: int) -> AnyLevels:
    """Rebuild levels over so many leaves from untrusted JSON."""
    kind = fields.text("kind")
    if kind == "tree":
        fields.only("kind", "fanouts")
        return Hierarchy(leaves, tuple(fields.integers("fanouts", MAX_TREE_LEVELS)))
    if kind == "interleaved":
        fields.only("kind", "step")
        return Interleaved(leaves, fields.integer("step", 1, MAX_LEVELS))
    if kind == "cuts":
        return CutLevels.from_json(fields, leaves)
    if kind == "pair":
        return PairLevels.from_json(fields, leaves)
    raise FileInvalid(
        f"levels are a tree, interleaved, cuts or a pair; found {kind[:40]!r}. "
        "Use the fedassay version that wrote the survey."
    )


def _both(rows: Any, name: str) -> PerLabel:
    require_type(rows, tuple, f"chosen {name}", "Write them for both labels: ((0, 2), (0,)).")
    if len(rows) != 2 or not all(isinstance(row, tuple) for row in rows):
        raise SettingInvalid(
            f"chosen {name} are two tuples, of negatives and of positives; found something else. "
            "Write ((0, 2), (0,))."
        )
    both: PerLabel = rows
    return both


def _check_starts(starts: tuple[int, ...], leaves: int) -> None:
    # Plain numbers, as all of them are but for mistakes, are seen at a glance.
    if not all(type(start) is int and 0 <= start < leaves for start in starts):
        for start in starts:
            require_whole(start, "the first leaf of a cell", 0, leaves - 1)
    rising = all(low < high for low, high in pairwise(starts))
    if not starts or starts[0] != 0 or not rising:
        raise SettingInvalid(
            "cells must start at leaf 0 and at rising leaves after it; these do not. "
            "Sort the cuts, and drop repeats."
        )


def _check_weights(weights: PerLabel, leaves: int) -> None:
    for row in _both(weights, "weights"):
        if len(row) != leaves:
            raise SettingInvalid(
                f"there must be one weight for each of {leaves} leaves; found {len(row)}."
            )
        # Plain numbers in bounds, as all of them are but for mistakes, are seen at a glance.
        if not all(type(weight) is int and -MAX_WEIGHT <= weight <= MAX_WEIGHT for weight in row):
            for weight in row:
                require_whole(weight, "a weight", -MAX_WEIGHT, MAX_WEIGHT)
    if not any(any(row) for row in weights):
        raise SettingInvalid("weights must not all be 0; found nothing else. Drop them.")


def _lists(value: object, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise FileInvalid(f"chosen levels are lists of at most {most} entries; found another.")
    return value


def _pair(rows: list[Any], leaves: int) -> PerLabel:
    fits = len(rows) == 2 and all(
        isinstance(row, list)
        and len(row) <= leaves
        and all(type(number) is int and abs(number) < 2**53 for number in row)
        for row in rows
    )
    if not fits:
        raise FileInvalid("chosen levels are two lists of whole numbers each; found another.")
    return tuple(rows[0]), tuple(rows[1])
