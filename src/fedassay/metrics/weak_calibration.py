"""Calibration in four numbers: in the large, as an intercept, as a slope, observed to expected.

With x the log-odds of a score, `calibration_intercept` and `calibration_slope` are a and b of the
logistic regression a + b x of the labels (Cox 1958); `calibration_in_the_large` is a of a + x, the
slope kept at 1. A calibrated score has 0, 1 and 0, and an `oe_ratio`, positives over the sum of
scores, of 1. A slope below 1 means scores that are too extreme; a figure in the large above 0, or
a ratio above 1, scores that are too low. Scores of exactly 0 and 1 count as 2^-52 from them, as
in `log_loss`: their log-odds would be infinite.
"""

from dataclasses import replace
from functools import lru_cache
from math import hypot, inf, log, sqrt

import numpy as np

from fedassay.estimate import REACH, Estimate, NotEnoughData, Shape, too_coarse
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.copies import copies_of
from fedassay.metrics.crowding import crowded_sums
from fedassay.metrics.delta_method import (
    CLEAR_OF_NOISE,
    counts_estimate,
    why_one_class,
    why_undefined,
)
from fedassay.metrics.given_clear import reach_given_clear
from fedassay.metrics.lattices import lattice, lone_heaps, unseen_shifts
from fedassay.metrics.log_odds import in_pieces
from fedassay.metrics.nearer import nearer
from fedassay.metrics.regression import LogisticModel, Regression
from fedassay.noise import is_smoothed

# Expected positives may be so many times fewer, where nothing else limits them.
_LEAST = 1e-6
_SPREAD = "the spread of log-odds that a slope is read from"


def _only_ones(odds: FloatArray) -> FloatArray:
    return np.ones((1, len(odds)))


def _line(odds: FloatArray) -> FloatArray:
    return np.stack([np.ones_like(odds), odds])


IN_THE_LARGE = LogisticModel(_only_ones, np.zeros(1), has_offset=True)
INTERCEPT_AND_SLOPE = LogisticModel(_line, np.array([0.0, 1.0]))


def calibration_in_the_large(histogram: ScoreHistogram) -> Estimate:
    """The intercept of a logistic regression with the score's log-odds as offset: 0 is ideal.

    >>> h = ScoreHistogram.from_scores([0, 1, 1, 1] * 50, [0.5] * 200)
    >>> round(calibration_in_the_large(h).value, 3)  # log(3)
    1.099
    """
    fitted = _in_the_large(histogram)
    if isinstance(fitted, NotEnoughData):
        return fitted
    found = fitted.estimate(0)
    if not found.is_available:
        return found
    return replace(found, noise_sd=max(found.noise_sd, _fewer_positives(histogram)))


def _fewer_positives(histogram: ScoreHistogram) -> float:
    """How many times fewer positives may be that came out clear of noise, as a logarithm's noise.

    There is an answer where they do: then noise is not centred (`metrics.given_clear`).
    """
    if histogram.noise.is_zero or is_smoothed(histogram.noise):
        return 0.0
    positives = np.stack([np.zeros(histogram.buckets), np.ones(histogram.buckets)])
    stands = histogram.total_positives / sqrt(histogram.noise.variance(positives))
    reach = reach_given_clear(stands, CLEAR_OF_NOISE)
    return log(stands / (stands - reach)) / REACH if reach > REACH else 0.0


def calibration_intercept(histogram: ScoreHistogram) -> Estimate:
    """The intercept a of a logistic regression a + b x on the score's log-odds: 0 is ideal.

    >>> labels = [0, 0, 0, 1] * 25 + [0, 1, 1, 1] * 25
    >>> h = ScoreHistogram.from_scores(labels, [0.2] * 100 + [0.8] * 100)
    >>> abs(round(calibration_intercept(h).value, 3))
    0.0
    """
    return nearer(histogram, lambda read: _parameter(read, 0))


