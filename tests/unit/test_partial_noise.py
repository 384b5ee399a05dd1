"""The epsilon that a part of the noise keeps, against the pmf itself."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import nbinom

from fedassay import Grid, Hierarchy, Polya, Survey
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.mechanisms import Privacy
from fedassay.mechanisms.partial_noise import epsilon_of_partial_noise
from fedassay.survey import OneLevel


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
