"""Binomial probabilities and mean excesses in floating point, with errors below one part in 10^9.

Sums have no negative terms, so that no digits cancel; what is left out of a sum is bounded and
added. Only numpy, as on a client.
"""

from math import lgamma, log, log1p, pi

import numpy as np

from fedassay.examples import FloatArray

_TABLE = 16
_HALF_LOG_TWO_PI = 0.5 * log(2.0 * pi)
_SMALL = np.array(
    [0.0] + [lgamma(x + 1.0) - (x + 0.5) * log(x) + x - _HALF_LOG_TWO_PI for x in range(1, _TABLE)]
)
_ENOUGH = 1e-10
_STEP = 32
_NEVER = 1e-30


def log_binomial(hits: FloatArray, trials: FloatArray, p: float, rest: float) -> FloatArray:
    """Log P[Binomial(trials, p) = hits], element by element; `rest` is 1 - p, digits and all.

    The saddle-point form (Loader 2000): with D(x, m) = x log(x/m) + m - x, the exponent is
    -D(h, np) - D(n-h, n(1-p)), whose rounding error grows with |h - np| only.

    >>> float(np.exp(log_binomial(np.array([3.0]), np.array([5.0]), 0.5, 0.5))[0]).__round__(6)
    0.3125
    """
    misses = trials - hits
    if rest <= 0.0:
        return np.where(misses == 0.0, 0.0, -np.inf)
    inner = (hits > 0.0) & (misses > 0.0)
    # One call for all three: for few numbers it is calls that cost.
    parts = np.array([trials, hits, misses])
    n, h, m = parts = np.where(inner, parts, np.array([[2.0], [1.0], [1.0]]))
    of_n, of_h, of_m = _stirling_error(parts)
    value: FloatArray = (
        of_n
        - of_h
        - of_m
        - _deviance(h, n * p)
        - _deviance(m, n * rest)
        + 0.5 * np.log(n / (h * m))
        - _HALF_LOG_TWO_PI
    )
    if inner.all():
        return value
    ends = trials * np.where(hits > 0.0, log(p), log1p(-p))
    value = np.where(inner, value, ends)
    return np.where((hits < 0.0) | (misses < 0.0), -np.inf, value)


def _stirling_error(x: FloatArray) -> FloatArray:
    """Log x! less Stirling's formula: from a table, or by its series, within 2e-14."""
    y = np.maximum(x, float(_TABLE))
    square = y * y
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / y
    return np.where(x < _TABLE, _SMALL[np.minimum(x, _TABLE - 1).astype(np.int64)], series)


def _deviance(x: FloatArray, mean: FloatArray) -> FloatArray:
    far = (x - mean) / mean
    return mean * ((1.0 + far) * np.log1p(far) - far)


def far_off(variance: FloatArray, tail: float) -> FloatArray:
    """How far from its mean a binomial lies with probability `tail` at most, on either side.

    Bernstein's inequality: with L = log(1/tail), at least L/3 + sqrt(L^2/9 + 2 L variance) off.

    >>> float(far_off(np.array(100.0), 1e-9).round())
    72.0
    """
    needed = log(1.0 / tail)
    return needed / 3.0 + np.sqrt(needed**2 / 9.0 + 2.0 * needed * variance)


def mean_excess(trials: FloatArray, p: float, rest: float, over: FloatArray) -> FloatArray:
    """E[max(H - over, 0)] for H ~ Binomial(trials, p), element by element; `over` is at least 0.

    Terms are added from the first whole number above `over`, until what is left, a sum that
    falls faster than a geometric one, is below one part in 10^10; that is added too.

    >>> mean_excess(np.array([2.0]), 0.5, 0.5, np.array([0.5])).round(6).tolist()
    [0.625]
    """
    low = trials * p - far_off(trials * p * rest, _NEVER)
    at = np.maximum(np.ceil(over), np.floor(low))
    # What lies so far below is there with a probability of no account, but is counted.
    total = np.maximum(at - over, 0.0) * _NEVER
    chance = np.exp(log_binomial(at, trials, p, rest))
    odds = p / rest
    left = np.flatnonzero(chance > 0.0)
    # Steps go down the rows: then all elements are multiplied up side by side.
    steps = np.arange(_STEP, dtype=np.float64)[:, None]
    while left.size:
        hits = at[left] + steps
        ratios = np.maximum(trials[left] - hits, 0.0) / (hits + 1.0) * odds
        terms = np.empty_like(hits)
        terms[0] = chance[left]
        for step in range(1, _STEP):
            np.multiply(terms[step - 1], ratios[step - 1], out=terms[step])
        total[left] += (terms * (hits - over[left])).sum(axis=0)
        last, falls = terms[-1] * ratios[-1], ratios[-1]
        at[left] += _STEP
        chance[left] = last
        beyond = at[left] - over[left]
        # Each further ratio is smaller: the rest is below a geometric sum and its mean.
        slow = np.minimum(falls, 0.999999)
        rest_bound = last * (beyond / (1.0 - slow) + slow / (1.0 - slow) ** 2)
        done = (last == 0.0) | ((falls < 0.999) & (rest_bound <= _ENOUGH * total[left]))
        total[left[done]] += rest_bound[done]
        left = left[~done]
    return total
