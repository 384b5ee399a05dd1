"""Calibration errors before anybody has answered: by drawing tallies, for want of a formula.

A calibration error is a sum of absolute values, shrunk where noise is large; near nil its
spread is far from what the delta method says. So tallies are drawn from the model and read.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np

from fedassay.calibration import ece, fit
from fedassay.calibration.calibration_error import ece_value
from fedassay.decoding import DecodeOptions, decode
from fedassay.draws import draw_tally, whole_counts
from fedassay.estimate import NotEnoughData
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.planning.forecast import ErrorForecast, expected_histogram, no_forecast
from fedassay.planning.score_model import on_grid
from fedassay.survey import Survey

_DRAWS = 60
_FITS = 2
_BUCKETS = 40


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """A survey with the scores it will meet, ready to be drawn again and again."""

    survey: Survey
    model: ScoreHistogram
    clients: int
    decode_options: DecodeOptions
    second: Survey | None = None
    """The survey that follows this one, where both are read together."""

    @cached_property
    def rehearsal(self) -> "Rehearsal":
        """The same, quicker to draw."""
        return Rehearsal.of(self)

    def draw(self, generator: np.random.Generator, *, population: bool = True) -> ScoreHistogram:
        """The first survey's histogram as it may be decoded; `population=False` keeps the rows."""
        counts = np.maximum(on_grid(self.model, self.survey.grid), 0.0)
        examples = round(float(counts.sum()))
        shares = counts.ravel() / counts.sum()
        if population:
            leaves = generator.multinomial(examples, shares).reshape(counts.shape)
        else:
            leaves = whole_counts(counts)
        reports = max(self.clients, examples) if self.survey.total_is_known else self.clients
        tally = draw_tally(self.survey, leaves, clients=reports, generator=generator)
        return decode(self.survey, tally, decode_options=self.decode_options)


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """Histograms as they may be decoded, on few buckets and with normal noise: quick to draw."""

    whole: ScoreHistogram
    """What would be decoded on average."""
    expected: ScoreHistogram
    """The same, on few buckets."""
    factor: FloatArray
    """Times standard normal numbers, it is the noise of all counts."""

    @classmethod
    def of(cls, monte_carlo: MonteCarlo) -> "Rehearsal":
        """From the counts and the noise that decoding would give on average."""
        whole = expected_histogram(
            monte_carlo.survey,
            monte_carlo.model,
            clients=float(monte_carlo.clients),
            decode_options=monte_carlo.decode_options,
            second=monte_carlo.second,
        )
        mass = whole.cumulative.sum(axis=0) / whole.total
        evenly = np.arange(_BUCKETS + 1) / _BUCKETS
        kept = [np.searchsorted(whole.edges, evenly), np.searchsorted(mass, evenly)]
        places = np.unique(np.clip(np.concatenate(kept), 0, whole.buckets))
        expected = whole.merge(np.union1d(places, [0, whole.buckets]))
        counts = 2 * expected.buckets
        units = np.eye(counts).reshape(counts, 2, expected.buckets)
        values, vectors = np.linalg.eigh(expected.noise.covariances(units))
        return cls(whole, expected, vectors * np.sqrt(np.maximum(values, 0.0)))

    def draw(self, generator: np.random.Generator, *, population: bool) -> ScoreHistogram:
        """One histogram; with `population` the rows are drawn anew."""
        counts = np.maximum(self.expected.counts, 0.0)
        if population:
            shares = counts.ravel() / counts.sum()
            drawn = generator.multinomial(round(float(counts.sum())), shares)
            counts = drawn.reshape(counts.shape).astype(np.float64)
        noise = self.factor @ generator.standard_normal(self.factor.shape[1])
        return replace(self.expected, counts=counts + noise.reshape(counts.shape))


def forecast_ece(
    monte_carlo: MonteCarlo, *, generator: np.random.Generator, draws: int = _DRAWS
) -> ErrorForecast:
    """Errors of the measured calibration error (`calibration.ece`, 20 bins, debiased).

    >>> from fedassay.planning.forecast import model_for
    >>> from fedassay.planning.request import SurveyRequest
    >>> from fedassay.planning.search import design_survey
    >>> request = SurveyRequest(clients=1000, height=3, smallest_cell=0)
    >>> survey = design_survey(request).survey
    >>> drawn = MonteCarlo(survey, model_for(request), 1000, DecodeOptions())
    >>> generator = np.random.default_rng(0)
    >>> forecast_ece(drawn, generator=generator, draws=4).noise_sd  # exact sums
    0.0
    """
    truth = ece(monte_carlo.model, debiased=False).value
    rehearsal = monte_carlo.rehearsal
    spreads, means = [], []
    for population in (False, True):
        drawn = (rehearsal.draw(generator, population=population) for _ in range(draws))
        found = [ece_value(each) for each in drawn]
        kept = [each for each in found if not isinstance(each, NotEnoughData)]
        if len(kept) < draws / 2:
            lacking = next(each for each in found if isinstance(each, NotEnoughData))
            return no_forecast(lacking.reason, value=truth)
        spreads.append(float(np.std(kept)))
        means.append(float(np.mean(kept)))
    expected = ece(rehearsal.whole)
    noise, whole = spreads[0], max(spreads)
    noise = noise if not monte_carlo.survey.is_exact else 0.0
    return ErrorForecast(
        value=truth,
        noise_sd=noise,
        sampling_sd=sqrt(whole**2 - noise**2),
        binning_bound=expected.binning_bound,
        binning_sd=expected.binning_sd,
        binning_bias=means[1] - truth,
        half_width=1.96 * whole + expected.binning_sd,
    )


def expected_ece(
    monte_carlo: MonteCarlo,
    *,
    generator: np.random.Generator,
    fits: int = _FITS,
    progress: Callable[[int], None] | None = None,
) -> float:
    """The calibration error that will remain after calibrating from this survey.

    The mean over draws of the population's error, for the calibrator with the smallest
    expected error, which may be none.

    >>> from fedassay.planning.forecast import model_for
    >>> from fedassay.planning.request import SurveyRequest
    >>> from fedassay.planning.search import design_survey
    >>> request = SurveyRequest(clients=1000, height=3, smallest_cell=0)
    >>> survey = design_survey(request).survey
    >>> drawn = MonteCarlo(survey, model_for(request), 1000, DecodeOptions())
    >>> expected_ece(drawn, generator=np.random.default_rng(0), fits=1) < 0.1
    True
    """
    errors = []
    rehearsal = monte_carlo.rehearsal
    for _ in range(fits):
        calibrator = fit(rehearsal.draw(generator, population=True))
        errors.append(ece(monte_carlo.model, calibrator=calibrator, debiased=False).value)
        if progress is not None:
            progress(1)
    return float(np.mean(errors))
