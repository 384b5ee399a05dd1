"""ROC AUC of several models' exact counts on one grid at once: a search asks it of every grid."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import SPECK
from fedassay.metrics.roc_auc import BUT_FOR_LUCK, binning_sds, pairs_within

# Buckets that hide more than two thirds of the half that is possible leave no area.
_TOO_COARSE = 0.5 / (3.0 * REACH * BUT_FOR_LUCK)


@dataclass(frozen=True, slots=True, eq=False)
class ManyAreas:
    """As `metrics.roc_auc` has it of each model, without noise."""

    is_told: npt.NDArray[np.bool_]
    """Whether there is an area at all."""
    values: FloatArray
    even: FloatArray
    """With halves of the pairs within buckets."""
    binning_sds: FloatArray
    gradients: FloatArray
    """Model x label x bucket, as `area_gradient`; 0 where there is no area."""

    @classmethod
    def of(cls, histograms: tuple[ScoreHistogram, ...]) -> "ManyAreas":
        """Of expected counts on the same edges."""
        counts = np.stack([each.counts for each in histograms])
        below = np.stack([each.cumulative for each in histograms])
        totals = below[:, :, -1]
        (n, p), (N, P) = counts.swapaxes(0, 1), np.where(totals > SPECK, totals, 1.0).T
        pairs, widths = P * N, histograms[0].widths
        within = pairs_within(widths, counts)
        before = np.einsum("mb,mb->m", p, below[:, 0, :-1])
        values, even = (
            (before + within.sum(axis=1)) / pairs,
            (before + (0.5 * p * n).sum(1)) / pairs,
        )
        bound = np.maximum(np.abs(within), np.abs(p * n - within)).sum(axis=1) / pairs
        binning = np.minimum(binning_sds(histograms, values), bound)
        is_told = (totals > SPECK).all(axis=1) & (binning <= _TOO_COARSE)
        placement_n = (below[:, 0, :-1] + 0.5 * n) / N[:, None]
        placement_p = 1.0 - (below[:, 1, :-1] + 0.5 * p) / P[:, None]
        gradients = np.stack(
            [
                (placement_p - even[:, None]) / N[:, None],
                (placement_n - even[:, None]) / P[:, None],
            ],
            axis=1,
        )
        return cls(is_told, values, even, binning, gradients * is_told[:, None, None])
