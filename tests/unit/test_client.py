from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay import ClientPolicy, Examples, Report, Survey, SystemRandomness, Unit
from fedassay.client import OPEN_POLICY, answer, answer_counts
from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.mechanisms import UnitKind
from fedassay.randomness import SimulatedRandomness
from tests.surveys import local_survey, small_survey

SURVEY = small_survey(4, minimum_reports=3)
ROWS = Examples([0, 1, 1], [0.1, 0.62, 1.0])


def report(survey: Survey, policy: ClientPolicy) -> Report:
    (message,) = answer(survey, ROWS, randomness=SystemRandomness(), policy=policy).messages
    assert isinstance(message, Report)
    return message


def test_a_client_refuses_repeatable_randomness() -> None:
    with pytest.raises(SettingInvalid):
        answer(SURVEY, ROWS, randomness=SimulatedRandomness(1), policy=OPEN_POLICY)


def test_a_client_refuses_a_cohort_smaller_than_it_allows() -> None:
    policy = ClientPolicy(smallest_cohort=4, exact_sums=True, smallest_cell=0)
    with pytest.raises(SurveyRefused):
        answer(SURVEY, ROWS, randomness=SystemRandomness(), policy=policy)
    enough = replace(SURVEY, minimum_reports=4)
    assert report(enough, policy).counters.sum() > 0


def test_a_client_refuses_a_survey_that_spends_too_much() -> None:
    policy = ClientPolicy(largest_epsilon=Fraction(1))
    with pytest.raises(SurveyRefused, match="no sum without noise"):
        policy.check(SURVEY)
    policy.check(local_survey(Fraction(1)))
    with pytest.raises(SurveyRefused, match=r"epsilon 1\.5"):
        policy.check(local_survey(Fraction(3, 2)))


def test_a_client_refuses_a_model_it_does_not_know() -> None:
    policy = ClientPolicy(model_digests=frozenset(["ab" * 32]), exact_sums=True, smallest_cell=0)
    for digest in (None, "cd" * 32):
        with pytest.raises(SurveyRefused):
            policy.check(replace(SURVEY, model_digest=digest))
    policy.check(replace(SURVEY, model_digest="ab" * 32))


def test_a_client_gives_at_most_the_examples_of_its_unit() -> None:
    survey = replace(SURVEY, unit=Unit(UnitKind.CLIENT, 2))
    for _ in range(20):
        counters = report(survey, OPEN_POLICY).counters
        leaves = counters[survey.hierarchy.counters(survey.hierarchy.levels - 1)]
        assert leaves.sum() == 2
        # Two of its own three examples, never one of them twice.
        assert (leaves <= SURVEY.grid.count(ROWS).ravel()).all()


def test_a_report_that_its_counters_cannot_hold_is_refused() -> None:
    counts = np.zeros((2, 4), dtype=np.int64)
    counts[0, 0] = 2**31
    with pytest.raises(SurveyRefused):
        answer_counts(SURVEY, counts, randomness=SystemRandomness(), policy=OPEN_POLICY)


def test_two_answers_have_different_ids_and_equal_counters() -> None:
    a, b = (report(SURVEY, OPEN_POLICY) for _ in range(2))
    assert a.report_id != b.report_id
    # Per level, negatives then positives, halves then quarters of [0, 1].
    assert a.counters.tolist() == [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 1, 1]
    assert b.counters.tolist() == a.counters.tolist()
