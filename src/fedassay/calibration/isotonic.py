"""Isotonic calibration of bucket rates."""

import numpy as np

from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.calibration.rates import BucketRates, bucket_rates
from fedassay.examples import FloatArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram


def fit_isotonic(histogram: ScoreHistogram, *, noise_aware: bool = True) -> Calibrator:
    """The rising map nearest to the bucket rates, linear between the buckets' mean scores.

    With `noise_aware`, a bucket weighs as much as its effective count, which is the inverse of
    its sampling and noise variance; without noise both are the number of examples.
    """
    rates = bucket_rates(histogram)
    return isotonic_from(rates if noise_aware else rates.without_noise())


def isotonic_from(rates: BucketRates, *, cautious: bool = False) -> Calibrator:
    """Fit to given rates.

    A cautious map answers 0 or 1 nowhere: a stretch of n examples keeps half an example's
    distance from them, so that no log loss is infinite.
    """
    with needed_for("calibration"):
        from scipy.optimize import isotonic_regression

    fit = isotonic_regression(rates.rates, weights=rates.effective)
    # The best rising map into [0, 1] is the best rising map, cut off there.
    values = np.clip(np.asarray(fit.x), 0.0, 1.0)
    if cautious:
        blocks = np.diff(np.append(0.0, np.cumsum(rates.effective))[fit.blocks])
        margin = np.repeat(0.5 / (blocks + 1.0), np.diff(fit.blocks))
        values = _off_zero(values, margin)
        values = 1.0 - _off_zero(1.0 - values[::-1], margin[::-1])[::-1]
    return linear(Method.ISOTONIC, rates.scores, values)


def _off_zero(rising: FloatArray, margin: FloatArray) -> FloatArray:
    """Lift the first values by their margins, though not above the first that needs no lift."""
    clear = int(np.argmax(rising >= margin))
    lifted = np.minimum(np.maximum(rising[:clear], margin[:clear]), rising[clear])
    return np.concatenate([np.maximum.accumulate(lifted), rising[clear:]])


def linear(method: Method, scores: FloatArray, values: FloatArray) -> Calibrator:
    """A piecewise linear map; points inside a flat stretch are left out."""
    if len(scores) == 1:
        return Calibrator(method, np.array([0.0, 1.0]), np.repeat(values, 2))
    inside = np.zeros(len(values), dtype=bool)
    inside[1:-1] = (values[1:-1] == values[:-2]) & (values[1:-1] == values[2:])
    return Calibrator(method, scores[~inside], values[~inside])
