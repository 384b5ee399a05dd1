"""The interval for a new site covers it 93 to 97 times in a hundred, with tau known to us alone.

A run draws k sites around a mean with a spread tau, each with an error of its own size, and a new
site; the interval is right when it holds the new site's true effect. Errors differ as those of 51
states do, with a standard deviation of their logarithms of 0.8.

False-alarm rate: over 2,000 draws hits must lie in [b(0.93), b(0.97)], where b(c) is the binomial
quantile at 1e-8 for a coverage of c. With fewer than 40 checks, a true coverage within 93 to 97 %
fails a run with probability below 1e-6. The twins, intervals half and twice as wide and one that
takes tau for known, must fail the same check. With FEDASSAY_VERIFY=1 there are more spreads, and
the observed share itself must lie within 93 to 97 %.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from fedassay.sites import (
    Heterogeneity,
    PoolOptions,
    PredictionRule,
    Scale,
    SiteEffect,
    SiteEffects,
    TauEstimator,
    from_moments,
    pool_sites,
    site_moments,
)
from tests.laws import IS_FULL

pytestmark = pytest.mark.statistical

DRAWS = 2000
FALSE_ALARM = 1e-8
MEAN = 1.3
MOST_SITES = 63
Drawn = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]


def sites(k: int, i2: float, seed: int) -> list[Drawn]:
    """Effects, variances and a new site's truth, for a share i2 of the spread between sites."""
    generator = np.random.default_rng(seed)
    drawn = []
    for _ in range(DRAWS):
        variances = 0.01 * np.exp(0.8 * generator.normal(size=k))
        # A typical variance is near the harmonic mean of log-normal ones.
        tau = np.sqrt(i2 / (1.0 - i2) * 0.01 * np.exp(-0.5 * 0.8**2))
        truth = MEAN + tau * generator.normal(size=k + 1)
        values = truth[:k] + np.sqrt(variances) * generator.normal(size=k)
        drawn.append((values, variances, float(truth[k])))
    return drawn


def pooled(options: PoolOptions) -> Callable[[Drawn], Heterogeneity]:
    def by_sites(drawn: Drawn) -> Heterogeneity:
        values, variances, _ = drawn
        each = zip(values.tolist(), variances.tolist(), strict=True)
        effects = tuple(SiteEffect(f"{i}", y, v) for i, (y, v) in enumerate(each))
        return pool_sites(SiteEffects("ks", Scale.IDENTITY, effects), options)

    return by_sites


def by_moments(drawn: Drawn) -> Heterogeneity:
    values, variances, _ = drawn
    each = zip(values.tolist(), variances.tolist(), strict=True)
    sums = np.sum([site_moments(SiteEffect("", y, v), MOST_SITES) for y, v in each], axis=0)
    return from_moments(sums, "ks", most_sites=MOST_SITES)


def hits(answers: list[Heterogeneity], drawn: list[Drawn], stretch: float = 1.0) -> int:
    count = 0
    for found, (_, _, truth) in zip(answers, drawn, strict=True):
        low, high = found.prediction
        middle, half = 0.5 * (low + high), 0.5 * stretch * (high - low)
        count += abs(truth - middle) <= half
    return count


def fits(count: int) -> bool:
    if IS_FULL:
        return 0.93 * DRAWS <= count <= 0.97 * DRAWS
    low = binom.ppf(FALSE_ALARM, DRAWS, 0.93)
    high = binom.isf(FALSE_ALARM, DRAWS, 0.97)
    return bool(low <= count <= high)


CASES = [(8, 0.85), (14, 0.85), (51, 0.85), (14, 0.5)]
MORE = [(8, 0.5), (8, 0.7), (14, 0.7), (51, 0.3), (51, 0.5)]


@pytest.mark.parametrize(("k", "i2"), CASES + MORE if IS_FULL else CASES)
def test_a_new_site_lies_inside_its_interval_as_often_as_promised(k: int, i2: float) -> None:
    drawn = sites(k, i2, seed=20_261_116 + k)
    by_sites = [pooled(PoolOptions())(each) for each in drawn]
    by_sums = [by_moments(each) for each in drawn]
    shares = {
        "sites": hits(by_sites, drawn) / DRAWS,
        "moments": hits(by_sums, drawn) / DRAWS,
    }
    print(f"{k} sites, I² {i2}: coverage {shares}")  # noqa: T201  # shown with pytest -s
    assert fits(hits(by_sites, drawn))
    assert fits(hits(by_sums, drawn))


@pytest.mark.parametrize("stretch", [0.5, 2.0])
def test_an_interval_half_or_twice_as_wide_is_seen(stretch: float) -> None:
    drawn = sites(14, 0.85, seed=20_261_130)
    for answers in ([pooled(PoolOptions())(each) for each in drawn], [*map(by_moments, drawn)]):
        assert fits(hits(answers, drawn))
        assert not fits(hits(answers, drawn, stretch=stretch))


def test_an_interval_that_takes_tau_for_known_covers_too_little_and_the_check_sees_it() -> None:
    drawn = sites(14, 0.5, seed=20_261_130)
    usual = PoolOptions(rule=PredictionRule.STUDENT)
    assert not fits(hits([pooled(usual)(each) for each in drawn], drawn))


def test_every_estimator_of_tau_is_near_it_where_sites_are_many() -> None:
    """Two-sided: a mean over draws within five standard errors, and off by a tenth is seen."""
    drawn = sites(51, 0.85, seed=7)[:300]
    tau2 = 0.85 / 0.15 * 0.01 * np.exp(-0.5 * 0.8**2)
    for estimator in TauEstimator:
        answers = [pooled(PoolOptions(estimator=estimator))(each).tau ** 2 for each in drawn]
        error = np.std(answers) / np.sqrt(len(answers))
        assert abs(np.mean(answers) - tau2) < 5.0 * error + 0.03 * tau2
        assert abs(1.1 * np.mean(answers) - tau2) > 5.0 * error or error > 0.02 * tau2


def test_the_means_interval_covers_the_mean() -> None:
    drawn = sites(8, 0.85, seed=11)
    answers = [pooled(PoolOptions())(each) for each in drawn]
    assert fits(sum(MEAN in found.interval for found in answers))
    # Planted: without tau, as if all rows were one sample.
    narrow = 0
    for values, variances, _ in drawn:
        weights = 1.0 / variances
        mean, half = weights @ values / weights.sum(), 1.96 / np.sqrt(weights.sum())
        narrow += abs(mean - MEAN) <= half
    assert not fits(narrow)
