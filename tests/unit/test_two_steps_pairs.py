"""Which second survey belongs to which first, and which cohorts are read together."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedassay import DecodeOptions, Grid, ScoreHistogram, Survey, Tally, Unit
from fedassay.assessment import Assessment
from fedassay.decoding import decode
from fedassay.errors import SettingInvalid, SurveyMismatch, TooFewReports
from fedassay.examples import IntArray
from fedassay.mechanisms import UnitKind
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.two_steps import check_pair, decode_two
from tests.steps import first_local, first_shared, second_local, second_shared
from tests.surveys import small_survey

LEAVES = 6
TRUTH = np.array([[400, 300, 150, 60, 30, 20], [10, 20, 40, 90, 160, 200]])
OPTIONS = DecodeOptions()


def exact_tally(survey: Survey, counts: IntArray, reports: int) -> Tally:
    """The sums of so many reports of shared noise, had all the noise come out as nil."""
    sums = np.concatenate([level.ravel() for level in survey.hierarchy.climb(counts)])
    return Tally(survey.fingerprint, (reports,) * survey.hierarchy.levels, sums)


def read(first: Survey, one: Tally, second: Survey, other: Tally) -> ScoreHistogram:
    return decode_two(first, one, second, other, decode_options=OPTIONS)


@pytest.mark.parametrize(("one", "other"), [(100, 49), (49, 100), (4, 10)])
def test_cohorts_that_differ_too_much_are_refused(one: int, other: int) -> None:
    first = first_shared()
    second = second_shared(first)
    tallies = exact_tally(first, TRUTH, one), exact_tally(second, TRUTH, other)
    with pytest.raises(SettingInvalid, match=f"{one} reports of the first and {other}"):
        read(first, tallies[0], second, tallies[1])


@pytest.mark.parametrize(("one", "other"), [(100, 50), (50, 100), (5, 10)])
def test_half_as_many_clients_in_one_of_both_are_enough(one: int, other: int) -> None:
    first = first_shared()
    second = second_shared(first)
    tallies = exact_tally(first, TRUTH, one), exact_tally(second, TRUTH, other)
    assert read(first, tallies[0], second, tallies[1]).buckets == LEAVES


def test_below_the_minimum_of_either_nothing_is_decoded() -> None:
    first = first_shared(minimum_reports=8)
    second = second_shared(first)
    for one, other in ((7, 8), (8, 7)):
        tallies = exact_tally(first, TRUTH, one), exact_tally(second, TRUTH, other)
        with pytest.raises(TooFewReports):
            read(first, tallies[0], second, tallies[1])


def test_a_tally_of_another_survey_is_refused() -> None:
    first = first_shared()
    second = second_shared(first)
    one, other = exact_tally(first, TRUTH, 9), exact_tally(second, TRUTH, 9)
    for wrong in ((other, other), (one, one)):
        with pytest.raises(SurveyMismatch):
            read(first, wrong[0], second, wrong[1])


def foreign() -> dict[str, tuple[Survey, Survey]]:
    """Every way in which a second survey is not that of the first."""
    first, local = first_shared(), first_local()
    second, other = second_shared(first), second_local(local)
    other_total, empty = first_local(epsilon=Fraction(3)), first_local(allow_empty=True)
    place, local_place = second.step, other.step
    assert isinstance(place, SecondOfTwo)
    assert isinstance(local_place, SecondOfTwo)

    def placed(survey: Survey, step: SecondOfTwo) -> Survey:
        return replace(survey, step=step)

    named_local = replace(place, first=local.fingerprint)
    return {
        "swapped": (second, first),
        "two firsts": (first, first),
        "two seconds": (second, second),
        "one alone": (replace(first, step=None), second),
        "a stranger": (first_shared(epsilon=Fraction(1, 4)), second),
        "another fingerprint": (first, placed(second, replace(place, first=bytes(32)))),
        "another grid": (first, replace(second, grid=Grid.cubic(LEAVES))),
        "another model": (first, replace(second, model_digest="ab" * 32)),
        "another crowd": (first, replace(second, minimum_reports=6, colluders=2)),
        "another unit": (first, replace(second, unit=Unit(UnitKind.CLIENT, 1))),
        "another total": (first, placed(second, replace(place, total_epsilon=Fraction(2)))),
        "more than is left": (first, second_shared(first, epsilons=(Fraction(3, 10),) * 3)),
        "local, another total": (
            local,
            placed(
                second_local(other_total),
                replace(local_place, total_epsilon=Fraction(3)),
            ),
        ),
        "local, clients twice": (
            local,
            placed(other, replace(local_place, client_fraction=Fraction(81, 100))),
        ),
        "local, empty clients": (local, placed(second_local(empty), local_place)),
        "other privacy": (local, placed(second, named_local)),
    }


FOREIGN = foreign()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_second_survey_that_does_not_belong_to_the_first_is_refused(name: str) -> None:
    first, second = FOREIGN[name]
    with pytest.raises(SurveyMismatch):
        check_pair(first, second)
    tallies = [Tally.zero(survey) for survey in (first, second)]
    with pytest.raises(SurveyMismatch):
        read(first, tallies[0], second, tallies[1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: (first_shared(), second_shared(first_shared())),
        lambda: (first_local(), second_local(first_local())),
        # Less than was announced is spent.
        lambda: (first_shared(), second_shared(first_shared(), epsilons=(Fraction(1, 9),) * 3)),
    ],
)
def test_a_second_survey_that_was_made_from_the_first_belongs_to_it(
    make: Callable[[], tuple[Survey, Survey]],
) -> None:
    check_pair(*make())


def test_spending_a_thousandth_more_than_was_announced_is_refused() -> None:
    first = first_shared()
    for extra, fits in ((Fraction(0), True), (Fraction(1, 1000), False)):
        epsilons = (Fraction(4, 15), Fraction(4, 15), Fraction(4, 15) + extra)
        second = second_shared(first, epsilons=epsilons)
        if fits:
            check_pair(first, second)
        else:
            with pytest.raises(SurveyMismatch, match="together spend what the first announced"):
                check_pair(first, second)


@pytest.mark.parametrize("wrong", [None, "survey.json", {}, FirstOfTwo(Fraction(1), Fraction(1))])
def test_what_is_no_survey_is_refused(wrong: Any) -> None:
    first = first_shared()
    for pair in ((wrong, second_shared(first)), (first, wrong)):
        with pytest.raises(SettingInvalid):
            check_pair(*pair)


def test_a_second_survey_is_not_read_alone() -> None:
    second = second_shared(first_shared())
    tally = exact_tally(second, TRUTH, 9)
    with pytest.raises(SettingInvalid, match="together with the first"):
        decode(second, tally, decode_options=OPTIONS)
    with pytest.raises(SettingInvalid, match="together with the first"):
        Assessment(second, tally, OPTIONS)
    with pytest.raises(SurveyMismatch):
        check_pair(small_survey(), second)
