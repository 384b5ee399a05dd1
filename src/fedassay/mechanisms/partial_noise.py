"""What is left of a promise when only a part of the noise hides a client.

Whoever sent a report knows its noise and can take it away: towards another participant the sum
has one share of noise less than towards outsiders.
"""

from fractions import Fraction
from functools import lru_cache
from math import asinh, exp, log1p, pi

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray

_QUADRATURE_NODES = 400


def epsilon_of_partial_noise(epsilon: Fraction, sensitivity: int, fraction: Fraction) -> float:
    """The epsilon that holds where a fraction of the discrete Laplace noise arrives.

    The noise left is the difference of two Polya(fraction, a) variables, a =
    exp(-epsilon / sensitivity), with characteristic function
    phi(t) = ((1 - a)^2 / (1 - 2 a cos t + a^2))^fraction. For a fraction below 1 its pmf f
    falls most steeply at 0 and is log-convex beyond, so that `sensitivity` steps cost most in
    as many different counters: sensitivity x log(f(0) / f(1)). With f(0) - f(1) =
    1/pi x integral of phi(t) (1 - cos t) over [0, pi] nothing cancels.

    >>> round(epsilon_of_partial_noise(Fraction(1), 1, Fraction(2, 3)), 2)
    1.39
    """
    if not fraction > 0:
        raise SettingInvalid(
            f"without any noise there is no epsilon; found the fraction {fraction}. Some honest "
            "client must be left."
        )
    if fraction >= 1:
        # More noise than was promised is post-processing of what was promised.
        return float(epsilon)
    return sensitivity * _log_step(float(epsilon / sensitivity), float(fraction))


@lru_cache(maxsize=256)
def _log_step(step: float, fraction: float) -> float:
    """log(f(0) / f(1)), by Gauss-Legendre quadrature in u with t = (1 - a) sinh(u)."""
    nodes, weights = _quadrature()
    rest = -np.expm1(-step)
    end = asinh(pi / rest)
    u = end * (nodes + 1.0) / 2.0
    t = rest * np.sinh(u)
    sine = np.sin(t / 2.0) ** 2
    phi = (rest**2 / (rest**2 + 4.0 * exp(-step) * sine)) ** fraction
    mass = weights * phi * rest * np.cosh(u)
    return -log1p(-float((mass * 2.0 * sine).sum() / mass.sum()))


@lru_cache(maxsize=1)
def _quadrature() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(_QUADRATURE_NODES)
    return nodes, weights
