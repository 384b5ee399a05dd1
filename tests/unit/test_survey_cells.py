"""Rows in a survey's cells: every row once, in the cells of its group."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fedassay
from fedassay.errors import SettingInvalid, SurveyMismatch
from fedassay.examples import Examples
from fedassay.group_names import GroupNames
from fedassay.mechanisms import Polya, Privacy
from fedassay.planning.grouped import grouped_cells
from fedassay.survey import Survey
from fedassay.survey_cells import all_parts, by_part, count_rows
from fedassay.survey_json import survey_from_json
from fedassay.two_steps import check_pair
from tests.laws import discrete_laplace

GROUPS = GroupNames("sex", ("F", "M"))
RNG = np.random.default_rng(5)
ROWS = 400
LABELS, SCORES = RNG.integers(0, 2, ROWS), RNG.random(ROWS)
SEXES = RNG.choice(["F", "M", "X", ""], ROWS)


def made(**settings: Any) -> Survey:
    return fedassay.new_survey(groups=GROUPS, smallest_cell=0, height=3, **settings)


def test_counts_are_those_of_each_group_alone() -> None:
    survey = made()
    counts = count_rows(survey, Examples(LABELS, SCORES).in_groups(GROUPS.codes(SEXES.tolist())))
    for place, name in enumerate(["F", "M", "", "X"]):
        for label in (0, 1):
            own = SCORES[(name == SEXES) & (label == LABELS)]
            expected = np.histogram(own, np.linspace(0, 1, 9))[0]
            assert by_part(survey, counts)[label, place].tolist() == expected.tolist()


def test_all_groups_together_are_the_survey_without_groups() -> None:
    survey, plain = made(), fedassay.new_survey(smallest_cell=0, height=3)
    rows = Examples(LABELS, SCORES).in_groups(GROUPS.codes(SEXES.tolist()))
    pooled = all_parts(survey, count_rows(survey, rows))
    assert np.array_equal(pooled, count_rows(plain, rows))


def test_one_example_moves_one_counter_of_each_level_by_one() -> None:
    # Exhaustive: every cell of every group and label, as one row more.
    for height in (1, 2):
        grid, levels = grouped_cells(
            fedassay.Grid.uniform(4), fedassay.Hierarchy(4, (4,) if height == 1 else (2, 2)), 4
        )
        noise = tuple(Polya(Fraction(1, height), 1, 2) for _ in range(height))
        survey = Survey(
            privacy=Privacy.DISTRIBUTED, grid=grid, hierarchy=levels, mechanisms=noise,
            groups=GROUPS,
        )  # fmt: skip
        for label in (0, 1):
            for code in range(4):
                for score in (0.1, 0.3, 0.6, 0.9):
                    one = count_rows(survey, Examples([label], [score]).in_groups(np.array([code])))
                    for level in range(height):
                        moved = survey.hierarchy.at_level(one, level)
                        assert moved.sum() == 1
                        assert np.count_nonzero(moved) == 1
        # So one epsilon serves all groups, as it would serve one.
        assert survey.guarantee.epsilon == 1


def test_rows_without_groups_are_refused_before_anything_is_counted() -> None:
    with pytest.raises(SettingInvalid, match='tells groups of "sex" apart'):
        count_rows(made(), Examples(LABELS, SCORES))


def test_groups_are_part_of_the_fingerprint_and_survive_the_file() -> None:
    survey, other = (
        made(),
        fedassay.new_survey(groups={"sex": ["M", "F"]}, smallest_cell=0, height=3),
    )
    assert survey_from_json(survey.to_json()) == survey
    assert survey.fingerprint != other.fingerprint


def test_a_hierarchy_over_the_grid_alone_is_refused() -> None:
    survey = made()
    with pytest.raises(SettingInvalid, match="32 cells, of all groups"):
        Survey(
            privacy=survey.privacy, grid=survey.grid, hierarchy=fedassay.Hierarchy.flat(8),
            mechanisms=survey.mechanisms[:1], groups=GROUPS,
        )  # fmt: skip


def loss(before: Any, after: Any, epsilon: float) -> float:
    """The largest log ratio of the exact masses of all sums that noisy counters can show."""
    law, seen = discrete_laplace(epsilon), np.arange(-60, 61)
    ratios = [
        np.abs(np.log(law(seen - a)) - np.log(law(seen - b))).max()
        for a, b in zip(before.ravel().tolist(), after.ravel().tolist(), strict=True)
    ]
    # Counters have independent noise, so that the worst of all is the sum of each one's worst.
    return float(np.sum(ratios))


def test_one_epsilon_serves_all_groups_by_exact_mass_and_a_second_column_takes_another() -> None:
    survey = made(privacy="distributed", epsilon=1, clients=100)
    levels, spent = survey.hierarchy, [float(m.epsilon_spent or 0) for m in survey.mechanisms]
    rows = Examples(LABELS, SCORES).in_groups(GROUPS.codes(SEXES.tolist()))
    fewer = rows.rows(slice(1, None))
    with_all, without = (count_rows(survey, each) for each in (rows, fewer))
    total = sum(
        loss(levels.at_level(with_all, level), levels.at_level(without, level), epsilon)
        for level, epsilon in enumerate(spent)
    )
    assert total == pytest.approx(1.0, abs=1e-9)
    # The twin: the same row counted in a group of another column too, at the same noise.
    other = Examples(LABELS, SCORES).in_groups(RNG.integers(0, 4, ROWS))
    again = (count_rows(survey, each) for each in (other, other.rows(slice(1, None))))
    twice = total + sum(
        loss(levels.at_level(a, level), levels.at_level(b, level), epsilon)
        for a, b in [tuple(again)]
        for level, epsilon in enumerate(spent)
    )
    assert twice == pytest.approx(2.0, abs=1e-9)


def test_a_local_report_tells_no_group_from_another_beyond_epsilon() -> None:
    survey = fedassay.new_survey(groups=GROUPS, privacy="local", epsilon=1, clients=5000)
    law = survey.mechanisms[0].law()
    here, elsewhere = law.offset + law.gain, law.offset
    for level, cells in enumerate(survey.hierarchy.cells_per_level):
        places = {
            (label, leaf): label * cells + int(survey.hierarchy.cell_of(np.array([leaf]), level)[0])
            for label in (0, 1)
            for leaf in range(survey.leaves)
        }
        # One of the bits is another: the worst bits are both set as they rather would be.
        assert len(set(places.values())) == 2 * cells
    most = np.log(here / elsewhere) + np.log((1 - elsewhere) / (1 - here))
    assert most <= 1.0 + 1e-9
    # The twin: bits of two columns with this noise tell twice as much.
    assert 2 * most > 1.9


def test_groups_are_not_asked_for_in_two_steps() -> None:
    first = fedassay.new_survey(privacy="distributed", epsilon=1, clients=1000, steps=2)
    grid, levels = grouped_cells(first.grid, first.hierarchy, 4)
    with pytest.raises(SurveyMismatch, match="groups are asked for in one survey"):
        check_pair(replace(first, groups=GROUPS, grid=grid, hierarchy=levels), first)
