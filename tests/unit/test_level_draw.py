"""Levels drawn from a public hash of the client's id."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay import (
    ClientPolicy,
    Examples,
    OneLevel,
    Privacy,
    Survey,
    SurveyRequest,
    SystemRandomness,
)
from fedassay.client import answer
from fedassay.errors import SettingInvalid
from fedassay.level_draw import hashed_level
from fedassay.planning.search import design_survey
from fedassay.survey_json import survey_from_json

SURVEY = design_survey(
    SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=300_000, height=2, level_by_hash=True
    )
).survey


def level_of(client_id: str | None, score: float, survey: Survey = SURVEY) -> int | None:
    found = answer(
        survey,
        Examples.of(np.array([1]), np.array([score])),
        randomness=SystemRandomness(),
        policy=ClientPolicy(),
        client_id=client_id,
    )
    return found.messages[0].level


def test_a_client_is_always_on_the_level_of_its_id_whatever_its_data() -> None:
    for name in ("anna", "bert", "chris"):
        levels = {level_of(name, score) for score in (0.01, 0.5, 0.99)}
        assert levels == {hashed_level(SURVEY, name)}


def test_ids_spread_over_levels_by_their_shares() -> None:
    assert isinstance(SURVEY.level_policy, OneLevel)
    count = 4_000
    found = Counter(hashed_level(SURVEY, f"client {i}") for i in range(count))
    for level, share in enumerate(SURVEY.level_policy.client_fractions):
        # Fixed ids: this does not vary between runs; five standard deviations.
        spread = 5.0 * (count * float(share) * (1.0 - float(share))) ** 0.5
        assert abs(found[level] - count * float(share)) < spread


def test_another_survey_puts_a_client_on_another_level_sometimes() -> None:
    other = replace(SURVEY, minimum_reports=7)
    names = [f"client {i}" for i in range(64)]
    assert any(hashed_level(SURVEY, name) != hashed_level(other, name) for name in names)


def test_without_an_id_nothing_is_answered() -> None:
    with pytest.raises(SettingInvalid, match="client id"):
        level_of(None, 0.5)


def test_the_option_survives_the_survey_file() -> None:
    again = survey_from_json(SURVEY.to_json())
    assert again == SURVEY
    assert isinstance(again.level_policy, OneLevel)
    assert again.level_policy.by_hash
