"""What a first survey says of the scores: where the second will ask."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from fedassay.decoding import DecodeOptions, decode
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import CLEAR_OF_NOISE
from fedassay.reconcile import Observed
from fedassay.smooth_odds import SmoothOdds
from fedassay.survey import Survey
from fedassay.tally import Tally
from fedassay.two_steps import is_drowned, none_negative, observed_in, spread_over

_FEWEST = 16.0
_MOST_SPIKED = 16
# A cell of 1/128 in so many parts is as narrow as that of a single score; so is a half octave.
_PARTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """What the first survey says of the scores, without negative counts."""

    survey: Survey
    grid: Grid
    """Of the second survey: the first one's, with cuts added where a single leaf holds much."""
    histogram: ScoreHistogram
    """On that grid."""
    reports: float
    clients: float
    """How many clients both surveys hear from, or all of them hear both."""
    towers: tuple[tuple[float, float], ...] = ()
    """Edges of leaves that hold, beyond chance and noise, what their neighbours cannot explain."""

    @property
    def added(self) -> tuple[int, ...]:
        """The leaves that begin at cuts which the first survey did not have."""
        new = ~np.isin(self.grid.edges, self.survey.grid.edges)
        return tuple(np.flatnonzero(new).tolist())

    def with_cuts_in(self, leaves: IntArray) -> "Pilot":
        """These leaves of the first survey cut into equal parts, and their counts spread."""
        if not len(leaves):
            return self
        edges = self.survey.grid.edges
        parts = np.arange(1, _PARTS) / _PARTS
        cuts = edges[leaves, None] + parts * (edges[leaves + 1] - edges[leaves])[:, None]
        grid = Grid(np.unique(np.concatenate([edges, cuts.ravel()])), self.survey.grid.rule)
        counts = spread_over(self.survey.grid, grid, self.histogram.counts)
        return replace(self, grid=grid, histogram=ScoreHistogram(grid.edges, counts))

    @property
    def shares(self) -> FloatArray:
        """The share of each class at or below every edge, label x edge."""
        below = self.histogram.cumulative
        return below / below[:, -1:]


def _spiked(histogram: ScoreHistogram) -> IntArray:
    """Leaves that hold, beyond chance and noise, what their neighbours cannot explain.

    Such a leaf hides the order of its scores, or one score that many share.
    """
    spikes = histogram.spikes.sum(axis=0)
    # Most first: where there are many, the last hide little.
    candidates = np.argsort(-spikes)[: 2 * _MOST_SPIKED]
    spiked = []
    for leaf in candidates:
        ones = np.zeros_like(histogram.counts)
        ones[:, leaf] = 1.0
        least = _FEWEST + CLEAR_OF_NOISE * sqrt(histogram.noise.variance(ones))
        if spikes[leaf] >= least:
            spiked.append(leaf)
    return np.array(sorted(spiked[:_MOST_SPIKED]), dtype=np.int64)


def pilot_from(
    first: Survey, tally: Tally, clients: int | None = None, *, thorough: bool = True
) -> Pilot:
    """What a first survey's tally says of the scores, without negative counts; or roughly.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 500, [i / 1000 for i in range(1000)]
    >>> asked = {"privacy": "distributed", "epsilon": 4, "steps": 2, "seed": 0}
    >>> first = fedassay.simulate(labels, scores, **asked).first
    >>> pilot_from(first.survey, first.tally).clients
    1000.0
    """
    histogram = decode(first, tally, decode_options=DecodeOptions())
    heard = tally.clients(first)
    smooth = histogram.monotone()
    counts = np.maximum(smooth.counts, 0.0)
    drowned = [is_drowned(histogram, label) for label in (0, 1)]
    if all(drowned) or counts[drowned.index(False)].sum() <= 0.0:
        raise SettingInvalid(
            "a second survey needs to know where scores lie; the first has nothing but noise in "
            "it. Ask more clients, or spend more epsilon."
        )
    for label, name in enumerate(("negatives", "positives")):
        if drowned[label]:
            other = counts[1 - label]
            # Drowned in noise: taken for probabilities, scores say where that class lies.
            middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
            odds = middle / (1.0 - middle) if name == "positives" else (1.0 - middle) / middle
            counts[label] = other * np.minimum(odds, 1.0)
    counts = counts + 1e-6 * counts.sum(axis=1, keepdims=True) / counts.shape[1]
    fraction = first.step.client_fraction if first.step is not None else Fraction(1)
    everybody = float(clients or heard / fraction)
    counts = counts * (everybody / heard) if first.is_local else counts
    spiked, edges = _spiked(histogram), histogram.edges
    if thorough and first.is_local and not any(drowned):
        counts = _smoothly(first, tally, histogram, spiked) * (everybody / heard)
    towers = tuple((float(edges[leaf]), float(edges[leaf + 1])) for leaf in spiked)
    believed = ScoreHistogram(edges, counts)
    pilot = Pilot(first, first.grid, believed, heard, everybody, towers)
    # Nothing is to be found inside the leaves at either end.
    within = spiked[(spiked > 0) & (spiked < histogram.buckets - 1)]
    return pilot if first.is_local else pilot.with_cuts_in(within)


def _smoothly(
    first: Survey, tally: Tally, histogram: ScoreHistogram, spiked: IntArray
) -> FloatArray:
    """The counts of a first survey, read through smooth log-odds."""
    guess = none_negative(histogram)
    family = SmoothOdds.around(
        histogram.edges, guess, towers=spiked, total_is_known=first.total_is_known
    )
    clients = float(tally.clients(first))
    observed = Observed.joined(observed_in(first, tally, guess, first.grid, clients=clients))
    return family.likeliest(observed).counts


def expected_pilot(first: Survey, leaf_counts: FloatArray, *, clients: float) -> Pilot:
    """What a first survey would say of scores with these expected counts, without its noise.

    >>> from fedassay.mechanisms import Privacy
    >>> from fedassay.planning.first_survey import first_survey
    >>> from fedassay.planning.request import SurveyRequest
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> first = first_survey(request)
    >>> expected_pilot(first, np.ones((2, first.grid.cells)), clients=1000.0).reports
    100.0
    """
    counts = np.maximum(leaf_counts, 0.0)
    counts = counts + 1e-6 * counts.sum(axis=1, keepdims=True) / counts.shape[1]
    fraction = float(heard_fraction(first))
    histogram = ScoreHistogram(first.grid.edges, counts)
    return Pilot(first, first.grid, histogram, clients * fraction, clients)


def heard_fraction(survey: Survey) -> Fraction:
    """The share of the clients that a survey hears from.

    >>> from fedassay.mechanisms import Privacy
    >>> from fedassay.planning.first_survey import first_survey
    >>> from fedassay.planning.request import SurveyRequest
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> first = first_survey(request)
    >>> heard_fraction(first)
    Fraction(1, 10)
    """
    return survey.step.client_fraction if survey.step is not None else Fraction(1)
