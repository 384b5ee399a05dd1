"""Clients and epsilon for a wanted error, where the answer follows from a binomial's spread."""

from fractions import Fraction
from math import ceil, log

import pytest
from scipy.stats import norm

from fedassay import Privacy, SurveyRequest
from fedassay.errors import TargetImpossible
from fedassay.planning.forecast import Cause, ErrorForecast
from fedassay.planning.solve import (
    Target,
    _crossing,
    _Range,
    _rounded_up,
    _three_digits,
    clients_needed,
    epsilon_needed,
    floors,
)

# 96.5 surveys of 100, on both sides: a little more than the 95 that are promised.
Z = float(norm.ppf(0.9825))


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(7.1, 8), (100.0, 100), (999.2, 1000), (1234.0, 1240), (12_301.0, 12_400), (12_300.0, 12_300)],
)
def test_clients_are_rounded_up_to_three_digits(value: float, rounded: int) -> None:
    assert _rounded_up(value) == rounded


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.12341, "0.124"), (1.2341, "1.24"), (12.341, "12.4"), (2.0, "2"), (0.0012301, "0.00124")],
)
def test_epsilon_is_rounded_up_to_three_digits(value: float, rounded: str) -> None:
    assert _three_digits(value) == Fraction(rounded)


@pytest.mark.parametrize("each", [1, 10])
def test_clients_bring_as_many_examples_as_they_hold(each: int) -> None:
    """Prevalence by exact sums varies by sqrt(p (1 - p) / examples), and by nothing else."""
    request = SurveyRequest(clients=100, examples=100 * each, positive_rate=0.3)
    needed = clients_needed(request, Target("prevalence", 0.01))
    examples = Z**2 * 0.3 * 0.7 / 0.01**2
    # The search stops within 0.2 %, and three digits round up by 1 % at most.
    assert ceil(examples / each) <= needed <= 1.013 * examples / each + 1


def test_a_target_is_met_with_room_for_the_predictions_own_error() -> None:
    forecast = ErrorForecast(
        value=0.5,
        noise_sd=0.0,
        sampling_sd=0.01,
        binning_bound=0.0,
        binning_sd=0.0,
        binning_bias=0.0,
        half_width=0.02,
    )
    assert Target("prevalence", 1.01 * Z * 0.01).is_met(forecast)
    # 95 of 100 surveys would stay below this one, if predictions were exact.
    assert not Target("prevalence", 0.99 * Z * 0.01).is_met(forecast)


def test_epsilon_needed_is_that_of_the_noise_that_is_left_to_spend() -> None:
    """Prevalence from two cells of each label under local privacy, by hand.

    With height 1 there are 4 values, and randomised response tells them with p = e / (e + 3):
    the share of positives, 2 values of 4, has the variance of a coin with hits of
    (e + 1) / (e + 3) and false hits of 2 / (e + 3), which share the sampling.
    """
    clients, rate, error = 20_000, 0.3, 0.02
    request = SurveyRequest(
        privacy=Privacy.LOCAL, clients=clients, positive_rate=rate, height=1, auc=0.8
    )
    epsilon = epsilon_needed(request, Target("prevalence", error))

    def spread(value: float) -> float:
        odds = 2.718281828459045**value
        hit, false = (odds + 1) / (odds + 3), 2 / (odds + 3)
        seen = rate * hit + (1 - rate) * false
        return float((seen * (1 - seen) / clients) ** 0.5 / (hit - false))

    assert Z * spread(float(epsilon)) <= 1.001 * error
    assert Z * spread(0.97 * float(epsilon)) > error


def test_floors_are_what_each_cause_leaves_in_95_of_100() -> None:
    request = SurveyRequest(clients=2_100, positive_rate=0.3)
    left = floors(request, "prevalence")
    assert left[Cause.SAMPLING] == pytest.approx(1.959964 * 0.01, rel=1e-4)
    assert left[Cause.PRIVACY] == 0.0
    assert left[Cause.BINNING] < 1e-9


def test_what_is_enough_already_is_not_searched() -> None:
    within = _Range(smallest=5.0, largest=1000.0, start=10.0, step=2.0, whole=True)
    assert _crossing(lambda number: -1.0, 5.0, within) == 5.0
    # An error that falls as 1 / n meets 1 / 50 at 50.
    assert _crossing(lambda number: log(50.0 / number), 5.0, within) == 50


def test_where_no_epsilon_does_the_largest_other_cause_is_named() -> None:
    """Two cells hide where scores lie, whatever the noise."""
    request = SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=20_000, height=1, fanout=2
    )
    with pytest.raises(TargetImpossible, match=r"no epsilon up to \d+ brings roc_auc") as error:
        epsilon_needed(request, Target("roc_auc", 0.02))
    assert "alone leaves" in str(error.value)
