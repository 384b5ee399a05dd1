"""The second of two surveys: cells and weights where the first found the scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from fedassay.checks import require_thresholds, require_type
from fedassay.cut_levels import CutLevels, PerLabel
from fedassay.decoding import DecodeOptions, decode, level_variance
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Polya
from fedassay.metrics.delta_method import CLEAR_OF_NOISE
from fedassay.metrics.roc_auc import area_gradient
from fedassay.planning.build import oracle_for
from fedassay.survey import EveryLevel, OneLevel, Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from fedassay.tally import Tally

_CELLS = (4, 6, 8, 12, 16, 24, 32, 48, 64)
_LOCAL_CELLS = (2, 3, 4, 6, 8, 12)
_LOCAL_LEVELS = (1, 2, 4, 8)
_WEIGHTED_SHARES = (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3))
_WEIGHT = 127
_QUANTILES = (0.2, 0.5, 0.8)
_MOST_CUTS = 200


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


def second_survey(
    first: Survey, tally: Tally, *, thresholds: Sequence[float] = (), clients: int | None = None
) -> Survey:
    """The survey that spends what the first one left, where it found the scores.

    The candidates' noise in ROC AUC and at thresholds is predicted from the fit of both
    surveys' counters (`two_steps.decode_two`); leaves, and so binning, are those of the first.

    Guarantee: post-processing of what the first survey revealed; nothing more is spent.
    """
    require_type(first, Survey, "a first survey", "fedassay.load reads survey files.")
    require_thresholds(thresholds)
    step = first.step
    if not isinstance(step, FirstOfTwo) or first.epsilon is None:
        raise SettingInvalid(
            "a second survey follows one that announced it; this one stands alone. "
            "Make the first with steps=2 (--steps 2), or use the assessment as a reference."
        )
    pilot = _pilot(first, tally, clients)
    rest = step.total_epsilon if first.is_local else step.total_epsilon - first.epsilon
    place = SecondOfTwo(
        step.total_epsilon,
        1 - step.client_fraction if first.is_local else Fraction(1),
        first.fingerprint,
    )
    judge = _Judge.of(pilot, _judged(pilot, thresholds))
    if first.is_local:
        surveys = list(_local_candidates(pilot, place, rest))
    else:
        surveys = list(_shared_candidates(pilot, place, rest, thresholds, judge))
    return min(surveys, key=judge.error)


def _pilot(first: Survey, tally: Tally, clients: int | None) -> Pilot:
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


def _judged(pilot: Pilot, thresholds: Sequence[float]) -> list[int]:
    """Edges at which errors are predicted: the thresholds, or quantiles of the scores."""
    edges = pilot.histogram.edges
    if len(thresholds):
        picked = np.quantile(thresholds, _QUANTILES, method="nearest")
        return sorted({int(np.searchsorted(edges, threshold)) for threshold in picked})
    mass = pilot.shares.mean(axis=0)
    return sorted({int(np.searchsorted(mass, share)) for share in _QUANTILES})


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """Predicts a candidate's errors from the counters of both surveys."""

    pilot: Pilot
    known: FloatArray
    """Precision of the leaves after the first survey, label x leaf x leaf."""
    area: FloatArray
    rates: list[FloatArray]

    @classmethod
    def of(cls, pilot: Pilot, edges: list[int]) -> "_Judge":
        histogram = pilot.histogram
        leaves = histogram.buckets
        known = _precision(pilot.survey, pilot, heard=pilot.reports)
        P, total = histogram.total_positives, histogram.total
        rates = []
        for edge in edges:
            above = (np.arange(leaves) >= edge).astype(np.float64)
            tp, fp = float(histogram.positives @ above), float(histogram.negatives @ above)
            called = max(tp + fp, 1.0)
            recall = np.stack([np.zeros(leaves), (above - tp / P) / P])
            precision = np.stack([-tp / called * above, fp / called * above]) / called
            right = np.stack([1.0 - above, above])
            accuracy = (right - (tp + histogram.total_negatives - fp) / total) / total
            rates += [recall, precision, accuracy]
        return cls(pilot, known, area_gradient(histogram), rates)

    def error(self, survey: Survey) -> float:
        """The mean log of predicted errors: twice ROC AUC's, and the mean over thresholds."""
        gained = _precision(survey, self.pilot, heard=self.pilot.clients * float(_fraction(survey)))
        gradients = np.stack([self.area, *self.rates], axis=-1)
        solved = np.linalg.solve(self.known + gained, gradients)
        variances = np.einsum("lng,lng->g", gradients, solved)
        logs = 0.5 * np.log(np.maximum(variances, 1e-300))
        return float(2.0 * logs[0] + logs[1:].mean()) if self.rates else float(logs[0])


def _fraction(survey: Survey) -> Fraction:
    return survey.step.client_fraction if survey.step is not None else Fraction(1)


def _precision(survey: Survey, pilot: Pilot, *, heard: float) -> FloatArray:
    """What a survey's counters say of the leaves: sums of rows' outer products over variances."""
    leaves = pilot.histogram.buckets
    shares = (
        [float(share) for share in survey.level_policy.client_fractions]
        if isinstance(survey.level_policy, OneLevel)
        else [1.0] * survey.hierarchy.levels
    )
    precision = np.zeros((2, leaves, leaves))
    for level, (mechanism, share) in enumerate(zip(survey.mechanisms, shares, strict=True)):
        rows = survey.hierarchy.rows(level)
        variance = level_variance(
            mechanism.law(),
            clients=pilot.clients,
            reports=heard * share,
            counts=np.abs(survey.hierarchy.at_level(pilot.histogram.counts, level)),
            sampled=survey.samples_clients,
        )
        for label in (0, 1):
            weighted = rows[label] / np.broadcast_to(variance[label], rows.shape[1])[:, None]
            precision[label] += rows[label].T @ weighted
    return precision


