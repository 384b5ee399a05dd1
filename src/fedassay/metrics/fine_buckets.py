"""What narrow buckets of exact counts hide: ties, and which way the classes lean inside them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.spans import clear_spikes
from fedassay.ties import FEWEST_TIED

# The density at a bucket is that of so many on either side of it.
_BESIDE = 8
_CLEAR = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class FineBuckets:
    """Pairs that are tied or in order beyond chance, and what chance makes of them, by bucket."""

    positives: FloatArray
    """Ordered pairs of positives: each other positive that a positive is tied with."""
    both: FloatArray
    """Pairs of a positive and a negative."""
    positives_variance: FloatArray
    both_variance: FloatArray
    lean: FloatArray
    """Pairs with the positive above the negative, beyond half of them."""
    clumps: float
    """How many rows come together on average, of either class: 1 without ties."""


def fine_buckets(histogram: ScoreHistogram) -> FineBuckets:
    """How many pairs of rows are tied in buckets of exact counts, judged by those beside.

    Rows that fall where they like make Poisson counts. With counts c, and l and r that buckets
    to the left and to the right let expect, c (c - 1) - c (l + r) + l r is then 0 on average, and
    varies by twice the squared density. Tied rows come together, and every ordered pair of
    them adds 1 to it. The same product of both classes counts their tied pairs, and
    (r_p l_n - l_p r_n) / 12 per bucket's width those that a slope puts into order beyond half.
    Single buckets say little; sums over many of them do. Where spikes tower
    (`spans.clear_spikes`) ties are plain to see.

    >>> twice = np.array([0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0], dtype=float)
    >>> h = ScoreHistogram(np.arange(17) / 16, np.stack([np.zeros(16), twice]))
    >>> round(float(fine_buckets(h).positives.sum()), 1)  # three ties of two: six ordered pairs
    5.5
    """
    spikes = clear_spikes(histogram)
    counts = histogram.counts - spikes
    sides = _beside(counts, histogram.widths)
    (left_n, left_p), (right_n, right_p) = sides
    (n, p), plain = counts, _is_plain(counts, spikes, sides)
    same = [
        c * (c - 1.0) - c * (l + r) + l * r
        for c, l, r in ((n, left_n, right_n), (p, left_p, right_p))
    ]
    both = n * p - 0.5 * (n * (left_p + right_p) + p * (left_n + right_n))
    both += 0.5 * (left_n * right_p + left_p * right_n)
    lean = (right_p * left_n - left_p * right_n) / (12.0 * (_BESIDE + 1.0))
    clumped = float((same[0] + same[1])[plain].sum()) / max(float(counts[:, plain].sum()), 1.0)
    return FineBuckets(
        positives=np.where(plain, same[1], 0.0),
        both=np.where(plain, both, 0.0),
        positives_variance=np.where(plain, 2.0 * left_p * right_p, 0.0),
        both_variance=np.where(plain, np.sqrt(left_n * right_n * left_p * right_p), 0.0),
        lean=np.where(plain, lean, 0.0),
        clumps=1.0 + max(clumped, 0.0),
    )


def _is_plain(counts: FloatArray, spikes: FloatArray, sides: FloatArray) -> npt.NDArray[np.bool_]:
    """Buckets whose neighbours tell their density: no spike, no steep slope, no narrow hump.

    Where it changes by more than half from one side to the other, or a bucket is off both by a
    quarter and the eight that a tie may be, what is more than chance is not ties.
    """
    left, right = sides
    density = 0.5 * (left + right)
    chance = _CLEAR * np.sqrt(density / _BESIDE)
    is_level = np.abs(right - left) <= 0.5 * density + chance
    is_near = np.abs(counts - density) <= 0.25 * density + chance + FEWEST_TIED
    plain: npt.NDArray[np.bool_] = (is_level & is_near & (spikes == 0.0)).all(axis=0)
    return plain


def _beside(counts: FloatArray, widths: FloatArray) -> FloatArray:
    """What a bucket would hold at the density to its left and to its right: side x label x bucket.

    Beyond an end of the grid there is nothing.
    """
    place = np.arange(len(widths))
    sides = [(np.maximum(place - _BESIDE, 0), place), (place + 1, place + 1 + _BESIDE)]
    densities = []
    for low, high in sides:
        until = np.minimum(high, len(widths))
        room = np.maximum(_window(widths, low, until), widths)
        densities.append(np.maximum(_window(counts, low, until), 0.0) * widths / room)
    return np.stack(densities)


def _window(values: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    running = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], -1)
    inside: FloatArray = np.take(running, high, axis=-1) - np.take(running, low, axis=-1)
    return inside
