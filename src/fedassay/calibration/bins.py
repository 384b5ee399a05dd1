"""Predictions in bins: what was predicted, what came true, and how sure that is."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import sqrt

import numpy as np

from fedassay.calibration.calibrator import Calibrator
from fedassay.calibration.rates import misplaced
from fedassay.checks import require_member, require_type, require_whole
from fedassay.estimate import check_confidence, normal_quantile
from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.delta_method import sampling_variance

MAX_BINS = 10_000
_FEW_BUCKETS = 2**11
_PIECES = 16
_SPLIT = 4
_FEW_BINS = 50


class Bins(Enum):
    """How predictions are put into bins."""

    WIDTH = "width"
    """Equal widths over [0, 1], each (lo, hi]."""
    MASS = "mass"
    """About equally many examples each; equal predictions stay together."""


@dataclass(frozen=True, eq=False)
class BinTable:
    """A histogram's examples in bins of their predicted probability.

    Bins are distinct from the histogram's buckets (`app:calibexpts`): a bucket that straddles
    bins is interpolated. Every sum is linear in the counts, so that its noise is known.
    """

    histogram: ScoreHistogram
    predictions: FloatArray
    """Of every piece of every bucket, bucket x piece."""
    shares: FloatArray
    """What part of a bucket a piece is, label x bucket x piece."""
    bin_of_piece: IntArray
    """Bucket x piece."""
    bins: int

    @cached_property
    def counts(self) -> FloatArray:
        """Negatives and positives per bin, label x bin; negative ones stay."""
        return self._summed(np.ones_like(self.predictions))

    @cached_property
    def predicted(self) -> FloatArray:
        """Sum of the predictions per bin."""
        total: FloatArray = self._summed(self.predictions).sum(axis=0)
        return total

    @property
    def mass(self) -> FloatArray:
        """Share of all examples per bin."""
        share: FloatArray = self.counts.sum(axis=0) / self.histogram.total
        return share

    @property
    def gaps(self) -> FloatArray:
        """Observed minus predicted positives per bin, as a share of all examples."""
        gaps: FloatArray = (self.counts[1] - self.predicted) / self.histogram.total
        return gaps

    @cached_property
    def gap_variance(self) -> FloatArray:
        """Variance of the gaps from sampling, privacy noise and coarse cells."""
        variance: FloatArray = self.gap_sampling + self.gap_noise + self.gap_placing
        return variance

    @cached_property
    def gap_placing(self) -> FloatArray:
        """Variance of the gaps from not knowing where in a bucket scores lie."""
        of_buckets = misplaced(self.histogram) / self.histogram.total**2
        weights = self._by_bin(np.maximum(self.shares.mean(axis=0), 0.0))
        variance: FloatArray = weights**2 @ of_buckets
        return variance

    @cached_property
    def gap_sampling(self) -> FloatArray:
        """Variance of the gaps from rows being a sample.

        As if every bin had one example more, as uncertain as its prediction: where all labels of
        a bin agree, that is not for certain.
        """
        p = self.predictions
        total = self.histogram.total
        squares = self._summed(p * p)[0] + self._summed((1.0 - p) ** 2)[1]
        sizes = np.maximum(self.counts.sum(axis=0), 1.0)
        one_more = np.maximum(self._summed(p * (1.0 - p)).sum(axis=0), 0.0) / sizes
        spread = np.maximum((squares + one_more) / total - self.gaps**2, 0.0)
        variance: FloatArray = spread / total
        return variance

    @cached_property
    def gap_noise(self) -> FloatArray:
        """Variance of the gaps from privacy noise."""
        noise = self.histogram.noise
        if noise.is_zero:
            return np.zeros(self.bins)
        if self.bins <= _FEW_BINS:
            return np.maximum(np.diag(self.gap_noise_covariance), 0.0)
        return np.array([noise.variance(self._gap_of(j)) for j in range(self.bins)])

    @cached_property
    def gap_noise_covariance(self) -> FloatArray:
        """The same between bins; among many bins, gaps count as erring apart."""
        if self.histogram.noise.is_zero:
            return np.zeros((self.bins, self.bins))
        if self.bins > _FEW_BINS:
            return np.diag(self.gap_noise)
        p, total = self.predictions, self.histogram.total
        of_pieces = self.shares * np.stack([-p, 1.0 - p]) / total
        weights = np.stack([self._by_bin(each) for each in of_pieces], axis=1)
        return self.histogram.noise.covariances(weights)

    def gradient(self, of_bins: FloatArray) -> FloatArray:
        """How a weighted sum of the gaps moves with every count, label x bucket."""
        weight = of_bins[self.bin_of_piece]
        p = self.predictions
        return self.to_buckets(np.stack([-p * weight, (1.0 - p) * weight]))

    def to_buckets(self, of_pieces: FloatArray) -> FloatArray:
        """Weights of the histogram's counts, per example, from those of their pieces."""
        weights: FloatArray = (self.shares * of_pieces).sum(axis=-1) / self.histogram.total
        return weights

    def sds(self, gradient: FloatArray) -> tuple[float, float]:
        """Noise and sampling standard deviation of a sum that moves so with the counts."""
        return (
            sqrt(self.histogram.noise.variance(gradient)),
            sqrt(sampling_variance(self.histogram, gradient)),
        )

    def _gap_of(self, index: int) -> FloatArray:
        return self.gradient((np.arange(self.bins) == index).astype(np.float64))

    def _by_bin(self, of_pieces: FloatArray) -> FloatArray:
        """Sums over the pieces of each bucket that lie in each bin, bin x bucket."""
        buckets = self.histogram.buckets
        places = self.bin_of_piece * buckets + np.arange(buckets)[:, None]
        sums = np.bincount(places.ravel(), of_pieces.ravel(), self.bins * buckets)
        by_bin: FloatArray = sums.reshape(self.bins, buckets).astype(np.float64, copy=False)
        return by_bin

    def _summed(self, of_pieces: FloatArray) -> FloatArray:
        places = self.bin_of_piece.ravel()
        pieces = self.shares * self.histogram.counts[:, :, None] * of_pieces
        return np.stack([np.bincount(places, row.ravel(), self.bins) for row in pieces])


