"""Levels drawn without looking at the data: at random, or from a public hash of an id."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest

from fedassay import (
    Examples,
    Grid,
    OneLevel,
    Privacy,
    Survey,
    SurveyRequest,
    SystemRandomness,
    Unit,
)
from fedassay.client import OPEN_POLICY, answer
from fedassay.cut_levels import CutLevels
from fedassay.errors import SettingInvalid
from fedassay.hierarchy import Interleaved
from fedassay.level_draw import (
    answers_step,
    hashed_level,
    level_ends,
    levels_of_reports,
    rows_of_step,
)
from fedassay.mechanisms import UnaryEncoding, UnitKind
from fedassay.planning.first_survey import first_survey
from fedassay.planning.search import design_survey
from fedassay.survey_json import survey_from_json
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from tests.randomness import ScriptedRandomness
from tests.surveys import local_survey

SURVEY = design_survey(
    SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=300_000, height=2, level_by_hash=True
    )
).survey


def level_of(client_id: str | None, score: float, survey: Survey = SURVEY) -> int | None:
    found = answer(
        survey,
        Examples(np.array([1]), np.array([score])),
        randomness=SystemRandomness(),
        policy=OPEN_POLICY,
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


def with_fractions(*fractions: Fraction) -> Survey:
    """A survey whose levels are these shares of the clients."""
    step = len(fractions)
    levels = Interleaved(step + 1, step)
    return Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(step + 1),
        hierarchy=levels,
        mechanisms=(UnaryEncoding(Fraction(1)),) * step,
        level_policy=OneLevel(fractions),
    )


def levels_of_words(survey: Survey, words: list[int]) -> list[int]:
    randomness = ScriptedRandomness(b"".join(word.to_bytes(4, "little") for word in words))
    return [int(level) for level in levels_of_reports(survey, len(words), randomness)]


def test_the_level_changes_at_the_whole_number_below_its_fraction_of_2_to_the_32() -> None:
    """Literals: 2^32 / 3 = 1431655765.33, 2^32 / 7 = 613566756.57."""
    thirds = with_fractions(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
    words = [0, 1431655764, 1431655765, 2863311529, 2863311530, 2**32 - 1]
    assert levels_of_words(thirds, words) == [0, 0, 1, 1, 2, 2]
    sevenths = with_fractions(Fraction(1, 7), Fraction(6, 7))
    assert levels_of_words(sevenths, [613566755, 613566756]) == [0, 1]


def test_fractions_that_no_float_holds_still_end_where_whole_numbers_say() -> None:
    policy = OneLevel((Fraction(1, 7),) * 7)
    assert level_ends(policy) == [k * 2**32 // 7 for k in range(1, 8)]
    tenths = OneLevel((Fraction(1, 10),) * 10)
    assert level_ends(tenths)[4] == 2**31
    # Added up as floats they stop short of 1.
    assert np.cumsum([0.1] * 10)[-1] != 1.0


EXAMPLE = Unit()


def pair(share: Fraction, *, unit: Unit = EXAMPLE) -> tuple[Survey, Survey]:
    """A first and a second survey of three cells under local privacy."""
    first = replace(local_survey(cells=3), unit=unit, step=FirstOfTwo(Fraction(1), share))
    second = replace(
        first,
        hierarchy=CutLevels(3, (((0, 1), (0, 2)),)),
        step=SecondOfTwo(Fraction(1), 1 - share, first.fingerprint),
    )
    return first, second


def test_every_row_answers_one_of_two_surveys_by_a_hash_that_anybody_can_compute() -> None:
    first, second = pair(Fraction(1, 5))
    asked = [rows_of_step(survey, "north", range(2000)) for survey in (first, second)]
    expected = [
        int.from_bytes(sha256(first.fingerprint + b"step" + f"north:{row}".encode()).digest()[:8])
        * 5
        < 2**64
        for row in range(2000)
    ]
    assert asked[0].tolist() == expected
    assert asked[1].tolist() == [not answers for answers in expected]
    # Binomial with mean 400 and deviation 18: once in a million runs of other names.
    assert 310 < asked[0].sum() < 490


def test_rows_read_in_parts_are_the_rows_read_at_once() -> None:
    first, _ = pair(Fraction(1, 3))
    parts = [rows_of_step(first, "north", range(at, at + 50)) for at in (0, 50, 100)]
    assert np.concatenate(parts).tolist() == rows_of_step(first, "north", range(150)).tolist()
    assert rows_of_step(first, "south", range(150)).tolist() != np.concatenate(parts).tolist()


def test_a_client_as_the_unit_answers_one_of_the_two_with_all_its_rows() -> None:
    first, second = pair(Fraction(1, 2), unit=Unit(UnitKind.CLIENT, 1))
    for name in map(str, range(50)):
        is_first = answers_step(first, name)
        assert answers_step(second, name) != is_first
        assert rows_of_step(first, name, range(3)).tolist() == [is_first] * 3


def test_where_all_answer_both_every_row_answers() -> None:
    request = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=100)
    assert rows_of_step(first_survey(request), "north", range(9)).all()
    assert rows_of_step(local_survey(), "north", range(9)).all()
