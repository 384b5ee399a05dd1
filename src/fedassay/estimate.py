"""A figure with what is known about its error."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from functools import lru_cache
from math import ceil, exp, hypot, inf, isfinite, isnan, log, log1p, log10, nan, sqrt
from statistics import NormalDist
from typing import NamedTuple

from fedassay.checks import require_member, require_type, shown
from fedassay.errors import SettingInvalid
from fedassay.presentation import html_text

_FEWEST_DIGITS, _MOST_DIGITS = 3, 6
_LARGEST_EXPONENT = 300.0
# Even of exact counts a figure is a few roundings away from the same figure of the rows.
_ROUNDING = 2.0**-49
_SDS = ("noise_sd", "sampling_sd", "binning_bound", "binning_sd", "binning_limit")


REACH = 1.959963984540054
"""What is possible is taken as the end of a 95 % interval: so many standard deviations."""


FINER = "Run a second step (--steps 2), or give a reference."
"""What helps where a grid is too coarse; not where cells were merged."""


class Shape(Enum):
    """How an interval is drawn around a value."""

    PLAIN = "plain"
    """Value plus and minus z standard deviations."""
    SCORE = "score"
    """Wilson's score interval for a proportion, widened by noise."""
    LOGIT = "logit"
    """Sampling symmetric on the log-odds scale, for areas between 0 and 1, widened by noise."""
    LOG = "log"
    """Symmetric on the logarithmic scale, for ratios above 0."""


class Interval(NamedTuple):
    """Both ends, as they come: noisy ones may leave [0, 1]."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """A value, and its three kinds of error.

    `noise_sd` comes from privacy noise and `sampling_sd` from the rows being a sample.
    Binning has two figures: `binning_sd` is its likely size when scores are well-behaved
    (`def:wellbehaved`) or tied, and is part of the interval; `binning_bound` is the most
    it can be, however scores lie inside the buckets.

    >>> auc = Estimate(0.9, sampling_sd=0.01)
    >>> print(auc)
    0.900 [0.880, 0.920]
    >>> auc.interval(0.95)
    Interval(low=0.88..., high=0.91...)
    >>> f"{auc:.2f}", float(auc)
    ('0.90', 0.9)
    """

    value: float
    _: KW_ONLY
    noise_sd: float = 0.0
    sampling_sd: float = 0.0
    binning_bound: float = 0.0
    binning_sd: float = 0.0
    binning_limit: float = inf
    """As far as intervals go for binning: where its bound is strict, about that."""
    shape: Shape = Shape.PLAIN
    trials: float = inf
    """The denominator of a proportion, or the examples behind an area, for score intervals."""

    def __post_init__(self) -> None:
        require_member(self.shape, Shape, "an estimate's shape")
        for name in ("value", *_SDS, "trials"):
            number = getattr(self, name)
            # A comparison with a text raises, one with NaN is false: NaN means "not known".
            if isinstance(number, str | bool) or not hasattr(number, "__float__"):
                raise SettingInvalid(
                    f"an estimate's {name} must be a number; found {shown(number)}. Pass a float."
                )
            if name != "value" and number < 0.0:
                raise SettingInvalid(
                    f"an estimate's {name} must not be negative; found {number:g}. "
                    "Errors and sizes are 0 or more."
                )

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        """The value and its 95 % interval, with as many digits as the interval deserves."""
        low, high = self.interval()
        half = (high - low) / 2.0
        digits = ceil(-log10(half)) if isfinite(half) and half > 0.0 else 0
        digits = min(max(digits, _FEWEST_DIGITS), _MOST_DIGITS)
        return f"{self.value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    @property
    def is_available(self) -> bool:
        """Whether there was enough data for a value."""
        return not isnan(self.value)

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        check_confidence(confidence)
        require_type(population, bool, "population", "Pass True or False.")
        z = normal_quantile(0.5 + confidence / 2.0)
        hidden = self._hidden_variance(z, self.sampling_sd if population else 0.0)
        rest = self.noise_sd**2 + hidden + (_ROUNDING * self.value) ** 2
        if self.shape is Shape.LOG and self.value > 0.0:
            half = z * sqrt(rest + self.sampling_sd**2 if population else rest)
            factor = exp(min(half / self.value, _LARGEST_EXPONENT))
            # A ratio that noise alone may have lifted from 0 may be 0, which no logarithm reaches.
            is_clear = z * self.noise_sd < self.value
            low = self.value / factor if is_clear else self.value - half
            return Interval(low, self.value * factor)
        if not population:
            return Interval(self.value - z * sqrt(rest), self.value + z * sqrt(rest))
        at_an_end = self.shape is Shape.LOGIT and not 0.0 < self.value < 1.0
        if self.shape is Shape.SCORE or (at_an_end and isfinite(self.trials)):
            return _score_interval(self.value, self.trials, rest, z)
        if self.shape is Shape.LOGIT and 0.0 < self.value < 1.0:
            return _widened(self.value, _logit_interval(self.value, z * self.sampling_sd), z, rest)
        half = z * sqrt(rest + self.sampling_sd**2)
        return Interval(self.value - half, self.value + half)

    def _hidden_variance(self, z: float, sampling_sd: float) -> float:
        """The variance from binning, or less: no further than its limit lead all errors together.

        What may be as far away as the limit L, and all else that varies by s, reach L + z s.
        """
        limit = self.binning_limit
        if self.shape is Shape.LOG and limit < inf:
            # Downwards, which on a logarithmic scale is the longer way.
            limit = -self.value * log1p(-limit / self.value) if limit < self.value else inf
        if limit == inf or z == 0.0:
            return self.binning_sd**2
        at_most = limit / z
        return min(
            self.binning_sd**2, at_most * (at_most + 2.0 * hypot(self.noise_sd, sampling_sd))
        )


@dataclass(frozen=True, slots=True, repr=False)
class NotEnoughData(Estimate):
    """No value, and why: what a metric returns instead of nonsense."""

    value: float = nan
    _: KW_ONLY
    reason: str = ""

    def __post_init__(self) -> None:
        Estimate.__post_init__(self)
        require_type(self.reason, str, "why there is no value", "Say it in words.")

    def __str__(self) -> str:
        return f"not enough data: {self.reason}" if self.reason else "not enough data"

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Everything is possible."""
        check_confidence(confidence)
        return Interval(-inf, inf)


