"""Rows come in copies: the same person twice, or people alike whose scores are the same.

Where rows fall inside a bucket by chance, each for itself, a sum over them varies by so much;
copies fall together. In a table drawn with replacement each row is there a Poisson number of times,
a row has one copy more on average, and every such sum varies by twice as much: once for where
the rows of the table lie, and once for how often each was drawn. Counts of wide buckets do not tell
copies from strangers.

Drawing is new each time, and where the rows of a table lie stays. Who asks one table again and
again sees the same luck in every interval: counted once, it is held on average over tables, and
70 % of the time where it is 2.3 deviations. So it is counted twice: such a table is held 86 %.

Scores of a few trees are lumpier: thousands of values, each of a dozen rows. No bucket shows one
value, but all buckets together show that their counts vary by more than chance makes them.
"""

from functools import lru_cache
from math import sqrt

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram

DRAWN = 2.0
"""How many rows fall together, on average over rows: E[m^2] / E[m] of Poisson numbers of mean 1."""
COPIES = 1.0 + 2.0
"""What chance inside a bucket is multiplied by: once for drawing, twice for the table's own."""
# A median of squared normal numbers, and how much of itself it varies by, times the root of k.
_MEDIAN, _VARIES = 0.4549364, 2.33
_FEWEST, _THREE = 8.0, 3


def copies_of(histogram: ScoreHistogram) -> FloatArray:
    """What chance inside a bucket is multiplied by, negatives then positives, as a column.

    Of lumps of m rows all counts vary by m times as much as of rows one by one; with a class's
    share q of all rows its own do by 1 + (m - 1) q. Once for drawing and twice for the table's own,
    that is 2 m - 1, as for the copies that are always allowed for.

    >>> even = ScoreHistogram(np.arange(5) / 4, np.full((2, 4), 100.0))
    >>> copies_of(even).tolist()
    [[3.0], [3.0]]
    """
    shares = histogram.counts.sum(axis=1, keepdims=True) / max(histogram.total, 1.0)
    sizes: FloatArray = np.maximum(1.0 + 2.0 * (lump_size(histogram) - 1.0) * shares, COPIES)
    return sizes


@lru_cache(maxsize=4)
def lump_size(histogram: ScoreHistogram) -> float:
    """How many rows fall together, where exact counts say plainly that it is more than copies do.

    The logarithm of a smooth density runs nearly straight from one neighbour's middle to the
    other's; a count's square distance from that is its variance, on average. A median knows
    nothing of the few buckets that tower. Under noise nothing of the kind is seen.

    >>> generator = np.random.default_rng(1)
    >>> rows = 12.0 * generator.poisson(40.0, (2, 400))
    >>> 8.0 < lump_size(ScoreHistogram(np.arange(401) / 400, rows)) < 16.0
    True
    """
    if not histogram.noise.is_zero or histogram.buckets < _THREE:
        return DRAWN
    rows = histogram.counts.sum(axis=0)
    seen = np.minimum(np.minimum(rows[:-2], rows[2:]), rows[1:-1]) >= _FEWEST
    if not seen.any():
        return DRAWN
    first, own, last = (each[seen] for each in (rows[:-2], rows[1:-1], rows[2:]))
    widths = histogram.widths
    before, here, after = (each[seen] for each in (widths[:-2], widths[1:-1], widths[2:]))
    part = (before + here) / (before + 2.0 * here + after)
    expected = here * np.exp((1.0 - part) * np.log(first / before) + part * np.log(last / after))
    variance = expected + expected**2 * ((1.0 - part) ** 2 / first + part**2 / last)
    size = float(np.median((own - expected) ** 2 / variance)) / _MEDIAN
    return size if size * (1.0 - 2.0 * _VARIES / sqrt(len(own))) > COPIES else DRAWN
