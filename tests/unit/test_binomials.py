"""Binomial probabilities and mean excesses, against scipy."""

import numpy as np
import pytest
from scipy import stats

from fedassay.mechanisms.binomials import log_binomial, mean_excess


@pytest.mark.parametrize("trials", [1, 7, 200, 100_000, 10**9])
@pytest.mark.parametrize("p", [1e-6, 0.004, 0.5, 0.93])
def test_log_probabilities_are_scipys(trials: int, p: float) -> None:
    mean, sd = trials * p, (trials * p * (1 - p)) ** 0.5
    hits = np.unique(np.clip(np.round(mean + sd * np.linspace(-6, 6, 25)), 0, trials))
    ours = log_binomial(hits, np.full_like(hits, trials), p, 1.0 - p)
    # scipy's own digits end at some 1e-16 times the log of the largest factorial.
    np.testing.assert_allclose(ours, stats.binom.logpmf(hits, trials, p), rtol=1e-7, atol=1e-5)


def test_probabilities_outside_the_range_are_zero_and_a_sure_one_is_one() -> None:
    hits, trials = np.array([-1.0, 4.0, 3.0]), np.full(3, 3.0)
    assert np.exp(log_binomial(hits, trials, 0.4, 0.6))[:2].tolist() == [0.0, 0.0]
    assert np.exp(log_binomial(hits, trials, 1.0, 0.0)).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("trials", [3, 60, 2000])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.8])
def test_mean_excess_is_the_sum_over_all_numbers(trials: int, p: float) -> None:
    over = np.array([0.0, 0.3, 2.0, trials * p + 1.5, trials - 0.5, trials + 1.0])
    values = np.arange(trials + 1)
    chances = stats.binom.pmf(values, trials, p)
    exact = (chances * np.maximum(values - over[:, None], 0.0)).sum(axis=1)
    ours = mean_excess(np.full_like(over, trials), p, 1.0 - p, over)
    np.testing.assert_allclose(ours, exact, rtol=1e-8, atol=1e-27)
