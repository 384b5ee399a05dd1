"""Shuffled surveys: what the planner gives each level, and what it refuses."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Privacy, RandomizedResponse, UnaryEncoding, Unit, UnitKind
from fedassay.mechanisms.shuffled_promise import LARGEST_LOCAL
from fedassay.planning import crowd
from fedassay.planning.candidates import PLAIN, candidate_surveys, prepare_candidates
from fedassay.planning.crowd import fewest_on_a_level, shuffled_survey
from fedassay.planning.oracle import mean_variance, oracle_for
from fedassay.planning.request import Preset, Steps, SurveyRequest

HALF = Fraction(1, 2)
ASKED = SurveyRequest(privacy=Privacy.SHUFFLED, epsilon=Fraction(1), clients=4000)


def test_each_level_counts_on_its_share_of_the_reports_less_bad_luck() -> None:
    sure = 4000 * 0.9
    assert fewest_on_a_level(ASKED, (Fraction(1),)) == sure
    quarter = fewest_on_a_level(ASKED, (Fraction(1, 4), Fraction(3, 4)))
    assert sure / 4 - 5.0 * sqrt(sure / 4) < quarter < sure / 4 - 4.0 * sqrt(sure / 4)
    rows = replace(ASKED, clients=10, examples=4000)
    assert fewest_on_a_level(rows, (Fraction(1),)) == sure
    by_client = replace(rows, unit=Unit(UnitKind.CLIENT, 5))
    assert fewest_on_a_level(by_client, (Fraction(1),)) == 9


def test_fewer_honest_reports_on_a_level_have_more_noise() -> None:
    grid, flat, tree = Grid.uniform(4), Hierarchy.flat(4), Hierarchy.regular(4, 2)
    alone = shuffled_survey(ASKED, grid, flat, (Fraction(1),))
    divided = shuffled_survey(ASKED, grid, tree, (HALF, HALF))
    suspicious = shuffled_survey(replace(ASKED, colluders=2000), grid, flat, (Fraction(1),))
    noise = [survey.mechanisms[-1].epsilon_spent or 0 for survey in (alone, divided, suspicious)]
    assert noise[0] > noise[1] > 1
    assert noise[0] > noise[2] > 1


def test_the_largest_local_epsilon_is_a_cap_and_the_better_oracle_is_taken() -> None:
    grid, flat = Grid.uniform(4), Hierarchy.flat(4)
    many = replace(ASKED, clients=400_000)
    assert shuffled_survey(many, grid, flat, (Fraction(1),)).local_epsilon == 5
    capped = replace(many, largest_local_epsilon=Fraction(3))
    survey = shuffled_survey(capped, grid, flat, (Fraction(1),))
    assert survey.local_epsilon == 3
    assert survey.mechanisms[0] == oracle_for(Fraction(3), 4, allow_empty=False)
    few = shuffled_survey(replace(ASKED, clients=400), grid, flat, (Fraction(1),)).mechanisms[0]
    assert isinstance(few, RandomizedResponse)
    assert mean_variance(few, 4) < mean_variance(oracle_for(Fraction(1), 4, allow_empty=False), 4)


def test_the_papers_surveys_use_its_unary_encoding_though_another_is_better() -> None:
    grid, flat, few = Grid.uniform(4), Hierarchy.flat(4), replace(ASKED, clients=400)
    best = shuffled_survey(few, grid, flat, (Fraction(1),)).mechanisms[0]
    papers = shuffled_survey(replace(few, preset=Preset.PAPER), grid, flat, (Fraction(1),))
    (mechanism,) = papers.mechanisms
    assert isinstance(best, RandomizedResponse)
    assert isinstance(mechanism, UnaryEncoding)
    assert mean_variance(best, 4) < mean_variance(mechanism, 4)
    assert papers.shuffled is not None
    assert papers.shuffled.is_kept(mechanism, 360)


def test_levels_that_cannot_get_the_minimum_are_not_tried() -> None:
    asked = replace(ASKED, minimum_reports=1500)
    tried = [s.hierarchy.levels for s in candidate_surveys(asked, Grid.uniform(16), PLAIN)]
    assert tried == [1]
    with pytest.raises(SettingInvalid, match="smallest of 2 gets about 1,000; found 1,500"):
        fewest_on_a_level(asked, (Fraction(1, 4), Fraction(3, 4)))


def forget_noise() -> None:
    for remembers in (crowd._oracle, crowd._known_responses):
        remembers.cache_clear()


@pytest.mark.parametrize("changes", [{}, {"colluders": 500}, {"allow_empty": True}])
def test_prepared_candidates_are_the_same_surveys_and_need_no_search(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, grids = replace(ASKED, **changes), [Grid.uniform(cells) for cells in (6, 16, 64)]
    forget_noise()
    alone = [survey for grid in grids for survey in candidate_surveys(asked, grid, PLAIN)]
    assert len({survey.minimum_reports for survey in alone}) > 2
    forget_noise()
    # What was found for other rules is not theirs.
    prepare_candidates(replace(asked, allow_empty=not asked.allow_empty), grids, PLAIN)
    prepare_candidates(replace(asked, delta=Fraction(1, 10**4)), grids, PLAIN)
    prepare_candidates(asked, grids, PLAIN)
    monkeypatch.setattr(crowd, "largest_locals", None)
    assert alone == [each for grid in grids for each in candidate_surveys(asked, grid, PLAIN)]


def test_what_is_remembered_of_noise_does_not_grow_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crowd, "_MOST_KNOWN", 3)
    forget_noise()
    for cells in range(2, 9):
        survey = shuffled_survey(ASKED, Grid.uniform(cells), Hierarchy.flat(cells), (Fraction(1),))
        (mechanism,), promise = survey.mechanisms, survey.shuffled
        assert isinstance(mechanism, RandomizedResponse)
        assert promise is not None
        known = crowd._known_responses((promise, LARGEST_LOCAL, False))
        assert known[cells, 3600] == mechanism
        assert len(known) <= 4


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"minimum_reports": 5000}, "minimum_reports must not exceed the 4,000 reports there are"),
        ({"colluders": 4000}, "colluders must be fewer than the 4,000 reports"),
        ({"delta": Fraction(0)}, "delta must lie between 0 and 1"),
        ({"delta": Fraction(1)}, "delta must lie between 0 and 1"),
        ({"largest_local_epsilon": Fraction(11)}, "no client sends a report of more than"),
        ({"steps": Steps.TWO}, "shuffled privacy does not go with two steps"),
        ({"privacy": Privacy.LOCAL, "delta": HALF}, "delta goes with shuffled privacy"),
        (
            {"privacy": Privacy.DISTRIBUTED, "largest_local_epsilon": HALF},
            "largest_local_epsilon goes with shuffled privacy",
        ),
    ],
)
def test_what_no_crowd_can_keep_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(SettingInvalid, match=says):
        replace(ASKED, **changes)  # type: ignore[arg-type]
