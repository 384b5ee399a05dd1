"""Tests of distributions that say how often they cry wolf, and exact laws to test against."""

import os
from collections.abc import Callable
from math import exp, log

import numpy as np
import numpy.typing as npt
from scipy import stats

FALSE_ALARM = 1e-6
IS_FULL = os.environ.get("FEDASSAY_VERIFY") == "1"

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_FEWEST_EXPECTED = 10.0


def full(large: int, small: int) -> int:
    """A sample size: large under FEDASSAY_VERIFY=1, small in the ordinary run."""
    return large if IS_FULL else small


def chi_square(drawn: npt.ArrayLike, pmf: Callable[[IntArray], FloatArray]) -> float:
    """The p-value of integers against an exact pmf; rare values are pooled at both ends."""
    values = np.asarray(drawn, dtype=np.int64).ravel()
    low, high = int(values.min()) - 2, int(values.max()) + 2
    support = np.arange(low, high + 1)
    expected = pmf(support) * len(values)
    observed = np.bincount(values - low, minlength=len(support)).astype(np.float64)
    heavy = np.flatnonzero(expected >= _FEWEST_EXPECTED)
    assert len(heavy), "the sample is too small for this law"
    first, last = heavy[0], heavy[-1]
    assert (expected[first : last + 1] >= _FEWEST_EXPECTED).all()
    # What is not between them is one class, of whatever probability is left.
    observed = np.append(observed[first : last + 1], len(values) - observed[first : last + 1].sum())
    inside = expected[first : last + 1]
    rest = len(values) - inside.sum()
    if rest < 1e-9 * len(values):
        return 0.0 if observed[-1] else _tail(observed[:-1], inside)
    if rest < _FEWEST_EXPECTED:
        # Too rare for the normal approximation: exact, and halved between both tests.
        rare = float(stats.binom.sf(observed[-1] - 1, len(values), rest / len(values)))
        return min(2.0 * rare, 2.0 * _tail(observed[:-1], inside), 1.0)
    return _tail(observed, np.append(inside, rest))


