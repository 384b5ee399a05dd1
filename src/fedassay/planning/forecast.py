"""What a survey's answers will be worth, before anybody has answered.

Expected counts of a model of the scores go through the estimators and the noise model that
will read the tally: there is one closed form, and this is it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import erf, hypot, inf, sqrt

import numpy as np

from fedassay.decoding import (
    DecodeOptions,
    join_levels,
    level_variance,
    reads_ends_alone,
    tree_noise,
)
from fedassay.estimate import Estimate, NotEnoughData, check_confidence, normal_quantile
from fedassay.examples import FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import AnyMechanism, UnitKind
from fedassay.mechanisms.law import Law
from fedassay.metrics import named_metrics
from fedassay.metrics.named import headings, named_metric
from fedassay.nesting import publishable_edges
from fedassay.noise import DenseNoise, NoNoise
from fedassay.planning.joined_noise import shared_noise
from fedassay.planning.request import SurveyRequest, reports_of
from fedassay.planning.score_model import binormal, from_reference, on_grid
from fedassay.quiet_ends import without_quiet_ends
from fedassay.reconcile import Observed, leaves_covariance
from fedassay.survey import Survey
from fedassay.two_steps import by_cells, expected_smoothly, rows_on, sums_on

ASSUMED_RATE = 0.3
ASSUMED_AUC = 0.8
DEFAULT_OPTIONS = DecodeOptions()


class Cause(Enum):
    """Where an error comes from."""

    SAMPLING = "sampling"
    BINNING = "binning"
    PRIVACY = "privacy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorForecast:
    """The errors that an estimate will have, and the value it will have them around."""

    value: float
    noise_sd: float
    sampling_sd: float
    binning_bound: float
    binning_sd: float
    """As the interval will count it: with caution."""
    binning_bias: float
    """The estimate's expected distance from the model's own value."""
    half_width: float
    """Of the 95 % interval for the population's value, as it will be printed."""
    reason: str = ""
    """Why there would be no answer, where there would be none."""

    @property
    def is_available(self) -> bool:
        """Whether there would be an answer."""
        return not self.reason

    @property
    def standard_error(self) -> float:
        """Of the estimate about its mean: privacy noise and sampling together."""
        return hypot(self.noise_sd, self.sampling_sd)

    @property
    def dominates(self) -> Cause:
        """The largest of the three."""
        sizes = {
            Cause.SAMPLING: self.sampling_sd,
            Cause.BINNING: abs(self.binning_bias),
            Cause.PRIVACY: self.noise_sd if self.is_available else inf,
        }
        return max(sizes, key=lambda cause: sizes[cause])

    def error_quantile(self, confidence: float = 0.95) -> float:
        """What the error against the population stays below with this probability."""
        check_confidence(confidence)
        if not self.is_available:
            return inf
        return folded_quantile(self.binning_bias, self.standard_error, confidence)


def no_forecast(reason: str, *, value: float, sampling_sd: float = inf) -> ErrorForecast:
    """What is known where there would be no answer: next to nothing, and why.

    >>> no_forecast("drowned in noise", value=0.7).error_quantile()
    inf
    """
    return ErrorForecast(
        value=value,
        noise_sd=inf,
        sampling_sd=sampling_sd,
        binning_bound=inf,
        binning_sd=inf,
        binning_bias=0.0,
        half_width=inf,
        reason=reason,
    )


def folded_quantile(mean: float, sd: float, probability: float) -> float:
    """The quantile of |X| for a normal X.

    >>> round(folded_quantile(0.0, 1.0, 0.95), 2)
    1.96
    """
    shift = abs(mean)
    if sd == 0.0:
        return shift
    low = normal_quantile(0.5 + probability / 2.0) * sd
    high = low + shift
    for _ in range(60):
        middle = 0.5 * (low + high)
        within = ((middle - shift) / sd, (middle + shift) / sd)
        inside = 0.5 * sum(erf(each / sqrt(2.0)) for each in within)
        low, high = (middle, high) if inside < probability else (low, middle)
    return high


