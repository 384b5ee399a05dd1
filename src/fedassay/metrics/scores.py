"""Proper scores and other summaries of the two score distributions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from fedassay.estimate import Estimate, Shape
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.delta_method import (
    counts_estimate,
    gradient_of_buckets,
    why_one_class,
    why_undefined,
)

# scikit-learn clips probabilities to [eps, 1 - eps].
_EPS = float(np.finfo(np.float64).eps)
_FEW_BUCKETS = 2**11
_PARTS = 8


def brier(histogram: ScoreHistogram) -> Estimate:
    """The mean squared difference between score and label.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(brier(h).value, 3)
    0.158
    """
    require_histogram(histogram)
    return _mean_loss(histogram, _squares)


def log_loss(histogram: ScoreHistogram) -> Estimate:
    """The mean negative log likelihood, in nats; scores are clipped to [eps, 1 - eps].

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(log_loss(h).value, 3)
    0.472
    """
    require_histogram(histogram)
    return _mean_loss(histogram, _logs)


def prevalence(histogram: ScoreHistogram) -> Estimate:
    """The share of positives.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> prevalence(h).value
    0.5
    """
    require_histogram(histogram)
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    total = histogram.total
    share = histogram.total_positives / total
    gradient = np.empty_like(histogram.counts)
    gradient[0], gradient[1] = -share / total, (1.0 - share) / total
    return Estimate(
        value=share,
        noise_sd=sqrt(histogram.noise.variance(gradient)),
        sampling_sd=sqrt(max(share * (1.0 - share), 0.0) / total),
        shape=Shape.SCORE,
        trials=total,
    )


def ks(histogram: ScoreHistogram) -> Estimate:
    """The largest distance between the two classes' distributions (Kolmogorov, Smirnov).

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> ks(h).value
    0.5
    """
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    P, N = histogram.total_positives, histogram.total_negatives
    share_n, share_p = histogram.cumulative[0] / N, histogram.cumulative[1] / P
    gap = np.abs(share_n - share_p)
    peak = int(np.argmax(gap))
    value = float(gap[peak])
    sign = 1.0 if share_n[peak] >= share_p[peak] else -1.0
    below = np.arange(histogram.buckets) < peak
    gradient = sign * np.stack([(below - share_n[peak]) / N, (share_p[peak] - below) / P])
    # Inside a bucket the gap exceeds an end's by at most the bucket's share of one class.
    inside = np.maximum(np.abs(histogram.negatives) / N, np.abs(histogram.positives) / P)
    furthest = np.maximum(gap[:-1], gap[1:]) + inside
    untied = np.abs(histogram.counts - histogram.ties)
    loose = np.maximum(untied[0] / N, untied[1] / P)
    return counts_estimate(
        histogram,
        value,
        gradient,
        binning_bound=float(max(min(furthest.max(), 1.0) - value, 0.0)),
        binning_sd=float(loose[max(peak - 1, 0) : peak + 1].max() / sqrt(12.0)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Losses:
    """A loss over each bucket, label x bucket: its mean for even scores, and its range."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def _mean_loss(histogram: ScoreHistogram, losses: Callable[[FloatArray], _Losses]) -> Estimate:
    """The average of a loss whose mean and range over any bucket are known."""
    total = histogram.total
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    over = losses(histogram.edges)
    even = float((histogram.counts * over.mean).sum() / total)
    value, slopes = even, over.mean
    if histogram.smooth and histogram.buckets <= _FEW_BUCKETS:
        fine = losses(histogram.refined(_PARTS)[0]).mean.reshape(2, -1, _PARTS)

        def sums(counts: FloatArray) -> FloatArray:
            pieces = replace(histogram, counts=counts).parts(_PARTS)
            whole: FloatArray = (pieces * fine).sum(axis=(0, 2))
            return whole

        value = float(sums(histogram.counts).sum() / total)
        slopes = gradient_of_buckets(histogram, sums)
    counts = np.maximum(histogram.counts, 0.0)
    loose = ((counts + histogram.spikes**2) * (over.high - over.low) ** 2 / 12.0).sum()
    # A spike in the first or last bucket is likely one of scores that are exactly 0 or 1.
    at_ends = (histogram.spikes * (over.high - over.mean))[:, [0, -1]].sum()
    furthest = np.maximum(over.high - over.mean, over.mean - over.low)
    return counts_estimate(
        histogram,
        value,
        (slopes - value) / total,
        binning_bound=float((counts * furthest).sum() / total) + abs(value - even),
        binning_sd=sqrt(float(loose + at_ends**2)) / total + abs(value - even) / 3.0,
    )


def _squares(edges: FloatArray) -> _Losses:
    lo, hi = edges[:-1], edges[1:]
    mean = np.stack([_mean_square(lo, hi), _mean_square(1.0 - hi, 1.0 - lo)])
    low = np.stack([lo**2, (1.0 - hi) ** 2])
    high = np.stack([hi**2, (1.0 - lo) ** 2])
    return _Losses(mean, low, high)


def _logs(edges: FloatArray) -> _Losses:
    clipped = np.clip(edges, _EPS, 1.0 - _EPS)
    near_zero = -np.log(clipped)
    near_one = -np.log1p(-clipped)
    widths = np.diff(edges)
    mean = np.stack(
        [
            _mean_log(1.0 - edges[1:], 1.0 - edges[:-1], near_one[1:], near_one[:-1], widths),
            _mean_log(edges[:-1], edges[1:], near_zero[:-1], near_zero[1:], widths),
        ]
    )
    low = np.stack([near_one[:-1], near_zero[1:]])
    high = np.stack([near_one[1:], near_zero[:-1]])
    return _Losses(np.clip(mean, low, high), low, high)


def _mean_square(lo: FloatArray, hi: FloatArray) -> FloatArray:
    """The mean of x^2 over [lo, hi]."""
    return (lo * lo + lo * hi + hi * hi) / 3.0


def _mean_log(
    lo: FloatArray, hi: FloatArray, at_lo: FloatArray, at_hi: FloatArray, width: FloatArray
) -> FloatArray:
    """The mean of -log x over [lo, hi], given its values at the ends.

    The width comes apart, because 1 - lo and 1 - hi may be the same number.
    """
    rise = hi * at_hi - lo * at_lo
    return np.where(width > 0.0, 1.0 + rise / np.where(width > 0.0, width, 1.0), at_lo)
