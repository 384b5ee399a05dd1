"""The errors that two surveys' figures will have, from the counters of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot

import numpy as np

from fedassay.decoding import level_variance
from fedassay.estimate import Estimate, NotEnoughData, TooCoarse
from fedassay.examples import FloatArray
from fedassay.level_policy import OneLevel
from fedassay.metrics import average_precision
from fedassay.metrics.average_precision import precision_gradient
from fedassay.metrics.roc_auc import area_gradient
from fedassay.planning.pilot import Pilot, heard_fraction
from fedassay.reconcile import News
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
    told: FloatArray
    """Precision of the leaves after the first survey, label x leaf x leaf."""
    known: FloatArray | None
    """Its inverse; None where leaves were cut since, of which the first knows the sum alone."""
    area: FloatArray
    rates: list[FloatArray]
    curve: list[FloatArray]
    """How both rates move with the leaves, at thresholds that nobody asked for."""
    bends: "_Bends | None"
    """Under local privacy, where counters are read through smooth log-odds."""

    @classmethod
    def of(cls, pilot: Pilot, thresholds: Sequence[float]) -> "Judge":
        """For a pilot's scores; thresholds, or quantiles of the scores, stand for all."""
        edges, histogram = _judged(pilot, thresholds), pilot.histogram
        leaves = histogram.buckets
        told = _precision(*_counters(pilot.survey, pilot, heard=pilot.reports))
        known = _inverse(told) if pilot.grid == pilot.survey.grid else None
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
        bends = _Bends.of(pilot, thresholds, told) if pilot.survey.is_local else None
        return cls(pilot, edges, told, known, area_gradient(histogram), rates, curve, bends)

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
        heard = self.pilot.clients * float(heard_fraction(survey))
        return _counters(survey, self.pilot, heard=heard)

    def _variances(self, survey: Survey, sums: FloatArray) -> FloatArray:
        """Of sums of leaves (label x leaf x sum) after both surveys."""
        if self.known is None:
            after: FloatArray = np.einsum("lng,lng->g", sums, self._covariance(survey) @ sums)
            return after
        before: FloatArray = np.einsum("lng,lng->g", sums, self.known @ sums)
        return before - self._news(survey, self.known).of_sums(sums)

    def _covariance(self, survey: Survey) -> FloatArray:
        """Of the leaves after both surveys, label x leaf x leaf."""
        if self.known is None:
            return _inverse(self.told + _precision(*self._counters(survey)))
        return self.known - self._news(survey, self.known).of_leaves()

    def _news(self, survey: Survey, known: FloatArray) -> News:
        """What a second survey's counters add to what is known of the leaves."""
        rows, variances = self._counters(survey)
        return News.of(rows, variances, seen=rows @ known)


@dataclass(frozen=True, slots=True, eq=False)
class _Bends:
    """Smooth log-odds around a pilot's counts, after the first survey."""

    moves: FloatArray
    """Label x leaf x bend."""
    known: FloatArray
    """Precision of the bends."""

    @classmethod
    def of(cls, pilot: Pilot, thresholds: Sequence[float], told: FloatArray) -> "_Bends":
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
        known = np.diag(1.0 / family.spreads**2)
        for label in (0, 1):
            known += moves[label].T @ told[label] @ moves[label]
        return cls(moves, known)

    def variances(self, rows: FloatArray, variances: FloatArray, sums: FloatArray) -> FloatArray:
        """Of sums of leaves (label x leaf x sum), after counters of a second survey."""
        seen, known = rows @ self.moves, self.known.copy()
        for label in (0, 1):
            known += seen[label].T @ (seen[label] / variances[label][:, None])
        felt = np.einsum("lnb,lns->bs", self.moves, sums)
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
    shares = (
        [float(share) for share in survey.level_policy.client_fractions]
        if isinstance(survey.level_policy, OneLevel)
        else [1.0] * survey.hierarchy.levels
    )
    rows, variances = [], []
    for level, (mechanism, share) in enumerate(zip(survey.mechanisms, shares, strict=True)):
        rows.append(rows_on(survey, level, pilot.grid))
        variance = level_variance(
            mechanism.law(),
            clients=pilot.clients,
            reports=heard * share,
            counts=np.abs(sums_on(survey, level, pilot.histogram.counts, pilot.grid)),
            sampled=survey.samples_clients,
        )
        variances.append(np.broadcast_to(variance, rows[-1].shape[:2]))
    return np.concatenate(rows, axis=1), np.concatenate(variances, axis=1)


def _precision(rows: FloatArray, variances: FloatArray) -> FloatArray:
    """What counters say of the leaves, label x leaf x leaf."""
    precision: FloatArray = rows.swapaxes(1, 2) @ (rows / variances[..., np.newaxis])
    return precision


def _inverse(precision: FloatArray) -> FloatArray:
    return np.linalg.inv(precision).astype(np.float64, copy=False)


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
