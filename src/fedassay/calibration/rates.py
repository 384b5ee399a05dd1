"""Positive rates of a histogram's buckets, with what sampling and privacy noise do to them."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from fedassay.errors import SettingInvalid, SingleClass
from fedassay.examples import FloatArray, IntArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import why_one_class

# A bucket's size must stand this many standard deviations clear of its noise.
CLEAR = 3.0
# More tell calibrators no more.
MOST_BUCKETS = 400
_FEW_BUCKETS = 2**11
_PIECES = 8
_MISPLACED = 0.1
_FEW_CORRELATED = 48


@dataclass(frozen=True, slots=True, eq=False)
class BucketRates:
    """Neighbouring buckets, each large enough for a rate, as a calibrator is fitted to them.

    A bucket is a mixture of pieces with known scores and shares, so that a curve can be
    compared with a wide bucket's rate. Rates may leave [0, 1] under noise; nothing is clipped.
    """

    edges: FloatArray
    totals: FloatArray
    positives: FloatArray
    noise_variance: FloatArray
    """Variance of positives - rate x total from privacy noise and coarse cells."""
    piece_starts: IntArray
    """The first piece of every bucket."""
    piece_scores: FloatArray
    piece_shares: FloatArray
    """What part of its bucket a piece is; a bucket's pieces add up to 1."""
    noise_covariance: FloatArray | None = None
    """The same between buckets, where they are few; neighbours may err in opposite ways."""

    def __len__(self) -> int:
        return len(self.totals)

    @property
    def rates(self) -> FloatArray:
        """The share of positives in every bucket."""
        shares: FloatArray = self.positives / self.totals
        return shares

    @property
    def scores(self) -> FloatArray:
        """The mean score of every bucket."""
        return self.averaged(self.piece_scores)

    def averaged(self, of_pieces: FloatArray) -> FloatArray:
        """Bucket means of a function of the score, given at the pieces."""
        weighted = self.piece_shares * of_pieces
        means: FloatArray = np.add.reduceat(weighted, self.piece_starts, axis=-1)
        return means

    @property
    def expected(self) -> FloatArray:
        """Rates after isotonic regression, kept half an example away from 0 and 1."""
        with needed_for("calibration"):
            from scipy.optimize import isotonic_regression

        fitted = np.asarray(isotonic_regression(self.rates, weights=self.totals).x)
        margin = 0.5 / (self.totals + 1.0)
        kept: FloatArray = np.clip(fitted, margin, 1.0 - margin)
        return kept

    @property
    def effective(self) -> FloatArray:
        """How many examples without noise would tell as much about every rate.

        n / (1 + noise variance / sampling variance): all of them where there is no noise.
        """
        if not self.noise_variance.any():
            return self.totals
        rate = self.expected
        sampling = self.totals * rate * (1.0 - rate)
        counted: FloatArray = self.totals / (1.0 + self.noise_variance / sampling)
        return counted

    @property
    def variance(self) -> FloatArray:
        """Variance of every rate, from sampling and noise."""
        rate = self.expected
        variance: FloatArray = rate * (1.0 - rate) / self.effective
        return variance

    @property
    def covariance(self) -> FloatArray | None:
        """The same between buckets, where it is known."""
        if self.noise_covariance is None:
            return None
        covariance = self.noise_covariance / self.totals / self.totals[:, None]
        np.fill_diagonal(covariance, self.variance)
        return covariance

    def without_noise(self) -> "BucketRates":
        """The same counts, taken at face value."""
        return replace(self, noise_variance=np.zeros_like(self.totals), noise_covariance=None)

    def only(self, kept: IntArray) -> "BucketRates":
        """Some of the buckets, for cross-fitting; each then reaches to the next one kept."""
        ends = np.append(self.piece_starts[1:], len(self.piece_scores))
        sizes = (ends - self.piece_starts)[kept]
        pieces = np.concatenate([np.arange(self.piece_starts[i], ends[i]) for i in kept])
        return BucketRates(
            np.concatenate([self.edges[:1], self.edges[kept[1:]], self.edges[-1:]]),
            self.totals[kept],
            self.positives[kept],
            self.noise_variance[kept],
            np.concatenate([[0], np.cumsum(sizes)[:-1]]),
            self.piece_scores[pieces],
            self.piece_shares[pieces],
            None if self.noise_covariance is None else self.noise_covariance[np.ix_(kept, kept)],
        )

    def in_pieces(self, most: int) -> "BucketRates":
        """The same with at most so many pieces a bucket, neighbours averaged."""
        ends = np.append(self.piece_starts[1:], len(self.piece_scores))
        sizes = ends - self.piece_starts
        if int(sizes.max()) <= most:
            return self
        owner = np.repeat(np.arange(len(self)), sizes)
        place = (np.arange(len(owner)) - self.piece_starts[owner]) * np.minimum(most, sizes)[owner]
        group = owner * most + place // sizes[owner]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        shares = np.add.reduceat(self.piece_shares, starts)
        weighted = np.add.reduceat(self.piece_shares * self.piece_scores, starts)
        scores = np.where(
            shares > 0.0, weighted / np.where(shares > 0.0, shares, 1.0), self.piece_scores[starts]
        )
        return replace(
            self,
            piece_starts=np.searchsorted(group[starts], np.arange(len(self)) * most),
            piece_scores=scores,
            piece_shares=shares,
        )


