"""Buckets whose rows share one score: towers in narrow ones, and what lies at 0 and 1 itself.

Between towers a well-behaved distribution is smooth; a bucket too narrow for anything but one
score holds a tie. Next to 0 and 1 widths say little: there scores may be as good as the end and
yet orders of magnitude apart.
"""

import numpy as np
import numpy.typing as npt

from fedassay.examples import FloatArray

AT_THE_END = 2.0**-30
"""An end bucket as narrow as this holds one score, 0 or 1: beside it no density is its like."""
FEWEST_TIED = 8.0
"""So many in a narrow bucket, and hardly any beside it, are no chance."""
# Of scores that lie evenly, so few would be in a bucket that any two of them are tied.
_NOBODY = 0.01
_SAME_AS_AN_END, _TWO = 2.0**-52, 2
# So many times more would go on than are there: those are the tail of the rows beside.
_A_TAIL = 4.0


def spikes_of(counts: FloatArray, widths: FloatArray) -> FloatArray:
    """The spikes of one histogram or of several on the same edges, ... x bucket.

    >>> spikes_of(np.array([[1.0, 9.0, 1.0]]), np.ones(3)).tolist()
    [[0.0, 7.0, 0.0]]
    """
    padded = np.zeros((*counts.shape[:-1], counts.shape[-1] + 2))
    padded[..., 1:-1] = np.maximum(counts, 0.0) / widths
    expected = 2.0 * np.maximum(padded[..., :-2], padded[..., 2:]) * widths
    return np.maximum(counts - expected, 0.0)


def ties_of(spikes: FloatArray, evenly: FloatArray, is_narrow: npt.NDArray[np.bool_]) -> FloatArray:
    """Those spikes, ... x bucket, that are ties; `evenly` many rows would be in each if all were.

    >>> ties_of(np.array([7.0, 9.0, 9.0]), np.ones(3), np.array([True, True, False])).tolist()
    [0.0, 9.0, 0.0]
    """
    least = np.where(evenly < _NOBODY, 1.0, FEWEST_TIED)
    return np.where(is_narrow & (spikes >= least), spikes, 0.0)


def far_flung_in(counts: FloatArray, edges: FloatArray) -> FloatArray:
    """The part of rows in end buckets narrower than 2^-30 that come as those beside, ... x end.

    Overconfident scores go on from 1e-12 to 1e-16 as they come to 1e-12, as many for each power of
    ten; others are exactly 0. Beyond 2^-52 all are as good as that. A bucket beside that reaches
    further than to there says nothing, since most of its rows lie at its far side.

    >>> edges = np.array([0.0, 1e-12, 1e-10, 1.0])
    >>> far_flung_in(np.array([[20.0, 10.0, 9.0], [0.0, 0.0, 30.0]]), edges).round(2).tolist()
    [0.91, 0.0]
    """
    return np.minimum(_gone_on(counts, edges), 1.0)


def tails_in(counts: FloatArray, edges: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether rows in end buckets narrower than 2^-30 are the tail of those beside; ... x end.

    Of all scores around 1e-9 a quarter is below 5e-10, next to it and not at 0.

    >>> edges = np.array([0.0, 5e-10, 8e-10, 1.0])
    >>> tails_in(np.array([[14000.0, 9900.0, 9.0], [20.0, 20.0, 9.0]]), edges).tolist()
    [True, False]
    """
    return _gone_on(counts, edges) >= _A_TAIL


def _gone_on(counts: FloatArray, edges: FloatArray) -> FloatArray:
    """How many rows would be in narrow end buckets, went they on as beside, to one; ... x end."""
    rows = np.maximum(counts, 0.0).sum(axis=-2)
    parts = np.zeros((*rows.shape[:-1], 2))
    if rows.shape[-1] < _TWO:
        return parts
    for end, (place, beside) in enumerate(((0, 1), (-1, -2))):
        near, far = edges[1:3] if end == 0 else 1.0 - edges[-2:-4:-1]
        if _SAME_AS_AN_END < near <= AT_THE_END:
            beyond, apart = np.log([near / _SAME_AS_AN_END, far / near])
            gone_on = rows[..., beside] * (beyond / apart if apart < beyond else 0.0)
            parts[..., end] = gone_on / np.maximum(rows[..., place], 1.0)
    return parts


def but_far_flung(ties: FloatArray, counts: FloatArray, edges: FloatArray) -> FloatArray:
    """Those ties, ... x bucket, but for rows in end buckets that are far from each other.

    >>> edges, counts = np.array([0.0, 1e-12, 1e-10, 1.0]), np.array([[20.0, 10.0, 9.0]] * 2)
    >>> but_far_flung(counts, counts, edges).round(2).tolist()
    [[1.73, 10.0, 9.0], [1.73, 10.0, 9.0]]
    """
    tied = ties.copy()
    one = 1.0 - far_flung_in(counts, edges)[..., None, :]
    tied[..., [0, -1]] = np.minimum(tied[..., [0, -1]], one * np.maximum(counts[..., [0, -1]], 0.0))
    return tied
