"""Bucket boundaries from a first survey: a noisy histogram stands in for a public reference."""

from math import sqrt

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples
from fedassay.histogram import ScoreHistogram

_POINTS = 2**12
_FEWEST = 16


class GuessedRows(Examples):
    """Rows made up from a histogram: where they lie inside its buckets is a guess.

    Planning must not take the guess for a sight: a grid no finer than those buckets would seem
    to hide nothing.
    """

    __slots__ = ()


def reference_from(histogram: ScoreHistogram) -> GuessedRows:
    """Scores at the quantiles of a decoded histogram, for the next survey's grid.

    Guarantee: post-processing of what the first survey revealed; nothing more is spent.

    >>> h = ScoreHistogram.from_scores([0, 1] * 500, [i / 1000 for i in range(1000)])
    >>> len(reference_from(h))
    4096
    """
    smooth = histogram.monotone()
    totals = smooth.counts.sum(axis=1)
    if totals.min() <= 0.0:
        raise SettingInvalid(
            "boundaries need both classes; noise left none of one. Spend more epsilon on the "
            "first survey, or ask more clients."
        )
    sizes = np.maximum(np.rint(_POINTS * totals / totals.sum()), _FEWEST).astype(int)
    scores = [
        np.interp((np.arange(size) + 0.5) / size * total, below, smooth.edges)
        for below, total, size in zip(smooth.cumulative, totals, sizes, strict=True)
    ]
    return GuessedRows(np.repeat([0, 1], sizes), np.clip(np.concatenate(scores), 0.0, 1.0))


def rank_error(expected: ScoreHistogram) -> float:
    """How far off, in shares of all examples, a boundary found here is, root mean square.

    Delta of `thm:pra` in ranks: the noise of the share below an edge, and half a cell.

    >>> edges, counts = np.linspace(0.0, 1.0, 11), np.full((2, 10), 5.0)
    >>> h = ScoreHistogram(edges, counts)
    >>> round(rank_error(h), 4)  # 1 / (10 sqrt(12)): half a cell, no noise
    0.0289
    """
    below = np.tril(np.ones((expected.buckets, expected.buckets)), -1)[1:]
    shares = [
        (row - row @ expected.counts.sum(axis=0) / expected.total) / expected.total for row in below
    ]
    noise = sum(expected.noise.variance(np.stack([row, row])) for row in shares) / len(shares)
    cells = expected.counts.sum(axis=0) / expected.total
    return sqrt(noise + float(cells @ cells**2) / 12.0)
