"""The mean precision among the highest scores, where single counts are lost in the noise.

They are one bucket, and what its positives' precisions are like is read from how the ROC curve
runs below it: near the origin it is a power, TP proportional to FP^g, with g of at most 1.
"""

from dataclasses import dataclass
from math import log, log2, sqrt

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.range_noise import range_noise

# Before any count is seen: evenly mixed, give or take a quarter.
_PRIOR_VARIANCE = 0.0625
# So far below the top, in powers of 2, the curve is compared with it; each one further tells
# less about it, by a tenth.
_AWAY = (2.0, 4.0, 8.0, 16.0)
_DRIFT = 0.1
LEAST_POWER = 0.2
_RANKS = (np.arange(64) + 0.5) / 64.0


@dataclass(frozen=True, slots=True)
class TopPrecision:
    """The mean precision over the top bucket's positives, and its standard deviation."""

    mean: float
    sd: float


def top_precision(histogram: ScoreHistogram) -> TopPrecision:
    """The mean of T / (T + F u^(1/g - 1)) over u in [0, 1], with T and F the top bucket's counts.

    The power g comes from the counts above two, four, eight and sixteen times as many, each
    weighed by its noise, and from even mixing, g = 1.

    >>> even = ScoreHistogram(np.arange(9) / 8, np.full((2, 8), 1000.0))
    >>> round(top_precision(even).mean, 3)
    0.5
    >>> fewer = np.array([[16000.0, 8000.0, 4000.0, 2000.0, 1000.0], [1000.0] * 5])
    >>> round(top_precision(ScoreHistogram(np.arange(6) / 5, fewer)).mean, 2)
    0.62
    """
    above = histogram.cumulative[:, -1:] - histogram.cumulative[:, :-1]
    top_n, top_p = np.maximum(above[:, -1], 1.0)
    power, variance = _power(histogram, above)
    mean, steeper = (
        mean_precision(top_p, top_n, max(g, LEAST_POWER)) for g in (power, power - sqrt(variance))
    )
    return TopPrecision(mean, abs(steeper - mean))


def _power(histogram: ScoreHistogram, above: FloatArray) -> tuple[float, float]:
    """The power of the ROC curve at the origin, at most 1, and its variance."""
    noise, buckets = range_noise(histogram), histogram.buckets
    top = np.maximum(above[:, -1], 1.0)
    weights, powers = [1.0 / _PRIOR_VARIANCE], [1.0]
    for times in _AWAY:
        enough = np.flatnonzero(above[:, :-1].sum(axis=0) >= times * top.sum())
        if not len(enough):
            break
        place = int(enough[-1])
        n, p = above[:, place]
        if p <= 0.5 * top[1] or n <= 1.2 * top[0]:
            continue
        growth = log(n / top[0])
        power = log(p / top[1]) / growth
        spread = [
            sum(
                (noise.sd(label, start, buckets) / size) ** 2 + 1.0 / max(size, 1.0)
                for start, size in ((place, float(above[label, place])), (buckets - 1, top[label]))
            )
            for label in (0, 1)
        ]
        own = (spread[1] + power * power * spread[0]) / growth**2 + (_DRIFT * log2(times)) ** 2
        weights.append(1.0 / own)
        powers.append(power)
    total = sum(weights)
    mean = sum(w * g for w, g in zip(weights, powers, strict=True)) / total
    return min(max(mean, LEAST_POWER), 1.0), 1.0 / total


def mean_precision(tp: float, fp: float, power: float) -> float:
    """The mean precision of a bucket's positives, if nobody is above it, for that power.

    >>> mean_precision(30.0, 10.0, 1.0)
    0.75
    """
    return float((tp / (tp + fp * _RANKS ** (1.0 / power - 1.0))).mean())
