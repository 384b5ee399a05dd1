"""Planning backwards: clients or epsilon for a wanted error, and what can be told apart."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log, log10, sqrt

from fedassay.checks import require_number
from fedassay.client import CEILING
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.estimate import Estimate, normal_quantile
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import UNBOUNDED, check_metric, named_metric
from fedassay.planning.forecast import (
    Cause,
    ErrorForecast,
    expected_examples,
    expected_reports,
    forecast_one,
    model_for,
    scaled,
)
from fedassay.planning.open_settings import under_privacy
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import (
    SurveyDesign,
    design_survey,
    quick_design,
    rebuilt_design,
    steps_for,
)
from fedassay.survey import MAX_CLIENTS

# Predictions are good to some 5 %: plan for a little more than 95 trials of 100.
PLANNED = 0.965
_SMALLEST_EPSILON = Fraction(1, 1000)
_LARGEST_EPSILON = CEILING
_ROUNDS = 6
# Where the chosen survey could not do with any number, another may be chosen of so many times it.
_LARGER = 1.25
_HARDLY = 0.05
_SETTLED = 0.01
_NEARLY = 0.002
_MANY = 1e9
# Metrics that are read from noise drawn again: another rounding of it would be another draw.
_DRAWN = ("average_precision", "ks")


@dataclass(frozen=True, slots=True)
class Target:
    """An error to stay below, for one metric, in 95 trials of 100, against the population."""

    metric: str
    error: float

    def __post_init__(self) -> None:
        check_metric(self.metric)
        largest = inf if self.metric.partition("@")[0] in UNBOUNDED else 1.0
        if not 0.0 < require_number(self.error, "a target error") < largest:
            raise SettingInvalid(
                f"a target error must lie between 0 and {largest:g}; found {self.error:g}. "
                "No finite number of clients gives an error of 0."
            )

    def is_met(self, expected: ErrorForecast) -> bool:
        """Whether the predicted error stays below it."""
        return expected.error_quantile(PLANNED) <= self.error


def predicted(
    request: SurveyRequest,
    design: SurveyDesign,
    metric: str,
    *,
    model: ScoreHistogram | None = None,
    truth: Estimate | None = None,
    fits_once: bool = False,
) -> ErrorForecast:
    """One metric's errors under a request's own model; with `model`, one made before.

    >>> request = SurveyRequest(clients=1000)
    >>> predicted(request, design_survey(request), "roc_auc").noise_sd  # exact sums
    0.0
    """
    made = model_for(request) if model is None else scaled(model, expected_examples(request))
    return forecast_one(
        design.survey,
        made,
        metric=metric,
        clients=expected_reports(request),
        decode_options=design.decode_options,
        second=design.second,
        truth=truth,
        fits_once=fits_once,
    )


def clients_needed(request: SurveyRequest, target: Target) -> int:
    """The fewest clients, each with as many rows as before, whose survey stays below the target.

    >>> clients_needed(SurveyRequest(), Target("prevalence", 0.01)) > 5000
    True
    """

    def with_clients(clients: float) -> SurveyRequest:
        number, examples = round(clients), request.examples
        if examples is not None and request.clients is not None:
            examples = min(MAX_CLIENTS, max(1, round(examples * number / request.clients)))
        return replace(request, clients=number, examples=examples, minimum_reports=None)

    fewest = max(2, request.colluders + 2)
    clients = _smallest(
        with_clients, target, _Range(fewest, MAX_CLIENTS, start=10_000, step=100, whole=True)
    )
    if clients is None:
        raise TargetImpossible(_no_number("clients", with_clients(MAX_CLIENTS), target))
    return round(clients)


def rows_needed(request: SurveyRequest, target: Target) -> int:
    """The fewest rows, spread over as many clients as before, whose survey stays below it.

    >>> rows_needed(SurveyRequest(clients=4), Target("prevalence", 0.01)) > 5000
    True
    """

    def with_rows(rows: float) -> SurveyRequest:
        return replace(request, examples=round(rows))

    fewest = max(2, request.clients or 2)
    rows = _smallest(
        with_rows, target, _Range(fewest, MAX_CLIENTS, start=100_000, step=100, whole=True)
    )
    if rows is None:
        raise TargetImpossible(_no_number("rows", with_rows(MAX_CLIENTS), target))
    return round(rows)


def epsilon_needed(request: SurveyRequest, target: Target) -> Fraction:
    """The smallest epsilon whose survey stays below the target, to three digits.

    >>> request = SurveyRequest(privacy=Privacy.LOCAL, clients=100_000, height=3)
    >>> epsilon_needed(request, Target("roc_auc", 0.02)) < 10
    True
    """
    if not request.privacy.spends_epsilon:
        raise SettingInvalid(
            "exact sums spend no epsilon; there is none to find. "
            "Choose distributed or local privacy."
        )

    def with_epsilon(epsilon: float) -> SurveyRequest:
        return replace(request, epsilon=Fraction(epsilon).limit_denominator(10**6))

    epsilon = _smallest(
        with_epsilon,
        target,
        _Range(float(_SMALLEST_EPSILON), float(_LARGEST_EPSILON), start=1, step=10),
    )
    if epsilon is None:
        raise TargetImpossible(_no_epsilon(request, target))
    return _three_digits(epsilon)


@dataclass(frozen=True, slots=True)
class _Range:
    """Where to look for a number, from where, and how far to go when that is too small."""

    smallest: float
    largest: float
    start: float
    step: float
    whole: bool = False

    def rounded_up(self, number: float) -> float:
        """To three digits, not beyond the largest."""
        rounded = _rounded_up(number) if self.whole else float(_three_digits(number))
        return min(rounded, self.largest)


def _smallest(
    with_number: Callable[[float], SurveyRequest], target: Target, within: _Range
) -> float | None:
    """The smallest number of something whose survey stays below the target; None if none does.

    For a survey of given shape the error falls with the number: it is solved for, the survey
    chosen anew for that many, and again until the number settles.
    """
    model = model_for(with_number(within.smallest))
    # However many rows there are, the model's own value is the same.
    truth = named_metric(scaled(model, _MANY), target.metric)
    fits_once = target.metric not in _DRAWN

    @lru_cache(maxsize=64)
    def excess(shape: SurveyDesign, number: float) -> float:
        """The log of how many times too large the error is."""
        asked = with_number(number)
        design = rebuilt_design(asked, shape)
        expected = predicted(
            asked, design, target.metric, model=model, truth=truth, fits_once=fits_once
        )
        return log(max(expected.error_quantile(PLANNED), 1e-300) / target.error)

    def misses(shape: SurveyDesign, number: float) -> bool:
        return excess(shape, number) > 0.0

    def enough(shape: SurveyDesign, low: float, *, nearly: float = _NEARLY) -> float:
        return _crossing(lambda number: excess(shape, number), low, within, nearly)

    number, best = min(max(within.start, within.smallest), within.largest), inf
    steps, shape = None, None
    for _ in range(_ROUNDS):
        asked = with_number(number)
        steps = steps or steps_for(asked)
        shape = quick_design(replace(asked, steps=steps), near=shape)
        if misses(shape, within.largest):
            if number == within.largest:
                break
            number = min(within.largest, within.step * number)
            continue
        least = enough(shape, within.smallest, nearly=_SETTLED / 2.0)
        settled = abs(least - number) <= _SETTLED * number
        best = least if settled else min(best, least)
        number = least
        if settled:
            break
    if best == inf:
        return None
    return _handed_out(with_number, misses, enough, best, within)


def _handed_out(
    with_number: Callable[[float], SurveyRequest],
    misses: Callable[[SurveyDesign, float], bool],
    enough: Callable[[SurveyDesign, float], float],
    best: float,
    within: _Range,
) -> float | None:
    """The number for which the survey that will be handed out, chosen with more care, does too."""
    number, too_few = within.rounded_up(best), inf
    for _ in range(_ROUNDS):
        shape = design_survey(with_number(number))
        if not misses(shape, number):
            break
        if not misses(shape, within.largest):
            number = within.rounded_up(enough(shape, number))
        elif number == within.largest:
            return None
        else:  # chosen for another figure; of a larger number the survey has another shape
            too_few, number = number, within.rounded_up(_LARGER * number)
    while number > too_few * (1.0 + _HARDLY):
        middle = within.rounded_up(sqrt(too_few * number))
        if middle >= number:
            break
        if misses(design_survey(with_number(middle)), middle):
            too_few = middle
        else:
            number = middle
    return number


def _crossing(
    excess: Callable[[float], float], low: float, within: _Range, nearly: float = _NEARLY
) -> float:
    """Where a falling error meets its target, from above; errors fall like powers of numbers.

    Regula falsi in logarithms, halved where one end stays (Illinois), to a share of `nearly`.
    """
    high = within.largest
    above, below = excess(low), excess(high)
    if above <= 0.0:
        return low
    kept = 0
    while high > low * (1.0 + nearly) + within.whole:
        # With hardly any clients there is no answer, and no finite error.
        share = above / (above - below) if above < inf else 0.5
        middle = low * (high / low) ** min(max(share, 0.01), 0.99)
        if within.whole:
            middle = min(max(round(middle), low + 1), high - 1)
        found = excess(middle)
        if found > 0.0:
            low, above = middle, found
            below, kept = (below / 2.0, 1) if kept > 0 else (below, 1)
        else:
            high, below = middle, found
            above, kept = (above / 2.0, -1) if kept < 0 else (above, -1)
    return high


def detectable_difference(expected: ErrorForecast, power: float) -> float:
    """The smallest difference between two models that shows, at 5 % false alarms, two-sided.

    Each model has a survey of its own with this prediction, answered by different clients;
    binning errors are taken to be the same for both.

    >>> expected = ErrorForecast(
    ...     value=0.8, noise_sd=0.0, sampling_sd=0.01, binning_bound=0.0, binning_sd=0.0,
    ...     binning_bias=0.0, half_width=0.02,
    ... )
    >>> round(detectable_difference(expected, 0.8), 4)  # (1.96 + 0.84) sqrt(2) 0.01
    0.0396
    """
    check_power(power)
    reach = normal_quantile(0.975) + normal_quantile(power)
    return reach * sqrt(2.0) * expected.standard_error


def detectable_on_same_clients(expected: ErrorForecast, power: float) -> float:
    """The same when the same clients answer for both models, at best.

    Their luck of the draw is then shared; what is left is privacy noise. Each client pays for
    both surveys.

    >>> expected = ErrorForecast(
    ...     value=0.8, noise_sd=0.0, sampling_sd=0.01, binning_bound=0.0, binning_sd=0.0,
    ...     binning_bias=0.0, half_width=0.02,
    ... )
    >>> detectable_on_same_clients(expected, 0.8)  # no privacy noise
    0.0
    """
    check_power(power)
    reach = normal_quantile(0.975) + normal_quantile(power)
    return reach * sqrt(2.0) * expected.noise_sd


def check_power(power: float) -> None:
    """Raise unless a power lies between 0.05, what chance alone gives, and 1.

    >>> check_power(0.8)
    """
    if not 0.05 < require_number(power, "power") < 1.0:
        raise SettingInvalid(
            f"power must lie between 0.05 (false alarms alone) and 1; found {power:g}. "
            "Usual is 0.8."
        )


def floors(request: SurveyRequest, metric: str) -> dict[Cause, float]:
    """What each cause alone leaves of the error in 95 trials of 100.

    >>> floors(SurveyRequest(clients=1000), "roc_auc")[Cause.PRIVACY]
    0.0
    """
    expected = predicted(request, design_survey(request), metric)
    z = normal_quantile(0.975)
    return {
        Cause.SAMPLING: z * expected.sampling_sd,
        Cause.BINNING: abs(expected.binning_bias),
        Cause.PRIVACY: z * expected.noise_sd,
    }


def _no_number(of: str, request: SurveyRequest, target: Target) -> str:
    left = floors(request, target.metric)
    cause = max(left, key=lambda each: left[each])
    return (
        f"no number of {of} up to {MAX_CLIENTS:,} brings {target.metric} within "
        f"{target.error:g}: {cause.value} alone leaves {left[cause]:.2g}. {_REMEDY[cause]}"
    )


_REMEDY = {
    Cause.SAMPLING: "Ask for less.",
    Cause.BINNING: "Ask for less, or give a reference or thresholds so that cells fit the scores.",
    Cause.PRIVACY: "Ask for less, or for a larger epsilon.",
}


def _no_epsilon(request: SurveyRequest, target: Target) -> str:
    left = floors(replace(request, epsilon=_LARGEST_EPSILON), target.metric)
    if left[Cause.SAMPLING] > target.error:
        exact = under_privacy(request, Privacy.SECURE)
        needed = clients_needed(exact, target)
        return (
            f"no epsilon brings {target.metric} within {target.error:g}: sampling alone leaves "
            f"{left[Cause.SAMPLING]:.2g} with {expected_examples(request):,.0f} examples. "
            f"At least {needed:,} clients are needed even with exact sums."
        )
    cause = max(left, key=lambda each: left[each])
    return (
        f"no epsilon up to {float(_LARGEST_EPSILON):g} brings {target.metric} within "
        f"{target.error:g} with {expected_reports(request):,} clients: {cause.value} alone leaves "
        f"{left[cause]:.2g}. Ask for less, or find more clients."
    )


def _rounded_up(value: float) -> int:
    """To three digits."""
    scale: int = 10 ** max(0, floor(log10(value)) - 2)
    return ceil(value / scale) * scale


def _three_digits(value: float) -> Fraction:
    """Up to three digits, exactly in decimals."""
    places = max(0, 2 - floor(log10(value)))
    return Fraction(ceil(value * 10**places), 10**places)
