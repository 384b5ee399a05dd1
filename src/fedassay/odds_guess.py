"""What is guessed of pooled counts and log-odds, before any counter bends it (`smooth_odds`).

Counts of a first survey are smoothed between quantiles; log-odds are those of the scores, from
their median on, up to a reach and beyond it.
"""

from collections.abc import Sequence

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.interpolation import cubic, monotone_slopes

# Pooled counts are free between so many quantiles, and in so many halves of the outermost.
_MARKS, _TAILS = 16, 3
_FLOOR = 1e-4
# Leaves of a first survey: 128ths, near the ends a fifth of what they are away from them.
_COARSEST, _OF_DISTANCE = 2.0**-7, 0.2
# Log-odds up to a reach are believed, and no score is further from the median than that.
_REACH, _FURTHEST = 3.0, 9.0


def marks_of(shares: FloatArray, cuts: Sequence[int]) -> IntArray:
    """Leaves at which pieces begin, and the end."""
    below = np.append(0.0, np.cumsum(shares))
    tails = 0.5 ** np.arange(1, _TAILS + 1) / _MARKS
    wanted = np.concatenate([tails, np.arange(1, _MARKS) / _MARKS, 1.0 - tails])
    at = np.searchsorted(below, wanted * below[-1])
    return np.unique(np.concatenate([[0, len(shares)], at, np.asarray(cuts, np.int64)]))


def lengths_of(edges: FloatArray) -> FloatArray:
    """How long leaves are on the axis of a first survey: 1, or less where a threshold cuts one."""
    middle = 0.5 * (edges[1:] + edges[:-1])
    usual = np.minimum(_COARSEST, _OF_DISTANCE * np.minimum(middle, 1.0 - middle))
    return np.minimum(np.diff(edges) / np.maximum(usual, 2.0**-1000), 1.0)


def pieces_between(marks: IntArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Between every two marks 1, and what rises from -1 to 1: leaf x piece."""
    place = np.append(0.0, np.cumsum(lengths))
    piece = np.searchsorted(marks, np.arange(len(lengths)), side="right") - 1
    pieces = (piece[:, None] == np.arange(len(marks) - 1)).astype(np.float64)
    start, end = place[marks[piece]], place[marks[piece + 1]]
    middle = 0.5 * (place[1:] + place[:-1])
    return pieces, pieces * (2.0 * (middle - start) / (end - start) - 1.0)[:, None]


def smoothed_through(shares: FloatArray, marks: IntArray, lengths: FloatArray) -> FloatArray:
    """Shares smoothed between marks: a monotone cubic through what is below them."""
    place = np.append(0.0, np.cumsum(lengths))
    widths, held = np.diff(place[marks]), np.add.reduceat(shares, marks[:-1])
    slopes = monotone_slopes(widths, held)
    piece = np.searchsorted(marks, np.arange(len(shares)), side="right") - 1
    rise = (held[piece], slopes[piece] * widths[piece], slopes[piece + 1] * widths[piece])
    start, end = ((at - place[marks[piece]]) / widths[piece] for at in (place[:-1], place[1:]))
    least = _FLOOR * lengths / lengths.sum()
    smooth: FloatArray = np.maximum(cubic(end, *rise) - cubic(start, *rise), least)
    return smooth / float(smooth.sum())


def score_odds(edges: FloatArray, ranks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-odds of every leaf's middle from their median: up to a reach, and what is beyond it."""
    # Between neighbouring numbers there is none: the middle may be 0 or 1 itself.
    middle = np.clip(0.5 * (edges[1:] + edges[:-1]), 2.0**-1000, 1.0 - 2.0**-53)
    log_odds = np.log(middle) - np.log1p(-middle)
    log_odds = np.clip(log_odds - np.interp(0.5, ranks, log_odds), -_FURTHEST, _FURTHEST)
    near = _REACH * np.tanh(log_odds / _REACH)
    return near, log_odds - near


def intercept_for(pooled: FloatArray, odds: FloatArray, positives: float) -> float:
    """What is to be added to log-odds for so many positives: Newton's steps, or halvings."""
    low, high, at = -60.0, 60.0, 0.0
    for _ in range(60):
        share = 1.0 / (1.0 + np.exp(-odds - at))
        over = float(pooled @ share) - positives
        low, high = (low, at) if over >= 0.0 else (at, high)
        slope = float(pooled @ (share * (1.0 - share)))
        step = over / slope if slope > 0.0 else high - low
        if abs(step) < 1e-14:
            break
        at = at - step if low < at - step < high else 0.5 * (low + high)
    return at
