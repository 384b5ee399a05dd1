"""Two steps through the door: surveys, answers and tallies that follow each other in Python."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedassay
from fedassay import Ledger, LedgerAccount, Part
from fedassay.assessment import Assessment
from fedassay.cut_levels import CutLevels
from fedassay.errors import SettingInvalid, SurveyMismatch, SurveyRefused
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from tests.steps import first_local, second_local


def rows(count: int, seed: int = 0) -> tuple[list[int], list[float]]:
    generator = np.random.default_rng(seed)
    scores = generator.beta(0.5, 3.0, count)
    return (generator.random(count) < scores).astype(int).tolist(), scores.tolist()


def first_result(**settings: Any) -> Assessment:
    """A released first step under distributed privacy."""
    labels, scores = rows(3000)
    result = fedassay.simulate(
        labels,
        scores,
        privacy="distributed",
        epsilon=1,
        steps=2,
        seed=0,
        **settings,
    )
    assert result.first is not None
    return result.first


def test_a_second_survey_spends_what_the_first_left_and_names_it() -> None:
    first = first_result()
    second = fedassay.new_survey(after=first)
    assert isinstance(first.survey.step, FirstOfTwo)
    assert isinstance(second.step, SecondOfTwo)
    assert second.step.first == first.survey.fingerprint
    assert first.survey.epsilon is not None
    assert second.epsilon is not None
    assert first.survey.epsilon + second.epsilon == second.total_epsilon == 1
    assert fedassay.new_survey(after=first) == second
    assert "this one, the second, spends 0.9 of it" in str(second)


def test_nothing_to_go_on_from_is_refused_and_makes_no_exact_survey() -> None:
    """A simulation in one step has no first: passing that on must not mean something else."""
    labels, scores = rows(500)
    once = fedassay.simulate(labels, scores, privacy="distributed", epsilon=1, steps=1, seed=0)
    with pytest.raises(SettingInvalid, match="an assessment, or a path to one, is wanted"):
        fedassay.new_survey(after=once.first)  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="stands alone"):
        fedassay.new_survey(after=once)


def test_the_second_survey_has_a_cut_at_thresholds_that_the_first_was_told() -> None:
    first = replace(first_result(thresholds=0.123), thresholds=(0.5,))
    levels = fedassay.new_survey(after=first).hierarchy
    assert isinstance(levels, CutLevels)
    edge = int(np.searchsorted(first.survey.grid.edges, 0.123))
    assert all(edge in starts for starts in levels.cuts[0])
    with pytest.raises(SettingInvalid, match=r"no edge at 0\.777"):
        fedassay.new_survey(after=first, thresholds=[0.777])


def test_a_row_at_hand_answers_one_of_two_locally_private_surveys() -> None:
    first = first_local()
    second = second_local(first)
    labels, scores = rows(1000)
    heard = [
        fedassay.answer(survey, labels, scores, client_id="north").reports
        for survey in (first, second)
    ]
    assert sum(heard) == 1000
    assert 120 < heard[0] < 280
    for survey in (first, second):
        with pytest.raises(SettingInvalid, match="found no id"):
            fedassay.answer(survey, labels, scores)
    turns = {
        name: [_is_asked(survey, name) for survey in (first, second)]
        for name in map(str, range(40))
    }
    assert all(sum(asked) == 1 for asked in turns.values())
    assert {tuple(asked) for asked in turns.values()} == {(True, False), (False, True)}


def _is_asked(survey: fedassay.Survey, name: str) -> bool:
    try:
        fedassay.answer(survey, [1], [0.4], client_id=name)
    except SurveyRefused as error:
        if "nothing of this client is asked by this one" in str(error):
            return False
        raise
    return True


def test_a_ledger_names_the_client_and_notices_rows_that_moved(tmp_path: Path) -> None:
    first = first_local()
    second = second_local(first)
    labels, scores = rows(1000)
    account = LedgerAccount(Ledger.create(tmp_path / "ledger.db"), Part("north"))
    one = fedassay.answer(first, labels, scores, account=account)
    with pytest.raises(SurveyRefused, match="the table has changed"):
        fedassay.answer(second, labels[::-1], scores[::-1], account=account)
    other = fedassay.answer(second, labels, scores, account=account)
    assert one.reports + other.reports == 1000


def test_a_second_tally_is_read_with_its_first_and_with_no_other() -> None:
    first = first_result()
    second = fedassay.new_survey(after=first)
    with pytest.raises(SettingInvalid, match="read together with the first"):
        fedassay.tally_answers(second, [])
    with pytest.raises(SurveyMismatch, match="Pass the assessment that it was made from"):
        fedassay.tally_answers(second, [], first=first_result(thresholds=0.3))
    with pytest.raises(SurveyMismatch, match="names none"):
        fedassay.tally_answers(first.survey, [], first=first)
