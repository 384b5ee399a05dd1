"""A plan: the survey, what its answers will be worth, and whether that is enough."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from fedassay.checks import require_number, require_type
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.metrics.named import OVERALL, threshold_of
from fedassay.planning.forecast import (
    ASSUMED_AUC,
    ASSUMED_RATE,
    ErrorForecast,
    expected_reports,
    forecast,
    forecast_header,
    forecast_one,
    forecast_rows,
    model_for,
)
from fedassay.planning.monte_carlo import MonteCarlo, expected_ece, forecast_ece
from fedassay.planning.open_settings import check_one_group, check_request, check_site_rows
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.planning.solve import (
    PLANNED,
    Target,
    check_power,
    clients_needed,
    detectable_difference,
    detectable_on_same_clients,
    epsilon_needed,
    rows_needed,
)
from fedassay.planning.validation import ValidationNeeds, validation_needs
from fedassay.presentation import aligned, html_table, html_text
from fedassay.sites.sample_size import IntervalWidths, require_positive
from fedassay.survey import Survey

PLAN_FORMAT = "fedassay.plan/1"
DEFAULT_ERROR = 0.01
_SEED = 0

Progress = Callable[[str], None]
_Solution = TypeVar("_Solution")


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What the answers are for."""

    target: Target = Target("roc_auc", DEFAULT_ERROR)
    power: float = 0.8
    widths: IntervalWidths = IntervalWidths()
    """How wide a validation study's intervals may be."""
    tau: float | None = None
    """How much sites differ in ROC AUC, on the logit scale; None for what others found."""

    def __post_init__(self) -> None:
        require_type(self.target, Target, "a goal's target", 'Write Target("roc_auc", 0.01).')
        check_power(self.power)
        require_type(self.widths, IntervalWidths, "the widths", "Write IntervalWidths(oe=0.5).")
        if self.tau is not None:
            require_positive(require_number(self.tau, "tau"), "tau")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Plan:
    """A request with nothing left open, the survey for it, and its predicted errors."""

    request: SurveyRequest
    goal: Goal
    design: SurveyDesign
    forecasts: dict[str, ErrorForecast]
    recalibrate: Callable[[], float]
    """Makes `calibrated_ece`."""
    solved_for: tuple[str, ...] = ()
    """What the plan solved for: clients, epsilon or nothing."""
    enough_clients: int | None = None
    """Where the target is missed, how many clients would meet it."""
    enough_rows: int | None = None
    """How many rows of as many clients would, where a client has other than one."""
    enough_epsilon: Fraction | None = None
    obstacle: str = ""
    """Why no number of clients, or no epsilon, meets it."""

    @cached_property
    def calibrated_ece(self) -> float:
        """The calibration error expected after calibrating from this survey, by rehearsing it."""
        return self.recalibrate()

    def __str__(self) -> str:
        """The predicted errors as a table, and the verdict."""
        return f"{aligned(forecast_header(), forecast_rows(self.forecasts))}\n\n{self.verdict}"

    def __repr__(self) -> str:
        return f"<Plan: {self.verdict}>"

    def _repr_html_(self) -> str:
        table = html_table(forecast_header(), forecast_rows(self.forecasts))
        return table + html_text(self.verdict)

    @property
    def survey(self) -> Survey:
        """The survey to hand out."""
        return self.design.survey

    @property
    def needs(self) -> ValidationNeeds:
        """Rows for intervals of a wanted width, and sites to see that they differ."""
        points = (threshold_of(name) for name in self.forecasts)
        return validation_needs(
            self.request,
            widths=self.goal.widths,
            threshold=next((point for point in points if point is not None), None),
            tau=self.goal.tau,
            power=self.goal.power,
        )

    @property
    def central(self) -> ErrorForecast:
        """The prediction for the goal's metric."""
        return self.forecasts[self.goal.target.metric]

    @property
    def is_enough(self) -> bool:
        """Whether the target is met."""
        return self.goal.target.is_met(self.central)

    @property
    def detectable(self) -> float:
        """The smallest difference between two models that shows with the goal's power."""
        return detectable_difference(self.central, self.goal.power)

    @property
    def verdict(self) -> str:
        """Enough or not, and what would make it enough, in one sentence."""
        target, central = self.goal.target, self.central
        who = f"{expected_reports(self.request):,} clients"
        if has_own_rows(self.request):
            who = f"{self.request.clients:,} clients with {self.request.examples:,} rows in all"
        if self.request.epsilon is not None:
            who += f" at {self.request.privacy.value} epsilon {_decimal(self.request.epsilon)}"
        if self.is_enough:
            return (
                f"Enough: {who} give {target.metric} within {central.error_quantile():.2g} of the "
                f"population's value in 95 of 100 surveys; {target.error:g} is asked for."
            )
        if central.is_available:
            within = _told_apart(central.error_quantile(PLANNED), target.error)
            shortfall = (
                f"{who} give {target.metric} within {within} only, mostly from "
                f"{central.dominates.value}, and {target.error:g} is asked for"
            )
        else:
            shortfall = f"{who} give no {target.metric} at all"
        return f"Not enough: {shortfall}; {self._remedy()}."

    def _remedy(self) -> str:
        ways = []
        if self.enough_rows is not None:
            ways.append(f"{self.enough_rows:,} rows")
        elif self.enough_clients is not None:
            each = " with as many rows each" if has_own_rows(self.request) else ""
            ways.append(f"{self.enough_clients:,} clients{each}")
        if self.enough_epsilon is not None:
            ways.append(f"epsilon {_decimal(self.enough_epsilon)}")
        if ways:
            return f"{' or '.join(ways)} would do"
        return self.obstacle

    def to_json(self) -> dict[str, Any]:
        """The plan in JSON's terms: what is not finite becomes null."""
        metric = self.goal.target.metric
        power = self.goal.power
        return {
            "format": PLAN_FORMAT,
            "survey": self.design.survey.to_json(),
            "predictions": {
                name: {
                    "noise_sd": _finite(each.noise_sd),
                    "binning_bound": _finite(each.binning_bound),
                    "sampling_sd": _finite(each.sampling_sd),
                    "half_width": _finite(each.half_width),
                }
                for name, each in self.forecasts.items()
            },
            "verdict": self.verdict,
            "enough": self.is_enough,
            "details": {name: _details(each) for name, each in self.forecasts.items()},
            "calibration": {"expected_ece": _finite(self.calibrated_ece)},
            "detectable": {
                "metric": metric,
                "power": power,
                "different_clients": _finite(self.detectable),
                "same_clients": _finite(detectable_on_same_clients(self.central, power)),
            },
            "target": {"metric": metric, "error": self.goal.target.error},
            "needed": {
                "clients": self.enough_clients,
                "rows": self.enough_rows,
                "epsilon": None if self.enough_epsilon is None else str(self.enough_epsilon),
            },
            "validation": self.needs.to_json(),
            "assumed": assumptions(self.request),
        }


