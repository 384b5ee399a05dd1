"""Probabilities as integers over a power of two, rounded to the side that keeps epsilon."""

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

_DIGITS = 60


@lru_cache(maxsize=64)
def exp_from_below(epsilon: Fraction) -> Fraction:
    """A rational just below e^epsilon."""
    context = Context(prec=_DIGITS)
    power = context.exp(context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    return Fraction(power) * (1 - Fraction(1, 10 ** (_DIGITS - 10)))


def round_down(probability: Fraction, bits: int) -> int:
    """The largest numerator over 2^bits that does not exceed the probability."""
    return (probability.numerator << bits) // probability.denominator


def round_up(probability: Fraction, bits: int) -> int:
    """The smallest numerator over 2^bits that is not below the probability."""
    return -((-probability.numerator << bits) // probability.denominator)
