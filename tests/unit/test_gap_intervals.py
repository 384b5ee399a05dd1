"""Intervals of sums and of the largest of absolute values, against drawn gaps."""

import numpy as np
import pytest
from scipy import stats

from fedassay.calibration.gap_intervals import LargestSize, SumOfSizes, _PlainSum, folded_mean
from tests.laws import FALSE_ALARM

BINS = 20
SD = 0.01


def test_the_largest_sizes_interval_holds_for_all_bins_at_once() -> None:
    """All gaps are 0.05: the lower end is missed when any of 20 bins is far too high.

    Each is with a chance of 0.025 / 20, so the interval covers with (1 - 0.00125)^20 = 0.9753.
    4,000 draws see 0.964 and 0.985 (bounds of one in a million, on both sides); made for one bin
    only, it would cover 0.60.
    """
    generator = np.random.default_rng(1)
    draws, nominal = 4_000, (1.0 - 0.025 / BINS) ** BINS
    covered = 0
    for _ in range(draws):
        rates = 0.05 + generator.normal(0.0, SD, BINS)
        estimate = LargestSize(
            value=float(np.abs(rates).max()),
            rates=rates,
            rate_noise=np.full(BINS, 0.36 * SD**2),
            rate_sampling=np.full(BINS, 0.64 * SD**2),
        )
        covered += 0.05 in estimate.interval()
    assert stats.binom.ppf(FALSE_ALARM / 2, draws, nominal) <= covered
    assert covered <= stats.binom.isf(FALSE_ALARM / 2, draws, nominal)


def test_the_interval_for_these_very_rows_has_no_sampling_in_it() -> None:
    rates = np.array([0.1, -0.3])
    estimate = LargestSize(
        value=0.3, rates=rates, rate_noise=np.full(2, 0.01**2), rate_sampling=np.full(2, 1.0)
    )
    z = stats.norm.isf(0.025 / 2)
    assert estimate.interval(population=False) == pytest.approx((0.3 - z * 0.01, 0.3 + z * 0.01))
    assert estimate.interval() == pytest.approx((0.0, 0.3 + z * np.sqrt(1.0001)))


def independent(gaps: np.ndarray[tuple[int], np.dtype[np.float64]]) -> SumOfSizes:
    return SumOfSizes(
        value=0.0,
        gaps=gaps,
        gap_noise=np.diag(np.full(len(gaps), SD**2)),
        gap_sampling=np.zeros(len(gaps)),
    )


def test_a_lucky_sum_makes_nobody_surer_than_an_ordinary_one() -> None:
    """Gaps that all happen to be nil say no more than those that noise alone would show."""
    usual = np.full(BINS, np.sqrt(2.0 / np.pi) * SD)
    _, high = independent(usual).interval()
    _, lucky = independent(np.zeros(BINS)).interval()
    _, half_lucky = independent(0.5 * usual).interval()
    assert lucky == pytest.approx(high, rel=1e-6)
    assert half_lucky == pytest.approx(high, rel=1e-6)
    # The end is where an ordinary sum is as rare as said: one draw in forty, here of 100,000.
    drawn = np.random.default_rng(2).normal(high / BINS, SD, (100_000, BINS))
    assert np.mean(np.abs(drawn).sum(axis=1) <= usual.sum()) == pytest.approx(0.025, abs=0.006)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
@pytest.mark.parametrize("true_gap", [0.0, 0.5 * SD, 4.0 * SD])
def test_a_plain_sums_law_is_that_of_drawn_gaps(correlation: float, true_gap: float) -> None:
    """Neighbouring pairs err together, or in opposite ways; 200,000 draws."""
    pair = SD**2 * np.array([[1.0, correlation], [correlation, 1.0]])
    covariance = np.kron(np.eye(5), pair).astype(np.float64)
    sizes = np.full(10, true_gap)
    generator = np.random.default_rng(3)
    sums = np.abs(generator.multivariate_normal(sizes, covariance, 200_000)).sum(axis=1)
    law = _PlainSum.of(np.full(10, SD), covariance)
    for share in (0.025, 0.25, 0.5, 0.75, 0.975):
        total = float(np.quantile(sums, share))
        # A gamma law with the same moments is not the law itself.
        assert law.chance(total, sizes) == pytest.approx(share, abs=0.03)


def test_folded_means_are_those_of_scipy() -> None:
    mean, sd = np.array([-0.3, 0.0, 0.2, 4.0]), np.array([0.1, 1.0, 0.5, 0.25])
    ours, slopes = folded_mean(mean, sd)
    theirs = stats.foldnorm(np.abs(mean) / sd, scale=sd).mean()
    assert np.allclose(ours, theirs)
    step = 1e-6
    moved = stats.foldnorm(np.abs(mean + step) / sd, scale=sd).mean()
    assert np.allclose(slopes, (moved - theirs) / step, atol=1e-5)
