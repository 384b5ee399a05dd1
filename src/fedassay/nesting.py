"""The one nesting of cells that exact sums are asked on, and the rule by which they are published.

Scores of exactly 0 and 1 come first, for many rows may have them that were never scored, or lie
in a tree's pure leaves: [0, 1] is divided at what log loss clips to, 2^-52, and the rest at
1 - 2^-52. What is between goes by decimals. A number with twelve of them or fewer is an edge, and
each edge divides one cell of a tree that is the same for every survey. A ten (0, 10] is cut at 5,
its left five at 2, what is right of that at 3, then at 4; (0, 2] at 1; the right five in the
mirror. Every cell of one unit is a ten of the next decimal. So 0.5 divides all that is between, 0.2
divides what is left of 0.5, and 0.3 divides (0.2, 0.5].
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from heapq import heappop, heappush
from math import log

import numpy as np

from fedassay.checks import require_whole
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray, IntArray
from fedassay.grid_rules import EPS

DECIMALS = 12
ONE = 10**DECIMALS
MOST_NESTED_CELLS = 2**12
MOST_SMALLEST_CELL = 2**20
_WITH_ENDS = 4  # edges of the fewest cells: exactly 0, between, exactly 1
# Of the digits 1 to 9: where the cell begins and ends that an edge with this last digit divides.
_BEGIN = np.array([0, 0, 0, 2, 3, 0, 5, 5, 5, 8])
_END = np.array([0, 2, 5, 5, 5, 10, 7, 8, 10, 10])
_SPLIT = {(int(_BEGIN[digit]), int(_END[digit])): digit for digit in range(1, 10)}

Node = tuple[int, int]
Mass = Callable[[float, float], float]
"""Which share of the scores is expected between two edges, up to a factor."""


def divided_cells(edges: FloatArray) -> IntArray:
    """For each inner edge, the places of the edges between which its cell of the tree lies.

    Raises `SettingInvalid` where an edge is not of the tree, or its cell has no such edges, or
    scores of exactly 0 and 1 have no cells.

    >>> divided_cells(np.array([0.0, EPS, 0.2, 0.5, 1.0 - EPS, 1.0])).tolist()
    [[0, 5], [1, 3], [1, 4], [1, 5]]
    """
    if len(edges) < _WITH_ENDS or edges[1] != EPS or edges[-2] != 1.0 - EPS:
        raise SettingInvalid(_OFF)
    between = edges[2:-2]
    units = np.rint(between * ONE).astype(np.int64)
    if not np.array_equal(units / ONE, between):
        raise SettingInvalid(_OFF)
    bounds = np.array([(0.0, 1.0), *np.clip(_bounds(units) / ONE, EPS, 1.0 - EPS), (EPS, 1.0)])
    places = np.searchsorted(edges, bounds)
    if not np.array_equal(edges[places], bounds):
        raise SettingInvalid(_OFF)
    return places.astype(np.int64)


_OFF = (
    "exact sums with a smallest cell are asked on one nesting of cells, the same for all surveys, "
    "so that no two published files differ by a few rows; found edges off it, or none at 2^-52 and "
    "1 - 2^-52, beside which scores of exactly 0 and 1 lie. Leave the grid to the planner, or "
    "switch the smallest cell off knowingly (smallest_cell=0, --smallest-cell 0)."
)


def _bounds(units: IntArray) -> IntArray:
    """Where the cell begins and ends that each edge divides, in units of the last decimal."""
    unit = np.ones_like(units)
    for _ in range(DECIMALS):
        unit = np.where(units % (10 * unit) == 0, 10 * unit, unit)
    digit = units // unit % 10
    base = units - digit * unit
    return np.stack([base + _BEGIN[digit] * unit, base + _END[digit] * unit], axis=1)


def publishable_edges(edges: FloatArray, counts: IntArray | FloatArray, smallest: int) -> IntArray:
    """The places of edges that may be published, both ends included; counts are label x cell.

    An edge may where each of the two cells of the tree that it parts holds `smallest` of
    each label. Between two such edges that are next to each other lies at least one of those
    cells, whole: so no published cell holds fewer. An edge may, too, where one of the two holds
    nobody at all, the other enough, and where the empty one ends an edge is published: then
    nobody is between those edges, and the next published cell still holds the other one, whole,
    or nobody. Only the cells of exactly 0 and 1 are not parted where they are empty: that nobody is
    there is told with what is empty beside them, which then ends at 0 or 1 itself. Where somebody
    is, and too few, what is empty beside them has no published end, and hides them with the
    rest. Whether an edge is among them depends on cells of the tree alone, not on the survey: all
    edges that were ever published of the same rows are among those of the finest grid, so
    that no difference of two files holds fewer either, unless it holds nobody.

    >>> edges = np.array([0.0, EPS, 0.2, 0.5, 1.0 - EPS, 1.0])
    >>> publishable_edges(edges, np.array([[0, 9, 20, 90, 0], [0, 30, 20, 30, 0]]), 10).tolist()
    [0, 3, 5]
    >>> publishable_edges(edges, np.array([[0, 0, 20, 90, 0], [0, 0, 20, 30, 0]]), 10).tolist()
    [0, 2, 3, 5]
    >>> publishable_edges(edges, np.array([[3, 0, 20, 90, 0], [3, 0, 20, 30, 0]]), 10).tolist()
    [0, 3, 5]
    """
    below = np.concatenate([np.zeros((2, 1), counts.dtype), np.cumsum(counts, axis=1)], axis=1)
    begin, end = divided_cells(edges).T
    here = below[:, 1:-1]
    parts = np.stack([here - below[:, begin], below[:, end] - here])
    enough, nobody = (parts >= smallest).all(axis=1), (parts == 0).all(axis=1)
    may = np.ones(len(edges), dtype=np.bool_)
    may[1:-1] = enough.all(axis=0)
    # Where an empty cell may end: at a published edge, or with nobody between it and 0 or 1.
    ends = may.copy()
    ends[[1, -2]] |= nobody[[0, 1], [0, -1]]
    beside = enough & nobody[::-1]
    beside[[1, 0], [0, -1]] = False
    # What divides a larger cell of the tree comes first.
    for place in sorted(
        np.flatnonzero(beside.any(axis=0)), key=lambda i: -(edges[end[i]] - edges[begin[i]])
    ):
        ends[place + 1] = ends[begin[place] if beside[1, place] else end[place]]
        may[place + 1] = ends[place + 1]
    return np.flatnonzero(may)


def nested_edges(
    cells: int, *, mass: Mass | None = None, thresholds: Iterable[float] = ()
) -> FloatArray:
    """So many cells of the tree, each holding about as much of the mass, from 0 to 1.

    Without a mass half of the cells go by width and half by octaves of the distance from 0 and 1,
    down to 1e-12. Those of exactly 0 and 1 are always there, so that there are three at least.
    Thresholds of twelve decimals or fewer become edges besides, with all
    that the tree cuts before them; others stay inside a cell.

    >>> nested_edges(8)[1:-1].tolist()
    [2.220446049250313e-16, 0.1, 0.2, 0.5, 0.8, 0.9, 0.9999999999999998]
    """
    require_whole(cells, "the cells of a nested grid", 1, MOST_NESTED_CELLS)
    weigh = ignorance if mass is None else mass
    heap = [(-weigh(0.0, 1.0), (0, ONE))]
    inner = {EPS, 1.0 - EPS}
    while heap and len(inner) + 1 < cells:
        _, node = heappop(heap)
        edge, *halves = _divided(node)
        inner.add(edge)
        for half in halves:
            heappush(heap, (-weigh(half[0] / ONE, half[1] / ONE), half))
    for threshold in thresholds:
        inner |= set(_path(threshold))
    return np.array([0.0, *sorted(inner), 1.0])


def _divided(node: Node) -> tuple[float, *tuple[Node, ...]]:
    """The edge that divides a cell, and its halves as far as they can be divided.

    The finest beside 0 and 1 end at what was cut off first.
    """
    begin, end = node
    if end - begin == 1:
        return (EPS if begin == 0 else 1.0 - EPS,)
    unit = 10 ** (len(str(end - begin)) - 1)
    if end - begin == unit:
        unit //= 10
    base = begin - begin % (10 * unit)
    edge = base + _SPLIT[(begin - base) // unit, (end - base) // unit] * unit
    halves = [(begin, edge), (edge, end)]
    # The finest cells are divided only beside 0 and 1.
    return edge / ONE, *(half for half in halves if _divides(half))


def _divides(node: Node) -> bool:
    return node[1] - node[0] > 1 or node[0] == 0 or node[1] == ONE


def _path(threshold: float) -> list[float]:
    """A threshold and every edge that the tree cuts before it; nothing where it is no edge."""
    exact = Decimal(repr(float(threshold))) * ONE
    if not 0.0 < threshold < 1.0 or exact != int(exact):
        return []
    path, queue = set[int](), [int(exact)]
    while queue:
        edge = queue.pop()
        if 0 < edge < ONE and edge not in path:
            path.add(edge)
            queue.extend(_bounds(np.array([edge]))[0].tolist())
    return [edge / ONE for edge in path]


def is_nested_edge(threshold: float) -> bool:
    """Whether a threshold can be an edge of the nesting.

    >>> is_nested_edge(0.35), is_nested_edge(1 / 3)
    (True, False)
    """
    return bool(_path(threshold))


def ignorance(begin: float, end: float) -> float:
    """Half by width, half by octaves of the distance from 0 and 1, down to 2^-52.

    >>> round(ignorance(0.0, 1.0), 12)
    1.0
    """
    octaves = _log_length(begin, min(end, 0.5)) + _log_length(1.0 - end, min(1.0 - begin, 0.5))
    return 0.5 * (end - begin) + 0.5 * octaves / (2.0 * _log_length(0.0, 0.5))


def _log_length(begin: float, end: float) -> float:
    return max(log(max(end, EPS)) - log(max(begin, EPS)), 0.0)


def mass_of(scores: FloatArray, weights: FloatArray) -> Mass:
    """The mass of reference scores, with a tenth of ignorance.

    >>> mass_of(np.array([0.25]), np.ones(1))(0.2, 0.3) > 0.9
    True
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    total = np.concatenate([[0.0], np.cumsum(weights[order])]) / weights.sum()

    def mass(begin: float, end: float) -> float:
        first, last = np.searchsorted(ordered, [begin, end], side="right")
        # The first cell holds 0, too.
        held = total[last] - (total[first] if begin > 0.0 else 0.0)
        return 0.9 * float(held) + 0.1 * ignorance(begin, end)

    return mass
