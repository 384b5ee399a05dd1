"""What pairing gains: a difference by one survey of two models, or by two surveys of one.

The two surveys are those that the planner would make of each model alone, in two steps where it
would take two. Nobody knows where scores lie before they were counted, so that both are compared
on several models of them, one of which has scores that crowd near 0.
"""

from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from typing import Any

from fedassay.errors import SettingInvalid
from fedassay.estimate import REACH
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.pair_grid import Names
from fedassay.paired.difference import PairReader
from fedassay.planning.forecast import expected_reports, forecast_one, scaled
from fedassay.planning.pair_model import (
    ASSUMED_CORRELATION,
    PairModel,
    References,
    crowded_pair,
    pair_models,
)
from fedassay.planning.pair_search import design_pair, expected_pair
from fedassay.planning.rehearsal import rehearsed
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign, quick_design

PAIRED_PLAN_FORMAT = "fedassay.paired-plan/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCase:
    """Half widths of 95 % intervals of differences by metric, if scores are like this."""

    scores: str
    """In words."""
    is_crowded: bool
    paired: dict[str, float]
    """Infinite where there would be no answer."""
    unpaired: dict[str, float]

    @property
    def is_narrower(self) -> bool:
        """Whether the paired interval of ROC AUC is the narrower one."""
        return self.paired["roc_auc"] < self.unpaired["roc_auc"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PairGain:
    """Both ways to a difference, in every case of what scores may be like."""

    design: SurveyDesign
    cases: tuple[PairCase, ...]
    """The first is an ordinary one, or the public rows."""
    correlation: float | None
    """That was assumed of both models' ranks within a label; None where public rows tell."""
    instead: str
    """What to do where pairing does not pay."""

    @property
    def paired(self) -> dict[str, float]:
        """Half widths by metric in the ordinary case."""
        return self.cases[0].paired

    @property
    def unpaired(self) -> dict[str, float]:
        """The same by two surveys."""
        return self.cases[0].unpaired

    @property
    def is_drawn(self) -> bool:
        """Whether each row answers for one model, so that nothing cancels."""
        return isinstance(self.design.survey.level_policy, OneLevel)

    @property
    def pays(self) -> bool:
        """Whether the paired interval of ROC AUC is the narrower one in every case that counts."""
        return all(case.is_narrower for case in self._counted)

    @property
    def _counted(self) -> list[PairCase]:
        """Where nothing cancels, one survey must do as well on scores that crowd, too."""
        return [case for case in self.cases if self.is_drawn or not case.is_crowded]

    def sentence(self) -> str:
        """What to do, and why."""
        assumed = "with each row answering for one of the models, drawn by chance"
        if not self.is_drawn:
            assumed = (
                "as the reference has them"
                if self.correlation is None
                else f"if both models' ranks correlate by {self.correlation:g} within a label"
            )
        told = self._verdict(assumed)
        lost = [case for case in self.cases if case.is_crowded and not case.is_narrower]
        if lost and self.pays:
            one, two = (_said(side["roc_auc"]) for side in (lost[0].paired, lost[0].unpaired))
            told.append(
                f"Where scores crowd near 0 it does not: {one} instead of {two}. If yours do, give "
                f"public rows (--reference), or ask twice: {self.instead}"
            )
        return " ".join(told)

    def _verdict(self, assumed: str) -> list[str]:
        if self.pays:
            one, two = (_said(side["roc_auc"]) for side in (self.paired, self.unpaired))
            return [
                "One survey of both models pays: the difference of ROC AUC would be known to "
                f"{one}, {assumed}, instead of {two} by two surveys with the same promise together."
            ]
        worst = max(
            (case for case in self._counted if not case.is_narrower),
            key=lambda case: (not case.is_crowded, case.paired["roc_auc"]),
        )
        half, two = worst.paired["roc_auc"], _said(worst.unpaired["roc_auc"])
        known = f"would be known to {_said(half)}" if isfinite(half) else "would have no answer"
        rows = "" if self.correlation is None else " Or give public rows (--reference)."
        return [
            f"One survey of both models does not pay for sure: the difference of ROC AUC {known}, "
            f"{assumed}, and be known to {two} by two surveys with the same promise "
            f"together, if scores are like this: {worst.scores}.",
            f"Ask twice: {self.instead}{rows}",
        ]

    def to_json(self) -> dict[str, Any]:
        """The forecast in JSON's terms; no answer is null."""
        return {
            "format": PAIRED_PLAN_FORMAT,
            "pays": self.pays,
            "correlation": self.correlation,
            "half_widths": {"paired": _finite(self.paired), "unpaired": _finite(self.unpaired)},
            "cases": [
                {
                    "scores": case.scores,
                    "is_crowded": case.is_crowded,
                    "paired": _finite(case.paired),
                    "unpaired": _finite(case.unpaired),
                }
                for case in self.cases
            ],
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
    share = _share(request)
    shares = [replace(share, reference=side) for side in references or (None,)]
    alone = [(each, quick_design(each)) for each in shares]
    models = {_words(model): model for model in pair_models(request, references)}
    if references is None:
        models["crowded near 0"] = crowded_pair(request)
    cases = [
        PairCase(
            scores=scores,
            is_crowded=scores.startswith("crowded"),
            paired=_together(request, design, model, metrics),
            unpaired={name: _apart(alone, model, name) for name in metrics},
        )
        for scores, model in models.items()
    ]
    return PairGain(
        design=design,
        cases=tuple(cases),
        correlation=ASSUMED_CORRELATION if references is None else None,
        instead=_instead(share),
    )


def _words(model: PairModel) -> str:
    if model.references is not None:
        return "as the reference's"
    rate, auc = model.described
    return f"{100.0 * rate:.3g} % positive, ROC AUC {auc:.3g}"


def _instead(share: SurveyRequest) -> str:
    """The commands for two surveys with the same promise."""
    spent = "" if share.epsilon is None else f" --epsilon {float(share.epsilon):g}"
    who = "one half of the clients each" if share.privacy.is_local else "all clients"
    return (
        f"fedassay survey new --privacy {share.privacy.value}{spent} --clients {share.clients} "
        f"once for either model, of {who}, and fedassay compare a.json b.json."
    )


def _together(
    request: SurveyRequest, design: SurveyDesign, model: PairModel, metrics: list[str]
) -> dict[str, float]:
    """Half widths of differences by one survey of both models."""
    clients = float(expected_reports(request))
    reader = PairReader(expected_pair(design.survey, model, clients=clients))
    found = {name: reader.difference(name) for name in metrics}
    return {
        name: REACH * each.standard_error if each.is_available else inf
        for name, each in found.items()
    }


def _share(request: SurveyRequest) -> SurveyRequest:
    """What either of two surveys has of the rows, or of epsilon."""
    if request.privacy.is_local:
        rows = request.examples or request.clients or 2
        clients = max((request.clients or 2) // 2, 1)
        return replace(request, clients=clients, examples=max(rows // 2, 1))
    return replace(request, epsilon=None if request.epsilon is None else request.epsilon / 2)


def _apart(alone: list[tuple[SurveyRequest, SurveyDesign]], model: PairModel, metric: str) -> float:
    """The half width of a difference of two surveys, of either model, or of two alike."""
    sides = [model.first, model.second][: len(alone)]
    squares = [
        _alone(share, design, side, metric) ** 2
        for (share, design), side in zip(alone, sides, strict=True)
    ]
    return sqrt(2.0 * sum(squares) / len(squares))


def _alone(
    share: SurveyRequest, design: SurveyDesign, scores: ScoreHistogram, metric: str
) -> float:
    rows = scaled(scores, float(share.examples or share.clients or 1))
    second = None
    if design.rehearse is not None:
        # The second survey follows where the first found these very scores.
        second = rehearsed(share, design.survey, rows, thorough=False)
    clients = float(expected_reports(share))
    found = forecast_one(design.survey, rows, metric=metric, clients=clients, second=second)
    return found.half_width


def _said(half: float) -> str:
    return f"±{half:.4f}" if isfinite(half) else "no answer"


def _finite(halves: dict[str, float]) -> dict[str, float | None]:
    return {name: half if isfinite(half) else None for name, half in halves.items()}
