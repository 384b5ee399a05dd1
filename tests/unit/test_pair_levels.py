"""Levels over pairs of cells."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Exact, Polya, Privacy, RandomizedResponse
from fedassay.pair_grid import PairGrid
from fedassay.pair_levels import PairLevels
from fedassay.pair_nesting import LADDER, ladder_cuts
from fedassay.survey import Survey
from fedassay.survey_json import survey_from_json

LEVELS = PairLevels.margins_and(4, 3, ((0, 2), (0, 1)))
GROUPS: dict[int, Callable[[int, int], int]] = {
    0: lambda i, j: i,
    1: lambda i, j: j,
    2: lambda i, j: 2 * (i >= 2) + (j >= 1),
}


@given(st.lists(st.integers(0, 9), min_size=24, max_size=24))
def test_levels_of_a_pair_are_both_margins_and_groups_of_pairs(counts: list[int]) -> None:
    leaves = np.array(counts).reshape(2, 12)
    for level, group in GROUPS.items():
        expected = np.zeros((2, LEVELS.cells_per_level[level]), np.int64)
        for label in (0, 1):
            for i in range(4):
                for j in range(3):
                    expected[label, group(i, j)] += leaves[label, 3 * i + j]
        assert LEVELS.at_level(leaves, level).tolist() == expected.tolist()
        by_rows = np.einsum("lcx,lx->lc", LEVELS.rows(level), leaves)
        assert by_rows.tolist() == expected.tolist()


def test_levels_of_a_pair_read_back() -> None:
    assert PairLevels.from_json(Fields(LEVELS.to_json(), "levels"), 12) == LEVELS
    for change in ({"second": 5}, {"levels": [[[0]]]}, {"levels": [[[0], ["1"]]]}, {"levels": 3}):
        with pytest.raises(FileInvalid, match=r"two lists of whole numbers|second"):
            PairLevels.from_json(Fields({**LEVELS.to_json(), **change}, "levels"), 12)


@pytest.mark.parametrize(
    "cuts", [(), (((0, 1),),), (((1,), (0,)),), (((0, 0), (0,)),), (((), (0,)),)]
)
def test_groups_start_at_the_first_cell_and_rise(cuts: object) -> None:
    with pytest.raises(SettingInvalid):
        PairLevels(2, 2, cuts)  # type: ignore[arg-type]  # what a user may pass


def nested_pair() -> PairGrid:
    grid = Grid.nested(40, thresholds=LADDER)
    return PairGrid.of(("a", "b"), grid, grid)


def exact(pair: PairGrid, levels: PairLevels | Hierarchy, smallest: int) -> Survey:
    return Survey(
        privacy=Privacy.SECURE,
        grid=pair,
        hierarchy=levels,
        mechanisms=(Exact(),) * levels.levels,
        smallest_cell=smallest,
    )


def test_a_survey_of_two_models_reads_back_with_its_fingerprint() -> None:
    pair = nested_pair()
    cuts = ladder_cuts(pair.first)
    survey = exact(
        pair, PairLevels.margins_and(pair.first.cells, pair.second.cells, (cuts, cuts)), 10
    )
    again = survey_from_json(survey.to_json())
    assert again == survey
    assert again.fingerprint == survey.fingerprint
    assert again.pair == pair


def test_exact_sums_of_two_models_have_the_same_joint_cells_in_all_surveys() -> None:
    pair = nested_pair()
    other = PairLevels.margins_and(pair.first.cells, pair.second.cells, ((0, 3), (0, 3)))
    with pytest.raises(SettingInvalid, match="the same joint cells in all surveys"):
        exact(pair, other, 10)
    with pytest.raises(SettingInvalid, match="the same joint cells in all surveys"):
        exact(pair, Hierarchy.flat(pair.cells), 10)
    plain = PairGrid.of(("a", "b"), Grid.nested(8), Grid.nested(8))
    with pytest.raises(SettingInvalid, match="a grid without their edges"):
        exact(plain, PairLevels.margins_and(8, 8, ((0,), (0,))), 10)
    off = PairGrid.of(("a", "b"), Grid.uniform(3), Grid.uniform(3))
    with pytest.raises(SettingInvalid, match="one nesting of cells"):
        exact(off, PairLevels.margins_and(3, 3, ((0,), (0,))), 10)


def test_two_models_are_asked_for_in_ways_that_can_be_read() -> None:
    pair = PairGrid.of(("a", "b"), Grid.uniform(4), Grid.uniform(4))
    with pytest.raises(SettingInvalid, match="found something else"):
        exact(pair, Hierarchy.regular(16, 4), 0)
    with pytest.raises(SettingInvalid, match="found something else"):
        exact(pair, PairLevels(4, 4, (((0, 1), (0,)),)), 0)
    with pytest.raises(SettingInvalid, match="stand on a pair of grids"):
        Survey(
            privacy=Privacy.SECURE,
            grid=Grid.uniform(16),
            hierarchy=PairLevels.margins_and(4, 4, ((0,), (0,))),
            mechanisms=(Exact(),) * 3,
        )
    levels = PairLevels.margins_and(4, 4, ((0, 2), (0, 2)))
    third = (Fraction(1, 3),) * 3
    with pytest.raises(SettingInvalid, match="of every client"):
        Survey(
            privacy=Privacy.DISTRIBUTED,
            grid=pair,
            hierarchy=levels,
            mechanisms=(Polya(Fraction(1), 1, 10),) * 3,
            level_policy=OneLevel(third),
            minimum_reports=10,
        )
    drawn = Survey(
        privacy=Privacy.LOCAL,
        grid=pair,
        hierarchy=levels,
        mechanisms=tuple(RandomizedResponse(Fraction(1), 4, False) for _ in range(3)),
        level_policy=OneLevel(third),
    )
    assert drawn.epsilon == 1


def test_levels_of_a_pair_add_up_in_epsilon() -> None:
    pair = PairGrid.of(("a", "b"), Grid.uniform(4), Grid.uniform(4))
    survey = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=pair,
        hierarchy=PairLevels.margins_and(4, 4, ((0, 2), (0, 2))),
        mechanisms=tuple(Polya(Fraction(part, 7), 1, 10) for part in (3, 3, 1)),
        minimum_reports=10,
    )
    assert survey.epsilon == 1
