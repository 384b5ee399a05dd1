import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Hierarchy
from fedassay.errors import SettingInvalid
from fedassay.hierarchy import Interleaved, fanouts_for


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    fanouts = tuple(draw(st.lists(st.integers(2, 5), min_size=1, max_size=4)))
    leaves = draw(st.integers(1, int(np.prod(fanouts))))
    return Hierarchy(leaves, fanouts)


@given(hierarchies(), st.integers(0, 2**31))
def test_every_cell_is_the_sum_of_the_leaves_below_it(hierarchy: Hierarchy, seed: int) -> None:
    leaves = np.random.default_rng(seed).integers(0, 100, (2, hierarchy.leaves))
    for level, counts in enumerate(hierarchy.climb(leaves)):
        block = int(np.prod(hierarchy.fanouts[level + 1 :]))
        expected = [
            [int(row[i : i + block].sum()) for i in range(0, hierarchy.leaves, block)]
            for row in leaves
        ]
        assert counts.tolist() == expected
        assert counts.shape == (2, hierarchy.cells_per_level[level])


@given(hierarchies())
def test_the_last_level_is_the_leaves(hierarchy: Hierarchy) -> None:
    assert hierarchy.cells_per_level[-1] == hierarchy.leaves
    assert hierarchy.width == 2 * sum(hierarchy.cells_per_level)


@given(hierarchies(), st.integers(0, 2**31))
def test_splitting_undoes_joining_levels(hierarchy: Hierarchy, seed: int) -> None:
    leaves = np.random.default_rng(seed).integers(0, 100, (2, hierarchy.leaves))
    levels = hierarchy.climb(leaves)
    joined = np.concatenate([level.ravel() for level in levels])
    parts = hierarchy.split(joined)
    assert all((a == b).all() for a, b in zip(levels, parts, strict=True))


@given(st.integers(1, 5000), st.integers(2, 20))
def test_a_regular_hierarchy_has_the_fewest_levels_that_reach_its_leaves(
    leaves: int, fanout: int
) -> None:
    hierarchy = Hierarchy.regular(leaves, fanout)
    assert fanout**hierarchy.levels >= leaves
    assert hierarchy.levels == 1 or fanout ** (hierarchy.levels - 1) < leaves


@given(st.integers(2, 5000), st.integers(1, 6))
def test_even_fanouts_reach_their_leaves(leaves: int, levels: int) -> None:
    fanouts = fanouts_for(leaves, levels)
    assert len(fanouts) == levels
    assert np.prod(fanouts) >= leaves


@pytest.mark.parametrize(
    ("leaves", "fanouts"),
    [(0, (2,)), (4, ()), (4, (2,)), (4, (1, 4)), (4, (-2, -2)), (4, (2**40,) * 3), (2, (2,) * 21)],
)
def test_impossible_hierarchies_are_refused(leaves: int, fanouts: tuple[int, ...]) -> None:
    with pytest.raises(SettingInvalid):
        Hierarchy(leaves, fanouts)


@given(hierarchies())
def test_each_leaf_lies_in_the_cell_that_counts_it(hierarchy: Hierarchy) -> None:
    """A client's local report and its counters name the same cell."""
    every = np.arange(hierarchy.leaves)
    for level in range(hierarchy.levels):
        cells = hierarchy.cell_of(every, level)
        for leaf in every:
            alone = np.zeros((2, hierarchy.leaves), dtype=np.int64)
            alone[0, leaf] = 1
            (place,) = np.flatnonzero(hierarchy.at_level(alone, level)[0])
            assert place == cells[leaf]


@given(st.integers(2, 60), st.data())
def test_interleaved_levels_cut_at_every_edge_once(leaves: int, data: st.DataObject) -> None:
    levels = Interleaved(leaves, data.draw(st.integers(1, leaves - 1)))
    cuts = [start for level in range(levels.levels) for start in levels.starts(level)[1:].tolist()]
    assert sorted(cuts) == list(range(1, leaves))
    assert all(levels.starts(level)[0] == 0 for level in range(levels.levels))
