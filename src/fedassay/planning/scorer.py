"""How good a candidate survey is, by its predicted errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import hypot, sqrt

import numpy as np
import numpy.typing as npt

from fedassay.estimate import Estimate, NotEnoughData, TooCoarse
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.metrics.delta_method import CLEAR_OF_NOISE, why_one_class
from fedassay.metrics.roc_auc import area_gradient, even_area
from fedassay.planning.boundaries import GuessedRows
from fedassay.planning.forecast import (
    expected_examples,
    expected_histogram,
    expected_reports,
    model_for,
    scaled,
)
from fedassay.planning.many_areas import ManyAreas
from fedassay.planning.many_models import noise_variances
from fedassay.planning.rate_errors import RatesOnGrid
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.score_model import binormal, from_reference, on_grid
from fedassay.survey import Survey

# Where nobody said how rare positives are, nor how good the classifier is: (rate, AUC, how
# far its log-odds are off). Scores of rare events crowd near 0, and so do scores that are no
# probabilities.
_FEWEST = 20
_MANY = 1e9
_UNKNOWN = (
    (0.3, 0.75, 0.0),
    (0.3, 0.9, 0.0),
    (0.03, 0.85, 0.0),
    (0.01, 0.95, 0.0),
    (0.1, 0.8, -6.0),
    (0.01, 0.9, -6.0),
)
# The interval's binning spread is cautious; a third of it is what the cubic leaves. With a
# labelled reference the bias itself is seen, but for what clients' scores differ. Rows made up from
# an earlier histogram are smooth inside its buckets, whatever the scores are.
_UNSEEN, _SEEN, _GUESSED = 1.0 / 3.0, 1.0 / 30.0, 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Area:
    """What a grid alone makes of a model's ROC AUC, whatever the levels and their noise."""

    gradient: FloatArray
    lumps: float
    """Real scores are lumpier than any model: a part of what the cubic gains is distrusted."""
    smooth: Estimate

    @classmethod
    def on(cls, counts: ScoreHistogram, caution: float) -> "_Area":
        smooth = roc_auc(counts)
        if isinstance(smooth, NotEnoughData):
            return cls(np.zeros_like(counts.counts), 0.0, smooth)
        even, _ = even_area(counts)
        return cls(area_gradient(counts), (smooth.value - even) * caution, smooth)

    def error(self, noise_sd: float, truth: Estimate, caution: float) -> float:
        """With a survey's noise."""
        if isinstance(self.smooth, NotEnoughData):
            return 1.0
        return hypot(_error(self.smooth, truth, caution), noise_sd, self.lumps)


