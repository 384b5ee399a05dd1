"""One epsilon for several surveys of the same clients: how to split it, and what each gets.

Epsilons of surveys that the same clients answer add up (sequential composition); the shares
are exact fractions that add up to one. They are those with the smallest mean log of predicted
errors, so that halving one survey's error is worth as much as halving another's; weights
make one matter more. Boundaries are a means: they weigh nothing of their own unless told.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import exp, hypot, inf, log, pi, sqrt
from typing import Any

import numpy as np

from fedassay.calibration.bins import bin_table
from fedassay.errors import SettingInvalid
from fedassay.estimate import normal_quantile
from fedassay.examples import Examples
from fedassay.planning.boundaries import rank_error, reference_from
from fedassay.planning.forecast import expected_histogram, expected_reports, forecast_one, model_for
from fedassay.planning.monte_carlo import MonteCarlo
from fedassay.planning.open_settings import check_request
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, design_survey

PIPELINE_FORMAT = "fedassay.pipeline/1"
_LATTICE = 20
_BOUNDARY_SHARES = tuple(Fraction(1, part) for part in (20, 10, 5, 3))
_NODES = tuple(Fraction(part, 20) for part in (1, 4, 10, 20))
_POWER = 0.8


class PipelineStep(Enum):
    """What a survey of the pipeline is for."""

    BOUNDARIES = "boundaries"
    """A first survey whose quantiles shape the grid of the others."""
    EVALUATION = "evaluation"
    CALIBRATION = "calibration"
    MONITORING = "monitoring"
    """Another evaluation later, compared with the first."""

    @property
    def measure(self) -> str:
        """What its error is an error of."""
        return {
            PipelineStep.BOUNDARIES: "rank error of a boundary (rms)",
            PipelineStep.EVALUATION: "error of the metric, 95 %",
            PipelineStep.CALIBRATION: "calibration error from noise",
            PipelineStep.MONITORING: "smallest change seen, power 0.8",
        }[self]


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan:
    """One survey of a pipeline."""

    stage: PipelineStep
    share: Fraction
    epsilon: Fraction
    design: SurveyDesign
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class PipelinePlan:
    """Surveys that spend one epsilon between them."""

    request: SurveyRequest
    metric: str
    stages: tuple[StepPlan, ...]

    @property
    def epsilon(self) -> Fraction:
        """What a client spends in all."""
        return sum((stage.epsilon for stage in self.stages), Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """The pipeline in JSON's terms; epsilons are exact fractions in text."""
        return {
            "format": PIPELINE_FORMAT,
            "epsilon": str(self.epsilon),
            "metric": self.metric,
            "stages": [
                {
                    "stage": each.stage.value,
                    "share": str(each.share),
                    "epsilon": str(each.epsilon),
                    "error": each.error,
                    "measure": each.stage.measure,
                    "survey": each.design.survey.to_json(),
                }
                for each in self.stages
            ],
        }


@dataclass(frozen=True, slots=True)
class _Errors:
    """What a survey would be worth for each use."""

    error_quantile: float
    standard_error: float
    gaps: float


def plan_pipeline(
    request: SurveyRequest,
    stages: Sequence[PipelineStep],
    *,
    metric: str = "roc_auc",
    weights: Mapping[PipelineStep, float] | None = None,
    generator: np.random.Generator,
    progress: Callable[[str], None],
) -> PipelinePlan:
    """Split a request's epsilon over the stages.

    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(
    ...     privacy=Privacy.LOCAL, epsilon=Fraction(4), clients=100_000, height=3
    ... )
    >>> steps = [PipelineStep.EVALUATION, PipelineStep.CALIBRATION]
    >>> generator = np.random.default_rng(0)
    >>> plan = plan_pipeline(request, steps, generator=generator, progress=lambda _: None)
    >>> plan.epsilon
    Fraction(4, 1)
    """
    chosen = tuple(dict.fromkeys(stages))
    _check(request, chosen, len(stages))
    given = dict(weights or {})
    if any(weight <= 0.0 for weight in given.values()) or not set(given) <= set(chosen):
        raise SettingInvalid(
            "weights must be positive and of stages in the pipeline; found one that is not. "
            "Leave a stage out to give it nothing."
        )
    importance = {
        stage: given.get(stage, 0.0 if stage is PipelineStep.BOUNDARIES else 1.0)
        for stage in chosen
    }
    splitter = _Splitter(request, metric, generator, progress)
    shares = splitter.best_shares(chosen, importance)
    progress("choosing the surveys")
    return PipelinePlan(request, metric, splitter.final(shares))