def make_plan(
    request: SurveyRequest,
    goal: Goal,
    *,
    thresholds: tuple[float, ...] = (0.5,),
    progress: Progress,
) -> Plan:
    """Solve for clients or epsilon where the request leaves one open, then predict everything.

    >>> from fedassay.mechanisms import Privacy
    >>> make_plan(SurveyRequest(privacy=Privacy.LOCAL), Goal(), progress=lambda step: None)
    Traceback (most recent call last):
    ...
    fedassay.errors.SettingInvalid: local privacy leaves clients and epsilon both open; one must...
    """
    solved_for: tuple[str, ...] = ()
    if request.clients is None:
        progress("clients for the target")
        _check_open(request)
        request = replace(request, clients=clients_needed(request, goal.target))
        solved_for = ("clients",)
    elif request.epsilon is None and request.privacy.spends_epsilon:
        progress("epsilon for the target")
        check_request(replace(request, epsilon=Fraction(1)))
        request = replace(request, epsilon=epsilon_needed(request, goal.target))
        solved_for = ("epsilon",)
    check_request(request)
    progress("choosing the survey")
    plan = _predicted(request, goal, thresholds, progress)
    if plan.is_enough:
        return replace(
            plan,
            solved_for=solved_for,
            enough_clients=request.clients if "clients" in solved_for else None,
            enough_epsilon=request.epsilon if "epsilon" in solved_for else None,
        )
    progress("what would be enough")
    enough_clients, obstacle = _attempt(lambda: clients_needed(request, goal.target))
    enough_rows = None
    if has_own_rows(request):
        enough_rows, other = _attempt(lambda: rows_needed(request, goal.target))
        obstacle = obstacle or other
    enough_epsilon = None
    if request.privacy.spends_epsilon:
        enough_epsilon, other = _attempt(lambda: epsilon_needed(request, goal.target))
        obstacle = obstacle or other
    return replace(
        plan,
        solved_for=solved_for,
        enough_clients=enough_clients,
        enough_rows=enough_rows,
        enough_epsilon=enough_epsilon,
        obstacle=obstacle,
    )