@dataclass(frozen=True, slots=True, eq=False)
class _OnGrid:
    """What all surveys on a grid have in common, for every model."""

    counts: FloatArray
    """Model x label x cell."""
    area_errors: FloatArray
    """Of each model's ROC AUC, before any noise."""
    is_told: npt.NDArray[np.bool_]
    sums: FloatArray
    """Model x 3 x label x cell: the area's gradient, all negatives, all positives."""
    histograms: tuple[ScoreHistogram, ...]

    @classmethod
    def of(
        cls,
        models: Sequence[ScoreHistogram],
        truths: Sequence[Estimate],
        grid: Grid,
        caution: float,
    ) -> "_OnGrid":
        counts = np.stack([on_grid(model, grid) for model in models])
        histograms = tuple(ScoreHistogram(grid.edges, each) for each in counts)
        areas = ManyAreas.of(histograms)
        errors = [
            _error(Estimate(value, binning_sd=spread), truth, caution)
            for value, spread, truth in zip(areas.values, areas.binning_sds, truths, strict=True)
        ]
        lumps = (areas.values - areas.even) * caution
        sums = np.zeros((len(models), 3, *counts.shape[1:]))
        sums[:, 0] = areas.gradients
        sums[:, 1, 0] = sums[:, 2, 1] = 1.0
        return cls(counts, np.hypot(errors, lumps), areas.is_told, sums, histograms)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A survey, and how well it would do."""

    survey: Survey
    area_error: float
    """The mean log of predicted ROC AUC errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """Predicts errors against models of the scores, whose true values are computed once."""

    clients: float
    caution: float
    """How much of the binning spread to count on top of the models' own bias."""
    are_halves: bool
    """Whether the models are halves of one reference."""
    thresholds: tuple[float, ...]
    models: tuple[ScoreHistogram, ...]
    areas: tuple[Estimate, ...]
    rates: tuple[tuple[Estimate, ...], ...]
    _on_grids: dict[Grid, _OnGrid] = field(default_factory=dict)
    """Several surveys share a grid: what it makes of the models is computed once."""
    _rates_on: dict[Grid, RatesOnGrid] = field(default_factory=dict)

    @classmethod
    def for_request(cls, request: SurveyRequest) -> "Scorer":
        """The scorer of surveys that answer a request; at whatever epsilon, the same one."""
        if isinstance(request.reference, np.ndarray):
            return cls._of(request)
        return _last_scorers(replace(request, epsilon=None, steps=Steps.ONE))

    @classmethod
    def _of(cls, request: SurveyRequest) -> "Scorer":
        thresholds = request.thresholds or (0.2, 0.5, 0.8)
        if len(thresholds) > 3:
            thresholds = tuple(np.quantile(thresholds, (0.2, 0.5, 0.8), method="nearest"))
        examples = expected_examples(request)
        models = _models(request)
        return cls(
            float(expected_reports(request)),
            _caution(request.reference),
            request.reference is not None,
            thresholds,
            tuple(scaled(model, examples) for model in models),
            tuple(_area(model) for model in models),
            tuple(_true_rates(model, thresholds) for model in models),
        )

    def candidate(self, survey: Survey) -> Candidate:
        """Judge a survey by ROC AUC alone."""
        on = self._on_grid(survey.grid)
        variances = noise_variances(survey, on.counts, on.sums, clients=self.clients)
        sds = np.sqrt(variances)
        classes = on.counts.sum(axis=2)
        # As `why_one_class` has it: 1 where there would be no answer.
        is_told = on.is_told & (classes >= CLEAR_OF_NOISE * sds[:, 1:]).all(axis=1)
        errors = np.where(is_told, np.hypot(on.area_errors, sds[:, 0]), 1.0)
        return Candidate(survey, self._mean_log(errors[:, np.newaxis]))

    def error(self, candidate: Candidate) -> float:
        """The mean log of predicted errors: twice ROC AUC's, and the mean over thresholds.

        The area stands for the whole curve, and gains less from any choice.
        """
        if self._rates(candidate.survey.grid).is_exact:
            return self.least_error(candidate)
        return _together(candidate.area_error, self._rates_error(self._expected(candidate.survey)))

    def least_error(self, candidate: Candidate) -> float:
        """What `error` is at least, without what cells hide at thresholds: quick to predict."""
        survey = candidate.survey
        rates, counts = self._rates(survey.grid), self._on_grid(survey.grid).counts
        variances = noise_variances(survey, counts, rates.sums, clients=self.clients)
        return _together(candidate.area_error, self._mean_log(rates.least_errors(variances)))

    def _on_grid(self, grid: Grid) -> _OnGrid:
        if grid not in self._on_grids:
            self._on_grids[grid] = _OnGrid.of(self.models, self.areas, grid, self.caution)
        return self._on_grids[grid]

    def _rates(self, grid: Grid) -> RatesOnGrid:
        if grid not in self._rates_on:
            histograms = self._on_grid(grid).histograms
            self._rates_on[grid] = RatesOnGrid.of(histograms, self.thresholds, self.rates)
        return self._rates_on[grid]

    def _expected(self, survey: Survey) -> tuple[ScoreHistogram, ...]:
        return tuple(
            expected_histogram(survey, model, clients=self.clients) for model in self.models
        )

    def error_of(self, expected: Sequence[ScoreHistogram]) -> float:
        """The same for what is expected to be read of each model, in however many surveys."""
        areas = [
            [self._area_error(each, truth)]
            for each, truth in zip(expected, self.areas, strict=True)
        ]
        return _together(self._mean_log(areas), self._rates_error(expected))

    def _area_error(self, expected: ScoreHistogram, truth: Estimate) -> float:
        if why_one_class(expected) is not None:
            return 1.0
        area = _Area.on(ScoreHistogram(expected.edges, expected.counts), self.caution)
        noise_sd = sqrt(expected.noise.variance(area.gradient))
        return area.error(noise_sd, truth, self.caution)

    def _rates_error(self, histograms: Sequence[ScoreHistogram]) -> float:
        errors = [
            [
                _error(estimate, truth, self.caution)
                for estimate, truth in zip(_rates(expected, self.thresholds), truths, strict=True)
            ]
            for expected, truths in zip(histograms, self.rates, strict=True)
        ]
        return self._mean_log(errors)

    def _mean_log(self, errors: list[list[float]] | FloatArray) -> float:
        """The mean log over metrics; halves of a reference are two looks at the same error."""
        table = np.asarray(errors)
        if self.are_halves:
            table = np.sqrt((table**2).mean(axis=0))
        return float(np.log(table).mean())


