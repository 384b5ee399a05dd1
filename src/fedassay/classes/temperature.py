"""One temperature for all classes, from one word of each row (FedTemp).

Probabilities p become softmax(b log p), b = 1 / temperature. The mean log loss falls in b while its
slope, the mean over rows of sum_k q_k log p_k - log p_y with q = softmax(b log p), is below 0, and
the slope rises with b. Each row draws one of a few b, and says one of four slopes, -4, -4/3, 4/3
and 4: of the two around its own the nearer more often, so that the mean over rows is right.
A row is so one example of an ordinary survey, with the sign as label, b and size as score; where
the slope crosses 0 is the temperature.

Differs: Maddock, Cormode and Maple (arXiv 2510.01987) let clients descend the slope over many
rounds, and clip and noise every step; here one round asks for the slope at all b at once.
"""

from math import log, sqrt

import numpy as np

from fedassay.classes.rows import ClassRows
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.randomness import Randomness

SHARPNESSES = 2.0 ** (np.arange(-4, 5) / 2.0)
"""The b that are asked for, from 1/4 to 4."""
_SLOPES = np.array([-4.0, -4.0 / 3.0, 4.0 / 3.0, 4.0])
# Few words and little noise: four lose half as much to rounding as sampling does anyway.
_SIZES = 2
_LEAST = 1e-6
_BATCH = 2**14
_IN_DOUBT = 2.0
_FLATTEST = 1e-3
_USUAL = log(2.0)


def temperature_grid() -> Grid:
    """Two cells for each b: small slopes and large ones; their sign is the label.

    >>> temperature_grid().cells
    18
    """
    return Grid.uniform(_SIZES * len(SHARPNESSES))


def rounded_slopes(rows: ClassRows, *, randomness: Randomness) -> Examples:
    """One of four slopes of each row's log loss, at a b that it draws without looking.

    Guarantee: whatever is drawn, a row is one example.
    """
    count = len(rows)
    drawn, coin = _uniform(2 * count, randomness).reshape(2, -1)
    place = np.minimum((drawn * len(SHARPNESSES)).astype(np.int64), len(SHARPNESSES) - 1)
    word = np.empty(count, dtype=np.int64)
    step = _SLOPES[1] - _SLOPES[0]
    for first in range(0, count, _BATCH):
        part = slice(first, first + _BATCH)
        slopes = loss_slopes(rows.scores[part], rows.labels[part], SHARPNESSES[place[part]])
        steps = (np.clip(slopes, _SLOPES[0], _SLOPES[-1]) - _SLOPES[0]) / step
        word[part] = np.minimum(np.floor(steps + coin[part]), len(_SLOPES) - 1)
    # The middle two are small; both signs count outwards.
    large = (word == 0) | (word == len(_SLOPES) - 1)
    cell = _SIZES * place + large
    return Examples(word >= len(_SLOPES) // 2, (cell + 0.5) / (_SIZES * len(SHARPNESSES)))


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

    The slopes at all b are drawn as one cubic in log b, by weighted least squares. Where it
    crosses 0 is known up to sd = sd of the cubic there / its steepness; log b is taken back by the
    share sd^2 / log(b)^2 of it that noise explains, and by no less than a prior that expects
    temperatures about 2 or 1/2 would, so that probabilities stay as they are where noise explains
    all.
    """
    means, sds = mean_slopes(histogram)
    if not (np.abs(means) > _IN_DOUBT * sds).any():
        return 1.0, "no slope of the log loss stands clear of the noise: left as they are"
    logs = np.log(SHARPNESSES)
    cubic, covariance = np.polyfit(logs, means, 3, w=1.0 / sds, cov="unscaled")
    fine = np.linspace(logs[0], logs[-1], 1001)
    rising = np.maximum.accumulate(np.polyval(cubic, fine))
    crossing = float(fine[int(np.argmax(rising > 0.0))]) if rising[-1] > 0.0 else float(fine[-1])
    powers = crossing ** np.arange(3, -1, -1)
    steep = max(float(np.polyval(np.polyder(cubic), crossing)), _FLATTEST)
    variance = float(powers @ covariance @ powers) / steep**2
    kept = max(1.0 - variance / crossing**2, 0.0) if crossing else 0.0
    kept = min(kept, _USUAL**2 / (_USUAL**2 + variance))
    return float(np.exp(kept * crossing)), f"one temperature, {kept:.0%} of what was seen"


def mean_slopes(histogram: ScoreHistogram) -> tuple[FloatArray, FloatArray]:
    """The mean slope at each b, and its standard deviation from noise and sampling."""
    value = np.array([_SLOPES[1::-1], _SLOPES[2:]])
    means, sds = np.zeros(len(SHARPNESSES)), np.zeros(len(SHARPNESSES))
    for place in range(len(SHARPNESSES)):
        cells = slice(_SIZES * place, _SIZES * (place + 1))
        counts = histogram.counts[:, cells]
        total = max(float(counts.sum()), 1.0)
        mean = float((counts * value).sum()) / total
        weights = np.zeros_like(histogram.counts)
        weights[:, cells] = (value - mean) / total
        sampled = float((np.maximum(counts, 0.0) * (value - mean) ** 2).sum()) / total**2
        means[place] = mean
        sds[place] = sqrt(histogram.noise.variance(weights) + max(sampled, 1.0 / total))
    return means, sds


def _uniform(count: int, randomness: Randomness) -> FloatArray:
    words = np.frombuffer(randomness.bytes(8 * count), dtype=np.uint64)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
