"""The noise that two surveys' figures will have, from the counters of both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedassay.decoding import level_variance
from fedassay.examples import FloatArray
from fedassay.level_policy import OneLevel
from fedassay.metrics.delta_method import CLEAR_OF_NOISE
from fedassay.metrics.roc_auc import area_gradient
from fedassay.planning.pilot import Pilot, heard_fraction
from fedassay.survey import Survey
from fedassay.two_steps import rows_on, sums_on

_QUANTILES = (0.2, 0.5, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Predicts a candidate's errors from the counters of both surveys."""

    pilot: Pilot
    known: FloatArray
    """Precision of the leaves after the first survey, label x leaf x leaf."""
    area: FloatArray
    rates: list[FloatArray]

    @classmethod
    def of(cls, pilot: Pilot, thresholds: Sequence[float]) -> "Judge":
        """For a pilot's scores; thresholds, or quantiles of the scores, stand for all."""
        edges, histogram = _judged(pilot, thresholds), pilot.histogram
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
        logs = np.log(np.maximum(self.errors(survey), 1e-150))
        return float(2.0 * logs[0] + logs[1:].mean())

    def drowns(self, survey: Survey) -> bool:
        """Whether one of the classes as a whole would not stand clear of the noise."""
        ones = np.ones((2, self.pilot.histogram.buckets, 1))
        solved = np.linalg.solve(self.known + self._gained(survey), ones)
        spreads = np.sqrt((ones * solved).sum(axis=(1, 2)))
        return bool((self.pilot.histogram.counts.sum(axis=1) < CLEAR_OF_NOISE * spreads).any())

    def _gained(self, survey: Survey) -> FloatArray:
        heard = self.pilot.clients * float(heard_fraction(survey))
        return _precision(survey, self.pilot, heard=heard)

    def errors(self, survey: Survey) -> FloatArray:
        """Standard deviations from noise: of ROC AUC, and of figures at thresholds."""
        gained = _precision(
            survey, self.pilot, heard=self.pilot.clients * float(heard_fraction(survey))
        )
        gradients = np.stack([self.area, *self.rates], axis=-1)
        solved = np.linalg.solve(self.known + gained, gradients)
        variances = np.einsum("lng,lng->g", gradients, solved)
        spreads: FloatArray = np.sqrt(np.maximum(variances, 0.0))
        return spreads


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
        rows = rows_on(survey, level, pilot.grid)
        variance = level_variance(
            mechanism.law(),
            clients=pilot.clients,
            reports=heard * share,
            counts=np.abs(sums_on(survey, level, pilot.histogram.counts, pilot.grid)),
            sampled=survey.samples_clients,
        )
        for label in (0, 1):
            weighted = rows[label] / np.broadcast_to(variance[label], rows.shape[1])[:, None]
            precision[label] += rows[label].T @ weighted
    return precision


def _judged(pilot: Pilot, thresholds: Sequence[float]) -> list[int]:
    """Edges at which errors are predicted: the thresholds, or quantiles of the scores."""
    edges = pilot.histogram.edges
    if len(thresholds):
        picked = np.quantile(thresholds, _QUANTILES, method="nearest")
        return sorted({int(np.searchsorted(edges, threshold)) for threshold in picked})
    mass = pilot.shares.mean(axis=0)
    return sorted({int(np.searchsorted(mass, share)) for share in _QUANTILES})