def _together(area_error: float, rates_error: float) -> float:
    return 2.0 * area_error + rates_error


def _caution(reference: Examples | FloatArray | None) -> float:
    """How much of the binning spread counts, by what is known of scores inside cells."""
    if isinstance(reference, GuessedRows):
        return _GUESSED
    return _SEEN if isinstance(reference, Examples) else _UNSEEN


def _models(request: SurveyRequest) -> tuple[ScoreHistogram, ...]:
    """What the scores may be like, of very many examples: their true values are known for good."""
    rate, auc = request.positive_rate, request.auc
    if isinstance(request.reference, Examples):
        return _from_halves(request.reference, rate)
    if request.reference is not None:
        return (scaled(model_for(request), _MANY),)
    described = [(rate or usual, auc or likely, shift) for usual, likely, shift in _UNKNOWN]
    return tuple(_binormal(*each) for each in dict.fromkeys(described))


@lru_cache(maxsize=4)
def _last_scorers(request: SurveyRequest) -> Scorer:
    """Planning backwards asks at one epsilon after the other."""
    return Scorer._of(request)


@lru_cache(maxsize=64)
def _binormal(rate: float, auc: float, shift: float) -> ScoreHistogram:
    return binormal(examples=_MANY, positive_rate=rate, auc=auc, shift=shift)


@lru_cache(maxsize=2)
def _from_halves(reference: Examples, rate: float | None) -> tuple[ScoreHistogram, ...]:
    return tuple(
        from_reference(half, examples=_MANY, positive_rate=rate) for half in _halves(reference)
    )


@lru_cache(maxsize=64)
def _area(model: ScoreHistogram) -> Estimate:
    return roc_auc(model)


def _halves(reference: Examples) -> tuple[Examples, ...]:
    """Two random halves: a survey whose bias vanishes by luck in one shows it in the other."""
    order = np.random.default_rng(0).permutation(len(reference))
    halves = tuple(reference.rows(rows) for rows in (order[::2], order[1::2]))
    enough = all(_FEWEST <= half.positives <= len(half) - _FEWEST for half in halves)
    return halves if enough else (reference,)


@lru_cache(maxsize=64)
def _true_rates(model: ScoreHistogram, thresholds: tuple[float, ...]) -> tuple[Estimate, ...]:
    return _rates(model, thresholds)


def _rates(histogram: ScoreHistogram, thresholds: tuple[float, ...]) -> tuple[Estimate, ...]:
    return tuple(
        metric(histogram, threshold)
        for threshold in thresholds
        for metric in (precision, recall, accuracy)
    )


def _error(estimate: Estimate, truth: Estimate, caution: float) -> float:
    """Noise, binning spread and bias together; 1 where there would be no answer."""
    if isinstance(estimate, TooCoarse) and truth.is_available:
        return hypot(estimate.noise_sd, estimate.binning_sd) + 1e-12
    if isinstance(estimate, NotEnoughData) or isinstance(truth, NotEnoughData):
        return 1.0
    bias = estimate.value - truth.value
    return hypot(estimate.noise_sd, estimate.binning_sd * caution, bias) + 1e-12