def bin_table(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
) -> BinTable:
    """Put a histogram's examples into bins of their score, or of their calibrated score.

    A histogram with fewer than 4 buckets per bin gives each bucket whole to one bin.
    """
    require_histogram(histogram)
    require_whole(bins, "bins", 1, MAX_BINS, "Usual are 10 to 20.")
    require_member(strategy, Bins, "how bins are cut")
    if calibrator is not None:
        require_type(calibrator, Calibrator, "a calibrator", "Fit one: result.calibrate().")
    parts = _PIECES if histogram.smooth and histogram.buckets <= _FEW_BUCKETS else 1
    at = (np.arange(parts) + 0.5) / parts
    scores = histogram.edges[:-1, None] + at * np.diff(histogram.edges)[:, None]
    shares = np.full((2, histogram.buckets, parts), 1.0 / parts)
    if parts > 1:
        filled = (histogram.counts != 0.0)[..., None]
        whole = np.where(filled, histogram.counts[..., None], 1.0)
        shares = np.where(filled, histogram.parts(parts) / whole, shares)
    predictions = scores
    if calibrator is not None:
        predictions = calibrator.predict(scores.ravel()).reshape(scores.shape)
    if parts > 1 and histogram.buckets < _SPLIT * bins:
        # Where buckets are hardly narrower than bins, splitting one between bins by an
        # interpolated share would pass the interpolation's error for a gap.
        predictions, shares = _whole(predictions, shares, histogram.counts)
    if strategy is Bins.WIDTH:
        place = np.clip(np.ceil(predictions * bins).astype(np.int64) - 1, 0, bins - 1)
    else:
        sizes = (shares * histogram.counts[:, :, None]).sum(axis=0)
        place = _by_mass(predictions, np.maximum(sizes, 0.0), bins)
    return BinTable(histogram, predictions, shares, place, int(place.max()) + 1)


def _whole(
    predictions: FloatArray, shares: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Every bucket as one piece with its mean prediction."""
    sizes = np.maximum((shares * counts[:, :, None]).sum(axis=0), 0.0)
    whole = sizes.sum(axis=1, keepdims=True)
    weights = np.where(whole > 0.0, sizes / np.where(whole > 0.0, whole, 1.0), 1 / sizes.shape[1])
    return (weights * predictions).sum(axis=1, keepdims=True), np.ones((*counts.shape, 1))


def _by_mass(predictions: FloatArray, sizes: FloatArray, bins: int) -> IntArray:
    """Bins of equal mass; a prediction goes where the example in its middle falls."""
    values, inverse = np.unique(predictions, return_inverse=True)
    mass = np.bincount(inverse.ravel(), sizes.ravel(), len(values))
    middle = (np.cumsum(mass) - 0.5 * mass) / max(float(mass.sum()), 1e-300)
    place = np.clip((middle * bins).astype(np.int64), 0, bins - 1)
    _, dense = np.unique(place, return_inverse=True)
    bin_of_piece: IntArray = dense[inverse.ravel()].reshape(predictions.shape).astype(np.int64)
    return bin_of_piece


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReliabilityDiagram:
    """A point per bin that holds examples, with an interval and its share of them."""

    prob_pred: FloatArray
    prob_true: FloatArray
    low: FloatArray
    high: FloatArray
    share: FloatArray


def reliability_diagram(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
    confidence: float = 0.95,
) -> ReliabilityDiagram:
    """Observed against predicted rates; bins that noise drowns are left out.

    `prob_true` and `prob_pred` are what scikit-learn's CalibrationDisplay takes.
    """
    check_confidence(confidence)
    table = bin_table(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
    totals = table.counts.sum(axis=0)
    sd = np.sqrt(table.gap_variance) * histogram.total
    kept = (totals > 0.0) & (totals >= 2.0 * sd)
    true = table.counts[1, kept] / totals[kept]
    error_quantile = normal_quantile(0.5 + confidence / 2.0) * sd[kept] / totals[kept]
    return ReliabilityDiagram(
        prob_pred=table.predicted[kept] / totals[kept],
        prob_true=true,
        low=true - error_quantile,
        high=true + error_quantile,
        share=table.mass[kept],
    )
