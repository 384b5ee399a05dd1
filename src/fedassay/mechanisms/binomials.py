"""Binomial probabilities and mean excesses in floating point, with errors below one part in 10^9.

Sums have no negative terms, so that no digits cancel; what is left out of a sum is bounded and
added. Only numpy, as on a client.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import lgamma, log, pi

import numpy as np

from fedassay.examples import FloatArray

Chance = float | FloatArray
"""One for all elements, or one for each."""
_FEW = 16
_LEAST_FAR = -1.0 + 1e-12
_ENOUGH = 1e-10
_STEP = 24
_PIECE = 1024
_NEVER = 1e-30


def log_binomial(hits: FloatArray, trials: FloatArray, p: Chance, rest: Chance) -> FloatArray:
    """Log P[Binomial(trials, p) = hits], element by element; `rest` is 1 - p, digits and all.

    >>> float(np.exp(log_binomial(np.array([3.0]), np.array([5.0]), 0.5, 0.5))[0]).__round__(6)
    0.3125
    """
    misses = trials - hits
    if np.min(rest) <= 0.0:
        return np.where(misses == 0.0, 0.0, -np.inf)
    return log_multinomial((hits, misses), trials, (p, rest))


def log_multinomial(
    counts: tuple[FloatArray, ...], trials: FloatArray, chances: tuple[Chance, ...]
) -> FloatArray:
    """Log of the probability of counts of each kind, element by element, which add up to `trials`.

    The saddle-point form (Loader 2000): with D(x, m) = x log(x/m) + m - x, the exponent is the
    sum of -D(x, np) over kinds, whose rounding error grows with |x - np| only.

    >>> two = np.array([2.0])
    >>> float(np.exp(log_multinomial((two, two), 2 * two, (0.5, 0.5)))[0]).__round__(6)
    0.375
    """
    # One call for all kinds: for few numbers it is calls that cost.
    parts = np.array([*counts, trials])
    least = parts.min()
    sizes = parts if least >= 0.0 else np.maximum(parts, 0.0)
    means = np.array([sizes[-1] * chance for chance in chances])
    off = sizes[:-1] - means
    ratios = off / np.maximum(means, _NEVER)
    if least <= 0.0:
        # Of nothing, D is the mean, whatever is taken for its log.
        ratios = np.maximum(ratios, _LEAST_FAR)
    factors = _beyond_powers(sizes)
    exponents = sizes[:-1] * np.log1p(ratios) - off + factors[:-1]
    value: FloatArray = factors[-1] - exponents.sum(axis=0)
    return value if least >= 0.0 else np.where((parts < 0.0).any(axis=0), -np.inf, value)


def _stirling(x: FloatArray) -> FloatArray:
    """Log x! less x log x - x by Stirling's series: within 2e-14 from 16 on."""
    square = x * x
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / x
    return series + 0.5 * np.log(2.0 * pi * x)


_TABLE = np.concatenate(
    [
        [0.0],
        [lgamma(x + 1.0) - x * log(x) + x for x in range(1, _FEW)],
        _stirling(np.arange(float(_FEW), 2.0**13)),
    ]
)


def _beyond_powers(x: FloatArray) -> FloatArray:
    """Log x! less x log x - x, which most often a table holds."""
    known = len(_TABLE)
    if x.max() < known:
        return _TABLE[x.astype(np.int64)]
    rows = np.minimum(x, known - 1.0).astype(np.int64)
    return np.where(x < known, _TABLE[rows], _stirling(np.maximum(x, float(known))))


@lru_cache(maxsize=16)
def _sum_and_moment(size: int) -> FloatArray:
    """What rows are multiplied with to be added up, and to be added up step by step."""
    return np.stack([np.ones(size), np.arange(float(size))])


def far_off(variance: FloatArray, tail: float) -> FloatArray:
    """How far from its mean a binomial lies with probability `tail` at most, on either side.

    Bernstein's inequality: with L = log(1/tail), at least L/3 + sqrt(L^2/9 + 2 L variance) off.

    >>> float(far_off(np.array(100.0), 1e-9).round())
    72.0
    """
    needed = log(1.0 / tail)
    return needed / 3.0 + np.sqrt(needed**2 / 9.0 + 2.0 * needed * variance)


def mean_excess(
    trials: FloatArray,
    p: Chance,
    rest: Chance,
    over: FloatArray,
    *,
    log_chance: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """E[max(H - over, 0)] for H ~ Binomial(trials, p), element by element; `over` is at least 0.

    Terms are added from the first whole number above `over`, until what is left, a sum that
    falls faster than a geometric one, is below one part in 10^10; that is added too. Where
    `log_chance` of a number is not the binomial's but that times a weight up to 1 for each
    element, so is the result.

    >>> mean_excess(np.array([2.0]), 0.5, 0.5, np.array([0.5])).round(6).tolist()
    [0.625]
    """
    low = trials * p - far_off(trials * p * rest, _NEVER)
    at = np.maximum(np.ceil(over), np.floor(low))
    # What lies so far below is there with a probability of no account, but is counted.
    total = np.maximum(at - over, 0.0) * _NEVER
    chance = np.exp(log_chance(at) if log_chance else log_binomial(at, trials, p, rest))
    there, odds = np.flatnonzero(chance > 0.0), np.broadcast_to(p / rest, at.shape)
    for start in range(0, len(there), _PIECE):
        left = there[start : start + _PIECE]
        of_these = (each[left] for each in (at, chance, trials, over, odds))
        total[left] += _excess_from(*of_these)
    return total


def _excess_from(
    at: FloatArray, chance: FloatArray, trials: FloatArray, over: FloatArray, odds: FloatArray
) -> FloatArray:
    """The sum over h from `at` on of P[H = h] (h - over), given the probability of the first."""
    total, left, size = np.zeros_like(at), np.arange(len(at)), _STEP
    while left.size:
        both = _sum_and_moment(size)
        steps = both[1][:, None]
        # Down the rows go the first term and the ratios of each to the one before it: then all
        # elements are multiplied up side by side.
        terms = np.empty((size + 1, left.size))
        terms[0], ratios = chance, terms[1:]
        np.subtract(trials - at, steps, out=ratios)
        np.maximum(ratios, 0.0, out=ratios)
        ratios *= odds
        ratios /= (at + 1.0) + steps
        falls = ratios[-1].copy()
        for before, row in pairwise(terms):
            np.multiply(before, row, out=row)
        sums, moments = both @ terms[:-1]
        total[left] += (at - over) * sums + moments
        at, chance = at + size, terms[-1]
        # Each further ratio is smaller: the rest is below a geometric sum and its mean.
        fast = np.maximum(1.0 - falls, 1e-6)
        rest_bound = chance * ((at - over) + (1.0 - fast) / fast) / fast
        more = (chance > 0.0) & ((falls >= 0.999) | (rest_bound > _ENOUGH * total[left]))
        total[left] += np.where(more, 0.0, rest_bound)
        left, size = left[more], 2 * size
        at, chance, trials, over, odds = (each[more] for each in (at, chance, trials, over, odds))
    return total
