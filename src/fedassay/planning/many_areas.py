"""ROC AUC of several models' exact counts on one grid at once: a search asks it of every grid."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.interpolation import monotone_slopes
from fedassay.metrics.copies import COPIES
from fedassay.metrics.delta_method import SPECK
from fedassay.metrics.roc_auc import PAIRS
from fedassay.metrics.spans import possible_pairs

# Buckets that hide more than two thirds of the half that is possible leave no area.
_TOO_COARSE = 0.5 / (3.0 * REACH)


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
        within = _pairs_within(widths, counts)
        before = np.einsum("mb,mb->m", p, below[:, 0, :-1])
        values, even = (
            (before + within.sum(axis=1)) / pairs,
            (before + (0.5 * p * n).sum(1)) / pairs,
        )
        bound = np.maximum(np.abs(within), np.abs(p * n - within)).sum(axis=1) / pairs
        ties = np.stack([each.ties for each in histograms])
        binning = np.minimum(_binning_sds(histograms, counts, ties, values, pairs), bound)
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


def _pairs_within(widths: FloatArray, counts: FloatArray) -> FloatArray:
    """As `roc_auc` orders pairs inside buckets, model x bucket."""
    if len(widths) < 2:
        halves: FloatArray = 0.5 * counts[:, 0] * counts[:, 1]
        return halves
    slopes = monotone_slopes(widths, counts)
    parts = np.stack([slopes[..., :-1] * widths, counts, slopes[..., 1:] * widths])
    ordered: FloatArray = np.einsum("imb,ij,jmb->mb", parts[:, :, 0], PAIRS, parts[:, :, 1])
    return ordered


def _binning_sds(
    histograms: tuple[ScoreHistogram, ...],
    counts: FloatArray,
    ties: FloatArray,
    areas: FloatArray,
    pairs: FloatArray,
) -> FloatArray:
    """The likely binning errors: chance order, half the buckets, what is open, and few buckets."""
    buckets, edges = counts.shape[-1], histograms[0].edges
    (n, p), (tied_n, tied_p) = counts.swapaxes(0, 1), ties.swapaxes(0, 1)
    loose_n, loose_p = n - tied_n, p - tied_p
    order = COPIES * np.maximum(loose_p * loose_n * (p + n + 1.0) / 12.0, 0.0).sum(axis=1)
    order += ((tied_p * loose_n) ** 2 + (tied_n * loose_p) ** 2).sum(axis=1) / 12.0
    every_second = np.append(np.arange(0, buckets, 2), buckets)
    halved = np.add.reduceat(counts, every_second[:-1], axis=2)
    below = halved[:, 0].cumsum(axis=1) - halved[:, 0]
    within = _pairs_within(np.diff(edges[every_second]), halved).sum(axis=1)
    coarse = (np.einsum("mb,mb->m", halved[:, 1], below) + within) / pairs
    open_pairs = 0.5 * np.maximum(p * n - tied_p * tied_n, 0.0).sum(axis=1) / pairs
    possible = np.array([possible_pairs(each) for each in histograms]) / pairs / REACH
    squares = ((coarse - areas) / 4.0) ** 2 + possible**2 + (2.0 * open_pairs**3) ** 2
    spreads: FloatArray = np.sqrt(order / pairs**2 + squares)
    return spreads
