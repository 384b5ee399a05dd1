"""Noise for many looks, against an accountant of others and against sums over all outcomes."""

from dataclasses import replace
from fractions import Fraction
from math import exp, inf, sqrt

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import integrate, stats

from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy
from fedassay.planning.noise_for_looks import compare_noise, gaussian_delta, laplace_delta
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.track import Looks, plan_track


@pytest.mark.parametrize(("epsilon", "counters"), [(1.0, 12), (1.0, 52), (6.0, 36)])
def test_either_noise_is_the_least_by_another_accountant(epsilon: float, counters: int) -> None:
    """The delta that was asked for lies between those that dp-accounting rounds up and down."""
    found = compare_noise(epsilon, counters)
    # The noise's own epsilon, from its standard deviation: sd^2 = 2 a / (1 - a)^2, a = exp(-e).
    variance = found.composed**2
    a = 1.0 + 1.0 / variance - sqrt((1.0 + 1.0 / variance) ** 2 - 1.0)
    for rounded_up in (True, False):
        options = {"pessimistic_estimate": rounded_up, "value_discretization_interval": 2e-5}
        for law in (
            privacy_loss_distribution.from_discrete_laplace_mechanism(-np.log(a), **options),
            privacy_loss_distribution.from_gaussian_mechanism(found.squares, **options),
        ):
            delta = law.self_compose(counters).get_delta_for_epsilon(epsilon)
            assert (delta >= 0.9999e-6) if rounded_up else (delta <= 1.0001e-6)
            assert delta == pytest.approx(1e-6, rel=0.15)


def test_two_counters_lose_what_all_their_outcomes_say() -> None:
    """Hockey stick over a square of outcomes of two discrete Laplace counters."""
    each, epsilon = 0.7, 0.9
    noise = stats.dlaplace(each)
    places = np.arange(-80, 81)
    with_row, without = (np.outer(p, p) for p in (noise.pmf(places - 1), noise.pmf(places)))
    expected = np.maximum(with_row - exp(epsilon) * without, 0.0).sum()
    assert laplace_delta(epsilon, each, 2) == pytest.approx(expected, rel=1e-9)


def test_a_gaussian_loses_what_its_integral_says() -> None:
    sd, epsilon = 1.5, 0.8

    def beyond(x: float) -> float:
        more = stats.norm.pdf(x, 1.0, sd) - exp(epsilon) * stats.norm.pdf(x, 0.0, sd)
        return max(float(more), 0.0)

    expected, _ = integrate.quad(beyond, -20.0, 20.0, limit=400, points=[1.7, 2.3])
    assert gaussian_delta(epsilon, sd, 1) == pytest.approx(expected, rel=1e-5)
    # Two counters are one that tells twice as much in squares.
    assert gaussian_delta(epsilon, sd * sqrt(2.0), 2) == pytest.approx(expected, rel=1e-5)


def test_a_split_is_without_delta_and_composing_never_takes_more_noise() -> None:
    for counters in (1, 3, 12, 156):
        found = compare_noise(2.0, counters)
        assert laplace_delta(2.0, 2.0 / counters, counters) == pytest.approx(0.0, abs=1e-12)
        assert found.composed <= found.split * (1.0 + 1e-9)


def test_a_plan_for_many_looks_says_what_other_noise_would_gain() -> None:
    request = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=20_000)
    made = plan_track(request, Looks(104, 52))
    levels = made.design.survey.hierarchy.levels
    assert made.noise == compare_noise(1.0, 104 * levels)
    assert made.noise is not None
    assert made.noise.gain > 1.3
    assert "would be 1.39 times smaller than Pólya's at epsilon 1" in made.noise.sentence()
    assert made.noise.sentence() in made.lines()
    assert made.to_json()["noise_for_looks"]["gain"] == made.noise.gain
    both = plan_track(replace(request, steps=Steps.TWO), Looks(104, 52))
    assert both.design.second is not None
    steps = (both.design.survey, both.design.second)
    assert both.noise == compare_noise(1.0, 104 * sum(each.hierarchy.levels for each in steps))
    few = compare_noise(1.0, 2)
    assert few.gain < 1.0
    assert "times larger than Pólya's" in few.sentence()


def test_where_nothing_is_added_to_counts_there_is_nothing_to_compare() -> None:
    assert plan_track(SurveyRequest(clients=5000), Looks(12)).noise is None
    local = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(50), clients=20_000)
    made = plan_track(local, Looks(12))
    assert made.to_json()["noise_for_looks"] is None


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (1.0, -1.0), (inf, 1e-6)])
def test_what_promises_nothing_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(SettingInvalid, match="a finite number above 0"):
        compare_noise(epsilon, 12, delta=delta)
