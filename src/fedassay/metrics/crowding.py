"""How far a bucket's scores may crowd to its denser side, where a cubic cannot follow.

A monotone cubic starts a bucket with at most three times its mean density. Where a neighbour is
a hundred times as dense, as beside the last published cell of a rare event's scores, nearly all
rows may lie at that side. The second guess is a density that falls exponentially, at the rate
which it has between the middles of the two buckets or faster. Where neighbours are alike both
guesses agree to third order; what they are apart is taken as a standard deviation.
"""

from collections.abc import Callable

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.range_noise import cell_noise_sd

# A mean over as many rows as this, at even shares of a bucket's, stands for all of them.
_PLACES = (np.arange(8) + 0.5) / 8.0
_FLAT = 1e-6
# More of a bucket lies at its very edge than floating point tells.
_STEEPEST = 500.0


def crowded_sums(
    histogram: ScoreHistogram, of_scores: Callable[[FloatArray], FloatArray], means: FloatArray
) -> FloatArray:
    """How far sums over a bucket's rows are from those of a crowded one, label x bucket.

    Of scores: bucket x place to what a row there adds, label x bucket x place. Means: what
    the first guess has for it, label x bucket.

    >>> even = ScoreHistogram(np.arange(4) / 3, np.full((2, 3), 100.0))
    >>> middles = np.tile([1 / 6, 1 / 2, 5 / 6], (2, 1))
    >>> bool(crowded_sums(even, lambda s: np.stack([s, s]), middles).max() < 1e-9)
    True
    """
    counts = np.maximum(histogram.counts, 0.0)
    rates = _rates(histogram)
    apart = np.zeros_like(counts)
    for side in range(2):
        for label in range(2):
            places = histogram.edges[:-1, None] + histogram.widths[:, None] * _falling(
                rates[side, label]
            )
            crowded = of_scores(np.minimum(places, 1.0))[label].mean(axis=-1)
            apart[label] = np.maximum(apart[label], np.abs(crowded - means[label]))
    sums: FloatArray = counts * apart
    return sums


def _rates(histogram: ScoreHistogram) -> FloatArray:
    """How fast density falls towards the right, per bucket width: side x label x bucket.

    Counts that noise hides are as large as it; beyond either end nothing is known.
    """
    least = max(cell_noise_sd(histogram), 1.0)
    density = np.log(np.maximum(histogram.counts, least) / histogram.widths)
    middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
    falls = -np.diff(density, axis=1) / np.maximum(np.diff(middle), 1e-300)
    nothing = np.zeros((2, 1))
    sides = np.stack([np.hstack([nothing, falls]), np.hstack([falls, nothing])])
    # Between alike neighbours that is the rate; beside one R times as dense it tends to the root
    # of R, which starts at the mean of both densities on the logarithmic scale.
    steep = np.clip(sides * histogram.widths, -_STEEPEST, _STEEPEST)
    rates: FloatArray = np.clip(2.0 * np.sinh(0.5 * steep), -_STEEPEST, _STEEPEST)
    return rates


def _falling(rates: FloatArray) -> FloatArray:
    """Parts of a bucket below which even shares of its rows lie, bucket x place."""
    steep = np.where(np.abs(rates) < _FLAT, 1.0, rates)[:, None]
    falling = -np.log1p(_PLACES * np.expm1(-steep)) / steep
    parts: FloatArray = np.where(np.abs(rates)[:, None] < _FLAT, _PLACES, falling)
    return parts
