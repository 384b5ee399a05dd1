"""The nesting is one tree for all surveys, and what is published of it holds nobody alone."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.nesting import (
    divided_cells,
    ignorance,
    is_nested_edge,
    nested_edges,
    publishable_edges,
)

# Written out by hand: which cell of a ten is cut where.
TEN = {
    (0, 10): 5, (0, 5): 2, (2, 5): 3, (3, 5): 4, (0, 2): 1,
    (5, 10): 8, (5, 8): 7, (5, 7): 6, (8, 10): 9,
}  # fmt: skip


def tree(decimals: int) -> Iterator[tuple[float, float, float]]:
    """Every cell that is divided, and where, down to so many decimals: by recursion."""

    def tens(base: int, unit: int) -> Iterator[tuple[float, float, float]]:
        for (begin, end), cut in TEN.items():
            places = (base + unit * place for place in (begin, cut, end))
            low, middle, high = (place / 10**decimals for place in places)
            yield low, middle, high
        if unit > 1:
            for digit in range(10):
                yield from tens(base + digit * unit, unit // 10)

    yield from tens(0, 10 ** (decimals - 1))


def test_each_edge_divides_the_cell_that_the_written_tree_says() -> None:
    cells = list(tree(3))
    edges = np.array(sorted({0.0, 1.0} | {middle for _, middle, _ in cells}))
    assert len(edges) == 1001
    bounds = {middle: (low, high) for low, middle, high in cells}
    for edge, (begin, end) in zip(edges[1:-1], divided_cells(edges), strict=True):
        assert (edges[begin], edges[end]) == bounds[edge]


@pytest.mark.parametrize("cells", [1, 2, 7, 100, 1000])
def test_a_nested_grid_has_as_many_cells_as_asked_and_is_of_the_tree(cells: int) -> None:
    edges = nested_edges(cells)
    assert len(edges) == cells + 1
    divided_cells(edges)


def test_common_thresholds_are_edges_and_equal_the_numbers_that_people_type() -> None:
    wanted = [0.5, 0.3, 0.05, 0.125, 0.999, 1e-6, 0.123456]
    assert set(wanted) <= set(nested_edges(8, thresholds=wanted).tolist())
    assert not is_nested_edge(1 / 3)
    assert not is_nested_edge(0.1 + 0.2)
    assert nested_edges(8, thresholds=[1 / 3]).tolist() == nested_edges(8).tolist()


def test_a_thousand_cells_reach_scores_of_a_billionth_and_of_nothing_at_all() -> None:
    """Half of the cells lie by octaves: 24 decades have some twenty each."""
    edges = nested_edges(1000)
    for decade in range(1, 11):
        inside = (edges > 10.0**-decade / 10.0) & (edges <= 10.0**-decade)
        assert inside.sum() >= 10
        beside_one = 1.0 - edges
        mirrored = (beside_one > 10.0**-decade / 10.0) & (beside_one <= 10.0**-decade)
        assert mirrored.sum() >= 10
    assert {2.0**-52, 1.0 - 2.0**-52} <= set(edges.tolist())


def test_a_reference_puts_cells_where_its_scores_are() -> None:
    rng = np.random.default_rng(0)
    scores = 10.0 ** rng.uniform(-7.0, -6.0, 20_000)
    edges = Grid.nested(500, reference=scores).edges
    divided_cells(edges)
    counts = np.histogram(scores, edges)[0]
    assert ((edges > 1e-7) & (edges < 1e-6)).sum() > 350
    assert counts.max() < 3.0 * len(scores) / 400


def test_half_of_ignorance_is_width_and_half_octaves() -> None:
    decades = 51.0 * np.log10(2.0)
    assert ignorance(0.0, 1.0) == pytest.approx(1.0)
    assert ignorance(1e-6, 1e-5) == pytest.approx(0.5 * 9e-6 + 0.25 / decades)
    assert ignorance(1.0 - 1e-5, 1.0 - 1e-6) == pytest.approx(0.5 * 9e-6 + 0.25 / decades)


@pytest.mark.parametrize(
    "edges",
    [
        [0.0, 1 / 3, 1.0],
        [0.0, 0.2, 1.0],
        [0.0, 0.25, 0.5, 1.0],
        [0.0, 0.5, 1.0 - 2.0**-52, 1.0],
        [0.0, 0.5000000000001, 1.0],
    ],
)
def test_edges_off_the_tree_or_without_their_cell_are_refused(edges: list[float]) -> None:
    with pytest.raises(SettingInvalid, match="one nesting of cells"):
        divided_cells(np.array(edges))


@st.composite
def rows(draw: st.DrawFn) -> Examples:
    """Scores that spread, crowd at an end or are tied; any share of positives."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(20, 600))
    kind = draw(st.sampled_from(["even", "crowded", "tied", "two"]))
    scores = {
        "even": rng.random(size),
        "crowded": 10.0 ** rng.uniform(-9.0, -1.0, size),
        "tied": rng.choice([0.0, 0.1, 0.35, 0.5, 1.0], size),
        "two": np.where(rng.random(size) < 0.5, rng.beta(1, 30, size), rng.beta(30, 1, size)),
    }[kind]
    chance = draw(st.sampled_from([0.05, 0.2, 0.5])) + 0.4 * scores
    return Examples((rng.random(size) < chance).astype(np.uint8), scores)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Nested grids of any size, with any thresholds, by width and octaves or by a reference."""
    cells = draw(st.integers(1, 300))
    thresholds = draw(st.lists(st.integers(1, 999).map(lambda unit: unit / 1000), max_size=3))
    if draw(st.booleans()):
        return Grid.nested(cells, thresholds=thresholds)
    reference = np.random.default_rng(draw(st.integers(0, 99))).beta(0.5, 2.0, 200)
    return Grid.nested(cells, reference=reference, thresholds=thresholds)


def published_edges(grid: Grid, examples: Examples, smallest: int) -> FloatArray:
    kept = publishable_edges(grid.edges, grid.count(examples), smallest)
    edges: FloatArray = grid.edges[kept]
    return edges


def counted(examples: Examples, edges: FloatArray) -> IntArray:
    """Counts per label between edges, by comparing each score with each edge."""
    table = np.zeros((2, len(edges) - 1), dtype=np.int64)
    for cell, (low, high) in enumerate(pairwise(edges)):
        inside = (examples.scores > low) & (examples.scores <= high)
        inside |= (cell == 0) & (examples.scores == 0.0)
        for label in (0, 1):
            table[label, cell] = (inside & (examples.labels == label)).sum()
    return table


@settings(max_examples=60, deadline=None)
@given(rows(), grids(), st.integers(2, 20))
def test_no_published_cell_holds_fewer_than_the_smallest(
    examples: Examples, grid: Grid, smallest: int
) -> None:
    """Beyond a whole that is itself too small, which `published` refuses."""
    edges = published_edges(grid, examples, smallest)
    if len(edges) > 2:
        assert holds_enough(counted(examples, edges), smallest)


def holds_enough(counts: IntArray, smallest: int) -> bool:
    """Every cell so many of each label, or nobody."""
    return bool(((counts.min(axis=0) >= smallest) | (counts.max(axis=0) == 0)).all())


@settings(max_examples=60, deadline=None)
@given(rows(), grids(), grids(), st.integers(2, 20), st.integers(2, 20))
def test_no_difference_of_two_published_files_of_the_same_rows_holds_fewer(
    examples: Examples, one: Grid, other: Grid, first: int, second: int
) -> None:
    """All that two files tell together: counts between any two edges of either."""
    edges = np.union1d(
        published_edges(one, examples, first), published_edges(other, examples, second)
    )
    if len(edges) > 2:
        assert holds_enough(counted(examples, edges), min(first, second))


def test_an_empty_half_is_parted_only_from_an_edge_that_is_published() -> None:
    """(0.5, 0.6] holds three rows, (0.6, 0.65] nobody: an edge at 0.65 would tell of the three."""
    edges = nested_edges(1, thresholds=[0.65])
    scores = np.repeat([0.3, 0.55, 0.67, 0.9], [40, 3, 40, 40])
    examples = Examples(np.arange(len(scores)) % 2, scores)
    counts = Grid.explicit(edges).count(examples)
    kept = edges[publishable_edges(edges, counts, 10)].tolist()
    assert 0.65 not in kept
    # The planted twin: without the rule about the edge, what lies between is three rows.
    assert not holds_enough(counted(examples, np.array([0.0, 0.5, 0.65, 1.0])), 10)


def test_tied_scores_among_nobody_are_published_where_they_are() -> None:
    scores = np.repeat([0.2, 0.4, 0.7], 60)
    examples = Examples(np.arange(len(scores)) % 2, scores)
    edges = published_edges(Grid.nested(2000), examples, 10)
    for score in (0.2, 0.4, 0.7):
        place = int(np.searchsorted(edges, score))
        assert edges[place] - edges[place - 1] < 2e-3


def test_the_same_check_sees_that_merging_from_the_left_differs_by_single_rows() -> None:
    """The planted twin: each file alone is fine, their difference is a row."""
    rng = np.random.default_rng(3)
    examples = Examples(rng.integers(0, 2, 400), rng.random(400))

    def from_the_left(grid: Grid) -> FloatArray:
        kept, held = [0.0], np.zeros(2)
        for cell, count in enumerate(grid.count(examples).T):
            held += count
            if held.min() >= 10:
                kept.append(float(grid.edges[cell + 1]))
                held[:] = 0.0
        kept[-1] = 1.0
        return np.array(kept)

    one, other = from_the_left(Grid.nested(40)), from_the_left(Grid.nested(700))
    assert counted(examples, one).min() >= 10
    assert counted(examples, other).min() >= 10
    assert counted(examples, np.union1d(one, other)).min() < 10
