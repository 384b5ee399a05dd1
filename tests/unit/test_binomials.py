"""Binomial probabilities and mean excesses, against scipy."""

import numpy as np
import pytest
from scipy import stats

from fedassay.mechanisms.binomials import log_binomial, log_multinomial, mean_excess


@pytest.mark.parametrize("trials", [1, 7, 200, 100_000, 10**9])
@pytest.mark.parametrize("p", [1e-6, 0.004, 0.5, 0.93])
def test_log_probabilities_are_scipys(trials: int, p: float) -> None:
    mean, sd = trials * p, (trials * p * (1 - p)) ** 0.5
    hits = np.unique(np.clip(np.round(mean + sd * np.linspace(-6, 6, 25)), 0, trials))
    ours = log_binomial(hits, np.full_like(hits, trials), p, 1.0 - p)
    # scipy's own digits end at some 1e-16 times the log of the largest factorial.
    np.testing.assert_allclose(ours, stats.binom.logpmf(hits, trials, p), rtol=1e-7, atol=1e-5)


@pytest.mark.parametrize("trials", [1, 12, 300, 40_000])
def test_log_probabilities_of_several_kinds_are_scipys(trials: int) -> None:
    chances, generator = (0.02, 0.3, 0.68), np.random.default_rng(trials)
    counts = generator.multinomial(trials, (0.1, 0.4, 0.5), size=20)
    counts[0] = (trials, 0, 0)
    kinds = tuple(counts.T.astype(np.float64))
    ours = log_multinomial(kinds, np.full(20, float(trials)), chances)
    theirs = stats.multinomial.logpmf(counts, trials, chances)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


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


def test_a_weighted_excess_is_the_excess_times_its_weight_whatever_its_neighbours() -> None:
    trials = np.repeat([40.0, 900.0, 5000.0], 300)
    p = np.tile(np.linspace(0.1, 0.6, 300), 3)
    over = trials * p * np.tile([1.02, 1.3], 450)
    weights = np.linspace(0.1, 1.0, 900)

    def weighted(at: np.ndarray) -> np.ndarray:
        return log_binomial(at, trials, p, 1.0 - p) + np.log(weights)

    together = mean_excess(trials, p, 1.0 - p, over, log_chance=weighted)
    apart = [
        float(mean_excess(n[None], float(q), 1.0 - float(q), x[None])[0])
        for n, q, x in zip(trials, p, over, strict=True)
    ]
    np.testing.assert_allclose(together, weights * np.array(apart), rtol=1e-9, atol=1e-27)
