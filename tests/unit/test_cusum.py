"""CUSUM and recursive residuals against brute force and Monte Carlo."""

import numpy as np
import pytest

from fedassay.errors import SettingInvalid
from fedassay.tracking.cusum import cusum, cusum_limit, recursive_residuals


def test_residuals_of_an_unchanged_series_are_independent_standard_normal_figures() -> None:
    generator = np.random.default_rng(1)
    variances = np.array([4.0, 0.25, 1.0, 9.0, 0.5])
    draws = 7.0 + generator.standard_normal((40_000, 5)) * np.sqrt(variances)
    residuals = np.array([recursive_residuals(row, variances) for row in draws])
    covariance = residuals.T @ residuals / len(residuals)
    # Each entry has a standard deviation of at most sqrt(2 / 40,000) = 0.0071.
    assert np.abs(covariance - np.eye(4)).max() < 5 * 0.0071
    assert np.abs(residuals.mean(axis=0)).max() < 5 / np.sqrt(40_000)


def test_a_residual_is_the_distance_from_the_weighted_mean_of_all_before() -> None:
    values, variances = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.5, 2.0])
    # Before the third: (1 / 1 + 2 / 0.5) / (1 + 2) = 5 / 3 with variance 1 / 3.
    expected = [(2.0 - 1.0) / np.sqrt(0.5 + 1.0), (4.0 - 5 / 3) / np.sqrt(2.0 + 1 / 3)]
    assert recursive_residuals(values, variances).tolist() == pytest.approx(expected)


def test_the_level_falls_to_nil_and_no_further() -> None:
    assert cusum(np.array([2.0, -9.0, 1.0, 1.0])).tolist() == [1.5, 0.0, 0.5, 1.0]


@pytest.mark.parametrize(("rate", "looks"), [(0.05, 12), (0.005, 12), (0.02, 52)])
def test_chance_alone_reaches_the_limit_in_a_year_as_often_as_said(rate: float, looks: int) -> None:
    """In the worst year, which is a later one: it begins where the others left the level."""
    limit, runs = cusum_limit(rate, looks), 60_000
    generator = np.random.default_rng(2)
    level, alive, worst = np.zeros(runs), np.ones(runs, dtype=bool), 0.0
    for _ in range(3):
        before = alive.sum()
        for _ in range(looks):
            level = np.maximum(0.0, level + generator.standard_normal(runs) - 0.5)
            alive &= level < limit
        worst = max(worst, 1.0 - alive.sum() / before)
    # Of the worst of three years by chance 4 standard deviations more, and 5 fewer.
    sd = np.sqrt(rate * (1.0 - rate) / runs)
    assert rate * 0.97 - 5 * sd < worst < rate * 1.03 + 5 * sd


def test_one_look_a_year_is_at_least_a_one_sided_normal_test() -> None:
    # From 0 the chance of z - 0.5 >= h is 5 % at 1.645 - 0.5; what earlier years left adds to it.
    assert 1.145 < cusum_limit(0.05, 1) < 1.645


@pytest.mark.parametrize(("rate", "looks"), [(0.0, 12), (1.0, 12), (0.05, 0), (0.05, 400)])
def test_rates_and_looks_beyond_sense_are_refused(rate: float, looks: int) -> None:
    with pytest.raises(SettingInvalid, match="found"):
        cusum_limit(rate, looks)
