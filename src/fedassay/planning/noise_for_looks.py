"""Noise for many looks: Pólya's beside one whose losses add up in squares.

A tree of L levels that is asked k times moves k L counters of one row, by one each. Split evenly
each has epsilon / (k L), without a delta. With one, k L discrete Laplace counters may be composed;
or the noise could be discrete Gaussian or Skellam (`ADR 22`), whose losses add up in squares.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Any

import numpy as np

from fedassay.checks import require_number, require_whole
from fedassay.errors import SettingInvalid
from fedassay.extras import needed_for

USUAL_DELTA = 1e-6
_HALVINGS = 80
_LARGEST_SD = 1e7


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseForLooks:
    """Standard deviations of one counter's noise, where one row is asked so often."""

    epsilon: float
    counters: int
    """Looks times levels."""
    delta: float
    split: float
    """Pólya, epsilon split evenly: the noise that surveys have, without a delta."""
    composed: float
    """Pólya, as little noise as composing with the delta allows."""
    squares: float
    """Gaussian, with the same epsilon and delta over all."""

    @property
    def gain(self) -> float:
        """How many times smaller the Gaussian's is than Pólya's with the same promise."""
        return self.composed / self.squares

    def sentence(self) -> str:
        """What another noise would gain."""
        times = self.gain if self.gain >= 1.0 else 1.0 / self.gain
        return (
            f"Noise whose losses add up in squares (Gaussian) would be {times:.2f} times "
            f"{'smaller' if self.gain >= 1.0 else 'larger'} than Pólya's at epsilon "
            f"{self.epsilon:g} and delta {self.delta:g} over {self.counters:,} counters of one "
            f"row. Composing with that delta, as a ledger does, makes Pólya's "
            f"{self.split / self.composed:.2f} times smaller than an even split (ADR 22)."
        )

    def to_json(self) -> dict[str, Any]:
        """In JSON's terms."""
        return {
            "delta": self.delta,
            "counters": self.counters,
            "polya_split_sd": self.split,
            "polya_composed_sd": self.composed,
            "squares_sd": self.squares,
            "gain": self.gain,
        }


def compare_noise(epsilon: float, counters: int, *, delta: float = USUAL_DELTA) -> NoiseForLooks:
    """The least noise of either kind for one epsilon over so many counters.

    >>> few, many = compare_noise(1.0, 3), compare_noise(1.0, 520)
    >>> round(few.gain, 2), round(many.gain, 2)
    (0.58, 1.41)
    """
    require_whole(counters, "counters of one row", 1, 10**6)
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0.0 < require_number(value, name) < inf:
            raise SettingInvalid(f"{name} is a finite number above 0; found {value:g}.")
    each = _last(
        lambda each: laplace_delta(epsilon, each, counters) <= delta, epsilon / counters, epsilon
    )
    # As a precision, so that more of it is less private, as a larger epsilon is.
    precision = _last(
        lambda precision: gaussian_delta(epsilon, 1.0 / precision, counters) <= delta,
        1.0 / _LARGEST_SD,
        _LARGEST_SD,
    )
    return NoiseForLooks(
        epsilon=epsilon,
        counters=counters,
        delta=delta,
        split=laplace_sd(epsilon / counters),
        composed=laplace_sd(each),
        squares=1.0 / precision,
    )


def laplace_delta(epsilon: float, each: float, counters: int) -> float:
    """Of as many discrete Laplace counters, exactly: each loss is plus or minus its epsilon.

    >>> laplace_delta(1.0, 0.5, 2)
    0.0
    """
    with needed_for("comparing noise"):
        from scipy.stats import binom

    ups = np.arange(counters + 1)
    losses = each * (2.0 * ups - counters)
    chance = binom.pmf(ups, counters, 1.0 / (1.0 + exp(-each)))
    return float((chance * -np.expm1(np.minimum(epsilon - losses, 0.0))).sum())


def gaussian_delta(epsilon: float, sd: float, counters: int) -> float:
    """Of as many Gaussian counters (Balle and Wang 2018); discrete ones are next to the same.

    >>> gaussian_delta(1.0, 4.3, 1) < 1e-6 < gaussian_delta(1.0, 4.2, 1)
    True
    """
    with needed_for("comparing noise"):
        from scipy.special import log_ndtr, ndtr

    s = sd / sqrt(counters)
    beyond = log_ndtr(-0.5 / s - epsilon * s)
    return float(ndtr(0.5 / s - epsilon * s) - np.exp(epsilon + beyond))


def laplace_sd(each: float) -> float:
    """Of one counter's discrete Laplace noise.

    >>> round(laplace_sd(1.0), 2)
    1.36
    """
    return sqrt(2.0 * exp(-each)) / (1.0 - exp(-each))


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number for which it holds, if it does up to some number and not beyond."""
    for _ in range(_HALVINGS):
        middle = sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
