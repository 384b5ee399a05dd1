"""A plan's verdict, and what its file says, from forecasts written by hand."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import inf

import pytest

from fedassay import Privacy, SurveyRequest
from fedassay.errors import SettingInvalid
from fedassay.planning.forecast import ErrorForecast
from fedassay.planning.plan import Goal, Plan, assumptions, make_plan
from fedassay.planning.search import design_survey
from fedassay.planning.solve import Target

LOCAL = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(5, 2), clients=12_000, height=2)
SECURE = SurveyRequest(clients=200, positive_rate=0.3, height=2, smallest_cell=0)
CLEAR = ErrorForecast(
    value=0.8,
    noise_sd=0.003,
    sampling_sd=0.004,
    binning_bound=0.0,
    binning_sd=0.0,
    binning_bias=0.0,
    half_width=0.01,
)
NOTHING = ErrorForecast(
    value=0.8,
    noise_sd=inf,
    sampling_sd=0.004,
    binning_bound=inf,
    binning_sd=inf,
    binning_bias=0.0,
    half_width=inf,
    reason="noise swamps it",
)


@cache
def plan(forecast: ErrorForecast, error: float) -> Plan:
    return Plan(
        request=LOCAL,
        goal=Goal(Target("roc_auc", error)),
        design=design_survey(LOCAL),
        forecasts={"roc_auc": forecast},
        recalibrate=lambda: 0.02,
    )


def test_enough_is_said_with_the_error_that_95_of_100_stay_below() -> None:
    # 3 and 4 thousandths are 5 together; 1.96 times that is 0.0098.
    assert plan(CLEAR, 0.02).verdict == (
        "Enough: 12,000 clients at local epsilon 2.5 give roc_auc within 0.0098 of the "
        "population's value in 95 of 100 surveys; 0.02 is asked for."
    )


def test_not_enough_names_the_cause_and_every_way_out() -> None:
    # 2.108 times 5 thousandths: what is planned for is 96.5 of 100.
    short = replace(plan(CLEAR, 0.001), enough_clients=1_150_000, enough_epsilon=Fraction(7, 2))
    assert short.verdict == (
        "Not enough: 12,000 clients at local epsilon 2.5 give roc_auc within 0.011 only, mostly "
        "from sampling, and 0.001 is asked for; 1,150,000 clients or epsilon 3.5 would do."
    )
    assert replace(short, enough_clients=None).verdict.endswith("; epsilon 3.5 would do.")
    hopeless = replace(short, enough_clients=None, enough_epsilon=None, obstacle="nothing helps")
    assert hopeless.verdict.endswith("is asked for; nothing helps.")


def test_no_answer_is_not_enough() -> None:
    lacking = replace(plan(NOTHING, 0.02), enough_epsilon=Fraction(4))
    assert not lacking.is_enough
    assert "give no roc_auc at all; epsilon 4 would do" in lacking.verdict


def test_what_is_not_finite_is_null_in_the_file() -> None:
    content = plan(NOTHING, 0.02).to_json()
    assert content["predictions"]["roc_auc"]["noise_sd"] is None
    assert content["details"]["roc_auc"]["error_95"] is None
    assert content["details"]["roc_auc"]["reason"] == "noise swamps it"
    assert content["enough"] is False
    assert plan(CLEAR, 0.02).to_json()["details"]["roc_auc"]["reason"] is None


def test_the_file_says_what_can_be_told_apart() -> None:
    told = plan(CLEAR, 0.02).to_json()["detectable"]
    # (1.96 + 0.84) sqrt(2) times 5 thousandths; on the same clients noise alone, 3 thousandths.
    assert told["different_clients"] == pytest.approx(2.801585 * 2**0.5 * 0.005, rel=1e-5)
    assert told["same_clients"] == pytest.approx(2.801585 * 2**0.5 * 0.003, rel=1e-5)


def test_what_is_left_open_is_solved_for_and_predicted_where_the_goal_is() -> None:
    goal = Goal(Target("recall@0.25", 0.2))
    solved = make_plan(replace(SECURE, clients=None), goal, progress=lambda _: None)
    assert solved.solved_for == ("clients",)
    assert solved.enough_clients == solved.request.clients
    assert solved.enough_epsilon is None
    assert solved.is_enough
    # All figures at the goal's threshold, not the goal alone.
    assert {"recall@0.25", "precision@0.25", "recall@0.5", "ece"} <= set(solved.forecasts)


def test_clients_and_epsilon_are_not_both_left_open() -> None:
    request = SurveyRequest(privacy=Privacy.LOCAL)
    with pytest.raises(SettingInvalid, match="both open"):
        make_plan(request, Goal(), progress=lambda _: None)


def test_assumptions_are_those_of_the_model() -> None:
    assert assumptions(SECURE) == {"scores": "binormal", "positive_rate": 0.3, "auc": 0.8}
    assert assumptions(replace(SECURE, positive_rate=None, auc=0.9)) == {
        "scores": "binormal",
        "positive_rate": 0.3,
        "auc": 0.9,
    }


@pytest.mark.parametrize(
    ("metric", "error"),
    [("calibration_slope", 0.5), ("lift@0.2", 2.0), ("recall@specificity=0.8", 0.2), ("ici", 0.1)],
)
def test_clinical_figures_are_planned_for_by_name(metric: str, error: float) -> None:
    made = make_plan(SECURE, Goal(Target(metric, error)), progress=lambda _: None)
    assert metric in made.forecasts
    assert metric in made.verdict
    assert made.central.sampling_sd > 0.0


def test_a_target_beyond_1_is_for_figures_that_go_beyond_it() -> None:
    assert Target("flagged@0.5", 5.0).error == 5.0
    with pytest.raises(SettingInvalid, match="between 0 and 1"):
        Target("recall@0.5", 5.0)
