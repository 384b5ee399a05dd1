"""Levels over pairs of cells: either model's margin, and joint cells, coarse or fine."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_type, require_whole
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.grid import Grid, check_smallest_cell
from fedassay.grid_rules import MAX_CELLS
from fedassay.hierarchy import Hierarchy, Levels
from fedassay.pair_grid import PairGrid
from fedassay.pair_nesting import check_nested_pair, ladder_cuts

MOST_PAIR_LEVELS = 8
Cuts = tuple[tuple[int, ...], tuple[int, ...]]
"""The first cell of every group of the first model's cells, and of the second's."""


@dataclass(frozen=True, slots=True)
class PairLevels(Levels):
    """Each level groups the first model's cells and the second's, and counts pairs of groups.

    A margin has one group of the other model's cells. An example is in one pair on each level,
    so that a level costs what any other does.

    >>> levels = PairLevels(2, 2, cuts=(((0, 1), (0,)), ((0,), (0, 1))))
    >>> counts = np.array([[5, 1, 0, 2], [1, 1, 2, 2]])
    >>> levels.at_level(counts, 0).tolist(), levels.at_level(counts, 1).tolist()
    ([[6, 2], [2, 4]], [[5, 3], [3, 3]])
    """

    first: int
    """The first model's cells."""
    second: int
    cuts: tuple[Cuts, ...]
    leaves: int = field(init=False, repr=False, compare=False)
    cells_per_level: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for size in (self.first, self.second):
            require_whole(size, "a model's cells", 1, MAX_CELLS)
        require_whole(self.first * self.second, "the cells of a pair", 1, MAX_CELLS)
        require_type(self.cuts, tuple, "levels of a pair", "Write them as (((0, 1), (0,)),).")
        if not 1 <= len(self.cuts) <= MOST_PAIR_LEVELS:
            raise SettingInvalid(
                f"a pair has from 1 to {MOST_PAIR_LEVELS} levels; found {len(self.cuts)}."
            )
        for level in self.cuts:
            _check_cuts(level, (self.first, self.second))
        cells = tuple(len(rows) * len(columns) for rows, columns in self.cuts)
        object.__setattr__(self, "leaves", self.first * self.second)
        object.__setattr__(self, "cells_per_level", cells)

    @classmethod
    def margins_and(cls, first: int, second: int, joint: Cuts) -> "PairLevels":
        """Both margins as fine as they are, and the pairs of coarser groups.

        >>> PairLevels.margins_and(4, 4, ((0, 2), (0, 2))).cells_per_level
        (4, 4, 4)
        """
        margins = ((tuple(range(first)), (0,)), ((0,), tuple(range(second))))
        return cls(first, second, (*margins, joint))

    def at_level(self, leaf_counts: npt.NDArray[Any], level: int) -> npt.NDArray[Any]:
        """Sum leaf counts (label x leaf) to one level."""
        rows, columns = self.cuts[level]
        table = leaf_counts.reshape(*leaf_counts.shape[:-1], self.first, self.second)
        grouped = np.add.reduceat(table, np.array(rows), axis=-2)
        grouped = np.add.reduceat(grouped, np.array(columns), axis=-1)
        return grouped.reshape(*leaf_counts.shape[:-1], -1)

    def cell_of(self, leaf: IntArray, level: int, label: int = 0) -> IntArray:
        """The pair of groups that each leaf lies in, whatever the label."""
        rows, columns = (np.array(starts) for starts in self.cuts[level])
        row = np.searchsorted(rows, leaf // self.second, side="right") - 1
        column = np.searchsorted(columns, leaf % self.second, side="right") - 1
        return row * len(columns) + column

    def to_json(self) -> dict[str, Any]:
        """How the second model's cells follow each other, and the cuts of every level."""
        return {
            "kind": "pair",
            "second": self.second,
            "levels": [[list(starts) for starts in level] for level in self.cuts],
        }

    @classmethod
    def from_json(cls, fields: Fields, leaves: int) -> "PairLevels":
        """Rebuild levels over so many leaves from untrusted JSON."""
        fields.only("kind", "second", "levels")
        second = fields.integer("second", 1, leaves)
        listed = fields.get("levels")
        fits = isinstance(listed, list) and all(
            isinstance(level, list) and len(level) == 2 and all(map(_is_row, level))
            for level in listed
        )
        if leaves % second or not isinstance(listed, list) or not fits:
            raise FileInvalid(
                "levels of a pair are two lists of whole numbers each, over a whole number of the "
                "second model's cells; found something else."
            )
        return cls(leaves // second, second, tuple((tuple(r), tuple(c)) for r, c in listed))


def check_pair(grid: Grid, levels: Levels, *, is_plain: bool) -> None:
    """Raise unless two models are asked for in one of the ways that can be read.

    Both margins and joint cells, or joint cells alone. `is_plain` says that the survey is neither
    one of two nor adds up moments, and that every client answers every level, or, under local
    privacy, draws one of them: then rows of each margin are other rows.

    >>> check_pair(Grid.uniform(4), Hierarchy.flat(4), is_plain=True)
    """
    if not isinstance(grid, PairGrid):
        if isinstance(levels, PairLevels):
            raise SettingInvalid(
                "levels of a pair stand on a pair of grids; found one grid. Use PairGrid.of."
            )
        return
    first, second = grid.first.cells, grid.second.cells
    is_flat = isinstance(levels, Hierarchy) and levels.levels == 1
    fits = isinstance(levels, PairLevels) and (
        levels == PairLevels.margins_and(first, second, levels.cuts[-1])
    )
    if not (is_flat or fits) or not is_plain:
        raise SettingInvalid(
            "two models are asked for by joint cells, or by both margins and coarser joint cells, "
            "of every client (under local privacy each on one of them), in one survey without "
            "moments; found something else. Leave it to the planner (--paired)."
        )


def check_smallest(smallest: int, grid: Grid, levels: Levels, spends_epsilon: bool) -> None:
    """Raise unless cells can be merged, of one model's scores or of two models'.

    >>> check_smallest(10, Grid.nested(8), Hierarchy.flat(8), False)
    """
    if not isinstance(grid, PairGrid) or not smallest or spends_epsilon:
        check_smallest_cell(smallest, grid, levels.levels, spends_epsilon)
        return
    # Of each margin by itself, as if it were asked for alone.
    for margin in (grid.first, grid.second):
        check_smallest_cell(smallest, margin, 1, spends_epsilon)
    check_nested_pair(grid.first, grid.second)
    joint = (ladder_cuts(grid.first), ladder_cuts(grid.second))
    if levels != PairLevels.margins_and(grid.first.cells, grid.second.cells, joint):
        raise SettingInvalid(
            "exact sums of two models with a smallest cell have both margins and the same joint "
            "cells in all surveys; found others. Leave them to the planner (--paired)."
        )


def _is_row(row: object) -> bool:
    return isinstance(row, list) and all(type(n) is int and 0 <= n < MAX_CELLS for n in row)


def _check_cuts(level: Any, sizes: tuple[int, int]) -> None:
    if not isinstance(level, tuple) or len(level) != 2:
        raise SettingInvalid(
            "a level of a pair has two tuples, of the first model's cuts and of the second's; "
            "found something else. Write ((0, 2), (0,))."
        )
    for starts, size in zip(level, sizes, strict=True):
        require_type(starts, tuple, "the cuts of a model", "Write them as (0, 2).")
        for start in starts:
            require_whole(start, "the first cell of a group", 0, size - 1)
        if not starts or starts[0] != 0 or not all(low < high for low, high in pairwise(starts)):
            raise SettingInvalid(
                "groups must start at cell 0 and at rising cells after it; these do not. "
                "Sort the cuts, and drop repeats."
            )