@dataclass(frozen=True, slots=True, repr=False)
class TooCoarse(NotEnoughData):
    """No value, because the grid cannot tell these scores apart: more data would not help.

    Its errors are those that the value would have had.
    """

    def __str__(self) -> str:
        return f"too coarse: {self.reason}" if self.reason else "too coarse"


def as_far_as_possible(estimate: Estimate) -> Estimate:
    """The estimate of a strict `binning_bound`, beyond which only noise and sampling lead.

    Of what is possible noise may have hidden a part: a standard deviation of it.

    >>> as_far_as_possible(Estimate(0.8, binning_sd=0.2, binning_bound=0.1)).interval()
    Interval(low=0.7..., high=0.9...)
    """
    return replace(estimate, binning_limit=estimate.binning_bound + estimate.noise_sd)


def unless_too_coarse(estimate: Estimate, of: str, span: float) -> Estimate:
    """The estimate, or why there is none: buckets hide over two thirds of what is possible.

    `span` is how far apart the metric's possible values are. Where privacy noise is half as
    large, a finer grid would help little, and the interval says so by itself.

    >>> unless_too_coarse(Estimate(0.8, binning_sd=0.01), "recall", 1.0).value
    0.8
    >>> print(unless_too_coarse(Estimate(0.8, binning_sd=0.2), "recall", 1.0))
    too coarse: the grid is too coarse for these scores: where they lie inside its cells moves...
    """
    reach = REACH * estimate.binning_sd
    if reach <= span / 3.0 or estimate.binning_sd <= 2.0 * estimate.noise_sd:
        return estimate
    return too_coarse(estimate, of, min(reach, span))


