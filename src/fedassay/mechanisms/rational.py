"""Probabilities as integers over a power of two, rounded to the side that keeps epsilon.

Everything here is done in whole numbers, so that any language comes to the same ones.
"""

from fractions import Fraction
from functools import lru_cache

SCALE = 2**192


@lru_cache(maxsize=4096)
def scaled_exp(epsilon: Fraction) -> int:
    """A whole number just below e^epsilon 2^192.

    The sum over k of t_k, where t_0 = 2^192 and t_k = floor(t_(k-1) a / (b k)) for
    epsilon = a/b, until t_k is 0: every term is rounded down, so the sum is below.

    >>> scaled_exp(Fraction(1)) / SCALE
    2.718281828459045
    """
    total = term = SCALE
    a, b = epsilon.as_integer_ratio()
    divisor = 0
    while term:
        divisor += b
        term = term * a // divisor
        total += term
    return total


def over(numerator: int, bits: int) -> str:
    """A probability as files write it: its numerator over 2^bits, not reduced."""
    return f"{numerator}/{2**bits}"


def round_down(probability: Fraction, bits: int) -> int:
    """The largest numerator over 2^bits that does not exceed the probability."""
    return (probability.numerator << bits) // probability.denominator


def round_up(probability: Fraction, bits: int) -> int:
    """The smallest numerator over 2^bits that is not below the probability."""
    return -((-probability.numerator << bits) // probability.denominator)
