"""A smooth curve's counts beside what counters say by themselves.

Under local privacy a curve is fitted to all counters (`smooth_odds`), and errs less than any of
them while scores are as smooth as it takes them to be. At the cuts of the second survey counters
tell the same counts without a curve: unbiased, and with noise that is known exactly. Let s
and r be the two readings, S and R their covariances. A curve that is right has all that counters
know, so that s - r varies by V = R - S. A curve that is wrong is further away: by
m = (s - r)' V^-1 (s - r), where chance alone exceeds b once in ten times. Then the curve is
believed by w = b / m, as Stein's rule shrinks:

    r + w (s - r),    with covariance    R - w V + u u',    u = w (1 - n / m) (s - r),

where u is how far the curve still takes it away, beyond what chance would in n directions: none
where m is below n. Where the curve claims no less noise than counters have, these are taken.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from fedassay.examples import FloatArray

# The normal quantile that chance alone exceeds once in ten times.
_ONE_IN_TEN = 1.2815515655446004
# A gain in variance that is not worth a curve.
_NOTHING = 0.02


class Reading(NamedTuple):
    """Counts, and their covariance."""

    counts: FloatArray
    noise: FloatArray


def beside_counters(curve: Reading, counters: Reading) -> Reading:
    """What both say together.

    >>> counters = Reading(np.array([100.0, 50.0]), 400.0 * np.eye(2))
    >>> near = Reading(np.array([90.0, 55.0]), 100.0 * np.eye(2))
    >>> beside_counters(near, counters).counts.round(1).tolist()  # no contradiction
    [90.0, 55.0]
    >>> far = Reading(np.array([190.0, 55.0]), 100.0 * np.eye(2))
    >>> beside_counters(far, counters).counts.round(1).tolist()
    [115.1, 50.8]
    """
    sizes, sides = np.linalg.eigh(counters.noise)
    if not sizes[-1] > 0.0:
        return counters
    # In units of the counters' noise, along the directions in which the curve gains; along some
    # there may be none, as where the number of all examples is known.
    noisy = sizes > 1e-9 * sizes[-1]
    units = np.sqrt(sizes[noisy])
    into_units, out_of_units = sides[:, noisy] / units, sides[:, noisy] * units
    kept, turns = np.linalg.eigh(into_units.T @ curve.noise @ into_units)
    gain, apart = 1.0 - kept, turns.T @ (into_units.T @ (curve.counts - counters.counts))
    gains = gain > _NOTHING
    if not gains.any():
        return counters
    distance, directions = float((apart[gains] ** 2 / gain[gains]).sum()), int(gains.sum())
    chance = _by_chance(directions)
    belief = np.where(gains, min(1.0, chance / max(distance, chance)), 0.0)
    along = out_of_units @ turns
    moved = along @ (belief * apart)
    away = moved * max(1.0 - directions / max(distance, 1.0), 0.0)
    noise = (along * (1.0 - belief * gain)) @ along.T + np.outer(away, away)
    return Reading(counters.counts + moved, noise)


def _by_chance(directions: int) -> float:
    """The squared distance that chance exceeds once in ten times (Wilson and Hilferty 1931).

    >>> [round(_by_chance(n), 1) for n in (1, 2, 3, 4)]  # 2.7, 4.6, 6.3 and 7.8
    [2.6, 4.6, 6.2, 7.7]
    """
    spread = 2.0 / (9.0 * directions)
    cubic: float = directions * (1.0 - spread + _ONE_IN_TEN * sqrt(spread)) ** 3
    return cubic
