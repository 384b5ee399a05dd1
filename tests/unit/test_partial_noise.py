"""The epsilon that a part of the noise keeps, against the pmf itself."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest
from scipy.stats import nbinom

from fedassay import Grid, Hierarchy, Polya, Survey
from fedassay.cut_levels import CutLevels
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Exact, Privacy
from fedassay.mechanisms.partial_noise import (
    epsilon_of_partial_noise,
    epsilons_of_levels,
    most_of_partial_noise,
)
from fedassay.two_steps import guarantee_of_both
from tests.steps import first_local, first_shared, second_local, second_shared


def log_pmf(step: float, fraction: float, reach: int) -> FloatArray:
    """log P[X - Y = d] for d = -reach..reach: a sum over all y, term by term."""
    terms = int(60 / step) + 10
    success = -np.expm1(-step)
    log_up = nbinom.logpmf(np.arange(terms + reach + 1), fraction, success)
    log_down = nbinom.logpmf(np.arange(terms), fraction, success)
    half = [np.logaddexp.reduce(log_up[d : d + terms] + log_down) for d in range(reach + 1)]
    return np.array([*half[:0:-1], *half])


@pytest.mark.parametrize("epsilon", ["1/10", "1", "5/2"])
@pytest.mark.parametrize("fraction", ["9/10", "2/3", "1/2", "1/3", "1/100"])
def test_one_step_costs_what_the_steepest_place_of_the_pmf_says(
    epsilon: str, fraction: str
) -> None:
    logs = log_pmf(float(Fraction(epsilon)), float(Fraction(fraction)), 40)
    steepest = np.abs(np.diff(logs)).max()
    found = epsilon_of_partial_noise(Fraction(epsilon), 1, Fraction(fraction))
    assert found == pytest.approx(steepest, rel=1e-9)


def test_units_of_several_examples_cost_most_in_different_counters() -> None:
    """Brute force over all ways to spread 3 examples over 3 counters, and all noises near 0."""
    logs = log_pmf(1 / 3, 0.6, 20)
    worst = max(
        sum(max(logs[20 + d] - logs[20 + d + shift] for d in range(-10, 8)) for shift in shifts)
        for shifts in product(range(4), repeat=3)
        if sum(shifts) == 3
    )
    found = epsilon_of_partial_noise(Fraction(1), 3, Fraction(3, 5))
    assert found == pytest.approx(worst, rel=1e-9)


def test_published_figures() -> None:
    for fraction, epsilon in (("9/10", 1.10), ("7/10", 1.34), ("1/2", 1.68), ("3/10", 2.19)):
        assert round(epsilon_of_partial_noise(Fraction(1), 1, Fraction(fraction)), 2) == epsilon


def test_all_of_the_noise_or_more_keeps_the_promise_and_none_keeps_nothing() -> None:
    for fraction in (1, 2):
        assert epsilon_of_partial_noise(Fraction(1, 3), 1, Fraction(fraction)) == pytest.approx(
            1 / 3
        )
    nearly = epsilon_of_partial_noise(Fraction(1), 1, 1 - Fraction(1, 10**9))
    assert nearly == pytest.approx(1.0, rel=1e-8)
    with pytest.raises(SettingInvalid, match="no epsilon"):
        epsilon_of_partial_noise(Fraction(1), 1, Fraction(0))


def test_tiny_epsilons_have_an_answer_at_once() -> None:
    """No sum over the pmf would end; half of the noise at epsilon 1e-6 keeps far less than 1e-6."""
    found = epsilon_of_partial_noise(Fraction(1, 10**6), 1, Fraction(1, 2))
    assert 1e-6 < found < 0.2


def survey(*, minimum: int, colluders: int = 0, levels: int = 1) -> Survey:
    hierarchy = Hierarchy(4, (2, 2)) if levels == 2 else Hierarchy.flat(4)
    polya = Polya(Fraction(1, levels), 1, minimum - colluders)
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=hierarchy,
        mechanisms=(polya,) * levels,
        minimum_reports=minimum,
        colluders=colluders,
    )


def test_a_guarantee_tells_outsiders_and_participants_apart() -> None:
    guarantee = survey(minimum=3).guarantee
    assert guarantee.epsilon == 1
    logs = log_pmf(1.0, 2 / 3, 3)
    assert guarantee.participant_epsilon == pytest.approx(logs[3] - logs[4], rel=1e-9)
    assert "Towards another participant, who knows its own noise, it is 1.39." in (
        guarantee.sentence()
    )
    assert "towards outsiders" in guarantee.sentence()


def test_colluders_are_the_participants_that_the_promise_withstands() -> None:
    guarantee = survey(minimum=4, colluders=1).guarantee
    assert guarantee.participant_epsilon == 1.0
    assert "towards outsiders and participants" in guarantee.sentence()
    assert "Towards another" not in guarantee.sentence()


def test_what_participants_learn_adds_up_over_levels_as_epsilon_does() -> None:
    two = survey(minimum=3, levels=2)
    logs = log_pmf(0.5, 2 / 3, 3)
    assert two.guarantee.participant_epsilon == pytest.approx(2 * (logs[3] - logs[4]), rel=1e-9)
    half = Fraction(1, 2)
    one = Survey(
        privacy=two.privacy,
        grid=two.grid,
        hierarchy=two.hierarchy,
        mechanisms=two.mechanisms,
        level_policy=OneLevel((half, half)),
        minimum_reports=3,
    )
    assert one.guarantee.participant_epsilon == pytest.approx(logs[3] - logs[4], rel=1e-9)


@pytest.mark.parametrize("fraction", ["2/3", "3/4", "9/10", "99/100"])
@pytest.mark.parametrize("epsilon", [0.1, 0.8, 3.0])
def test_no_weight_costs_more_than_the_bound_and_large_ones_come_near(
    epsilon: float, fraction: str
) -> None:
    """A counter that one unit moves by w costs log f(0) / f(w), at a step of epsilon / w."""
    part = Fraction(fraction)
    bound = most_of_partial_noise(Fraction(str(epsilon)), 1, part)
    costs = []
    for weight in (1, 3, 17, 127):
        costs.append(log_fall(epsilon, float(part), weight))
    assert costs == sorted(costs)
    assert costs[-1] < bound < 1.12 * costs[-1]


def test_no_spread_over_levels_and_counters_costs_more_than_the_bound() -> None:
    """All ways to split epsilon over two counters, each with a weight of its own."""
    bound = most_of_partial_noise(Fraction(1), 2, Fraction(2, 3))
    worst = max(
        sum(log_fall(part, 2 / 3, weight) for part, weight in ((share, one), (1.0 - share, other)))
        for share in (0.05, 0.25, 0.5, 0.75)
        for one, other in product((1, 5, 60), repeat=2)
    )
    assert worst < bound < 1.2 * worst


def test_half_of_the_noise_has_no_bound_for_all_weights_and_all_of_it_keeps_the_promise() -> None:
    assert most_of_partial_noise(Fraction(1), 1, Fraction(1, 2)) == inf
    assert most_of_partial_noise(Fraction(1, 3), 7, Fraction(1)) == pytest.approx(1 / 3)
    costs = [log_fall(1.0, 0.5, weight) for weight in (1, 10, 100)]
    assert np.diff(costs).min() > 0.15


@pytest.mark.parametrize("minimum", [3, 4, 30])
def test_what_the_first_survey_says_of_participants_holds_for_seconds_of_any_shape(
    minimum: int,
) -> None:
    first = first_shared(minimum_reports=minimum)
    said = first.guarantee.participant_epsilon
    assert said is not None
    for epsilons in (("4/5",), ("2/5", "2/5"), ("1/20", "3/4"), ("3/4", "1/20")):
        for weight in (1, 5, 127):
            weights = ((-weight, 0, 0, 0, 1, weight), (0,) * 6) if len(epsilons) > 1 else None
            levels = CutLevels(6, (((0, 2), (0,)),), weights)
            parts = tuple(map(Fraction, epsilons))
            second = second_shared(first, levels, epsilons=parts)
            spent = log_cost(first) + log_cost(second)
            assert spent <= said
            told = second.guarantee.participant_epsilon
            assert told is not None
            assert spent <= told


def log_cost(survey: Survey) -> float:
    """By the pmf: what one example costs on every level, towards one who knows its own noise."""
    left = (survey.minimum_reports - 1) / survey.minimum_reports
    cost = 0.0
    for level, mechanism in enumerate(survey.mechanisms):
        assert isinstance(mechanism, Polya)
        moved = survey.hierarchy.largest_weight(level)
        cost += log_fall(float(mechanism.epsilon), left, moved)
    return cost


def log_fall(epsilon: float, fraction: float, weight: int) -> float:
    """log f(0) / f(weight) at a step of epsilon / weight: two sums over the pmf."""
    terms = int(40 * weight / epsilon) + 10
    success = -np.expm1(-epsilon / weight)
    p = nbinom.pmf(np.arange(terms), fraction, success)
    return float(np.log((p @ p) / (p[weight:] @ p[:-weight])))


def test_a_survey_of_two_says_what_both_cost() -> None:
    first = first_shared(minimum_reports=1000)
    second = second_shared(first, CutLevels(6, (((0, 2), (0,)),)))
    for each, words in ((first, "first, spends 0.2"), (second, "second, spends 0.8")):
        said = each.guarantee.sentence()
        assert said.startswith("1-differential privacy for one example")
        assert f"That is for two surveys together: this one, the {words} of it." in said
        assert "who knows its own noise, it is 1.01." in said
    two = first_shared(minimum_reports=2).guarantee
    assert two.participant_epsilon == inf
    assert "no epsilon can be told beforehand" in two.sentence()
    shares = [m for m in first.mechanisms if isinstance(m, Polya)]
    withstands = replace(
        first, mechanisms=tuple(replace(m, noise_shares=990) for m in shares), colluders=10
    ).guarantee
    assert withstands.participant_epsilon == 1.0


def test_a_locally_private_survey_of_two_says_that_each_answers_one() -> None:
    first = first_local()
    said = first.guarantee.sentence()
    assert said.startswith("2-local differential privacy")
    assert "each example answers one: this one, the first, is for 20 % of them." in said
    assert "this one, the second, is for 80 % of them." in second_local(first).guarantee.sentence()
    assert first.guarantee.participant_epsilon is None


def test_surveys_of_two_with_many_shared_levels_are_refused() -> None:
    first = first_shared(leaves=6)
    cuts = (((0, 2), (0,)),) * 5
    with pytest.raises(SettingInvalid, match="at most 4 levels"):
        second_shared(first, CutLevels(6, cuts))


def test_an_assessment_adds_up_what_both_surveys_cost_a_participant() -> None:
    first = first_shared(minimum_reports=4)
    second = second_shared(first, CutLevels(6, (((0, 2), (0,)),)))
    told = guarantee_of_both(first, second)
    assert told.participant_epsilon == pytest.approx(log_cost(first) + log_cost(second), rel=1e-6)
    assert told.epsilon == 1
    assert "Two surveys spent it, 0.2 and 0.8." in told.sentence()
    assert "the second" not in told.sentence()


def test_levels_without_shared_noise_cost_nothing_towards_a_participant() -> None:
    shared = Polya(Fraction(1), 1, 4)
    known = epsilons_of_levels([Exact(), shared], [1, 1], examples=1, left=Fraction(1))
    assert known == [1.0]