def same_law(left: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """The p-value of two samples of integers coming from one law."""
    a, b = np.asarray(left).ravel(), np.asarray(right).ravel()
    values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.stack(
        [
            np.bincount(place[: len(a)], minlength=len(values)),
            np.bincount(place[len(a) :], minlength=len(values)),
        ]
    ).astype(np.float64)
    share = min(len(a), len(b)) / (len(a) + len(b))
    counts = _pooled(counts, _FEWEST_EXPECTED / share)
    if counts.shape[1] < 2:
        return 1.0
    return float(stats.chi2_contingency(counts, correction=False).pvalue)


def _pooled(counts: FloatArray, fewest: float) -> FloatArray:
    columns: list[FloatArray] = []
    waiting = np.zeros(2)
    for column in counts.T:
        waiting = waiting + column
        if waiting.sum() >= fewest:
            columns.append(waiting)
            waiting = np.zeros(2)
    if columns:
        columns[-1] = columns[-1] + waiting
    else:
        columns.append(waiting)
    return np.stack(columns, axis=1)


def _tail(observed: FloatArray, expected: FloatArray) -> float:
    scaled = expected * observed.sum() / expected.sum()
    statistic = float(((observed - scaled) ** 2 / scaled).sum())
    return float(stats.chi2.sf(statistic, max(len(observed) - 1, 1)))


def fits_moments(
    drawn: npt.ArrayLike, mean: FloatArray, variance: FloatArray, weights: FloatArray
) -> bool:
    """Whether many independent integers have these means and variances, from both sides.

    For 4,800 of them or more whose fourth moment is at most that of a Laplace law, 6 variance^2:
    - the mean square of (drawn - mean) / sd lies in [0.8, 1.25]. Its sd is sqrt(5 / 4800) = 0.032,
      so that a right law leaves it at 6.2 sd below or 7.7 above, with its skewness less than once
      in 1e9; variances that are 1.5 times too large or too small are missed less than once in 1e6;
    - the sum weighted by `weights` lies within 5.5 of its sd: a false alarm of 4e-8;
    - none lies 13 sd and 10 counts away: below 1e-7 for a Laplace law.
    Where the variance is 0, drawn and mean are equal.
    """
    off = np.asarray(drawn, dtype=np.float64).ravel() - mean.ravel()
    spread, towards = variance.ravel(), weights.ravel()
    if not spread.any():
        return bool((off == 0.0).all())
    assert len(off) >= 4800, "too few for the rates that are stated"
    mean_square = float(np.mean(off**2 / spread))
    leaning = float(off @ towards / np.sqrt(spread @ towards**2))
    farthest = np.abs(off) - 13.0 * np.sqrt(spread)
    return 0.8 <= mean_square <= 1.25 and abs(leaning) <= 5.5 and float(farthest.max()) <= 10.0


def fits_spread(
    errors: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    extra: npt.ArrayLike = 0.0,
    draws: int | None = None,
    kurtosis: float = 3.0,
    tolerance: float = 1.05,
    false_alarm: float = FALSE_ALARM,
) -> bool:
    """Whether errors about nil spread as much as is told of them, neither less nor more.

    `sd` is what their chance part is told to be; `extra` what caution adds to it, such as a likely
    binning error that one population may or may not have. So the mean square of error over
    `hypot(sd, extra)` may not be too large, and that of error over `sd` alone not too small.

    The mean square of n scores with this kurtosis has the variance 2 / f of a chi-square over its
    freedom f = 2 n / (kurtosis - 1): its quantiles at half the false alarm are the limits, moved
    out by the tolerance in the sd, which is what it may be off by. Of 300 normal scores and false
    alarms of 1e-8, an sd told 1.49 times too small or 1.54 times too large is seen in 999 of 1,000
    tests, and one of 1.30 or 1.36 in half of them; of 2,000 it is 1.20 and 1.21, 1.15 and 1.15.
    Of 300 with a kurtosis of 4, 1.61 and 1.68, 1.36 and 1.44. `draws` says how many errors are
    independent where not all are.
    """
    off, told = np.asarray(errors, dtype=np.float64), np.asarray(sd, dtype=np.float64)
    freedom = 2.0 * (len(off) if draws is None else draws) / (kurtosis - 1.0)
    low = float(stats.chi2.ppf(false_alarm / 2.0, freedom)) / freedom / tolerance**2
    high = float(stats.chi2.isf(false_alarm / 2.0, freedom)) / freedom * tolerance**2
    at_most = float(np.mean((off / np.hypot(told, extra)) ** 2))
    at_least = float(np.mean((off / told) ** 2))
    return at_most <= high and at_least >= low


def polya_difference(shape: float, step: float) -> Callable[[IntArray], FloatArray]:
    """The exact pmf of the difference of two negative binomials; a = exp(-step).

    All terms of the convolution are positive, so even the tails are right to many digits.
    """
    most = int(80.0 / step) + 10
    single = stats.nbinom.pmf(np.arange(most), shape, -np.expm1(-step))
    both = np.correlate(single, single, mode="full")

    def pmf(k: IntArray) -> FloatArray:
        inside = np.abs(k) < most
        found: FloatArray = np.where(inside, both[np.where(inside, k, 0) + most - 1], 0.0)
        return found

    return pmf


def discrete_laplace(step: float) -> Callable[[IntArray], FloatArray]:
    """The closed form of `polya_difference` with shape 1."""
    a = exp(-step)

    def pmf(k: IntArray) -> FloatArray:
        found: FloatArray = (1.0 - a) / (1.0 + a) * a ** np.abs(k)
        return found

    return pmf


def true_epsilon(shape: float, step: float) -> float:
    """The most that the log-probability of a sum changes when a counter changes by one."""
    # Beyond this the truncated convolution loses mass; the ratio has long settled.
    error_quantile = np.arange(0, int(30.0 / step))
    probabilities = polya_difference(shape, step)(error_quantile)
    return float(np.abs(np.diff(np.log(probabilities))).max())


def epsilon_at_least(hits: tuple[int, int], runs: int, *, mistake: float = FALSE_ALARM) -> float:
    """A lower confidence bound on epsilon from how often an event came under each neighbour.

    Clopper and Pearson's bounds, each at half the chance of a mistake.
    """
    more, less = max(hits), min(hits)
    low = float(stats.beta.ppf(mistake / 2.0, more, runs - more + 1)) if more else 0.0
    high = float(stats.beta.isf(mistake / 2.0, less + 1, runs - less)) if less < runs else 1.0
    return log(low / high) if low > 0.0 else 0.0