@dataclass(frozen=True, eq=False)
class _Splitter:
    request: SurveyRequest
    metric: str
    generator: np.random.Generator
    progress: Callable[[str], None]

    @property
    def epsilon(self) -> Fraction:
        return self.request.epsilon or Fraction(1)

    @cached_property
    def references(self) -> dict[Fraction, tuple[SurveyDesign, float, SurveyRequest]]:
        """For every boundary share: its survey, its error, and what the others then know."""
        return {share: self.after_boundaries(share) for share in _BOUNDARY_SHARES}

    def after_boundaries(self, share: Fraction) -> tuple[SurveyDesign, float, SurveyRequest]:
        """Rehearse the first survey: the later ones see what it may find, noise included."""
        self.progress(f"boundaries with {share} of epsilon")
        asked = replace(self.request, epsilon=share * self.epsilon)
        design, model = design_survey(asked), model_for(asked)
        clients = expected_reports(asked)
        expected = expected_histogram(design.survey, model, clients=clients)
        drawn = MonteCarlo(design.survey, model, clients, design.decode_options).draw(
            self.generator
        )
        try:
            reference: Examples | None = reference_from(drawn)
        except SettingInvalid:
            reference = None
        later = self.request
        if reference is not None:
            rate = self.request.positive_rate
            if rate is None:
                rate = float(np.clip(drawn.total_positives / drawn.total, 1e-3, 1.0 - 1e-3))
            later = replace(self.request, reference=reference, auc=None, positive_rate=rate)
        return design, rank_error(expected), later

    def errors(self, later: SurveyRequest, epsilon: Fraction) -> tuple[SurveyDesign, _Errors]:
        """What a survey chosen with that knowledge is worth on the scores as they are."""
        asked = replace(later, epsilon=epsilon)
        design, model = design_survey(asked), model_for(self.request)
        clients = expected_reports(asked)
        expected_errors = forecast_one(
            design.survey,
            model,
            metric=self.metric,
            clients=clients,
            decode_options=design.decode_options,
        )
        expected = expected_histogram(design.survey, model, clients=clients)
        gaps = sqrt(2.0 / pi) * float(np.sqrt(bin_table(expected).gap_variance).sum())
        return design, _Errors(
            min(expected_errors.error_quantile(), 1.0),
            min(expected_errors.standard_error, 1.0),
            min(gaps, 1.0),
        )

    def curves(self, later: SurveyRequest) -> list[_Errors]:
        """The errors at a few epsilons, between which they are interpolated."""
        return [self.errors(later, node * self.epsilon)[1] for node in _NODES]

    def best_shares(
        self, stages: tuple[PipelineStep, ...], importance: Mapping[PipelineStep, float]
    ) -> dict[PipelineStep, Fraction]:
        """Search the shares; the first survey's on a few values, the others' on a lattice."""
        others = tuple(stage for stage in stages if stage is not PipelineStep.BOUNDARIES)
        first: Sequence[Fraction] = (Fraction(0),)
        if PipelineStep.BOUNDARIES in stages:
            first = _BOUNDARY_SHARES
        best, best_split = inf, dict.fromkeys(stages, Fraction(1, len(stages)))
        for boundary in first:
            later, start = self.request, 0.0
            if boundary:
                _, error, later = self.references[boundary]
                start = importance[PipelineStep.BOUNDARIES] * log(error)
            self.progress("errors of the later surveys")
            curves = self.curves(later)
            for split in _splits(len(others)):
                shares: dict[PipelineStep, Fraction] = {
                    stage: (1 - boundary) * part for stage, part in zip(others, split, strict=True)
                }
                total = start + _objective(shares, curves, importance)
                if total < best:
                    best = total
                    best_split = ({PipelineStep.BOUNDARIES: boundary} if boundary else {}) | shares
        return best_split

    def final(self, shares: Mapping[PipelineStep, Fraction]) -> tuple[StepPlan, ...]:
        """The surveys themselves, with errors computed at their own epsilon."""
        later, plans = self.request, []
        evaluated = 0.0
        for stage, share in shares.items():
            epsilon = share * self.epsilon
            if stage is PipelineStep.BOUNDARIES:
                design, error, later = self.references[share]
            else:
                design, errors = self.errors(later, epsilon)
                error = _error(stage, errors, evaluated)
                evaluated = errors.standard_error if stage is PipelineStep.EVALUATION else evaluated
            plans.append(StepPlan(stage, share, epsilon, design, error))
        return tuple(plans)


