"""Which joint cells of two models may be published of exact sums, and how they are cut.

The joint cells that are asked for are the same in every survey: between the edges of `LADDER`
for either model. Of these edges some are kept, by one rule that sees the sums alone: they are
tried in the ladder's order, the first model's and then the second's, and one is kept where the
margin may be cut there (`nesting.publishable_edges`) and every joint cell then holds at least the
smallest cell of each label. All files of the same rows so have the same joint cells, and each
group of a model's cells is a sum of cells that its own margin publishes: whatever is added or
taken away, a set of rows that comes out is a sum of published cells (docs/paired.md). Joint cells
are not cut beside scores of exactly 0 and 1, as the margins are: these belong to the outer groups.
"""

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import IntArray
from fedassay.grid import Grid
from fedassay.nesting import divided_cells, publishable_edges

LADDER = (
    0.5, 0.2, 0.1, 0.3, 0.05, 0.8, 0.4, 0.02, 0.7, 0.15, 0.01, 0.6, 0.9, 0.25, 0.95,
)  # fmt: skip
"""Edges of either model's groups, in the order in which they are tried."""


def ladder_cuts(grid: Grid) -> tuple[int, ...]:
    """The first cell of each group between the ladder's edges; all of them must be edges.

    >>> len(ladder_cuts(Grid.nested(50, thresholds=LADDER)))
    16
    """
    places = np.searchsorted(grid.edges, sorted(LADDER))
    if not np.array_equal(grid.edges[places], sorted(LADDER)):
        raise SettingInvalid(
            "exact sums of two models with a smallest cell have the same joint cells in all "
            "surveys; found a grid without their edges. Leave the grid to the planner, or switch "
            "the smallest cell off knowingly (smallest_cell=0, --smallest-cell 0)."
        )
    return (0, *places.tolist())


def check_nested_pair(first: Grid, second: Grid) -> None:
    """Raise unless both margins are of the one nesting, with the ladder's edges."""
    for grid in (first, second):
        divided_cells(grid.edges)
        ladder_cuts(grid)


def publishable_margin(grid: Grid, counts: IntArray, smallest: int) -> IntArray:
    """The places of a margin's edges that may be published, both ends included."""
    return publishable_edges(grid.edges, counts, smallest)


def publishable_pairs(
    joint: IntArray, kept: tuple[IntArray, IntArray], grids: tuple[Grid, Grid], smallest: int
) -> tuple[IntArray, IntArray]:
    """Which groups of the joint cells (label x 16 x 16) may be published: where each begins.

    `kept` are the places of edges that the margins publish.

    >>> grid = Grid.nested(50, thresholds=LADDER)
    >>> joint = np.zeros((2, 16, 16), np.int64)
    >>> joint[:, [0, 0, -1, -1], [0, -1, 0, -1]] = 10
    >>> everything = np.arange(len(grid.edges))
    >>> rows, columns = publishable_pairs(joint, (everything,) * 2, (grid, grid), 10)
    >>> rows.tolist(), columns.tolist()
    ([0, 10], [0, 10])
    """
    order = sorted(LADDER)
    cuts = [np.array(ladder_cuts(grid)) for grid in grids]
    starts: list[list[int]] = [[0], [0]]
    for edge in LADDER:
        group = order.index(edge) + 1
        for axis in (0, 1):
            if cuts[axis][group] not in kept[axis]:
                continue
            tried = [sorted([*starts[axis], group]) if axis == i else starts[i] for i in (0, 1)]
            if _grouped(joint, tried).min() >= smallest:
                starts = tried
    return np.array(starts[0]), np.array(starts[1])


def _grouped(joint: IntArray, starts: list[list[int]]) -> IntArray:
    rows = np.add.reduceat(joint, np.array(starts[0]), axis=1)
    grouped: IntArray = np.add.reduceat(rows, np.array(starts[1]), axis=2)
    return grouped
