"""Calibration by curves of one to three parameters: temperature, sigmoid, beta."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.calibration.logit import NEAREST, expit, log_odds, off_ends
from fedassay.calibration.rates import BucketRates, bucket_rates
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram

_STEPS = 60
_STEEPEST = 40.0
_RIDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Family:
    """Curves whose log-odds are linear in known functions of the score."""

    method: Method
    names: tuple[str, ...]
    features: Callable[[FloatArray], FloatArray]
    """Parameter x score."""
    rising: tuple[bool, ...]
    """Which parameters must not be negative for the map to rise."""
    start: tuple[float, ...]
    """The parameters that leave scores alone."""


def _temperature(scores: FloatArray) -> FloatArray:
    return log_odds(scores)[None]


def _sigmoid(scores: FloatArray) -> FloatArray:
    return np.stack([log_odds(scores), np.ones_like(scores)])


def _beta(scores: FloatArray) -> FloatArray:
    return np.stack([np.log(scores), -np.log1p(-scores), np.ones_like(scores)])


TEMPERATURE = Family(Method.TEMPERATURE, ("a",), _temperature, (True,), (1.0,))
SIGMOID = Family(Method.SIGMOID, ("a", "b"), _sigmoid, (True, False), (1.0, 0.0))
BETA = Family(Method.BETA, ("a", "b", "c"), _beta, (True, True, False), (1.0, 1.0, 0.0))


def fit_temperature(histogram: ScoreHistogram, *, noise_aware: bool = True) -> Calibrator:
    """Log-odds times one number (Guo et al. 2017): a = 1 / temperature."""
    return _fit(histogram, TEMPERATURE, noise_aware=noise_aware)


def fit_sigmoid(histogram: ScoreHistogram, *, noise_aware: bool = True) -> Calibrator:
    """Platt's sigmoid of the log-odds: a log(s / (1 - s)) + b."""
    return _fit(histogram, SIGMOID, noise_aware=noise_aware)


def fit_beta(histogram: ScoreHistogram, *, noise_aware: bool = True) -> Calibrator:
    """Beta calibration (Kull et al. 2017): a log s - b log(1 - s) + c."""
    return _fit(histogram, BETA, noise_aware=noise_aware)


def _fit(histogram: ScoreHistogram, family: Family, *, noise_aware: bool) -> Calibrator:
    rates = bucket_rates(histogram)
    return parametric_from(rates if noise_aware else rates.without_noise(), family)


def parametric_from(rates: BucketRates, family: Family) -> Calibrator:
    """The most likely curve, given bucket rates that count as much as they tell.

    Effective counts make the score equations those of generalised least squares under sampling
    and noise; they are linear in the rates, so rates outside [0, 1] need no clipping.
    """
    free = np.ones(len(family.names), dtype=bool)
    parameters = _scored(rates, family, free)
    while True:
        falling = free & np.array(family.rising) & (parameters < 0.0)
        if not falling.any():
            break
        # A map that rises may not use this term at all; drop the worst and fit again.
        free[np.argmin(np.where(falling, parameters, inf))] = False
        parameters = _scored(rates, family, free)
    return curve(family, parameters)


def curve(family: Family, parameters: FloatArray) -> Calibrator:
    """The curve as a fine piecewise linear map."""
    scores = knots()
    values = expit(parameters @ family.features(off_ends(scores)))
    named = dict(zip(family.names, map(float, parameters), strict=True))
    return Calibrator(family.method, scores, values, parameters=named)


def _scored(
    rates: BucketRates, family: Family, free: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> FloatArray:
    """Fisher scoring on the free parameters, halving steps that do not help."""
    parameters = np.where(free, family.start, 0.0)
    features = family.features(off_ends(rates.piece_scores))
    weights, observed = rates.effective, rates.rates
    loss = inf
    step = np.zeros_like(parameters)
    for _ in range(_STEPS):
        tried, scale = parameters + step, 1.0
        new = _loss(rates, features, tried, weights)
        while new > loss + 1e-12 * abs(loss) and scale > 1e-6:
            scale *= 0.5
            tried = parameters + scale * step
            new = _loss(rates, features, tried, weights)
        moved = loss - new
        parameters, loss = tried, new
        if moved <= 1e-13 * abs(loss):
            break
        shown = expit(parameters @ features)
        mean = rates.averaged(shown)
        slope = rates.averaged(shown * (1.0 - shown) * features[free])
        weighted = slope * (weights / np.maximum(mean * (1.0 - mean), 1e-12))
        information = weighted @ slope.T
        information += _RIDGE * np.trace(information) * np.eye(len(information))
        step = np.zeros_like(parameters)
        if not np.linalg.det(information / max(float(np.trace(information)), 1e-300)) > 0.0:
            raise _runs_off(family)
        step[free] = np.linalg.solve(information, weighted @ (observed - mean))
    if not (np.abs(parameters) < _STEEPEST).all():
        raise _runs_off(family)
    return parameters


def _runs_off(family: Family) -> SettingInvalid:
    return SettingInvalid(
        f"the {family.method.value} curve runs off to infinity on these counts: the score "
        "separates the classes, or noise does. Use isotonic calibration."
    )


def _loss(
    rates: BucketRates, features: FloatArray, parameters: FloatArray, weights: FloatArray
) -> float:
    mean = np.clip(rates.averaged(expit(parameters @ features)), 1e-300, 1.0 - 1e-16)
    each = rates.rates * np.log(mean) + (1.0 - rates.rates) * np.log1p(-mean)
    return -float(weights @ each)


def knots() -> FloatArray:
    """Points dense on the scale of scores and, towards the ends, of log-odds."""
    small = np.geomspace(NEAREST, 2.0**-5, 80)
    middle = np.linspace(2.0**-5, 1.0 - 2.0**-5, 241)
    return np.unique(np.concatenate([[0.0], small, middle, 1.0 - small, [1.0]]))
