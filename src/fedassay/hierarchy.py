"""Levels: ways to group the leaf cells into coarser cells."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray, IntArray
from fedassay.grid_rules import MAX_CELLS

MAX_LEVELS = 255
MAX_TREE_LEVELS = 20
MAX_DENSE = 256


class Levels(ABC):
    """Sums of the same leaves: on most levels each leaf is in one cell."""

    __slots__ = ()

    leaves: int
    cells_per_level: tuple[int, ...]

    @abstractmethod
    def at_level(self, leaf_counts: npt.NDArray[Any], level: int) -> npt.NDArray[Any]:
        """Sum leaf counts (label x leaf) to one level (label x cell)."""

    @abstractmethod
    def cell_of(self, leaf: IntArray, level: int, label: int = 0) -> IntArray:
        """The cell of a level that each leaf lies in, for examples with a label."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of the levels; the grid says how many leaves there are."""

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.cells_per_level)

    @property
    def width(self) -> int:
        """Counters in one report over all levels: label x cell, summed over levels."""
        return 2 * sum(self.cells_per_level)

    def largest_weight(self, level: int) -> int:
        """The most that one example moves a level's counters, all together."""
        return 1

    def counters(self, level: int) -> slice:
        """Where a level's counters lie in a report over all levels."""
        first = 2 * sum(self.cells_per_level[:level])
        return slice(first, first + 2 * self.cells_per_level[level])

    def split(self, counters: IntArray) -> tuple[IntArray, ...]:
        """Cut the counters of all levels into (label x cell) arrays, one per level."""
        return tuple(counters[self.counters(level)].reshape(2, -1) for level in range(self.levels))

    def climb(self, leaf_counts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Sum leaf counts (label x leaf) up to every level."""
        return tuple(self.at_level(leaf_counts, level) for level in range(self.levels))

    def rows(self, level: int) -> FloatArray:
        """How each counter of a level adds leaves up: label x cell x leaf."""
        leaf = np.arange(self.leaves)
        rows = np.zeros((2, self.cells_per_level[level], self.leaves))
        for label in (0, 1):
            rows[label, self.cell_of(leaf, level, label), leaf] = 1.0
        return rows


class SharedCuts(Levels):
    """Levels whose cells are the same for both labels, and cover the leaves once."""

    __slots__ = ()

    @abstractmethod
    def starts(self, level: int) -> IntArray:
        """The first leaf of each cell of a level."""

    def cell_of(self, leaf: IntArray, level: int, label: int = 0) -> IntArray:
        """The cell of a level that each leaf lies in, whatever the label."""
        return np.searchsorted(self.starts(level), leaf, side="right") - 1

    def at_level(self, leaf_counts: npt.NDArray[Any], level: int) -> npt.NDArray[Any]:
        """Sum leaf counts (label x leaf) to one level."""
        if self.cells_per_level[level] == self.leaves:
            return leaf_counts
        return np.add.reduceat(leaf_counts, self.starts(level), axis=-1)


@dataclass(frozen=True, slots=True)
class Hierarchy(SharedCuts):
    """A tree: levels over the leaf cells, from the coarsest to the leaves themselves.

    Fan-outs are per level, top down; the paper's tree of height h has fan-out 2 at each
    (`app:scorehist`). When the fan-outs' product exceeds the number of leaves, the last
    cells of a level are narrower.

    >>> Hierarchy(leaves=8, fanouts=(2, 2, 2)).cells_per_level
    (2, 4, 8)
    >>> Hierarchy(leaves=7, fanouts=(2, 4)).cells_per_level
    (2, 7)
    """

    leaves: int
    fanouts: tuple[int, ...]
    blocks: tuple[int, ...] = field(init=False, repr=False, compare=False)
    cells_per_level: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_whole(self.leaves, "a hierarchy's leaves", 1, MAX_CELLS)
        require_type(self.fanouts, tuple, "a hierarchy's fan-outs", "Write them as (2, 2, 2).")
        if not 1 <= len(self.fanouts) <= MAX_TREE_LEVELS:
            raise SettingInvalid(
                f"a hierarchy has between 1 and {MAX_TREE_LEVELS} levels; found "
                f"{len(self.fanouts)}."
            )
        for fanout in self.fanouts:
            require_whole(fanout, "a fan-out", 1)
        if min(self.fanouts) < (1 if self.leaves == 1 else 2):
            raise SettingInvalid(
                f"every fan-out must be at least 2; found {min(self.fanouts)}. Drop that level."
            )
        if not self.leaves <= prod(self.fanouts) or prod(self.fanouts) > 16 * MAX_CELLS:
            raise SettingInvalid(
                f"the fan-outs' product must reach the {self.leaves} leaves; found "
                f"{'x'.join(map(str, self.fanouts))} = {prod(self.fanouts)}. Change the fan-outs."
            )
        blocks = tuple(prod(self.fanouts[level + 1 :]) for level in range(len(self.fanouts)))
        cells = tuple(-(-self.leaves // block) for block in blocks)
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "cells_per_level", cells)

    @classmethod
    def flat(cls, leaves: int) -> "Hierarchy":
        """The leaves alone."""
        return cls(leaves, (leaves,))

    @classmethod
    def regular(cls, leaves: int, fanout: int) -> "Hierarchy":
        """The same fan-out at every level, as many levels as the leaves need."""
        require_whole(fanout, "a fan-out", 2)
        height = 1
        while fanout**height < leaves:
            height += 1
        return cls(leaves, (fanout,) * height)

    def starts(self, level: int) -> IntArray:
        """The first leaf of each cell of a level."""
        return np.arange(0, self.leaves, self.blocks[level])

    def to_json(self) -> dict[str, Any]:
        """Fan-outs, top down."""
        return {"kind": "tree", "fanouts": list(self.fanouts)}

    def ends(self, level: int) -> IntArray:
        """One past the last leaf of each cell of a level."""
        return np.minimum(self.starts(level) + self.blocks[level], self.leaves)

    def child_starts(self, level: int) -> IntArray:
        """The first child, on the next level, of each cell of a level."""
        return np.arange(0, self.cells_per_level[level + 1], self.fanouts[level + 1])


@dataclass(frozen=True, slots=True)
class Interleaved(SharedCuts):
    """Levels whose cuts take turns: level k has every `step`-th edge, from the (k+1)th on.

    Differs: the paper's levels form a tree. When each client reports on one level only, a
    smooth figure such as ROC AUC feels as little noise as from one coarse level, and has the
    resolution of all cuts together (docs/adr/0006-interleaved-levels.md).

    >>> levels = Interleaved(leaves=7, step=3)
    >>> [levels.starts(level).tolist() for level in range(levels.levels)]
    [[0, 1, 4], [0, 2, 5], [0, 3, 6]]
    """

    leaves: int
    step: int
    cells_per_level: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_whole(self.leaves, "the leaves of interleaved levels", 2, MAX_DENSE)
        require_whole(self.step, "the step between cuts", 1, self.leaves - 1)
        cells = tuple(len(self.starts(level)) for level in range(self.step))
        object.__setattr__(self, "cells_per_level", cells)

    def starts(self, level: int) -> IntArray:
        """The first leaf of each cell of a level."""
        return np.concatenate([[0], np.arange(level + 1, self.leaves, self.step)])

    def to_json(self) -> dict[str, Any]:
        """The step between a level's cuts."""
        return {"kind": "interleaved", "step": self.step}


def fanouts_for(leaves: int, levels: int) -> tuple[int, ...]:
    """The most even fan-outs that give at least `leaves` in `levels` levels.

    >>> fanouts_for(4096, 3)
    (16, 16, 16)
    """
    chosen: list[int] = []
    remaining = leaves
    for left in range(levels, 0, -1):
        fanout = max(2, round(remaining ** (1.0 / left)))
        if left == 1:
            fanout = max(2, remaining)
        chosen.append(fanout)
        remaining = -(-remaining // fanout)
    return tuple(chosen)
