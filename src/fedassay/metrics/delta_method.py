"""From a metric's gradient to its errors, by the delta method."""

from collections.abc import Callable
from functools import lru_cache
from math import sqrt

import numpy as np

from fedassay.estimate import Estimate, NotEnoughData, Shape
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.range_noise import cell_noise_sd

CLEAR_OF_NOISE = 4.0
# Interpolation may leave a speck of an example on one side; a ratio to it means nothing.
SPECK = 1e-9


def counts_estimate(
    histogram: ScoreHistogram,
    value: float,
    gradient: FloatArray,
    *,
    binning_bound: float,
    binning_sd: float,
    shape: Shape = Shape.PLAIN,
) -> Estimate:
    """An estimate whose value moves with the counts as the gradient (label x bucket) says.

    >>> h = ScoreHistogram(np.array([0.0, 1.0]), np.array([[75.0], [25.0]]))
    >>> gradient = np.array([[-0.0025], [0.0075]])  # (label - share) / 100
    >>> round(counts_estimate(h, 0.25, gradient, binning_bound=0.0, binning_sd=0.0).sampling_sd, 4)
    0.0433
    """
    return Estimate(
        value=value,
        noise_sd=sqrt(histogram.noise.variance(gradient)),
        sampling_sd=sqrt(sampling_variance(histogram, gradient)),
        binning_bound=binning_bound,
        binning_sd=binning_sd,
        shape=shape,
    )


def weighted_sum(weights: FloatArray, values: FloatArray) -> float:
    """The sum of products; the threads that BLAS would start cost more than they save.

    >>> weighted_sum(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", weights, values))


def sampling_variance(histogram: ScoreHistogram, gradient: FloatArray) -> float:
    """The variance from rows being a multinomial sample over label x bucket.

    Noisy counts give it on average, but where a gradient is steep and few rows are, as at the
    ends of the log-odds, noise may be most of the sum, and below 0. If less than half is left of
    what counts that only rise below say, these are believed.

    >>> h = ScoreHistogram(np.array([0.0, 1.0]), np.array([[75.0], [25.0]]))
    >>> round(sampling_variance(h, np.array([[0.0], [1.0]])), 6)  # n p (1 - p)
    18.75
    """
    plain = _multinomial_variance(histogram.counts, gradient)
    if histogram.noise.is_zero:
        return plain
    rising = _multinomial_variance(_rising(histogram), gradient)
    return plain if plain >= 0.5 * rising else rising


def _multinomial_variance(counts: FloatArray, gradient: FloatArray) -> float:
    weighted = counts * gradient
    total = float(counts.sum())
    mean = float(weighted.sum()) / total if total else 0.0
    return max(float((weighted * gradient).sum()) - mean * mean * total, 0.0)


def _rising(histogram: ScoreHistogram) -> FloatArray:
    """Counts without negative ones: cumulative counts midway between two curves that rise.

    One rises with their largest value so far, the other with their smallest from there on.
    """
    below = histogram.cumulative
    most = np.maximum.accumulate(below, axis=1)
    least = np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]
    return np.maximum(np.diff(0.5 * (most + least), axis=1), 0.0)


def gradient_of_buckets(
    histogram: ScoreHistogram, of_bucket: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """How a sum over buckets moves with each count (label x bucket), by differences.

    `of_bucket` gives every bucket's part, as one row, from counts (label x bucket), or a row for
    each of several sums, whose gradients then come back one after the other. It may look at the
    bucket and its two neighbours, as the cubic does, so buckets three apart are moved at once.
    The step is the counts' own noise: across a kink of the cubic, as beside an empty bucket,
    what matters is the slope over the distance that noise moves them.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.ones((2, 2)))
    >>> gradient_of_buckets(h, lambda counts: 3.0 * counts[1]).round(6).tolist()
    [[0.0, 0.0], [3.0, 3.0]]
    """
    counts = histogram.counts
    noise_sd = cell_noise_sd(histogram)
    gradient = np.zeros((*of_bucket(counts).shape[:-1], *counts.shape))
    for label in (0, 1):
        step = max(1e-5 * max(float(np.abs(counts[label]).max()), 1.0), noise_sd)
        for first in range(3):
            moved = np.zeros_like(counts)
            moved[label, first::3] = step
            change = (of_bucket(counts + moved) - of_bucket(counts - moved)) / (2.0 * step)
            spread = change.copy()
            spread[..., :-1] += change[..., 1:]
            spread[..., 1:] += change[..., :-1]
            gradient[..., label, first::3] = spread[..., first::3]
    return gradient


def why_one_class(histogram: ScoreHistogram) -> NotEnoughData | None:
    """Why a two-class metric is undefined, if it is.

    >>> why_one_class(ScoreHistogram.from_scores([0, 1], [0.2, 0.7])) is None
    True
    >>> why_one_class(ScoreHistogram.from_scores([0, 0], [0.2, 0.7])).reason[:48]
    'there must be positives to divide by; the tally '
    """
    require_histogram(histogram)
    return _why_one_class(histogram)


@lru_cache(maxsize=8)
def _why_one_class(histogram: ScoreHistogram) -> NotEnoughData | None:
    """The last answers are kept, because several metrics ask for it one after the other."""
    for label, name in enumerate(("negatives", "positives")):
        weights = np.zeros_like(histogram.counts)
        weights[label] = 1.0
        undefined = why_undefined(histogram, weights, name)
        if undefined is not None:
            return undefined
    return None


def why_undefined(
    histogram: ScoreHistogram, weights: FloatArray, of: str, *, size: float | None = None
) -> NotEnoughData | None:
    """Why a ratio over this sum of counts is meaningless, if it is.

    `fact:ratio` asks that the error of a denominator stay below half of it; with two
    standard deviations for the error, the sum must be at least four of them.

    >>> h = ScoreHistogram(np.array([0.0, 1.0]), np.array([[4.0], [0.0]]))
    >>> why_undefined(h, np.array([[0.0], [1.0]]), "positives").reason[:54]
    'there must be positives to divide by; the tally has 0.'
    """
    if size is None:
        size = float((weights * histogram.counts).sum())
    noise_sd = sqrt(histogram.noise.variance(weights))
    return why_lost_in_noise(size, noise_sd, of, histogram.noise.reports_for)


def why_lost_in_noise(
    size: float, noise_sd: float, of: str, reports_for: Callable[[float], float]
) -> NotEnoughData | None:
    """The same for a sum and its noise; `reports_for` says what it takes to grow beyond it.

    >>> why_lost_in_noise(30.0, 10.0, "positives", lambda growth: growth).reason[-58:]
    'About 1.3 times the reports would do, or a larger epsilon.'
    """
    if size > SPECK and size >= CLEAR_OF_NOISE * noise_sd:
        return None
    if noise_sd == 0.0:
        return NotEnoughData(
            reason=f"there must be {of} to divide by; the tally has {size:.4g}. "
            "Choose another threshold, or gather reports from more clients."
        )
    # What is lost in the noise may be much smaller still: then this is only the least.
    how_many = "About" if size > 2.0 * noise_sd else "At least"
    growth = CLEAR_OF_NOISE * noise_sd / max(size, noise_sd)
    times = max(reports_for(growth), 1.1)
    return NotEnoughData(
        reason=f"{of} must stand clear of the privacy noise, by {CLEAR_OF_NOISE:g} standard "
        f"deviations; the tally has {size:.0f} with a standard deviation of {noise_sd:.0f}. "
        f"{how_many} {times:.2g} times the reports would do, or a larger epsilon."
    )
