"""The nesting is one tree for all surveys, and what is published of it holds nobody alone."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.grid_rules import EPS
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
    edges = np.array(sorted({0.0, EPS, 1.0 - EPS, 1.0} | {middle for _, middle, _ in cells}))
    assert len(edges) == 1003
    bounds = {middle: (max(low, EPS), min(high, 1.0 - EPS)) for low, middle, high in cells}
    bounds |= {EPS: (0.0, 1.0), 1.0 - EPS: (EPS, 1.0)}
    for edge, (begin, end) in zip(edges[1:-1], divided_cells(edges), strict=True):
        assert (edges[begin], edges[end]) == bounds[edge]


@pytest.mark.parametrize(
    ("asked", "cells"), [(1, 3), (2, 3), (7, 7), (40, 40), (100, 100), (1000, 1000)]
)
def test_a_nested_grid_has_as_many_cells_as_asked_those_of_0_and_1_among_them(
    asked: int, cells: int
) -> None:
    edges = nested_edges(asked)
    assert len(edges) == cells + 1
    assert (edges[1], edges[-2]) == (EPS, 1.0 - EPS)
    divided_cells(edges)


@pytest.mark.parametrize(
    ("cells", "digest"),
    [(200, "9b1e4e29c2d7"), (1024, "48f7fca904dd"), (2048, "a8f17d587ffc"), (4096, "d4430001e1c0")],
)
def test_grids_that_were_asked_before_are_the_same_to_the_last_bit(cells: int, digest: str) -> None:
    """Or every survey on them would have another fingerprint."""
    assert sha256(nested_edges(cells).tobytes()).hexdigest().startswith(digest)


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
        [1 / 3],
        [0.2],
        [0.25, 0.5],
        [0.5, 1.0 - 2.0**-51],
        [0.5000000000001],
    ],
)
def test_edges_off_the_tree_or_without_their_cell_are_refused(edges: list[float]) -> None:
    with pytest.raises(SettingInvalid, match="one nesting of cells"):
        divided_cells(np.array([0.0, EPS, *edges, 1.0 - EPS, 1.0]))


@pytest.mark.parametrize("inner", [[], [EPS], [0.5], [EPS, 0.5], [0.2, 0.5, 1.0 - EPS]])
def test_edges_without_cells_of_exactly_0_and_1_are_refused(inner: list[float]) -> None:
    """Or one survey's first cell would be another's two, by another tree."""
    with pytest.raises(SettingInvalid, match=r"none at 2\^-52 and 1 - 2\^-52"):
        divided_cells(np.array([0.0, *inner, 1.0]))


@st.composite
def rows(draw: st.DrawFn) -> Examples:
    """Scores that spread, crowd at an end or are tied, any with heaps at 0 and 1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(20, 600))
    kind = draw(st.sampled_from(["even", "crowded", "tied", "two", "ends"]))
    scores = {
        "even": rng.random(size),
        "crowded": 10.0 ** rng.uniform(-9.0, -1.0, size),
        "tied": rng.choice([0.0, 0.1, 0.35, 0.5, 1.0], size),
        "ends": rng.integers(0, 2, size).astype(np.float64),
        "two": np.where(rng.random(size) < 0.5, rng.beta(1, 30, size), rng.beta(30, 1, size)),
    }[kind]
    for end in (0.0, 1.0):
        scores[rng.random(size) < draw(st.sampled_from([0.0, 0.01, 0.1, 0.4]))] = end
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


def heaped(at_0: int, at_1: int) -> Examples:
    """So many of each label at exactly 0 and 1, 40 at each of two scores inside, none beside."""
    scores = np.repeat([0.0, 0.3, 0.7, 1.0], [2 * at_0, 80, 80, 2 * at_1])
    return Examples(np.arange(len(scores)) % 2, scores)


@pytest.mark.parametrize(("at_0", "at_1"), [(3, 0), (0, 3), (3, 3), (9, 9)])
def test_too_few_rows_of_exactly_0_and_1_hide_with_what_is_beside_them(
    at_0: int, at_1: int
) -> None:
    """Nobody is from them to 0.2, or from 0.8: an edge there would tell of the few."""
    examples = heaped(at_0, at_1)
    edges = published_edges(Grid.nested(300), examples, 10)
    assert holds_enough(counted(examples, edges), 10)
    assert not {EPS, 1.0 - EPS} & set(edges)
    # The planted twin: as if what is empty could end beside rows that are not told.
    naive = naively_published(Grid.nested(300), examples, 10)
    assert not holds_enough(counted(examples, naive), 10)


def naively_published(grid: Grid, examples: Examples, smallest: int) -> FloatArray:
    """What would be if cells of exactly 0 and 1 counted for nothing where empty cells end."""
    emptied = grid.count(examples)
    emptied[:, [0, -1]] = 0
    edges: FloatArray = grid.edges[publishable_edges(grid.edges, emptied, smallest)]
    return edges


def test_nobody_at_exactly_0_and_1_is_told_with_who_is_not_beside_them() -> None:
    edges = published_edges(Grid.nested(300), heaped(0, 0), 10)
    assert 0.2 <= edges[1] < 0.3
    assert 0.7 < edges[-2] <= 0.8


@pytest.mark.parametrize("ends", [[0.0], [1.0], [0.0, 1.0]])
def test_scores_of_exactly_0_and_1_alone_are_told_with_nobody_between(ends: list[float]) -> None:
    examples = Examples(np.arange(80) % 2, np.repeat(ends, 80 // len(ends)))
    edges = published_edges(Grid.nested(10), examples, 10)
    assert set(edges) == {0.0, 1.0} | {EPS if end == 0.0 else 1.0 - EPS for end in ends}
    assert holds_enough(counted(examples, edges), 10)


@given(rows(), grids())
@settings(max_examples=40, deadline=None)
def test_no_cell_of_2_to_the_minus_52_is_published_empty(examples: Examples, grid: Grid) -> None:
    edges = published_edges(grid, examples, 10)
    counts = counted(examples, edges)
    assert edges[1] > EPS or counts[:, 0].min() >= 10
    assert edges[-2] < 1.0 - EPS or counts[:, -1].min() >= 10


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_heap_at_exactly_0_or_1_is_a_cell_of_its_own_though_few_are_beside_it(
    end: float,
) -> None:
    """Two positives between the heap and the others; by decimals alone no cut parts them."""
    rng = np.random.default_rng(0)
    inside = np.concatenate([0.002 * rng.random(200), 0.3 + 0.4 * rng.random(200)])
    labels = np.concatenate([np.arange(200) < 2, np.arange(200) % 2])
    scores = np.concatenate([np.full(20, end), np.abs(end - inside)])
    examples = Examples(np.concatenate([np.arange(20) % 2, labels]), scores)
    edges = published_edges(Grid.nested(300), examples, 10)
    counts = counted(examples, edges)
    first = 0 if end == 0.0 else -1
    assert counts[:, first].tolist() == [10, 10]
    assert edges[1] == EPS if end == 0.0 else edges[-2] == 1.0 - EPS


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
