"""Counting by tables: exact wherever a score lies, against bisection over the edges."""

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Grid
from fedassay.examples import FloatArray, LabelArray
from fedassay.grid_table import CellCounter, EvenCells, OctaveCells, Table
from tests.tables import AWKWARD_SCORES

GRIDS = {
    "fine": Grid.fine(),
    "fine 1": Grid.fine(1),
    "fine 12345": Grid.fine(12_345),
    "octaves of 1": Grid.octaves(1),
    "octaves of 3": Grid.octaves(3),
    "octaves of 8": Grid.octaves(8).with_ends().with_edges_at([1e-300, 1e-15, 0.3, 1 - 2**-53]),
    "octaves of 256": Grid.octaves(256),
    "octaves of 4000": Grid.octaves(4000),
    "crowded": Grid.explicit([0.0, *np.geomspace(1e-320, 0.9, 300), 1.0]),
    "crowded at 1": Grid.explicit([0.0, *(1 - np.arange(40, 0, -1) * 2.0**-53), 1.0]),
    "cubic": Grid.cubic(1000),
}
grids = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())
FINE_CELLS = [EvenCells(2.0**10), EvenCells(2.0**18), OctaveCells(6), OctaveCells(10)]
scores_anywhere = (
    st.floats(0.0, 1.0)
    | st.sampled_from([*AWKWARD_SCORES, -0.0, 2.0**-54, 2.0**-1074])
    | st.floats(-1074.0, 0.0).map(lambda power: 2.0**power)
    | st.floats(-53.0, -1.0).map(lambda power: 1.0 - 2.0**power)
    | st.tuples(st.integers(1, 54), st.integers(0, 1024), st.integers(-1, 1)).map(
        lambda each: (2.0 ** -each[0]) * (1 + each[1] / 1024) + each[2] * 2.0**-60
    ).map(lambda score: min(max(score, 0.0), 1.0))
    | st.integers(0, 2**14).map(lambda steps: 1.0 - steps * 2.0**-53)
)  # fmt: skip


def scores_about(grid: Grid) -> FloatArray:
    """On every edge, one double below and above it, and others down to the least there are."""
    generator = np.random.default_rng(3)
    powers = generator.uniform(-60.0, 0.0, 4000)
    edges = grid.edges[:: max(1, grid.cells // 40_000)]
    return np.concatenate(
        [
            edges,
            np.nextafter(edges, 0.0),
            np.nextafter(edges, 1.0),
            2.0**powers,
            1.0 - 2.0**powers,
            generator.random(4000),
            [*AWKWARD_SCORES, -0.0, 5e-324, 1e-310, 2.0**-1022, 1.0],
        ]
    )


def labels_for(scores: FloatArray) -> LabelArray:
    return np.random.default_rng(4).integers(0, 2, len(scores)).astype(np.uint8)


@grids
def test_counting_by_tables_equals_bisection_at_every_edge_and_beside_it(grid: Grid) -> None:
    scores = scores_about(grid)
    labels = labels_for(scores)
    counted = CellCounter.of(grid.edges).count(scores, labels)
    edges = grid.edges.tolist()
    expected = np.zeros((2, grid.cells), dtype=np.int64)
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        expected[label, max(bisect_left(edges, score) - 1, 0)] += 1
    assert (counted == expected).all()


@pytest.mark.parametrize("fine", FINE_CELLS, ids=str)
@given(score=scores_anywhere)
def test_a_fine_cell_knows_its_ends(fine: EvenCells | OctaveCells, score: float) -> None:
    (place,) = fine.places(np.array([score]))
    first, last = fine.ends()
    assert 0 <= place < len(first) == len(last)
    assert first[place] <= score <= last[place]


@pytest.mark.parametrize("fine", FINE_CELLS, ids=str)
def test_scores_within_2_to_the_minus_39_of_1_lie_between_their_cells_ends(
    fine: EvenCells | OctaveCells,
) -> None:
    """All doubles there are in the last 2^14 steps below 1, and the first of each octave."""
    scores = np.concatenate([1.0 - np.arange(2**14) * 2.0**-53, 2.0 ** -np.arange(1.0, 1075.0)])
    first, last = fine.ends()
    places = fine.places(scores)
    assert (first[places] <= scores).all()
    assert (scores <= last[places]).all()


@given(st.lists(scores_anywhere, min_size=1, max_size=40), st.data())
def test_counting_equals_bisection_on_any_edges(scores: list[float], data: st.DataObject) -> None:
    inner = data.draw(st.lists(scores_anywhere, min_size=1, max_size=40))
    edges = np.unique([0.0, 1.0, *(abs(edge) for edge in inner)])
    even = Table.of(EvenCells(2.0**10), edges)
    counter = CellCounter(edges, (even, Table.of(OctaveCells(6), edges)))
    expected = [0] * (len(edges) - 1)
    for score in scores:
        expected[max(bisect_left(edges.tolist(), score) - 1, 0)] += 1
    counted = counter.count(np.array(scores), np.ones(len(scores), np.uint8))
    assert counted.tolist() == [[0] * len(expected), expected]


@pytest.mark.parametrize("grid", [Grid.fine(), Grid.octaves(8), Grid.octaves(3)])
def test_crowded_rows_are_not_searched_for(grid: Grid) -> None:
    """Of rows near 1e-6, or as near to 1, at most one in 16 is left by all tables."""
    low = 1e-6 * np.exp(np.random.default_rng(1).normal(size=20_000))
    for scores in (low, 1.0 - low):
        left = np.ones(len(scores), dtype=bool)
        for table in CellCounter.of(grid.edges).tables:
            left &= table.is_split[table.fine.places(scores)]
        assert left.mean() <= 1 / 16


@pytest.mark.parametrize("grid", [Grid.uniform(2**14), Grid.cubic(1000), Grid.uniform(7)])
def test_grids_that_do_not_crowd_have_one_table(grid: Grid) -> None:
    assert len(CellCounter.of(grid.edges).tables) == 1
