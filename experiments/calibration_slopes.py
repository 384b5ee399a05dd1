"""How the error of the paper's calibration falls with the number of clients.

Clients are drawn as counts per cell, so that their number may be as large as the theorems ask.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from fedassay.calibration.binning import fit_binning
from fedassay.decoding import decode
from fedassay.draws import draw_tally
from fedassay.errors import SingleClass
from fedassay.examples import FloatArray
from fedassay.mechanisms import Privacy
from fedassay.planning.request import Preset, SurveyRequest
from fedassay.planning.search import design_survey

_POINTS = 16
_BINS = 20


@dataclass(frozen=True, slots=True)
class Regime:
    """A privacy model with numbers of clients at which its theorem's terms are the largest.

    Under privacy, fewer clients leave buckets that noise drowns: rates are then cut off at 0 and
    1, and no error can grow beyond that.
    """

    name: str
    privacy: Privacy
    epsilon: Fraction | None
    counts: tuple[int, ...]
    theory: str


REGIMES = (
    Regime("secure", Privacy.SECURE, None, (8_000, 64_000, 512_000, 4_096_000), "-1/3"),
    Regime(
        "distributed ε = 1",
        Privacy.DISTRIBUTED,
        Fraction(1),
        (1_000_000, 4_000_000, 16_000_000, 64_000_000),
        "-1/3",
    ),
    Regime(
        "local ε = 5",
        Privacy.LOCAL,
        Fraction(5),
        (1_000_000, 8_000_000, 64_000_000, 512_000_000),
        "-1/4",
    ),
    Regime(
        "local ε = 1",
        Privacy.LOCAL,
        Fraction(1),
        (16_000_000, 64_000_000, 256_000_000, 1_024_000_000),
        "-1/4",
    ),
)


@dataclass(frozen=True, slots=True)
class Slope:
    """Errors at every number of clients, and the slope of their logarithm."""

    distances: tuple[float, ...]
    eces: tuple[float, ...]

    def of(self, errors: tuple[float, ...], counts: tuple[int, ...]) -> float:
        """The fitted exponent."""
        return float(np.polyfit(np.log(counts), np.log(errors), 1)[0])


def truth(scores: FloatArray) -> FloatArray:
    """S-shaped: under-confident below one half, over-confident above."""
    return np.asarray(np.clip(scores + 0.1 * np.sin(2.0 * np.pi * scores), 0.0, 1.0))


def measure(regime: Regime, *, trials: int, seed: int, buckets: int | None = None) -> Slope:
    """Mean error of the paper's equi-depth binning on its own tree, over trials.

    The number of buckets is the theorems', or always the given one.
    """
    found = [
        [_errors(regime, count, seed + trial, buckets) for trial in range(trials)]
        for count in regime.counts
    ]
    means = np.mean(found, axis=1)
    return Slope(tuple(means[:, 0].tolist()), tuple(means[:, 1].tolist()))


def _errors(regime: Regime, clients: int, seed: int, buckets: int | None) -> tuple[float, float]:
    """Mean distance to the truth, and ECE in 20 bins, over the whole population."""
    survey_of = design_survey(
        SurveyRequest(
            privacy=regime.privacy,
            epsilon=regime.epsilon,
            clients=clients,
            dropouts=Fraction(0),
            preset=Preset.PAPER,
            smallest_cell=0,
        )
    )
    survey = survey_of.survey
    scores, mass = population(survey.grid.edges)
    true = truth(scores)
    cells = np.stack([(mass * (1.0 - true)).sum(axis=1), (mass * true).sum(axis=1)])
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(clients, cells.ravel() / cells.sum()).reshape(cells.shape)
    tally = draw_tally(survey, drawn, clients=clients, generator=generator)
    histogram = decode(survey, tally, decode_options=survey_of.decode_options)
    try:
        calibrator = fit_binning(histogram, buckets=buckets, noise_aware=False)
    except SingleClass:
        return inf, inf
    predicted = calibrator.predict(scores.ravel()).reshape(scores.shape)
    place = np.clip(np.ceil(predicted * _BINS).astype(np.int64) - 1, 0, _BINS - 1)
    gaps = np.bincount(place.ravel(), (mass * (true - predicted)).ravel(), _BINS)
    return float((mass * np.abs(true - predicted)).sum()), float(np.abs(gaps).sum())


def population(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores inside every cell and their probabilities, cell x point: Beta(1.2, 1.8)."""
    from scipy.stats import beta

    parts = np.arange(_POINTS + 1) / _POINTS
    ends = edges[:-1, None] + parts * np.diff(edges)[:, None]
    return 0.5 * (ends[:, 1:] + ends[:, :-1]), np.diff(beta(1.2, 1.8).cdf(ends), axis=1)
