"""A plan for many looks: an epsilon that lasts exactly, and delays that follow from one look."""

from dataclasses import replace
from fractions import Fraction
from math import inf, log
from pathlib import Path

import pytest

from fedassay.errors import BudgetExceeded, SettingInvalid
from fedassay.ledger import Budget, Ledger, Part
from fedassay.mechanisms import Privacy
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.track import Looks, plan_track
from fedassay.tracking.alarms import Watch
from fedassay.tracking.delay import median_delay

REQUEST = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=20_000, steps=Steps.ONE
)


def test_the_looks_spend_the_whole_and_no_more_to_the_last_digit(tmp_path: Path) -> None:
    made = plan_track(REQUEST, Looks(7))
    assert made.epsilon == Fraction(1, 7)
    assert made.design.survey.epsilon == Fraction(1, 7)
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_budget(Budget("ward", Fraction(1)))
    each = replace(REQUEST, epsilon=made.epsilon, height=2)
    surveys = [
        design_survey(replace(each, minimum_reports=minimum)).survey for minimum in range(90, 98)
    ]
    for survey in surveys[:7]:
        ledger.charge(survey, Part("ward"))
    with pytest.raises(BudgetExceeded):
        ledger.charge(surveys[7], Part("ward"))


def test_the_delay_is_that_of_the_shift_in_standard_errors_of_a_look() -> None:
    made = plan_track(REQUEST, Looks(20), metric="prevalence", shifts=[0.02])
    value, sd = made.look.value, made.look.standard_error
    assert made.look.binning_sd == 0.0
    logit = log((value + 0.02) / (1.0 - value - 0.02)) - log(value / (1.0 - value))
    shift = logit * value * (1.0 - value) / sd
    expected = median_delay(shift, looks_before=10, watch=made.watch)
    assert made.delays[0.02] == expected
    # What a history watches unless somebody says: one figure of the scores' distribution too.
    assert made.watch.metrics == (*Watch().metrics[:-1], "flagged@0.5")


def test_more_looks_of_one_epsilon_notice_later_and_smaller_changes_later() -> None:
    few = plan_track(REQUEST, Looks(12), shifts=[-0.02])
    many = plan_track(replace(REQUEST, epsilon=Fraction(1, 40)), Looks(12), shifts=[-0.02])
    assert few.look.noise_sd < many.look.noise_sd
    assert few.delays[-0.02] < many.delays.get(-0.02, inf)
    both = plan_track(REQUEST, Looks(12), shifts=[-0.01, -0.05]).delays
    assert both[-0.05] < both[-0.01]


def test_what_varies_less_than_its_standard_error_alarms_by_its_own_luck_less() -> None:
    watch = Watch(("roc_auc",))
    usual = median_delay(0.8, looks_before=12, watch=watch)
    assert median_delay(0.8, looks_before=12, watch=watch, spread=1.0) == usual
    # Without luck the mean comes to believe in so small a change before the sum reaches its limit.
    assert usual < 40
    assert median_delay(0.8, looks_before=12, watch=watch, spread=1e-6) == inf
    with pytest.raises(SettingInvalid, match="a spread lies above 0"):
        median_delay(0.8, looks_before=12, watch=watch, spread=1.5)


def test_exact_sums_have_nothing_to_split() -> None:
    made = plan_track(SurveyRequest(clients=5000), Looks(12))
    assert made.epsilon is None
    assert made.to_json()["epsilon_per_look"] is None
    assert not any("Epsilon" in line for line in made.lines())


def test_a_look_that_shows_nothing_is_said_to() -> None:
    made = plan_track(replace(REQUEST, clients=50, epsilon=Fraction(1, 100)), Looks(12))
    assert made.delays == {}
    assert "One month shows nothing of roc_auc" in made.lines()[-1]


@pytest.mark.parametrize("text", ["12", "months", "months=", "months=-3", "years=2", "months=1e3"])
def test_looks_are_months_or_weeks(text: str) -> None:
    with pytest.raises(SettingInvalid, match=r"months=12 or weeks=12"):
        Looks.parse(text)


def test_a_change_that_cannot_be_is_refused() -> None:
    with pytest.raises(SettingInvalid, match=r"cannot change by \+0\.5"):
        plan_track(REQUEST, Looks(12), shifts=[0.5])
    with pytest.raises(SettingInvalid, match="looks to plan for"):
        Looks(1)
    assert Looks.parse("weeks=104") == Looks(104, 52)