def bucket_rates(histogram: ScoreHistogram, *, most: int | None = None) -> BucketRates:
    """Merge neighbouring buckets until each has a rate, and at most about `most` are left.

    Empty buckets join the next one; under noise a bucket grows until its size is 3 standard
    deviations clear of it, so that a ratio to it means something (`fact:ratio`).
    """
    require_classes(histogram)
    boundaries = _clear_boundaries(histogram)
    if most is not None and len(boundaries) - 1 > most:
        boundaries = _thinned(histogram, boundaries, most)
    merged = histogram.merge(boundaries)
    totals = merged.counts.sum(axis=0)
    starts, scores, shares = _pieces(histogram, boundaries)
    rates = BucketRates(
        merged.edges,
        totals,
        merged.positives,
        np.zeros(merged.buckets),
        starts,
        scores,
        shares,
    )
    if histogram.noise.is_zero:
        return rates
    placing = np.add.reduceat(misplaced(histogram), boundaries[:-1])
    weights = _residuals(rates.expected)
    if merged.buckets > _FEW_CORRELATED:
        noise = np.array([merged.noise.variance(each) for each in weights])
        return replace(rates, noise_variance=noise + placing)
    covariance = merged.noise.covariances(weights)
    return replace(rates, noise_variance=np.diag(covariance) + placing, noise_covariance=covariance)


def require_classes(histogram: ScoreHistogram) -> None:
    """Raise `SingleClass` where one of the classes is empty, or drowned in noise."""
    undefined = why_one_class(histogram)
    if undefined is not None:
        raise SingleClass(f"calibration needs positives and negatives: {undefined.reason}")


def quantile_boundaries(cumulative: FloatArray, buckets: int) -> IntArray:
    """Positions of edges that cut a rising cumulative count into so many equal shares.

    The k-th cut is the first edge with at least k/B of the whole at or below it; equal cuts are
    one, so that no bucket is empty.
    """
    if buckets < 1:
        raise SettingInvalid(f"buckets must be at least 1; found {buckets}.")
    # k M / B is as exact as floats allow, so that a cut on a whole count falls on it.
    wanted = np.arange(1, buckets) * cumulative[-1] / buckets
    cuts = np.searchsorted(cumulative, wanted, side="left")
    below = cumulative[cuts]
    # Cuts rise: one that repeats the one before is no other.
    kept = (below < cumulative[-1]) & (below > 0.0) & (np.diff(cuts, prepend=-1) > 0)
    return np.concatenate([[0], cuts[kept], [len(cumulative) - 1]])


