"""A figure with what is known about its error."""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import exp, inf, isfinite, isnan, log, nan, sqrt
from typing import NamedTuple

from fedassay.extras import needed_for


class Shape(Enum):
    """How an interval is drawn around a value."""

    PLAIN = "plain"
    """Value plus and minus z standard deviations."""
    SCORE = "score"
    """Wilson's score interval for a proportion, widened by noise."""
    LOGIT = "logit"
    """Symmetric on the log-odds scale, for areas between 0 and 1."""


class Interval(NamedTuple):
    """Both ends, as they come: noisy ones may leave [0, 1]."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, and its three kinds of error.

    `noise_sd` comes from privacy noise and `sampling_sd` from the rows being a sample.
    Binning has two figures: `binning_sd` is its likely size when scores are well-behaved
    (`def:wellbehaved`) or tied, and is part of the interval; `binning_bound` is the most
    it can be, however scores lie inside the buckets.

    >>> Estimate(0.9, sampling_sd=0.01).interval()
    Interval(low=0.88..., high=0.91...)
    """

    value: float
    noise_sd: float = 0.0
    sampling_sd: float = 0.0
    binning_bound: float = 0.0
    binning_sd: float = 0.0
    shape: Shape = Shape.PLAIN
    trials: float = inf
    """The denominator of a proportion, or the examples behind an area, for score intervals."""

    @property
    def is_available(self) -> bool:
        """Whether there was enough data for a value."""
        return not isnan(self.value)

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        z = normal_quantile(0.5 + confidence / 2.0)
        rest = self.noise_sd**2 + self.binning_sd**2
        if not population:
            return Interval(self.value - z * sqrt(rest), self.value + z * sqrt(rest))
        at_an_end = self.shape is Shape.LOGIT and not 0.0 < self.value < 1.0
        if self.shape is Shape.SCORE or (at_an_end and isfinite(self.trials)):
            return _score_interval(self.value, self.trials, rest, z)
        half = z * sqrt(rest + self.sampling_sd**2)
        if self.shape is Shape.LOGIT and 0.0 < self.value < 1.0:
            return _logit_interval(self.value, half)
        return Interval(self.value - half, self.value + half)


@dataclass(frozen=True, slots=True)
class NotEnoughData(Estimate):
    """No value, and why: what a metric returns instead of nonsense."""

    value: float = nan
    reason: str = ""

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Everything is possible."""
        return Interval(-inf, inf)


@lru_cache(maxsize=32)
def normal_quantile(probability: float) -> float:
    """The standard normal quantile."""
    with needed_for("intervals"):
        from scipy.special import ndtri

    return float(ndtri(probability))


def _score_interval(value: float, trials: float, rest: float, z: float) -> Interval:
    """Solve (value - p)^2 = z^2 (p (1 - p) / trials + rest) for p.

    Without the rest this is Wilson's interval.
    """
    ratio = z * z / trials
    centre = (value + ratio / 2.0) / (1.0 + ratio)
    inside = centre**2 - (value**2 - z * z * rest) / (1.0 + ratio)
    half = sqrt(max(inside, 0.0))
    return Interval(centre - half, centre + half)


def _logit_interval(value: float, half: float) -> Interval:
    centre = log(value / (1.0 - value))
    error_quantile = half / (value * (1.0 - value))
    return Interval(_expit(centre - error_quantile), _expit(centre + error_quantile))


def _expit(x: float) -> float:
    return 1.0 / (1.0 + exp(-x)) if x >= 0.0 else exp(x) / (1.0 + exp(x))
