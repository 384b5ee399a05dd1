"""What is left of a promise when only a part of the noise hides a client.

Whoever sent a report knows its noise and can take it away: towards another participant the sum
has one share of noise less than towards outsiders.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import acosh, asinh, exp, gamma, inf, log, log1p, pi

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.mechanisms.polya import Polya

_QUADRATURE_NODES = 400
_BESSEL_STEP = 0.05
_HALF = Fraction(1, 2)


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


def most_of_partial_noise(epsilon: Fraction, counters: int, fraction: Fraction) -> float:
    """The most that epsilon can be, whatever the weights, where a fraction of the noise arrives.

    Holds for surveys that spend `epsilon` in all, on any levels, where one unit moves at
    most `counters` counters. With n of them: n h(epsilon / n), where
    h(e) = -log(2 (e/2)^m K_m(e) / Gamma(m)), m = fraction - 1/2 and K_m is Bessel's
    function. Infinite up to half of the noise, where no bound holds for all weights.

    Proof. With x = -log a the noise left has the pmf f(d) ~ integral of
    e^(-d u) (cosh u - cosh x)^(-fraction) over u > x (a Legendre function). A counter that one
    unit moves by w costs log(f(0) / f(w)), since f is log-convex from 0 on; with e = w x and
    u = x v that is -log E[e^(-e v)], v > 1 with a density ~ (cosh(x v) - cosh x)^(-fraction).
    As x falls at a fixed e, the ratio of two such densities rises with v (power series in
    v^2k - 1 term by term), so v grows and so does the cost, up to h(e), where v has the density
    ~ (v^2 - 1)^(-fraction). That density does not depend on e, so h is the concave
    -log E[e^(-e v)] with h(0) = 0, and parts e_i that add up to epsilon cost at most
    n h(epsilon / n) together.

    >>> round(most_of_partial_noise(Fraction(1), 1, Fraction(999, 1000)), 3)
    1.002
    """
    if fraction >= 1:
        return float(epsilon)
    if fraction <= _HALF:
        return inf
    return counters * _log_far(float(epsilon / counters), float(fraction - _HALF))


def epsilons_of_levels(
    mechanisms: Sequence[object], weights: Sequence[int], *, examples: int, left: Fraction
) -> list[float]:
    """What every level with shared noise costs where a fraction of that noise is left.

    `weights` are the most that one example moves each level's counters, `examples` the most of
    a unit. A weighted level has a counter for each label: a unit moves them by a lot.
    """
    known = []
    for mechanism, weight in zip(mechanisms, weights, strict=True):
        if isinstance(mechanism, Polya):
            spent = epsilon_of_partial_noise(mechanism.epsilon, mechanism.sensitivity, left)
            if weight > 1:
                far = most_of_partial_noise(mechanism.epsilon, min(examples, 2), left)
                spent = min(spent, far)
            known.append(spent)
    return known


@lru_cache(maxsize=256)
def _log_far(step: float, order: float) -> float:
    """-log(2 (e/2)^m K_m(e) / Gamma(m)), K_m by the trapezoidal rule, which is exact here."""
    w = np.arange(0.0, acosh(745.0 / step + 1.0), _BESSEL_STEP)
    terms = np.exp(-step * np.cosh(w)) * np.cosh(order * w)
    bessel = _BESSEL_STEP * float(terms.sum() - terms[0] / 2.0)
    return log(gamma(order)) - log(2.0) - order * log(step / 2.0) - log(bessel)


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