def expected_histogram(
    survey: Survey,
    model: ScoreHistogram,
    *,
    clients: float,
    decode_options: DecodeOptions = DEFAULT_OPTIONS,
    second: Survey | None = None,
    fits_once: bool = False,
    likely: bool = False,
) -> ScoreHistogram:
    """What decoding would give on average, with the noise it would carry.

    With `second`, a survey that follows this one, of both together; with `fits_once` their noise
    is taken from the last fit of the same cells, if it differs in size alone (to rounding).
    Intervals after two local surveys are cautious; with `likely`, noise is what it will be.

    >>> from fedassay.planning.search import design_survey
    >>> request = SurveyRequest(clients=1000)
    >>> h = expected_histogram(design_survey(request).survey, model_for(request), clients=1000)
    >>> round(h.total)
    1000
    """
    grid = survey.grid if second is None else second.grid
    counts = on_grid(model, grid)
    if survey.is_exact and not isinstance(survey.level_policy, OneLevel):
        exact = ScoreHistogram(survey.grid.edges, counts, NoNoise(), decode_options.smooth)
        if not survey.smallest_cell:
            return exact
        return exact.merge(publishable_edges(exact.edges, counts, survey.smallest_cell))
    total = float(counts.sum()) if survey.total_is_known else None
    if second is not None:
        covariance = shared_noise(survey, second, clients=clients) if fits_once else None
        if covariance is None:
            pairs = [
                (each, level, told)
                for each in (survey, second)
                for level, told in enumerate(expected_levels(each, counts, clients, grid))
            ]
            observed = [Observed(rows_on(each, level, grid), *told) for each, level, told in pairs]
            if second.is_local:
                smooth = decode_options.smooth
                return expected_smoothly(second, counts, observed, smooth=smooth, likely=likely)
            covariance = leaves_covariance(observed, total_is_known=survey.total_is_known)
        joined = DenseNoise(covariance, counts if survey.samples_clients else None)
        return by_cells(second, ScoreHistogram(grid.edges, counts, joined, decode_options.smooth))
    values, variances = zip(*expected_levels(survey, counts, clients, grid), strict=True)
    if isinstance(survey.hierarchy, Hierarchy) and decode_options.reconcile:
        # On average all levels agree: there is nothing to reconcile.
        tree = tree_noise(survey, survey.hierarchy, counts, variances)
        expected = ScoreHistogram(survey.grid.edges, counts, tree, decode_options.smooth)
        return without_quiet_ends(expected) if reads_ends_alone(survey) else expected
    _, noise = join_levels(survey, values, variances, decode_options=decode_options, total=total)
    return ScoreHistogram(survey.grid.edges, counts, noise, decode_options.smooth)


def expected_levels(
    survey: Survey, counts: FloatArray, clients: float, grid: Grid
) -> list[tuple[FloatArray, FloatArray]]:
    """Every level's expected counters, and their variances once debiased.

    Counts are label x leaf, of several models at once model x label x leaf.

    >>> import fedassay
    >>> asked = {"privacy": "distributed", "epsilon": 1, "minimum_reports": 1000, "height": 1}
    >>> survey = fedassay.new_survey(**asked)
    >>> [(values, variances)] = expected_levels(survey, np.ones((2, 2)), 1000.0, survey.grid)
    >>> variances[0].round(2).tolist()  # 2 e / (e - 1)^2
    [1.84, 1.84]
    """
    heard = clients * float(survey.step.client_fraction if survey.step else 1)
    shares = (
        [float(share) for share in survey.level_policy.client_fractions]
        if isinstance(survey.level_policy, OneLevel)
        else [1.0] * survey.hierarchy.levels
    )
    levels = []
    for level, (law, share) in enumerate(zip(_laws(survey.mechanisms), shares, strict=True)):
        values = sums_on(survey, level, counts, grid)
        variances = level_variance(
            law,
            clients=clients,
            reports=heard * share,
            counts=np.abs(values),
            sampled=survey.samples_clients,
        )
        levels.append((values, np.broadcast_to(variances, values.shape)))
    return levels


@lru_cache(maxsize=8)
def _laws(mechanisms: tuple[AnyMechanism, ...]) -> tuple[Law, ...]:
    """A survey is judged against several models of the scores, one after the other."""
    return tuple(mechanism.law() for mechanism in mechanisms)


def forecast(
    survey: Survey,
    model: ScoreHistogram,
    *,
    clients: float,
    thresholds: Sequence[float] = (0.5,),
    decode_options: DecodeOptions = DEFAULT_OPTIONS,
    second: Survey | None = None,
) -> dict[str, ErrorForecast]:
    """Every metric's errors, by the names of `named_metrics`.

    >>> from fedassay.planning.search import design_survey
    >>> request = SurveyRequest(clients=1000)
    >>> errors = forecast(design_survey(request).survey, model_for(request), clients=1000)
    >>> errors["roc_auc"].dominates
    <Cause.SAMPLING: 'sampling'>
    """
    expected = expected_histogram(
        survey, model, clients=clients, decode_options=decode_options, second=second
    )
    estimates = named_metrics(expected, thresholds, buckets=decode_options.buckets)
    truths = named_metrics(model, thresholds)
    return {name: _forecast(estimates[name], truths[name]) for name in estimates}


