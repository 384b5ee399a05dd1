"""The errors that two surveys' figures will have, from the counters of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot

import numpy as np

from fedassay.cut_levels import CutLevels
from fedassay.decoding import level_variance
from fedassay.estimate import Estimate, NotEnoughData, TooCoarse
from fedassay.examples import FloatArray
from fedassay.level_policy import OneLevel
from fedassay.metrics import average_precision
from fedassay.metrics.average_precision import precision_gradient
from fedassay.metrics.roc_auc import area_gradient
from fedassay.planning.known_leaves import KnownLeaves
from fedassay.planning.pilot import Pilot, heard_fraction
from fedassay.reconcile import Observed, Sums
from fedassay.smooth_odds import SmoothOdds
from fedassay.survey import Survey
from fedassay.two_steps import cuts_of, rows_on, sums_on

_QUANTILES = (0.2, 0.5, 0.8)
# Where the whole curve is looked at: wherever people may put a threshold later.
_CURVE = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
# ROC AUC is what most ask for, and what gains least from any choice.
_AREA_COUNTS = 7.0
# Whoever asked for thresholds has decided what matters.
_ASKED_COUNTS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Predicts a candidate's errors from the counters of both surveys."""

    pilot: Pilot
    edges: list[int]
    """Where errors at thresholds are predicted."""
    told: FloatArray | float
    """Precision of the leaves after the first survey, label x leaf x leaf; 0 under local privacy,
    where nothing asks for it but the bends."""
    area: FloatArray
    rates: list[FloatArray]
    curve: list[FloatArray]
    """How both rates move with the leaves, at thresholds that nobody asked for."""
    common: KnownLeaves | None
    """What is known after the first survey, where noise is shared; None where leaves were cut
    since, of which the first knows the sum alone."""
    felt: FloatArray | None
    """The same times the gradients that all candidates have in common: label x leaf x sum."""
    bends: "_Bends | None"
    """Under local privacy, where counters are read through smooth log-odds."""

    @classmethod
    def of(cls, pilot: Pilot, thresholds: Sequence[float]) -> "Judge":
        """For a pilot's scores; thresholds, or quantiles of the scores, stand for all."""
        edges, histogram = _judged(pilot, thresholds), pilot.histogram
        leaves = histogram.buckets
        rows, variances = _counters(pilot.survey, pilot, heard=pilot.reports)
        told: FloatArray | float = 0.0
        total = histogram.total
        rates = []
        for edge in edges:
            above = (np.arange(leaves) >= edge).astype(np.float64)
            tp, fp = float(histogram.positives @ above), float(histogram.negatives @ above)
            called = max(tp + fp, 1.0)
            of_positives = _rate(pilot, edge, 1)
            of_called = np.stack([-tp / called * above, fp / called * above]) / called
            right = np.stack([1.0 - above, above])
            of_all = (right - (tp + histogram.total_negatives - fp) / total) / total
            rates += [of_positives, of_called, of_all]
        curve = [_rate(pilot, edge, label) for edge in _edges(pilot, _CURVE) for label in (0, 1)]
        area, common, felt, bends = area_gradient(histogram), None, None, None
        if pilot.survey.is_local:
            first = Observed(rows, np.zeros_like(variances), variances)
            bends = _Bends.of(pilot, thresholds, first)
        else:
            told = _precision(rows, variances)
        if bends is None and pilot.grid == pilot.survey.grid:
            common = KnownLeaves(np.linalg.inv(told).astype(np.float64, copy=False))
            felt = common.covariance @ np.stack([area, *rates, *curve], axis=-1)
        return cls(pilot, edges, told, area, rates, curve, common, felt, bends)

    def error(self, survey: Survey) -> float:
        """The mean log of predicted errors: of both areas, of thresholds, and of the curve."""
        logs = np.log(np.maximum(self.errors(survey), 1e-150))
        asked, curve = logs[2 : 2 + 3 * len(self.edges)], logs[2 + 3 * len(self.edges) :]
        whole = float(curve.mean()) if len(curve) else 0.0
        return float(_AREA_COUNTS * logs[0] + logs[1] + _ASKED_COUNTS * asked.mean()) + whole

    def errors(self, survey: Survey) -> FloatArray:
        """Predicted errors: of ROC AUC, average precision, figures at thresholds, and the curve.

        Standard deviations, through gradients. Where noise is shared leaves are fine, and the
        sums say what ROC AUC needs of them; then come both rates at thresholds that nobody
        asked for, which lie inside cells. Under local privacy all is read through smooth
        log-odds, whose bends between the counters are a part of the error.
        """
        cells = np.append(cuts_of(survey), self.pilot.histogram.buckets)
        if self.bends is not None or len(cells) > self.pilot.histogram.buckets:
            cells = np.arange(self.pilot.histogram.buckets + 1)
        ranking, hidden = _ranking(self.pilot, tuple(cells.tolist()))
        gradients = np.stack([self.area, ranking, *self.rates, *self.curve], axis=-1)
        if self.bends is None:
            variances = self._variances(survey, gradients)
            variances[1] += hidden**2
        else:
            variances = self.bends.variances(*self._counters(survey), gradients)
        spreads: FloatArray = np.sqrt(np.maximum(variances, 0.0))
        return spreads

    def _counters(self, survey: Survey) -> tuple[FloatArray, FloatArray]:
        return _counters(survey, self.pilot, heard=self._heard(survey))

    def _heard(self, survey: Survey) -> float:
        return self.pilot.clients * float(heard_fraction(survey))

    def _variances(self, survey: Survey, sums: FloatArray) -> FloatArray:
        """Of sums of leaves (label x leaf x sum) after both surveys."""
        levels = survey.hierarchy
        if self.common is None or self.felt is None or not isinstance(levels, CutLevels):
            precision = self.told + _precision(*self._counters(survey))
            after: FloatArray = np.einsum("lng,lng->g", sums, np.linalg.solve(precision, sums))
            return after
        # The second sum is the candidate's own; the others are those of all.
        own = self.common.covariance @ sums[..., 1:2]
        felt = np.concatenate([self.felt[..., :1], own, self.felt[..., 1:]], axis=-1)
        variances = _counter_variances(survey, self.pilot, heard=self._heard(survey))
        before: FloatArray = np.einsum("lng,lng->g", sums, felt)
        return before - self.common.told_by(levels, variances, felt)


