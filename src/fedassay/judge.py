"""How good a candidate survey is, by its predicted errors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, log

import numpy as np

from fedassay.estimate import Estimate, NotEnoughData
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.prediction import expected_examples, expected_histogram, expected_reports, model_for
from fedassay.request import Request
from fedassay.scoremodel import binormal
from fedassay.survey import Survey

# Where nobody said how rare positives are, nor how good the classifier is: (rate, AUC).
_UNKNOWN = ((0.3, 0.75), (0.3, 0.9), (0.03, 0.85))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A survey with its expected histograms, one for each model of the scores."""

    survey: Survey
    expected: tuple[ScoreHistogram, ...]
    area_error: float
    """The mean log of predicted ROC AUC errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Predicts errors against models of the scores, whose true values are computed once."""

    clients: float
    thresholds: tuple[float, ...]
    models: tuple[ScoreHistogram, ...]
    areas: tuple[Estimate, ...]
    rates: tuple[tuple[Estimate, ...], ...]

    @classmethod
    def for_request(cls, request: Request) -> "Judge":
        """The judge of surveys that answer a request."""
        thresholds = request.thresholds or (0.2, 0.5, 0.8)
        if len(thresholds) > 3:
            thresholds = tuple(np.quantile(thresholds, (0.2, 0.5, 0.8), method="nearest"))
        models = tuple(_models(request))
        return cls(
            float(expected_reports(request)),
            thresholds,
            models,
            tuple(roc_auc(model) for model in models),
            tuple(_rates(model, thresholds) for model in models),
        )

    def candidate(self, survey: Survey) -> Candidate:
        """Judge a survey by ROC AUC alone."""
        expected = tuple(
            expected_histogram(survey, model, clients=self.clients) for model in self.models
        )
        logs = [log(_area_error(h, t)) for h, t in zip(expected, self.areas, strict=True)]
        return Candidate(survey, expected, sum(logs) / len(logs))

    def error(self, candidate: Candidate) -> float:
        """The mean log of predicted errors: twice ROC AUC's, and the mean over thresholds.

        The area stands for the whole curve, and gains less from any choice.
        """
        logs = [
            log(_error(found, truth))
            for expected, truths in zip(candidate.expected, self.rates, strict=True)
            for found, truth in zip(_rates(expected, self.thresholds), truths, strict=True)
        ]
        return 2.0 * candidate.area_error + sum(logs) / len(logs)


def _models(request: Request) -> list[ScoreHistogram]:
    rate, auc = request.positive_rate, request.auc
    if request.reference is not None or (rate is not None and auc is not None):
        return [model_for(request)]
    described = [(rate or usual_rate, auc or usual_auc) for usual_rate, usual_auc in _UNKNOWN]
    return [
        binormal(examples=expected_examples(request), positive_rate=some_rate, auc=some_auc)
        for some_rate, some_auc in dict.fromkeys(described)
    ]


def _area_error(expected: ScoreHistogram, truth: Estimate) -> float:
    even = roc_auc(replace(expected, smooth=False))
    smooth = roc_auc(ScoreHistogram(expected.edges, expected.counts))
    # Real scores are lumpier than any model: distrust a part of what the cubic gains.
    lumps = (smooth.value - even.value) / 3.0
    return hypot(_error(smooth, truth), even.noise_sd, lumps)


def _rates(histogram: ScoreHistogram, thresholds: Sequence[float]) -> tuple[Estimate, ...]:
    return tuple(
        metric(histogram, threshold)
        for threshold in thresholds
        for metric in (precision, recall, accuracy)
    )


def _error(found: Estimate, truth: Estimate) -> float:
    """Noise, binning spread and bias together; 1 where there would be no answer."""
    if isinstance(found, NotEnoughData) or isinstance(truth, NotEnoughData):
        return 1.0
    bias = found.value - truth.value
    # The interval's binning spread is cautious; a third of it is what the cubic leaves.
    return hypot(found.noise_sd, found.binning_sd / 3.0, bias) + 1e-12
