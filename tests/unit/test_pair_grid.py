"""Two models' scores as one joint cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.errors import FileInvalid, LabelInvalid, SettingInvalid
from fedassay.examples import Examples
from fedassay.files import Fields
from fedassay.grid import Grid
from fedassay.pair_grid import PairGrid, check_names, grid_from_json

SCORES = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1)


def cell(edges: list[float], score: float) -> int:
    """By search from the left, as (lo, hi] reads; the first cell holds 0."""
    return next(i for i in range(len(edges) - 1) if score <= edges[i + 1])


@given(SCORES)
def test_a_joint_cell_counts_the_rows_of_its_two_cells(
    rows: list[tuple[int, float, float]],
) -> None:
    one, two = [0.0, 0.3, 0.5, 1.0], [0.0, 0.1, 0.6, 0.9, 1.0]
    grid = PairGrid.of(("a", "b"), Grid.explicit(one), Grid.explicit(two))
    labels, first, second = (list(column) for column in zip(*rows, strict=True))
    counted = grid.count(grid.examples(Examples(labels, first), Examples(labels, second)))
    expected = np.zeros((2, 3, 4), np.int64)
    for label, a, b in rows:
        expected[label, cell(one, a), cell(two, b)] += 1
    assert counted.tolist() == expected.reshape(2, 12).tolist()


def test_two_models_must_score_the_same_rows() -> None:
    grid = PairGrid.of(("a", "b"), Grid.uniform(2), Grid.uniform(2))
    three, two = Examples([0, 1, 1], [0.1, 0.2, 0.3]), Examples([0, 1], [0.1, 0.7])
    with pytest.raises(LabelInvalid, match="found 3 scores of a and 2 of b"):
        grid.examples(three, two)
    with pytest.raises(LabelInvalid, match=r"labels that differ \(values withheld\)"):
        grid.examples(two, Examples([1, 0], [0.1, 0.7]))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("a", "b", "c"), "found 3"),
        (("a",), "found 1"),
        (("a", "a"), "'a' twice"),
        (("a", "b@"), "'b@'"),
        (("a", ""), "''"),
        ("ab", "found 1"),
    ],
)
def test_two_models_have_two_names_that_fit_into_a_metrics_name(names: object, found: str) -> None:
    with pytest.raises(SettingInvalid, match=found):
        check_names(names)


def test_a_pair_of_grids_reads_back_and_equals_itself_alone() -> None:
    grid = PairGrid.of(("old", "new"), Grid.cubic(4), Grid.explicit([0.0, 0.3, 1.0]))
    assert grid_from_json(Fields(grid.to_json(), "grid")) == grid
    assert grid != PairGrid.of(("new", "old"), grid.first, grid.second)
    assert grid != PairGrid.of(("old", "new"), grid.second, grid.first)
    assert grid != Grid.uniform(8)
    assert len({grid, PairGrid.of(("old", "new"), grid.first, grid.second)}) == 1


def test_a_pair_is_of_two_grids_and_not_too_large() -> None:
    pair = PairGrid.of(("a", "b"), Grid.uniform(2), Grid.uniform(2))
    with pytest.raises(SettingInvalid, match="two grids of scores"):
        PairGrid.of(("a", "b"), pair, Grid.uniform(2))
    with pytest.raises(SettingInvalid, match="at most 1,048,576 cells together"):
        PairGrid.of(("a", "b"), Grid.uniform(2**11), Grid.uniform(2**10))
    with pytest.raises(SettingInvalid, match="has 4 of them; found 8"):
        PairGrid(Grid.uniform(8).edges, names=("a", "b"), first=pair.first, second=pair.second)
    with pytest.raises(FileInvalid, match="names"):
        grid_from_json(Fields({**pair.to_json(), "names": "ab"}, "grid"))


def test_rows_with_one_score_are_not_counted_as_pairs() -> None:
    grid = PairGrid.of(("a", "b"), Grid.uniform(4), Grid.uniform(4))
    with pytest.raises(SettingInvalid, match=r"two models, a and b; found rows with one \(values"):
        grid.count(Examples([0, 1], [0.2, 0.7]))
    assert grid.count(Examples([], [])).sum() == 0


def test_a_pair_that_says_nothing_of_its_grids_has_one_cell() -> None:
    grid = PairGrid(np.array([0.0, 1.0]))
    assert (grid.cells, grid.first.cells, grid.second.cells) == (1, 1, 1)