@dataclass(frozen=True, slots=True, eq=False)
class _Bends:
    """Smooth log-odds around a pilot's counts, after the first survey."""

    moves: FloatArray
    """Label x leaf x bend."""
    known: FloatArray
    """Precision of the bends."""

    @classmethod
    def of(cls, pilot: Pilot, thresholds: Sequence[float], first: Observed) -> "_Bends":
        edges, counts = pilot.histogram.edges, pilot.histogram.counts
        cuts = np.searchsorted(edges, thresholds)
        family = SmoothOdds.around(
            edges,
            counts,
            cuts=[int(cut) for cut in cuts if 0 < cut < len(edges) - 1],
            towers=np.searchsorted(edges, [low for low, _ in pilot.towers]),
            total_is_known=pilot.survey.total_is_known,
        )
        moves = family.moves(counts)
        felt = Sums.of(first).felt(moves)
        known = np.diag(1.0 / family.spreads**2) + (moves.swapaxes(1, 2) @ felt).sum(axis=0)
        return cls(moves, known)

    def variances(self, rows: FloatArray, variances: FloatArray, sums: FloatArray) -> FloatArray:
        """Of sums of leaves (label x leaf x sum), after counters of a second survey."""
        seen, known = rows @ self.moves, self.known.copy()
        for label in (0, 1):
            known += seen[label].T @ (seen[label] / variances[label][:, None])
        felt = np.tensordot(self.moves, sums, axes=((0, 1), (0, 1)))
        after: FloatArray = np.einsum("bs,bs->s", felt, np.linalg.solve(known, felt))
        return after


@lru_cache(maxsize=8)
def _ranking(pilot: Pilot, cells: tuple[int, ...]) -> tuple[FloatArray, float]:
    """Average precision's gradient on the leaves, read by cells, and what these hide of it."""
    merged = pilot.histogram.merge(np.array(cells))
    gradient = np.repeat(precision_gradient(merged), np.diff(cells), axis=1)
    return gradient, _error(average_precision(merged))


def _error(estimate: Estimate) -> float:
    """Noise and what cells hide; 1 where there would be no answer."""
    if isinstance(estimate, NotEnoughData) and not isinstance(estimate, TooCoarse):
        return 1.0
    return hypot(estimate.noise_sd, estimate.binning_sd)


def _counters(survey: Survey, pilot: Pilot, *, heard: float) -> tuple[FloatArray, FloatArray]:
    """All counters of a survey: how they add leaves up, and their variances once debiased."""
    levels = range(survey.hierarchy.levels)
    rows = [rows_on(survey, level, pilot.grid) for level in levels]
    return np.concatenate(rows, axis=1), _counter_variances(survey, pilot, heard=heard)


def _counter_variances(survey: Survey, pilot: Pilot, *, heard: float) -> FloatArray:
    """Of all counters of a survey once debiased, label x counter."""
    shares = (
        [float(share) for share in survey.level_policy.client_fractions]
        if isinstance(survey.level_policy, OneLevel)
        else [1.0] * survey.hierarchy.levels
    )
    variances = []
    for level, (mechanism, share) in enumerate(zip(survey.mechanisms, shares, strict=True)):
        sums = np.abs(sums_on(survey, level, pilot.histogram.counts, pilot.grid))
        variance = level_variance(
            mechanism.law(),
            clients=pilot.clients,
            reports=heard * share,
            counts=sums,
            sampled=survey.samples_clients,
        )
        variances.append(np.broadcast_to(variance, sums.shape))
    return np.concatenate(variances, axis=1)


def _precision(rows: FloatArray, variances: FloatArray) -> FloatArray:
    """What counters say of the leaves, label x leaf x leaf."""
    precision: FloatArray = rows.swapaxes(1, 2) @ (rows / variances[..., np.newaxis])
    return precision


def _judged(pilot: Pilot, thresholds: Sequence[float]) -> list[int]:
    """Edges at which errors are predicted: the thresholds, or quantiles of the scores."""
    edges = pilot.histogram.edges
    if len(thresholds):
        picked = np.quantile(thresholds, _QUANTILES, method="nearest")
        return sorted({int(np.searchsorted(edges, threshold)) for threshold in picked})
    return _edges(pilot, _QUANTILES)


def _edges(pilot: Pilot, quantiles: Sequence[float]) -> list[int]:
    """The edges at these shares of both classes together, each counting as much."""
    mass = pilot.shares.mean(axis=0)
    return sorted({int(np.searchsorted(mass, share)) for share in quantiles})


def _rate(pilot: Pilot, edge: int, label: int) -> FloatArray:
    """How the share of a class above an edge moves with every leaf, label x leaf."""
    counts = pilot.histogram.counts[label]
    above = (np.arange(len(counts)) >= edge).astype(np.float64)
    total, gradient = counts.sum(), np.zeros_like(pilot.histogram.counts)
    gradient[label] = (above - counts @ above / total) / total
    return gradient