def check_start(request: SurveyRequest, target_error: float | None) -> None:
    """Raise unless there is something to plan from: clients, or an error to find them for.

    >>> check_start(SurveyRequest(clients=1000), None)
    """
    check_one_group(request)
    check_site_rows(request)
    if target_error is not None:
        return
    if request.clients is None:
        raise SettingInvalid(
            "a plan starts from a number of clients or from a target error; found neither. "
            "Add clients=20000 (--clients 20000) or target_error=0.005 (--target-error 0.005)."
        )
    if request.privacy.spends_epsilon and request.epsilon is None:
        raise SettingInvalid(
            f"{request.privacy.value} privacy needs an epsilon, or a target error to find one for; "
            "found neither. Add epsilon=1 (--epsilon 1) or target_error=0.005 "
            "(--target-error 0.005)."
        )


def has_own_rows(request: SurveyRequest) -> bool:
    """Whether clients hold other than one row each, so that rows and clients differ.

    >>> has_own_rows(SurveyRequest(clients=4, examples=8000))
    True
    """
    return None not in (request.clients, request.examples) and request.clients != request.examples


def assumptions(request: SurveyRequest) -> dict[str, float | str]:
    """What the plan takes the scores to be like.

    >>> assumptions(SurveyRequest(clients=1000, auc=0.8))["auc"]
    0.8
    """
    if request.reference is not None:
        assumed: dict[str, float | str] = {"scores": "reference"}
        return (
            assumed if request.positive_rate is None else assumed | {"rate": request.positive_rate}
        )
    return {
        "scores": "binormal",
        "positive_rate": request.positive_rate or ASSUMED_RATE,
        "auc": request.auc or ASSUMED_AUC,
    }


def _predicted(
    request: SurveyRequest, goal: Goal, thresholds: tuple[float, ...], progress: Progress
) -> Plan:
    design = design_survey(request)
    model, clients = model_for(request), expected_reports(request)
    threshold = threshold_of(goal.target.metric)
    if threshold is not None and threshold not in thresholds:
        thresholds = (*thresholds, threshold)
    forecasts = forecast(
        design.survey,
        model,
        clients=clients,
        thresholds=thresholds,
        decode_options=design.decode_options,
        second=design.second,
    )
    if goal.target.metric not in forecasts:
        forecasts[goal.target.metric] = forecast_one(
            design.survey,
            model,
            metric=goal.target.metric,
            clients=clients,
            decode_options=design.decode_options,
        )
    progress("rehearsing calibration")
    monte_carlo = MonteCarlo(design.survey, model, clients, design.decode_options, design.second)
    generator = np.random.default_rng(_SEED)
    # Beside the other calibration errors, which follow the first metrics.
    listed = list(forecasts.items())
    listed.insert(len(OVERALL), ("ece", forecast_ece(monte_carlo, generator=generator)))
    forecasts = dict(listed)
    return Plan(
        request=request,
        goal=goal,
        design=design,
        forecasts=forecasts,
        recalibrate=lambda: expected_ece(monte_carlo, generator=generator),
    )


def _check_open(request: SurveyRequest) -> None:
    """Check what can be checked before the clients are known."""
    if request.privacy.spends_epsilon and request.epsilon is None:
        raise SettingInvalid(
            f"{request.privacy.value} privacy leaves clients and epsilon both open; one must be "
            "given. Add clients=N (--clients N) or epsilon=1 (--epsilon 1)."
        )
    check_request(replace(request, clients=max(10_000, request.colluders + 2)))


def _attempt(solve: Callable[[], _Solution]) -> tuple[_Solution | None, str]:
    """A solution, or the first sentence on why there is none."""
    try:
        return solve(), ""
    except TargetImpossible as error:
        return None, str(error).partition(". ")[0].removesuffix(".")


def _details(expected: ErrorForecast) -> dict[str, Any]:
    return {
        "value": _finite(expected.value),
        "standard_error": _finite(expected.standard_error),
        "binning_sd": _finite(expected.binning_sd),
        "binning_bias": _finite(expected.binning_bias),
        "error_95": _finite(expected.error_quantile()),
        "dominates": expected.dominates.value,
        "reason": expected.reason or None,
    }


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _decimal(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"


def _told_apart(value: float, other: float) -> str:
    """A figure with as many digits as it takes to differ from another one's."""
    figures = (f"{value:.{digits}g}" for digits in range(2, 17))
    return next((text for text in figures if float(text) != other), f"{value!r}")
