"""A survey that tells groups apart: the one for a group, once for each of them.

An example is in one group, so that its cells of group x score cost what cells of scores cost. The
noise in a group's cells is that of a survey of the group alone; under local privacy it is that of
all reports, as if all were in the group.
"""

from dataclasses import replace
from math import prod

import numpy as np

from fedassay.cut_levels import AnyLevels, CutLevels
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved
from fedassay.pair_levels import PairLevels
from fedassay.planning.request import Steps, SurveyRequest

MOST_CUT = 2**9
"""Leaves up to which levels whose cuts take turns are kept: fits over them are dense."""


def request_for_one(request: SurveyRequest, groups: int) -> SurveyRequest:
    """What to ask of a group as large as others, so that its survey suits each of them.

    Under local privacy its n / k rows drown in the noise of n reports: as n / k^2 would alone.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Privacy
    >>> asked = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=9000)
    >>> request_for_one(asked, 3).clients
    1000
    """
    alone = replace(request, groups=None, steps=Steps.ONE)
    rows = request.examples or request.clients
    if rows is None:
        return replace(alone, examples=max(request.rows_expected // groups, 1))
    if not request.privacy.is_local:
        return replace(alone, examples=max(rows // groups, 1))
    fewer = max(rows // groups**2, 2)
    return replace(alone, examples=fewer, clients=fewer)


def grouped_cells(grid: Grid, levels: AnyLevels, parts: int) -> tuple[Grid, AnyLevels]:
    """The same levels over each part of the leaves; a grid may get some cells more.

    In a tree whose cells are all alike each part is a branch; so the widest cells are halved
    until they are.

    >>> grid, levels = grouped_cells(Grid.uniform(5), Hierarchy(5, (2, 3)), 3)
    >>> grid.cells, levels.fanouts
    (6, (6, 3))
    """
    if isinstance(levels, Hierarchy):
        full = grid if levels.levels == 1 else _with_cells(grid, prod(levels.fanouts))
        first, *rest = levels.fanouts if levels.levels > 1 else (full.cells,)
        return full, Hierarchy(parts * full.cells, (parts * first, *rest))
    if parts * grid.cells > MOST_CUT or isinstance(levels, PairLevels):
        return grid, Hierarchy.flat(parts * grid.cells)
    cuts = levels.cuts if isinstance(levels, CutLevels) else _interleaved_cuts(levels)
    starts = grid.cells * np.arange(parts)[:, np.newaxis]
    moved = tuple(
        (tuple((starts + own).ravel().tolist()), tuple((starts + other).ravel().tolist()))
        for own, other in (map(np.array, level) for level in cuts)
    )
    return grid, CutLevels(parts * grid.cells, moved)


def _interleaved_cuts(levels: Interleaved) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    each = [tuple(levels.starts(level).tolist()) for level in range(levels.levels)]
    return tuple((cuts, cuts) for cuts in each)


def _with_cells(grid: Grid, cells: int) -> Grid:
    edges = grid.edges
    while len(edges) <= cells:
        widest = int(np.argmax(np.diff(edges)))
        middle = 0.5 * (edges[widest] + edges[widest + 1])
        edges = np.insert(edges, widest + 1, middle)
    return grid if len(edges) == len(grid.edges) else Grid(edges, grid.rule)