def _objective(
    shares: Mapping[PipelineStep, Fraction],
    curves: list[_Errors],
    importance: Mapping[PipelineStep, float],
) -> float:
    at = {stage: _interpolated(curves, share) for stage, share in shares.items()}
    evaluated = at[PipelineStep.EVALUATION].standard_error if PipelineStep.EVALUATION in at else 0.0
    return sum(importance[s] * log(_error(s, errors, evaluated)) for s, errors in at.items())


def _error(stage: PipelineStep, errors: _Errors, evaluated: float) -> float:
    match stage:
        case PipelineStep.CALIBRATION:
            return errors.gaps
        case PipelineStep.MONITORING:
            # A change is the difference to the evaluation before, or to one like this.
            other = evaluated or errors.standard_error
            reach = normal_quantile(0.975) + normal_quantile(_POWER)
            return reach * hypot(errors.standard_error, other)
        case _:
            return errors.error_quantile


def _interpolated(curves: list[_Errors], share: Fraction) -> _Errors:
    """Straight lines between logs of errors and of shares."""
    nodes = [log(float(node)) for node in _NODES]
    return _Errors(
        *(
            exp(
                float(
                    np.interp(
                        log(float(share)), nodes, [log(getattr(each, name)) for each in curves]
                    )
                )
            )
            for name in ("error_quantile", "standard_error", "gaps")
        )
    )


def _splits(parts: int) -> list[tuple[Fraction, ...]]:
    """All ways to share a whole among so many, in twentieths, none with nothing."""
    if parts == 0:
        return [()]
    steps = product(range(1, _LATTICE), repeat=parts - 1)
    return [
        (*(Fraction(step, _LATTICE) for step in row), Fraction(_LATTICE - sum(row), _LATTICE))
        for row in steps
        if sum(row) < _LATTICE
    ]


def _check(request: SurveyRequest, stages: tuple[PipelineStep, ...], asked: int) -> None:
    if len(stages) < asked:
        raise SettingInvalid("each stage of a pipeline is named once; found one twice.")
    if len(stages) < 2:
        raise SettingInvalid(
            f"a pipeline has at least two of {', '.join(s.value for s in PipelineStep)}; found "
            f"{len(stages)}."
        )
    if not request.privacy.spends_epsilon:
        raise SettingInvalid(
            "exact sums spend no epsilon, so there is none to split. Choose distributed or local."
        )
    if request.clients is None:
        raise SettingInvalid(
            "a pipeline needs a number of clients; found none. Add clients=N (--clients N)."
        )
    if PipelineStep.BOUNDARIES in stages:
        if stages[0] is not PipelineStep.BOUNDARIES:
            raise SettingInvalid("boundaries come first: the other surveys are built on them.")
        if request.reference is not None:
            raise SettingInvalid(
                "a reference already gives the boundaries; a survey for them does not go with "
                "it. Drop one of them."
            )
    check_request(request)
