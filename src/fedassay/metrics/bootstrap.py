"""What noise does to a figure that bends: bias and spread, from noise drawn once more.

Where counts are few against their noise, a precision or a maximum is no longer linear in them:
its expectation moves, and a gradient does not tell how far it may go. So the noise is drawn
again, around counts that could be the true ones, and the figure read from each draw. The seed
is fixed: the same tally gives the same answer.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import hypot

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.range_noise import range_noise
from fedassay.noise import is_smoothed

_PAIRS_OF_DRAWS = 100
_MOST_BUCKETS = 48
_FEW, _NEVER = 16.0, 6.0
_TINY = 1e-300


def bias_and_spread(
    histogram: ScoreHistogram,
    figure: Callable[[FloatArray], FloatArray],
    *,
    others: Sequence[FloatArray] = (),
) -> tuple[float, float]:
    """How far noise moves a figure on average, and its standard deviation.

    `figure` takes counts (... x label x bucket), negative ones included. Draws come in pairs
    of opposite signs, so that what is linear in the noise has no bias at all. The spread is
    the largest of several: around counts that could be true, and around those that came, because
    where noise pushed counts to 0 the former no longer sees all of it; or around `others` that
    could have been the true ones. A bias is only an estimate, so it counts as an error too. Counts
    that were smoothed have no noise in them, and so no bias.

    >>> from fedassay.noise import DenseNoise
    >>> noise = DenseNoise(9.0 * np.eye(2))
    >>> noisy = ScoreHistogram(np.array([0.0, 1.0]), np.full((2, 1), 90.0), noise)
    >>> bias, spread = bias_and_spread(noisy, lambda counts: counts.sum(axis=(-2, -1)))
    >>> abs(bias) < 1e-9, 3.5 < spread < 5.0  # of a sum of two counts: 3 times the root of 2
    (True, True)
    """
    fitted, draws = _draws(histogram)
    plain = float(figure(fitted))
    values = figure(np.concatenate([fitted + draws, fitted - draws]))
    bias = float(values.mean()) - plain
    spreads = [float(values.std())]
    for counts in (histogram.counts, *others):
        spreads.append(float(figure(np.concatenate([counts + draws, counts - draws])).std()))
    return 0.0 if is_smoothed(histogram.noise) else bias, hypot(max(spreads), bias)


def with_more_at_the_top(histogram: ScoreHistogram) -> FloatArray:
    """The counts, with as many more positives in the top bucket as noise may have hidden.

    What depends on the square of a count varies little around a small one, however large
    the true one is.

    >>> from fedassay.noise import DenseNoise
    >>> noisy = ScoreHistogram(np.arange(3) / 2, np.full((2, 2), 9.0), DenseNoise(4.0 * np.eye(4)))
    >>> with_more_at_the_top(noisy).tolist()
    [[9.0, 9.0], [9.0, 11.0]]
    """
    lifted = histogram.counts.copy()
    lifted[1, -1] += range_noise(histogram).sd(1, histogram.buckets - 1, histogram.buckets)
    return lifted


@lru_cache(maxsize=2)
def _draws(histogram: ScoreHistogram) -> tuple[FloatArray, FloatArray]:
    """Likely counts, and noise for them: draw x label x bucket."""
    weights = np.eye(2 * histogram.buckets).reshape(-1, 2, histogram.buckets)
    sizes, sides = np.linalg.eigh(histogram.noise.covariances(weights))
    factor = sides * np.sqrt(np.maximum(sizes, 0.0))
    pairs = max(_PAIRS_OF_DRAWS, len(weights))
    normal = np.random.default_rng(0).standard_normal((pairs, len(weights)))
    # Columns that stand at right angles: what is linear in the noise then has its very spread.
    even = np.linalg.qr(normal)[0] * np.sqrt(pairs)
    draws: FloatArray = (even @ factor.T).reshape(-1, 2, histogram.buckets)
    return histogram.monotone().counts, draws


@lru_cache(maxsize=2)
def few_buckets(histogram: ScoreHistogram) -> ScoreHistogram:
    """Buckets merged into a few that hold as much of both classes each, to draw noise for.

    >>> few_buckets(ScoreHistogram.from_scores([0, 1] * 500, np.arange(1000) / 1000)).buckets
    48
    """
    if histogram.buckets <= _MOST_BUCKETS:
        return histogram
    rate = np.maximum.accumulate(histogram.cumulative, axis=1)
    progress = (rate / np.maximum(rate[:, -1:], _TINY)).sum(axis=0)
    inner = np.searchsorted(progress, np.linspace(0.0, progress[-1], _MOST_BUCKETS + 1)[1:-1])
    return histogram.merge(np.unique(np.concatenate([[0], inner, [histogram.buckets]])))


def beyond_doubt(buckets: int) -> float:
    """By how many deviations highest scores stand out, where noise is in so many buckets.

    Of many sums of noise one or another stands out by three deviations; none by six. Few buckets
    are wide: each that is merged hides much, and noise has fewer chances.

    >>> [beyond_doubt(buckets) for buckets in (16, 48, 300)]
    [2.0, 6.0, 6.0]
    """
    return _NEVER * min(buckets / _MOST_BUCKETS, 1.0)


def clear_at_the_top(histogram: ScoreHistogram, by: float) -> ScoreHistogram:
    """The highest scores in one bucket that stands clear of the noise by so many deviations.

    Precisions begin there: of fewer examples than their noise they would say nothing.

    >>> clear_at_the_top(ScoreHistogram(np.arange(4) / 3, np.full((2, 3), 5.0)), 3.0).edges.round(2)
    array([0.  , 0.33, 1.  ])
    """
    noise, buckets = range_noise(histogram), histogram.buckets
    total = 0.0
    for bucket in range(buckets - 1, -1, -1):
        total += float(histogram.counts[:, bucket].sum())
        spread = hypot(*(noise.sd(label, bucket, buckets) for label in (0, 1)))
        if total >= _FEW + by * spread:
            return histogram.merge(np.append(np.arange(bucket + 1), buckets))
    return histogram.merge(np.array([0, buckets]))