def _clear_boundaries(histogram: ScoreHistogram) -> IntArray:
    totals = histogram.counts.sum(axis=0)
    if histogram.noise.is_zero:
        filled = np.flatnonzero(totals > 0.0)
        return np.concatenate([[0], filled[:-1] + 1, [histogram.buckets]])
    kept = [0]
    weights = np.zeros_like(histogram.counts)
    for bucket in range(histogram.buckets):
        weights[:, bucket] = 1.0
        size = totals[kept[-1] : bucket + 1].sum()
        if size > 0.0 and size >= CLEAR * sqrt(histogram.noise.variance(weights)):
            kept.append(bucket + 1)
            weights[:] = 0.0
    # What is left at the end is not clear of noise on its own, and may take the last one's rows.
    starts = kept[:-1] if len(kept) > 1 else kept
    while len(starts) > 1 and totals[starts[-1] :].sum() <= 0.0:
        starts.pop()
    return np.array([*starts, histogram.buckets])


def _thinned(histogram: ScoreHistogram, boundaries: IntArray, most: int) -> IntArray:
    """Fewer boundaries, about equally many examples apart."""
    below = np.maximum.accumulate(histogram.cumulative.sum(axis=0)[boundaries])
    return boundaries[quantile_boundaries(below, most)]


def _pieces(
    histogram: ScoreHistogram, boundaries: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Where a bucket's pieces start, their scores, and their shares of it."""
    parts = _PIECES if histogram.smooth and histogram.buckets <= _FEW_BUCKETS else 1
    edges, counts = pieces_of(histogram, parts)
    sizes = np.maximum(counts.sum(axis=0), 0.0)
    starts = boundaries[:-1] * parts
    whole = np.add.reduceat(sizes, starts)
    owner = np.repeat(np.arange(len(starts)), np.diff(boundaries) * parts)
    widths = np.diff(edges)
    spread = np.add.reduceat(widths, starts)
    shares = np.where(
        whole[owner] > 0.0,
        sizes / np.where(whole > 0.0, whole, 1.0)[owner],
        widths / spread[owner],
    )
    filled = (shares > 0.0) | np.isin(np.arange(len(shares)), starts)
    owner = owner[filled]
    scores = 0.5 * (edges[:-1] + edges[1:])
    return np.searchsorted(owner, np.arange(len(starts))), scores[filled], shares[filled]


def misplaced(histogram: ScoreHistogram) -> FloatArray:
    """Variance of a bucket's sum of scores from not knowing where inside they lie.

    Interpolation moves a bucket's mean score away from its middle, and errs about as much.
    """
    if not histogram.smooth or histogram.buckets > _FEW_BUCKETS:
        return np.zeros(histogram.buckets)
    edges, counts = pieces_of(histogram, _PIECES)
    sizes = counts.sum(axis=0).reshape(-1, _PIECES)
    middle = 0.5 * (edges[:-1] + edges[1:]).reshape(-1, _PIECES)
    lean = (sizes * (middle - middle.mean(axis=1, keepdims=True))).sum(axis=1)
    least = _MISPLACED * sizes.sum(axis=1) * histogram.widths**2
    variance: FloatArray = lean**2 + least**2
    return variance


def pieces_of(histogram: ScoreHistogram, parts: int) -> tuple[FloatArray, FloatArray]:
    """Edges and counts without negative ones, each bucket cut into equal parts."""
    rising = histogram.monotone()
    return (rising.edges, rising.counts) if parts == 1 else rising.refined(parts)


def _residuals(rates: FloatArray) -> FloatArray:
    """Weights of positives - rate x total, bucket x label x bucket."""
    buckets = len(rates)
    weights = np.zeros((buckets, 2, buckets))
    each = np.arange(buckets)
    weights[each, 0, each], weights[each, 1, each] = -rates, 1.0 - rates
    return weights
