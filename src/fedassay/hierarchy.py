"""The hierarchy: leaf cells grouped into levels of coarser cells."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import IntArray
from fedassay.grid import MAX_CELLS

MAX_LEVELS = 20


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Levels over the leaf cells, from the coarsest to the leaves themselves.

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
        if not 1 <= self.leaves <= MAX_CELLS:
            raise SettingInvalid(
                f"a hierarchy has between 1 and {MAX_CELLS} leaves; found {self.leaves}."
            )
        if not 1 <= len(self.fanouts) <= MAX_LEVELS:
            raise SettingInvalid(
                f"a hierarchy has between 1 and {MAX_LEVELS} levels; found {len(self.fanouts)}."
            )
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
        if fanout < 2:
            raise SettingInvalid(f"a fan-out must be at least 2; found {fanout}.")
        height = 1
        while fanout**height < leaves:
            height += 1
        return cls(leaves, (fanout,) * height)

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.fanouts)

    @property
    def width(self) -> int:
        """Counters in one report over all levels: label x cell, summed over levels."""
        return 2 * sum(self.cells_per_level)

    def counters(self, level: int) -> slice:
        """Where a level's counters lie in a report over all levels."""
        first = 2 * sum(self.cells_per_level[:level])
        return slice(first, first + 2 * self.cells_per_level[level])

    def split(self, counters: IntArray) -> tuple[IntArray, ...]:
        """Cut the counters of all levels into (label x cell) arrays, one per level."""
        return tuple(counters[self.counters(level)].reshape(2, -1) for level in range(self.levels))

    def starts(self, level: int) -> IntArray:
        """The first leaf of each cell of a level."""
        return np.arange(0, self.leaves, self.blocks[level])

    def ends(self, level: int) -> IntArray:
        """One past the last leaf of each cell of a level."""
        return np.minimum(self.starts(level) + self.blocks[level], self.leaves)

    def child_starts(self, level: int) -> IntArray:
        """The first child, on the next level, of each cell of a level."""
        return np.arange(0, self.cells_per_level[level + 1], self.fanouts[level + 1])

    def climb(self, leaf_counts: IntArray) -> tuple[IntArray, ...]:
        """Sum leaf counts (label x leaf) up to every level, top down."""
        return tuple(self.at_level(leaf_counts, level) for level in range(self.levels))

    def at_level(self, leaf_counts: IntArray, level: int) -> IntArray:
        """Sum leaf counts (label x leaf) to one level."""
        if self.blocks[level] == 1:
            return leaf_counts
        return np.add.reduceat(leaf_counts, self.starts(level), axis=-1)


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
