"""One temperature for all classes, from one bit of each row (FedTemp).

Probabilities p become softmax(b log p), b = 1 / temperature. The mean log loss falls in b while its
slope, the mean over rows of sum_k q_k log p_k - log p_y with q = softmax(b log p), is below 0, and
the slope rises with b. Each row draws one of a few b, and one bit that is 1 with probability
(1 + slope / c) / 2, slopes clipped to [-c, c]: the share of ones tells the mean slope at that b.
A row is so one example of an ordinary survey, with the bit as label and b as score; where the
slope crosses 0 is the temperature.

Differs: Maddock, Cormode and Maple (arXiv 2510.01987) let clients descend the slope over many
rounds, and clip and noise every step; here one round asks for the slope at all b at once.
"""

from math import sqrt

import numpy as np

from fedassay.classes.rows import ClassRows
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.extras import needed_for
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.randomness import Randomness

SHARPNESSES = 2.0 ** (np.arange(-4, 5) / 2.0)
"""The b that are asked for, from 1/4 to 4."""
_LARGEST_SLOPE = 5.0
_LEAST = 1e-6
_BATCH = 2**14
_IN_DOUBT = 2.0


def temperature_grid() -> Grid:
    """A cell for each b.

    >>> temperature_grid().cells
    9
    """
    return Grid.uniform(len(SHARPNESSES))


def slope_bits(rows: ClassRows, *, randomness: Randomness) -> Examples:
    """One bit of each row, at a b that it draws without looking at its data.

    Guarantee: whatever is drawn, a row is one example.
    """
    count = len(rows)
    drawn, coin = _uniform(2 * count, randomness).reshape(2, -1)
    place = np.minimum((drawn * len(SHARPNESSES)).astype(np.int64), len(SHARPNESSES) - 1)
    bits = np.empty(count, dtype=np.uint8)
    for first in range(0, count, _BATCH):
        part = slice(first, first + _BATCH)
        slopes = loss_slopes(rows.scores[part], rows.labels[part], SHARPNESSES[place[part]])
        clipped = np.clip(slopes / _LARGEST_SLOPE, -1.0, 1.0)
        bits[part] = coin[part] < 0.5 * (1.0 + clipped)
    return Examples(bits, (place + 0.5) / len(SHARPNESSES))


def loss_slopes(scores: FloatArray, labels: IntArray, sharpness: FloatArray) -> FloatArray:
    """How each row's log loss moves with b: sum_k q_k log p_k - log p_y.

    >>> slope = loss_slopes(np.array([[0.5, 0.25, 0.25]]), np.array([0]), np.array([1.0]))
    >>> slope.round(4).tolist()  # (log 1/2) / 2 + (log 1/4) / 2 - log 1/2
    [-0.3466]
    """
    logs = np.log(np.maximum(scores, _LEAST))
    weights = softened(scores, sharpness[:, None])
    own = logs[np.arange(len(logs)), labels]
    slopes: FloatArray = (weights * logs).sum(axis=1) - own
    return slopes


def softened(scores: FloatArray, sharpness: FloatArray | float) -> FloatArray:
    """softmax(b log p) of each row.

    >>> softened(np.array([[0.8, 0.1, 0.1]]), 0.0).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """
    logs = sharpness * np.log(np.maximum(scores, _LEAST))
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares: FloatArray = powers / powers.sum(axis=1, keepdims=True)
    return shares


def fitted_sharpness(histogram: ScoreHistogram) -> tuple[float, str]:
    """The b where the mean slope crosses 0, and in which words it was found.

    Where no slope stands clear of noise and sampling, probabilities stay as they are.
    """
    with needed_for("calibration"):
        from scipy.optimize import isotonic_regression

    count = np.maximum(histogram.counts.sum(axis=0), 1.0)
    share = histogram.positives / count
    means = _LARGEST_SLOPE * (2.0 * share - 1.0)
    sds = np.array([_slope_sd(histogram, cell, count[cell]) for cell in range(len(count))])
    if not (np.abs(means) > _IN_DOUBT * sds).any():
        return 1.0, "no slope of the log loss stands clear of the noise: left as they are"
    rising = np.asarray(isotonic_regression(means, weights=sds**-2.0).x)
    logs = np.log(SHARPNESSES)
    if rising[0] >= 0.0 or rising[-1] <= 0.0:
        at = float(SHARPNESSES[0] if rising[0] >= 0.0 else SHARPNESSES[-1])
        return at, "the temperature lies at an end of what was asked for"
    last = int(np.flatnonzero(rising <= 0.0)[-1])
    low, high = rising[last], rising[last + 1]
    part = -low / (high - low)
    return float(np.exp(logs[last] + part * (logs[last + 1] - logs[last]))), "one temperature"


def _slope_sd(histogram: ScoreHistogram, cell: int, count: float) -> float:
    """Of a mean slope, from the noise of its two counters and from its rows' bits."""
    share = min(max(float(histogram.positives[cell]) / count, 0.0), 1.0)
    weights = np.zeros_like(histogram.counts)
    weights[:, cell] = -share / count, (1.0 - share) / count
    variance = histogram.noise.variance(weights) + 0.25 / count
    return 2.0 * _LARGEST_SLOPE * sqrt(variance)


def _uniform(count: int, randomness: Randomness) -> FloatArray:
    words = np.frombuffer(randomness.bytes(8 * count), dtype=np.uint64)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