def _shared_candidates(
    pilot: Pilot,
    place: SecondOfTwo,
    epsilon: Fraction,
    thresholds: Sequence[float],
    judge: _Judge,
) -> Iterator[Survey]:
    """Flat cells, for both labels or for each its own, with and without weighted sums."""
    half = _WEIGHTED_SHARES[1]
    centred = _weights(pilot, centred=True)
    plain = [
        _shared(pilot, place, (epsilon * (1 - half), epsilon * half), cuts, centred)
        for cells in _CELLS
        for cuts in _cuts(pilot, _marks(cells), thresholds)
    ]
    yield from plain
    best = min(plain, key=judge.error).hierarchy
    if not isinstance(best, CutLevels):
        return
    cuts = best.cuts[0]
    yield _shared(pilot, place, (epsilon,), cuts, None)
    for share in _WEIGHTED_SHARES:
        for weights in (centred, _weights(pilot, centred=False)):
            yield _shared(pilot, place, (epsilon * (1 - share), epsilon * share), cuts, weights)


def _local_candidates(pilot: Pilot, place: SecondOfTwo, epsilon: Fraction) -> Iterator[Survey]:
    """Levels of few cells whose cuts take turns; each client reports on one."""
    for cells in _LOCAL_CELLS:
        for levels in _LOCAL_LEVELS:
            marks = [
                np.arange(first + 1, (cells - 1) * levels + 1, levels) / ((cells - 1) * levels + 1)
                for first in range(levels)
            ]
            per_level = [list(_cuts(pilot, mark, ())) for mark in marks]
            for choice in zip(*per_level, strict=True):
                yield _local(pilot, place, epsilon, tuple(choice))


def _marks(cells: int) -> FloatArray:
    return np.arange(1, cells) / cells


def _cuts(pilot: Pilot, marks: FloatArray, thresholds: Sequence[float]) -> list[PerLabel]:
    """Cuts at these shares of the scores, the same for both labels, and of each label."""
    edges, leaves = pilot.histogram.edges, pilot.histogram.buckets
    wanted = [int(np.searchsorted(edges, threshold)) for threshold in thresholds]
    shares = pilot.shares

    def starts(below: FloatArray) -> tuple[int, ...]:
        at = np.searchsorted(below, marks).tolist()
        if len(wanted) <= _MOST_CUTS:
            at += wanted
        return (0, *sorted({int(cut) for cut in at if 0 < cut < leaves}))

    both = starts(shares.mean(axis=0))
    own = (starts(shares[0]), starts(shares[1]))
    return [(both, both), own]


def _weights(pilot: Pilot, *, centred: bool) -> PerLabel:
    """An example's placement among the other class, in whole numbers.

    It is what an example adds to ROC AUC, up to a constant: the AUC itself, which leaves
    the sum's noise alone, or the middle, which makes the largest weight smallest.
    """
    shares = pilot.shares
    middle = 0.5 * (shares[:, 1:] + shares[:, :-1])
    area = float((pilot.histogram.positives * middle[0]).sum() / pilot.histogram.total_positives)
    centre = area if centred else 0.5
    # Sums of all examples' weights stay below 2^30.
    most = int(np.clip(2**30 // max(pilot.histogram.total, 1.0), 1, _WEIGHT))
    rows = []
    for placement in (1.0 - middle[1], middle[0]):
        weight = placement - centre
        size = max(float(np.abs(weight).max()), 1e-9)
        rows.append(tuple(np.rint(weight / size * most).astype(int).tolist()))
    return rows[0], rows[1]


def _shared(
    pilot: Pilot,
    place: SecondOfTwo,
    epsilons: tuple[Fraction, ...],
    cuts: PerLabel,
    weights: PerLabel | None,
) -> Survey:
    first = pilot.survey
    levels = CutLevels(first.grid.cells, (cuts,), weights)
    shares = first.minimum_reports - first.colluders
    return replace(
        first,
        hierarchy=levels,
        mechanisms=tuple(
            Polya(epsilon, first.unit.sensitivity * levels.largest_weight(level), shares)
            for level, epsilon in enumerate(epsilons)
        ),
        level_policy=EveryLevel(),
        step=place,
    )


def _local(
    pilot: Pilot, place: SecondOfTwo, epsilon: Fraction, cuts: tuple[PerLabel, ...]
) -> Survey:
    first = pilot.survey
    levels = CutLevels(first.grid.cells, cuts)
    return replace(
        first,
        hierarchy=levels,
        mechanisms=tuple(
            oracle_for(epsilon, cells, allow_empty=first.allow_empty)
            for cells in levels.cells_per_level
        ),
        level_policy=OneLevel((Fraction(1, len(cuts)),) * len(cuts), _by_hash(first))
        if len(cuts) > 1
        else EveryLevel(),
        step=place,
    )


def _by_hash(first: Survey) -> bool:
    return isinstance(first.level_policy, OneLevel) and first.level_policy.by_hash