def too_coarse(estimate: Estimate, of: str, reach: float) -> TooCoarse:
    """No answer, because cells move it by up to `reach` either way.

    >>> print(too_coarse(Estimate(3.0, binning_sd=9.0), "the ratio", 17.6).reason[:76])
    the grid is too coarse for these scores: where they lie inside its cells mov
    """
    return TooCoarse(
        noise_sd=estimate.noise_sd,
        sampling_sd=estimate.sampling_sd,
        binning_bound=estimate.binning_bound,
        binning_sd=estimate.binning_sd,
        reason="the grid is too coarse for these scores: where they lie inside its cells moves "
        f"{of} by up to {reach:.2g} either way. {FINER}",
    )


def remedied(estimate: Estimate, remedy: str) -> Estimate:
    """The same, with what helps where neither a second step nor a reference would, or can be had.

    >>> remedied(TooCoarse(reason=f"cells hide it. {FINER}"), "Ask more rows.").reason
    'cells hide it. Ask more rows.'
    """
    if not isinstance(estimate, NotEnoughData) or FINER not in estimate.reason:
        return estimate
    return replace(estimate, reason=estimate.reason.replace(FINER, remedy))


def check_confidence(confidence: object) -> None:
    """Raise unless a confidence lies inside (0, 1).

    >>> check_confidence(95)
    Traceback (most recent call last):
    fedassay.errors.SettingInvalid: a confidence lies between 0 and 1; found 95. Write 0.95 ...
    """
    remedy = "Usual is 0.95."
    if isinstance(confidence, int | float):
        if 0.0 < confidence < 1.0:
            return
        if 1.0 < confidence < 100.0:
            remedy = f"Write {confidence / 100:g} for {confidence:g} %."
    raise SettingInvalid(f"a confidence lies between 0 and 1; found {shown(confidence)}. {remedy}")


def p_value_of(told_apart: Callable[[float], bool]) -> float:
    """Two-sided: one less the largest confidence whose interval still leaves nil out.

    >>> round(p_value_of(lambda confidence: confidence < 0.97), 4)
    0.03
    """
    low, high = 0.0, 1.0 - 1e-12
    if not told_apart(1e-9):
        return 1.0
    if told_apart(high):
        return 1.0 - high
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if told_apart(max(middle, 1e-9)) else (low, middle)
    return 1.0 - high


@lru_cache(maxsize=32)
def normal_quantile(probability: float) -> float:
    """The standard normal quantile.

    >>> round(normal_quantile(0.975), 4)
    1.96
    """
    if not 0.0 < probability < 1.0:
        return inf if probability >= 1.0 else -inf
    return NormalDist().inv_cdf(probability)


def _score_interval(value: float, trials: float, rest: float, z: float) -> Interval:
    """Solve (value - p)^2 = z^2 (p (1 - p) / trials + rest) for p.

    Without the rest this is Wilson's interval.
    """
    ratio = z * z / trials
    # Written so that nothing cancels.
    inside = ratio * (value * (1.0 - value) + ratio / 4.0) + z * z * rest * (1.0 + ratio)
    half = sqrt(max(inside, 0.0))
    centre = value + ratio / 2.0
    low, high = (centre - half) / (1.0 + ratio), (centre + half) / (1.0 + ratio)
    # An interval of nobody, or of all, ends at 0 or 1 itself, and rounding must not take it off.
    return (
        Interval(min(low, value), max(high, value)) if 0.0 <= value <= 1.0 else Interval(low, high)
    )


def _logit_interval(value: float, half: float) -> Interval:
    centre = log(value / (1.0 - value))
    error_quantile = half / (value * (1.0 - value))
    return Interval(_expit(centre - error_quantile), _expit(centre + error_quantile))


def _widened(value: float, interval: Interval, z: float, rest: float) -> Interval:
    """Both ends moved away by errors that know no ends of the scale (Zou and Donner 2008).

    Squared distances of each end from the value add up, each side for itself.
    """
    room = z * z * rest
    return Interval(
        value - sqrt((value - interval.low) ** 2 + room),
        value + sqrt((interval.high - value) ** 2 + room),
    )


def _expit(x: float) -> float:
    return 1.0 / (1.0 + exp(-x)) if x >= 0.0 else exp(x) / (1.0 + exp(x))
