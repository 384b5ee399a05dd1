"""Differences of two figures: their interval against Monte Carlo, and what more reports do."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from fedassay.comparison.difference import Difference, Growth
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData, Shape


def test_plain_errors_add_up_in_squares() -> None:
    difference = Difference(Estimate(0.8, sampling_sd=0.03), Estimate(0.7, sampling_sd=0.04))
    low, high = difference.interval(0.95)
    assert (low, high) == pytest.approx((0.1 - 1.96 * 0.05, 0.1 + 1.96 * 0.05), abs=1e-4)


def test_lopsided_intervals_lend_each_side_its_own_end() -> None:
    """Of 0.97 and 0.90 on the log-odds scale: the low end meets the other's high one."""
    first = Estimate(0.97, sampling_sd=0.01, shape=Shape.LOGIT)
    second = Estimate(0.90, sampling_sd=0.02, shape=Shape.LOGIT)
    a, b = first.interval(), second.interval()
    low, high = Difference(first, second).interval()
    assert low == pytest.approx(0.07 - sqrt((0.97 - a.low) ** 2 + (b.high - 0.90) ** 2))
    assert high == pytest.approx(0.07 + sqrt((a.high - 0.97) ** 2 + (0.90 - b.low) ** 2))
    assert 0.07 - low != pytest.approx(high - 0.07)


def test_two_proportions_that_are_equal_are_told_apart_as_often_as_said() -> None:
    generator = np.random.default_rng(5)
    trials, wrong = 400, 0
    for _ in range(2000):
        one, other = generator.binomial(trials, 0.8, size=2) / trials
        estimates = [
            Estimate(p, sampling_sd=sqrt(p * (1 - p) / trials), shape=Shape.SCORE, trials=trials)
            for p in (one, other)
        ]
        wrong += Difference(*estimates).told_apart()
    # 2,000 trials of 5 %: 100, give or take four times 9.7.
    assert 61 <= wrong <= 139


def test_a_p_value_is_the_normal_tail_of_plain_errors() -> None:
    difference = Difference(Estimate(0.80, sampling_sd=0.03), Estimate(0.70, sampling_sd=0.04))
    assert difference.p_value == pytest.approx(2.0 * norm.sf(2.0), rel=1e-6)
    same = Difference(Estimate(0.8, sampling_sd=0.01), Estimate(0.8, sampling_sd=0.01))
    assert same.p_value == 1.0


def test_what_lacks_a_figure_is_neither_different_nor_equal() -> None:
    lacking = Difference(Estimate(0.8), NotEnoughData(reason="drowned in noise"))
    assert not lacking.is_available
    assert lacking.interval() == (-inf, inf)
    assert not lacking.told_apart()
    assert lacking.p_value == 1.0
    assert lacking.reason == "drowned in noise"


def test_local_noise_falls_as_a_root_and_noise_that_is_added_once_falls_with_the_counts() -> None:
    figure = Estimate(0.8, noise_sd=0.04)
    # To a fourth of the noise: 16 times the reports, or 4 times.
    assert Growth(True).factor((figure,), 1.96 * 0.01, 0.95) == pytest.approx(16.0, rel=1e-4)
    assert Growth(False).factor((figure,), 1.96 * 0.01, 0.95) == pytest.approx(4.0, rel=1e-4)


def test_more_reports_leave_exactly_the_error_that_was_asked_for() -> None:
    figure = Estimate(0.8, noise_sd=0.04, sampling_sd=0.02, binning_sd=0.005)
    factor = Growth(False).factor((figure,), 1.96 * 0.01, 0.95)
    left = 0.02**2 / factor + (0.04 / factor) ** 2 + 0.005**2
    assert sqrt(left) == pytest.approx(0.01, rel=1e-4)


def test_an_estimate_is_asked_for_by_name() -> None:
    with pytest.raises(SettingInvalid, match="an estimate must be an Estimate; found"):
        Difference(0.8, Estimate(0.7))  # type: ignore[arg-type]  # what a user may pass
