"""Brier score and log loss in three parts: reliability, resolution, uncertainty."""

from dataclasses import dataclass

import numpy as np

from fedassay.calibration.bins import Bins, BinTable, bin_table
from fedassay.calibration.calibrator import Calibrator
from fedassay.calibration.logit import log_odds
from fedassay.calibration.rates import require_classes
from fedassay.estimate import Estimate
from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram

_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A proper score of binned predictions: reliability - resolution + uncertainty.

    Reliability is what calibration can gain, resolution what the score knows, and uncertainty
    what a constant prediction leaves (Murphy 1973). Predictions that differ within a bin make
    the score of the rows differ a little from that of the bins.
    """

    reliability: Estimate
    resolution: Estimate
    uncertainty: Estimate

    @property
    def score(self) -> float:
        """The three parts together."""
        return self.reliability.value - self.resolution.value + self.uncertainty.value


def brier_parts(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
    debiased: bool = True,
) -> Decomposition:
    """Murphy's parts of the Brier score; debiased, noise does not pass for miscalibration."""
    view = _View.of(histogram, bins, strategy, calibrator)
    o, e, base, m = view.observed, view.predicted, view.base, view.mass
    taken = view.variance if debiased else np.zeros_like(o)
    return Decomposition(
        view.estimate(float(m @ ((o - e) ** 2 - taken)), 2.0 * (o - e)),
        view.estimate(float(m @ ((o - base) ** 2 - taken)), 2.0 * (o - base)),
        view.estimate(base * (1.0 - base), np.full_like(o, 1.0 - 2.0 * base)),
    )


def log_loss_parts(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
    debiased: bool = True,
) -> Decomposition:
    """The same parts of the log loss, in nats: divergences instead of squares."""
    view = _View.of(histogram, bins, strategy, calibrator)
    o, e, m = (np.clip(x, _EPS, 1.0 - _EPS) for x in (view.observed, view.predicted, view.mass))
    base = np.full_like(o, view.base)
    # To second order a divergence grows by half the variance over o (1 - o).
    spread = np.maximum(o * (1.0 - o), e * (1.0 - e))
    taken = 0.5 * view.variance / spread if debiased else np.zeros_like(o)
    return Decomposition(
        view.estimate(float(m @ (_divergence(o, e) - taken)), log_odds(o) - log_odds(e)),
        view.estimate(float(m @ (_divergence(o, base) - taken)), log_odds(o) - log_odds(base)),
        view.estimate(float(_divergence(base, base, cross=True)[0]), -log_odds(base)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The bins that hold examples clear of their noise, as rates."""

    table: BinTable
    kept: IntArray
    observed: FloatArray
    predicted: FloatArray
    mass: FloatArray
    variance: FloatArray
    base: float

    @classmethod
    def of(
        cls, histogram: ScoreHistogram, bins: int, strategy: Bins, calibrator: Calibrator | None
    ) -> "_View":
        require_classes(histogram)
        table = bin_table(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
        totals = table.counts.sum(axis=0)
        noise = np.sqrt(table.gap_noise) * histogram.total
        kept = np.flatnonzero((totals > 0.0) & (totals >= 2.0 * noise))
        mass = table.mass[kept]
        return cls(
            table,
            kept,
            table.counts[1, kept] / totals[kept],
            table.predicted[kept] / totals[kept],
            mass,
            table.gap_variance[kept] / mass**2,
            histogram.total_positives / histogram.total,
        )

    def estimate(self, value: float, slopes: FloatArray) -> Estimate:
        """A sum over bins whose rates move with these slopes."""
        of_bins = np.zeros(self.table.bins)
        of_bins[self.kept] = slopes
        noise, sampling = self.table.sds(self.table.gradient(of_bins))
        return Estimate(value, noise_sd=noise, sampling_sd=sampling)


def _divergence(o: FloatArray, e: FloatArray, *, cross: bool = False) -> FloatArray:
    crossed = -o * np.log(e) - (1.0 - o) * np.log1p(-e)
    if cross:
        return crossed
    return crossed + o * np.log(o) + (1.0 - o) * np.log1p(-o)