def calibration_slope(histogram: ScoreHistogram) -> Estimate:
    """The slope b of that regression: 1 is ideal, less means scores that are too extreme.

    >>> labels = [0, 0, 0, 1] * 25 + [0, 1, 1, 1] * 25
    >>> h = ScoreHistogram.from_scores(labels, [0.2] * 100 + [0.8] * 100)
    >>> round(calibration_slope(h).value, 3)  # log(3) / log(4)
    0.792
    """
    return nearer(histogram, lambda read: _parameter(read, 1))


def _parameter(histogram: ScoreHistogram, place: int) -> Estimate:
    fitted = _intercept_and_slope(histogram)
    return fitted if isinstance(fitted, NotEnoughData) else fitted.estimate(place)


def oe_ratio(histogram: ScoreHistogram) -> Estimate:
    """Observed positives over expected ones, the sum of the scores: 1 is ideal.

    Its interval is symmetric on the logarithmic scale.

    >>> h = ScoreHistogram.from_scores([0, 1, 1, 1] * 50, [0.5] * 200)
    >>> round(oe_ratio(h).value, 3)
    1.5
    """
    return nearer(histogram, _oe_ratio)


def _oe_ratio(histogram: ScoreHistogram) -> Estimate:
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    pieced = in_pieces(histogram)

    middle = np.tile(0.5 * (histogram.edges[1:] + histogram.edges[:-1]), (2, 1))
    slopes = pieced.gradients(np.tile(pieced.scores, (2, 1, 1)))
    expected = float((pieced.counts * pieced.scores).sum())
    undefined = why_undefined(histogram, slopes, "expected positives", size=expected)
    if undefined is not None:
        return undefined
    value = histogram.total_positives / expected
    gradient = _oe_gradient(histogram, slopes, expected)
    counts = np.maximum(histogram.counts, 0.0)
    bend = abs(expected - float((middle * histogram.counts).sum()))
    widths = np.diff(histogram.edges)
    loose = float(((copies_of(histogram) * counts + histogram.spikes**2) * widths**2).sum() / 12.0)
    # Tied scores are often round, and so are edges: all may lie at the same side of their buckets.
    likely = float((lattice(histogram).likely(histogram) * widths / 2.0).sum())
    unseen = float((counts * unseen_shifts(histogram)).sum())
    lone = float((lone_heaps(histogram).sum(axis=0) * widths / 2.0).max())
    aligned = max(likely, unseen, lone) / REACH
    crowded = crowded_sums(
        histogram,
        lambda scores: np.stack([scores, scores]),
        pieced.mean(np.broadcast_to(pieced.scores, (2, *pieced.scores.shape))),
    )
    loose = hypot(sqrt(loose), pieced.doubt(pieced.scores), aligned, *crowded.ravel()) + bend / 3.0
    low, high = (float((counts * at).sum()) for at in (histogram.edges[:-1], histogram.edges[1:]))
    # A ratio bends: what is likely is read where its denominator is least. Counts below 0 count
    # as such: noise cancels, and without them the least might be more than what is expected.
    lowest = float((histogram.counts * histogram.edges[:-1]).sum())
    least = max(expected - REACH * loose, lowest, expected * _LEAST)
    estimate = counts_estimate(
        histogram,
        value,
        gradient,
        binning_bound=_furthest(histogram.total_positives, value, low, high),
        binning_sd=value * log(expected / least) / REACH if least < expected else 0.0,
        shape=Shape.LOG,
    )
    if not estimate.binning_bound < inf and int(counts.any(axis=0).sum()) == 1:
        return too_coarse(estimate, "the ratio", value / _LEAST)
    return replace(estimate, noise_sd=max(estimate.noise_sd, _off(histogram, slopes, expected)))


