"""What a first survey says of the scores: where the second will ask."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from fedassay.decoding import DecodeOptions, decode
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import CLEAR_OF_NOISE
from fedassay.survey import Survey
from fedassay.tally import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """What the first survey says of the scores, without negative counts."""

    survey: Survey
    histogram: ScoreHistogram
    reports: float
    clients: float
    """How many clients both surveys hear from, or all of them hear both."""

    @property
    def shares(self) -> FloatArray:
        """The share of each class at or below every edge, label x edge."""
        below = self.histogram.cumulative
        return below / below[:, -1:]


def pilot_from(first: Survey, tally: Tally, clients: int | None = None) -> Pilot:
    """What a first survey's tally says of the scores, without negative counts."""
    histogram = decode(first, tally, decode_options=DecodeOptions())
    heard = tally.clients(first)
    smooth = histogram.monotone()
    counts = np.maximum(smooth.counts, 0.0)
    for label, name in enumerate(("negatives", "positives")):
        ones = np.zeros_like(counts)
        ones[label] = 1.0
        if histogram.counts[label].sum() < CLEAR_OF_NOISE * sqrt(histogram.noise.variance(ones)):
            other = counts[1 - label]
            if other.sum() <= 0.0:
                raise SettingInvalid(
                    "a second survey needs to know where scores lie; the first has nothing but "
                    "noise in it. Ask more clients, or spend more epsilon."
                )
            # Drowned in noise: taken for probabilities, scores say where that class lies.
            middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
            odds = middle / (1.0 - middle) if name == "positives" else (1.0 - middle) / middle
            counts[label] = other * np.minimum(odds, 1.0)
    counts = counts + 1e-6 * counts.sum(axis=1, keepdims=True) / counts.shape[1]
    fraction = first.step.client_fraction if first.step is not None else Fraction(1)
    everybody = float(clients or heard / fraction)
    counts = counts * (everybody / heard) if first.is_local else counts
    return Pilot(first, ScoreHistogram(histogram.edges, counts), heard, everybody)


def expected_pilot(first: Survey, leaf_counts: FloatArray, *, clients: float) -> Pilot:
    """What a first survey would say of scores with these expected counts, without its noise."""
    counts = np.maximum(leaf_counts, 0.0)
    counts = counts + 1e-6 * counts.sum(axis=1, keepdims=True) / counts.shape[1]
    fraction = float(heard_fraction(first))
    return Pilot(first, ScoreHistogram(first.grid.edges, counts), clients * fraction, clients)


def heard_fraction(survey: Survey) -> Fraction:
    """The share of the clients that a survey hears from."""
    return survey.step.client_fraction if survey.step is not None else Fraction(1)
