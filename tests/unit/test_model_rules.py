"""What a survey may say under site and shuffled privacy."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.mechanisms import Privacy, UnaryEncoding
from fedassay.mechanisms.plain_words import plain_words
from fedassay.survey_json import survey_from_json
from fedassay.survey_steps import FirstOfTwo
from tests.unit.test_shuffler import shuffled_survey


def test_a_promise_that_its_crowd_cannot_keep_makes_no_survey() -> None:
    survey = shuffled_survey(minimum=40_000)
    loud = (UnaryEncoding(Fraction(5)),) * 2
    assert replace(survey, mechanisms=loud).local_epsilon == 5
    with pytest.raises(SettingInvalid, match="300 honest reports on level 1"):
        replace(survey, mechanisms=loud, minimum_reports=300)
    with pytest.raises(SettingInvalid, match="300 honest reports on level 1"):
        replace(survey, mechanisms=loud, colluders=39_700)


def test_every_level_keeps_the_promise() -> None:
    survey = shuffled_survey(minimum=300)
    quiet, loud = UnaryEncoding(Fraction(1)), UnaryEncoding(Fraction(5))
    with pytest.raises(SettingInvalid, match="300 honest reports on level 2"):
        replace(survey, mechanisms=(quiet, loud))
    with pytest.raises(SettingInvalid, match="300 honest reports on level 1"):
        replace(survey, mechanisms=(loud, quiet))


def test_a_file_that_claims_more_than_its_crowd_keeps_is_refused() -> None:
    survey = shuffled_survey(minimum=40_000)
    honest = replace(survey, mechanisms=(UnaryEncoding(Fraction(5)),) * 2)
    assert survey_from_json(honest.to_json()) == honest
    for claim in ({"epsilon": "1/100", "delta": "1/100000000"}, {"epsilon": "1", "delta": "0"}):
        with pytest.raises(FileInvalid):
            survey_from_json({**honest.to_json(), "shuffled": claim})
    with pytest.raises(FileInvalid, match="found no promise"):
        survey_from_json({k: v for k, v in honest.to_json().items() if k != "shuffled"})


def test_shuffled_reports_are_asked_for_once() -> None:
    step = FirstOfTwo(total_epsilon=Fraction(1), client_fraction=Fraction(1, 2))
    with pytest.raises(SettingInvalid, match="asked for once"):
        replace(shuffled_survey(), step=step)


def test_a_promise_goes_with_shuffled_privacy_alone() -> None:
    with pytest.raises(SettingInvalid, match="goes with shuffled privacy; found it with local"):
        replace(shuffled_survey(), privacy=Privacy.LOCAL)


def test_what_is_left_without_a_shuffler_is_said_beside_the_promise() -> None:
    survey = replace(shuffled_survey(minimum=40_000), mechanisms=(UnaryEncoding(Fraction(5)),) * 2)
    assert survey.epsilon == 1
    assert survey.local_epsilon == 5
    assert survey.guarantee.delta == Fraction(1, 10**8)
    sentence = survey.guarantee.sentence()
    assert sentence.startswith("(1, 1e-08)-differential privacy for one example (replace")
    assert "at least 40,000 reports arrive on every level" in sentence
    assert "every report still protects itself with epsilon 5" in sentence
    assert any("before it is shuffled" in words for words in plain_words(survey.guarantee))
