"""Which frequency oracle a level of locally private reports gets."""

from fractions import Fraction
from functools import lru_cache

from fedassay.mechanisms import LocalMechanism, RandomizedResponse, UnaryEncoding


@lru_cache(maxsize=256)
def oracle_for(
    epsilon: Fraction, cells: int, *, allow_empty: bool
) -> UnaryEncoding | RandomizedResponse:
    """The frequency oracle with the smaller variance on a level, averaged over its cells.

    >>> oracle_for(Fraction(5), 4, allow_empty=False).kind
    'grr'
    """
    unary = UnaryEncoding(epsilon)
    response = RandomizedResponse(epsilon, cells, allow_empty)
    return response if mean_variance(response, cells) < mean_variance(unary, cells) else unary


def mean_variance(oracle: LocalMechanism, cells: int) -> float:
    """What a report adds to the variance of a debiased count, averaged over label x cell.

    >>> mean_variance(UnaryEncoding(Fraction(1)), 4) > mean_variance(UnaryEncoding(Fraction(2)), 4)
    True
    """
    law = oracle.law()
    return (law.variance_per_report + law.variance_per_hit / (2 * cells)) / law.gain**2