def _off(histogram: ScoreHistogram, slopes: FloatArray, expected: float) -> float:
    """The noise of a ratio whose divisor came out clear of its own (`metrics.given_clear`)."""
    observed = np.stack([np.zeros_like(slopes[0]), np.ones_like(slopes[1])])
    (of_divisor, both), (_, of_top) = histogram.noise.covariances(np.stack([slopes, observed]))
    sd, top = sqrt(max(of_divisor, 0.0)), histogram.total_positives
    reach = reach_given_clear(expected / sd, CLEAR_OF_NOISE) if sd > 0.0 else REACH
    if reach <= REACH:
        return 0.0
    there = max(top - reach * both / sd, _LEAST * top) / (expected - reach * sd)
    beside = sqrt(max(of_top - both**2 / of_divisor, 0.0)) / expected
    return hypot(top / expected * log(there * expected / top) / REACH, beside)


def oe_gradient(histogram: ScoreHistogram) -> FloatArray:
    """How observed over expected moves with each count, label x bucket.

    >>> h = ScoreHistogram(np.array([0.0, 1.0]), np.array([[2.0], [2.0]]))
    >>> oe_gradient(h).round(3).tolist()  # 2 / 2: half a positive expected of each row
    [[-0.25], [0.25]]
    """
    pieced = in_pieces(histogram)
    slopes = pieced.gradients(np.tile(pieced.scores, (2, 1, 1)))
    expected = float((pieced.counts * pieced.scores).sum())
    return _oe_gradient(histogram, slopes, expected)


def _oe_gradient(histogram: ScoreHistogram, slopes: FloatArray, expected: float) -> FloatArray:
    gradient = -histogram.total_positives / expected * slopes / expected
    gradient[1] += 1.0 / expected
    return gradient


def regression_gradient(histogram: ScoreHistogram, *, slope: bool) -> FloatArray:
    """How the calibration slope, or the figure in the large, moves with each count.

    All zero where there is no such figure.

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [0.2, 0.8] * 50)
    >>> regression_gradient(h, slope=False).shape == h.counts.shape
    True
    """
    fitted = _intercept_and_slope(histogram) if slope else _in_the_large(histogram)
    if isinstance(fitted, NotEnoughData):
        return np.zeros_like(histogram.counts)
    gradient: FloatArray = fitted.gradients[1 if slope else 0]
    return gradient


def _furthest(observed: float, value: float, low: float, high: float) -> float:
    """How far a ratio can be when its denominator lies anywhere from low to high."""
    most = inf if low <= 0.0 else observed / low - value
    return max(most, value - observed / high)


@lru_cache(maxsize=1)
def _in_the_large(histogram: ScoreHistogram) -> Regression | NotEnoughData:
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    fitted = Regression.of(in_pieces(histogram), IN_THE_LARGE)
    if isinstance(fitted, NotEnoughData):
        return fitted
    return _why_not_clear(fitted, np.ones(fitted.pieced.odds.shape)) or fitted


@lru_cache(maxsize=2)
def _intercept_and_slope(histogram: ScoreHistogram) -> Regression | NotEnoughData:
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    fitted = Regression.of(in_pieces(histogram), INTERCEPT_AND_SLOPE)
    if isinstance(fitted, NotEnoughData):
        return fitted
    odds, inverse = fitted.pieced.odds, fitted.fit.inverse
    # The information on the slope, given the intercept: examples by their distance from the mean.
    mean = -inverse[0, 1] / inverse[1, 1]
    return _why_not_clear(fitted, (odds - mean) ** 2) or fitted


def _why_not_clear(fitted: Regression, of_pieces: FloatArray) -> NotEnoughData | None:
    """Why the information on a parameter is lost in noise, if it is."""
    share = fitted.fit.probabilities.reshape(of_pieces.shape)
    weights = fitted.pieced.mean(
        np.broadcast_to(of_pieces * share * (1.0 - share), (2, *share.shape))
    )
    return why_undefined(fitted.histogram, weights, _SPREAD)
