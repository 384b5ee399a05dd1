"""What pairing gains: a difference by one survey of two models, or by two surveys of one."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from fedassay.errors import SettingInvalid
from fedassay.estimate import REACH
from fedassay.level_policy import OneLevel
from fedassay.pair_grid import Names
from fedassay.paired.difference import PairReader
from fedassay.planning.forecast import expected_reports, forecast_one, model_for
from fedassay.planning.pair_model import ASSUMED_CORRELATION, PairModel, References, pair_models
from fedassay.planning.pair_search import design_pair, expected_pair
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, quick_design

PAIRED_PLAN_FORMAT = "fedassay.paired-plan/1"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PairGain:
    """Half widths of 95 % intervals of differences, by metric: paired, and by two surveys."""

    design: SurveyDesign
    paired: dict[str, float]
    unpaired: dict[str, float]
    correlation: float | None
    """That was assumed of both models' ranks within a label; None where public rows tell."""

    @property
    def is_drawn(self) -> bool:
        """Whether each row answers for one model, so that nothing cancels."""
        return isinstance(self.design.survey.level_policy, OneLevel)

    @property
    def pays(self) -> bool:
        """Whether the paired interval of ROC AUC is the narrower one."""
        return self.paired["roc_auc"] < self.unpaired["roc_auc"]

    def sentence(self) -> str:
        """What to do, and why."""
        one, two = (side["roc_auc"] for side in (self.paired, self.unpaired))
        assumed = "with each row answering for one of the models, drawn by chance"
        if not self.is_drawn:
            assumed = (
                "as the reference has them"
                if self.correlation is None
                else f"if both models' ranks correlate by {self.correlation:g} within a label"
            )
        if self.pays:
            return (
                "One survey of both models pays: the difference of ROC AUC would be known to "
                f"±{one:.4f}, {assumed}, instead of ±{two:.4f} by two surveys with the same "
                "promise together."
            )
        return (
            "One survey of both models does not pay here: the difference of ROC AUC would be known "
            f"to ±{one:.4f}, {assumed}, and to ±{two:.4f} by two surveys with the same promise "
            "together."
        )

    def to_json(self) -> dict[str, Any]:
        """The forecast in JSON's terms."""
        return {
            "format": PAIRED_PLAN_FORMAT,
            "pays": self.pays,
            "correlation": self.correlation,
            "half_widths": {"paired": self.paired, "unpaired": self.unpaired},
            "cells_per_level": list(self.design.survey.hierarchy.cells_per_level),
            "guarantee": self.design.survey.guarantee.sentence(),
        }


def pair_gain(
    request: SurveyRequest, names: Names = ("a", "b"), *, references: References | None = None
) -> PairGain:
    """Predict differences by one survey of both models, and by two surveys with one promise.

    The two are of all rows, with half of epsilon each; under local privacy each of one half of
    the rows, with all of it.

    >>> pair_gain(SurveyRequest(clients=20_000)).pays
    True
    """
    if request.clients is None:
        raise SettingInvalid(
            "what pairing gains is predicted for a number of clients; found none. Add clients=N "
            "(--clients N)."
        )
    design = design_pair(request, names, references=references)
    metrics = ["roc_auc", *(f"recall@{point!r}" for point in request.thresholds)]
    model = pair_models(request, references)[0]
    pair = expected_pair(design.survey, model, clients=float(expected_reports(request)))
    reader = PairReader(pair)
    return PairGain(
        design=design,
        paired={name: REACH * reader.difference(name).standard_error for name in metrics},
        unpaired={name: _apart(request, model, name) for name in metrics},
        correlation=ASSUMED_CORRELATION if references is None else None,
    )


def _apart(request: SurveyRequest, model: PairModel, metric: str) -> float:
    """The half width of a difference of two surveys, one of each model."""
    if request.privacy.is_local:
        rows = request.examples or request.clients or 2
        clients = max((request.clients or 2) // 2, 1)
        share = replace(request, clients=clients, examples=max(rows // 2, 1))
    else:
        share = replace(request, epsilon=None if request.epsilon is None else request.epsilon / 2)
    design = quick_design(share)
    squares = 0.0
    for side in (model.first, model.second):
        scores = side if model.references is not None else model_for(share)
        found = forecast_one(
            design.survey,
            replace(scores, counts=scores.counts * (_rows(share) / scores.total)),
            metric=metric,
            clients=float(expected_reports(share)),
            second=design.second,
        )
        squares += found.half_width**2
    return sqrt(squares)


def _rows(request: SurveyRequest) -> float:
    return float(request.examples or request.clients or 1)
