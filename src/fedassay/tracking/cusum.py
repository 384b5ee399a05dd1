"""A CUSUM of standard normal figures: when it alarms, and how seldom by chance.

C_t = max(0, C_{t-1} + z_t - k), from 0, with an alarm where it reaches h (Page 1954).
"""

from functools import lru_cache

import numpy as np

from fedassay.checks import require_whole
from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.extras import needed_for

ALLOWANCE = 0.5
"""k: half of the shift, in standard deviations of one look, that is found soonest."""
_STATES = 120
_YEARS = 8
_HALVINGS = 40
_HIGHEST = 60.0


def recursive_residuals(values: FloatArray, variances: FloatArray) -> FloatArray:
    """How far each look is from the mean of all before it, in standard deviations.

    While nothing changes they are independent standard normal figures, whatever the mean is
    and however the variances differ (Brown, Durbin and Evans 1975): each is a contrast that
    is uncorrelated with all earlier ones. The first look has none.

    >>> recursive_residuals(np.array([1.0, 3.0, 2.0]), np.ones(3)).round(3).tolist()
    [1.414, 0.0]
    """
    weights = 1.0 / variances
    known = np.cumsum(weights)
    means = np.cumsum(weights * values) / known
    residuals: FloatArray = (values[1:] - means[:-1]) / np.sqrt(variances[1:] + 1.0 / known[:-1])
    return residuals


def cusum(residuals: FloatArray, allowance: float = ALLOWANCE) -> FloatArray:
    """The upper CUSUM after every look.

    >>> cusum(np.array([1.0, -2.0, 3.0])).tolist()
    [0.5, 0.0, 2.5]
    """
    level, levels = 0.0, []
    for residual in residuals.tolist():
        level = max(0.0, level + residual - allowance)
        levels.append(level)
    return np.array(levels)


@lru_cache(maxsize=64)
def cusum_limit(rate: float, looks: int, allowance: float = ALLOWANCE) -> float:
    """The limit h that a CUSUM of chance alone reaches in a year with this probability.

    A year has so many looks, and may be any: the first, from 0, or a later one that began
    wherever the earlier ones left it. By Brook and Evans' chain of states (1972).

    >>> round(cusum_limit(0.05, 12), 2)
    3.67
    """
    if not 0.0 < rate < 1.0:
        raise SettingInvalid(
            f"a chance of false alarms lies between 0 and 1; found {rate:g}. Usual is 0.05 a year."
        )
    require_whole(looks, "looks a year", 1, 366)
    low, high = 0.0, _HIGHEST
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        reached = _yearly_chance(middle, looks, allowance) > rate
        low, high = (middle, high) if reached else (low, middle)
    return high


def _yearly_chance(limit: float, looks: int, allowance: float) -> float:
    """The chance of an alarm in the worst of several years, given none in those before."""
    with needed_for("alarms"):
        from scipy.special import ndtr

    # State 0 is C = 0 alone; the others split (0, h) evenly, each at its middle.
    width = limit / (_STATES - 0.5)
    places = width * np.arange(_STATES)
    upper = places + 0.5 * width
    steps = ndtr(upper[None, :] - places[:, None] + allowance)
    chain = np.diff(steps, axis=1, prepend=0.0)
    state = np.zeros(_STATES)
    state[0] = 1.0
    worst = 0.0
    for _ in range(_YEARS):
        for _ in range(looks):
            state = state @ chain
        left = float(state.sum())
        worst = max(worst, 1.0 - left)
        if left <= 0.0:
            return 1.0
        state = state / left
    return worst