def forecast_one(
    survey: Survey,
    model: ScoreHistogram,
    *,
    metric: str,
    clients: float,
    decode_options: DecodeOptions = DEFAULT_OPTIONS,
    second: Survey | None = None,
    truth: Estimate | None = None,
    fits_once: bool = False,
) -> ErrorForecast:
    """One metric's errors; `truth` is the model's own value, where it is known already.

    >>> from fedassay.planning.search import design_survey
    >>> request = SurveyRequest(clients=1000)
    >>> survey, model = design_survey(request).survey, model_for(request)
    >>> forecast_one(survey, model, metric="prevalence", clients=1000).noise_sd  # exact sums
    0.0
    """
    expected = expected_histogram(
        survey,
        model,
        clients=clients,
        decode_options=decode_options,
        second=second,
        fits_once=fits_once,
    )
    return _forecast(
        named_metric(expected, metric, buckets=decode_options.buckets),
        named_metric(model, metric) if truth is None else truth,
    )


def _forecast(estimate: Estimate, truth: Estimate) -> ErrorForecast:
    if isinstance(truth, NotEnoughData) or isinstance(estimate, NotEnoughData):
        lacking = estimate if isinstance(estimate, NotEnoughData) else truth
        reason = lacking.reason if isinstance(lacking, NotEnoughData) else ""
        return no_forecast(reason, value=truth.value, sampling_sd=truth.sampling_sd)
    low, high = estimate.interval(0.95)
    return ErrorForecast(
        value=truth.value,
        noise_sd=estimate.noise_sd,
        sampling_sd=estimate.sampling_sd,
        binning_bound=estimate.binning_bound,
        binning_sd=estimate.binning_sd,
        binning_bias=estimate.value - truth.value,
        half_width=(high - low) / 2.0,
    )


def expected_reports(request: SurveyRequest) -> int:
    """How many reports are expected.

    >>> expected_reports(SurveyRequest(clients=20, examples=5000))
    20
    """
    if request.privacy.is_local and request.unit.kind is not UnitKind.CLIENT:
        return reports_of(request) or request.minimum_reports or 1
    return request.clients or request.minimum_reports or 1


def expected_examples(request: SurveyRequest) -> float:
    """How many examples they hold together.

    >>> expected_examples(SurveyRequest(clients=20, examples=5000))
    5000.0
    """
    return float(request.examples or request.clients or request.minimum_reports or 1)


def model_for(request: SurveyRequest) -> ScoreHistogram:
    """The scores that a request describes; where it says nothing, an ordinary classifier.

    >>> round(model_for(SurveyRequest(clients=1000, positive_rate=0.2)).total_positives)
    200
    """
    rate = request.positive_rate
    if request.reference is not None:
        return from_reference(
            request.reference, examples=expected_examples(request), positive_rate=rate
        )
    return binormal(
        examples=expected_examples(request),
        positive_rate=ASSUMED_RATE if rate is None else rate,
        auc=ASSUMED_AUC if request.auc is None else request.auc,
    )


def scaled(model: ScoreHistogram, examples: float) -> ScoreHistogram:
    """The same scores of another number of examples.

    >>> round(scaled(model_for(SurveyRequest(clients=1000)), 50.0).total)
    50
    """
    return ScoreHistogram(model.edges, model.counts * (examples / model.total), model.noise)


def forecast_header() -> list[str]:
    """What the columns of `forecast_rows` are.

    >>> forecast_header()[:2]
    ['metric', 'value']
    """
    return ["metric", "value", "sampling", "binning", "privacy", "95 % ±", "mostly"]


def forecast_rows(forecasts: Mapping[str, ErrorForecast]) -> list[list[str]]:
    """Predicted errors by cause, and the 95 % half-width, as people read them.

    >>> forecast_rows({})
    []
    """
    rows, above = [], headings(forecasts)
    for name, each in forecasts.items():
        if above.get(name):
            rows.append([f"-- {above[name]}", *[""] * 6])
        if not each.is_available:
            rows.append([name, _figure(each.value), "-", "-", "-", "no answer", "privacy"])
            continue
        figures = (each.sampling_sd, abs(each.binning_bias), each.noise_sd, each.half_width)
        shown = map(_figure, figures)
        digits = 4 if abs(each.value) < 10.0 else 2
        rows.append([name, f"{each.value:.{digits}f}", *shown, each.dominates.value])
    return rows


def _figure(value: float) -> str:
    return f"{value:.2g}" if value else "0"
