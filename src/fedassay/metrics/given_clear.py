"""How far off a sum may be that came out clear of its noise.

A ratio is answered where its divisor comes out at four standard deviations or more. Of divisors
that are smaller in truth, only those answer that noise made large: given that there is an answer,
noise is no longer centred. With Z the noise in standard deviations, and a divisor that came out at
x, where b is asked for, one that is smaller by t comes out as large or larger with a chance of

    P[Z > t | Z > t - (x - b)] = P[Z > t] / P[Z > t - (x - b)],

because it answers only where Z > t - (x - b). The t at which that is 5 % is the end of an interval
that holds in 95 of 100 surveys *that answer*: noise that let a small divisor answer errs to one
side only. It is 1.96 where x is large, and without bound where x is no more than b.
"""

from math import erfc, sqrt

from fedassay.estimate import REACH

# Sums that are less than a quarter of what they came out as hardly ever come out clear of noise.
_MOST = 0.75
_ENOUGH = 5.0
_ROUNDS = 40


def reach_given_clear(stands: float, bar: float) -> float:
    """How many standard deviations smaller a sum may be that came out at `stands` of them.

    It was to be `bar` of them at least, and is a quarter of what it came out as, or more.

    >>> [round(reach_given_clear(stands, 4.0), 2) for stands in (4.0, 5.0, 5.5, 12.0)]
    [3.0, 3.19, 2.31, 1.96]
    """
    margin = stands - bar
    if margin > _ENOUGH:
        return REACH
    low, high = REACH, max(_MOST * stands, REACH)
    level = 2.0 * _above(REACH)
    if _above(high) > level * _above(high - margin):
        return high
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        if _above(middle) > level * _above(middle - margin):
            low = middle
        else:
            high = middle
    return high


def _above(deviations: float) -> float:
    """The chance that a standard normal number is larger."""
    return 0.5 * erfc(deviations / sqrt(2.0))
