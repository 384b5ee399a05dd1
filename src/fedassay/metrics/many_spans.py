"""What buckets hide, of several exact histograms on the same edges at once: a search asks it often.

The same as `spans.possible_pairs` and `lattices.lattice` have it of each.
"""

from collections.abc import Sequence

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.lattices import APART, LATTICE, has_room_for_one
from fedassay.metrics.range_noise import FEW
from fedassay.metrics.spans import exact_groups, openness_of_groups
from fedassay.ties import FEWEST_TIED, but_far_flung, far_flung_in, spikes_of, ties_of

_TINY = 1e-300


def spikes_and_ties(
    histograms: Sequence[ScoreHistogram], counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """As each histogram has them, all histogram x label x bucket as their counts are.

    >>> edges = np.array([0.0, 0.5, 0.5001, 1.0])
    >>> h = ScoreHistogram(edges, np.array([[9.0, 9.0, 9.0], [0.0, 9.0, 0.0]]))
    >>> spikes, ties = spikes_and_ties([h, h], np.stack([h.counts] * 2))
    >>> bool((ties[1] == h.ties).all()), bool((spikes[1] == h.spikes).all())
    (True, True)
    """
    first = histograms[0]
    if len(histograms) == 1:
        return first.spikes[None], first.ties[None]
    spikes, totals = spikes_of(counts, first.widths), counts.sum(axis=2).sum(axis=1)
    ties = ties_of(spikes, totals[:, None, None] * first.widths, first.is_narrow)
    return spikes, but_far_flung(ties, counts, first.edges)


def many_possible_pairs(
    on: ScoreHistogram, counts: FloatArray, spikes: FloatArray, ties: FloatArray
) -> FloatArray:
    """How many pairs of each may be in the wrong order, if all goes wrong.

    All are histogram x label x bucket, `on` one of the histograms. No count is negative.

    >>> even = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.full((2, 2), 100.0))
    >>> counts = np.stack([even.counts] * 2)
    >>> many_possible_pairs(even, counts, np.zeros((2, 2, 2)), np.zeros((2, 2, 2))).tolist()
    [0.0, 0.0]
    """
    tied, share = _lattices(on, counts, ties)
    rows, tied_rows = counts.sum(axis=1), tied.sum(axis=1)
    elsewhere = np.maximum(rows.sum(axis=1)[:, None] - rows, _TINY)
    tied_elsewhere = (tied_rows.sum(axis=1)[:, None] - tied_rows) / elsewhere
    tied_elsewhere = np.clip(np.maximum(tied_elsewhere, share[:, None]), 0.0, 1.0)
    openness, loose = _openness(counts), counts - tied
    pairs = 0.5 * loose[:, 0] * loose[:, 1] * openness ** (3.0 - 2.0 * tied_elsewhere)
    far_flung = far_flung_in(counts, on.edges)
    for end in (0, -1):
        clear = np.where(spikes[..., end] >= FEWEST_TIED, spikes[..., end], 0.0)
        apart = far_flung[:, end, None] * counts[..., end]
        n, p = np.maximum(loose[..., end] - clear, apart).T
        pairs[:, end] = np.maximum(pairs[:, end], 0.5 * n * p * openness[:, end])
    sums: FloatArray = pairs.sum(axis=1)
    return sums


def _openness(counts: FloatArray) -> FloatArray:
    """How far neighbours leave the order open, histogram x bucket: all groups in one row."""
    buckets = counts.shape[2]
    of_each = [exact_groups(each) for each in counts]
    starts = np.concatenate([each + place * buckets for place, each in enumerate(of_each)])
    row = counts.swapaxes(0, 1).reshape(2, -1)
    grouped = np.add.reduceat(row, starts, axis=1)
    sizes = np.diff(np.append(starts, row.shape[1]))
    whole = np.repeat(np.maximum(grouped, _TINY), sizes, axis=1)
    part = np.minimum((row / whole).max(axis=0), 1.0)
    lasts: IntArray = np.cumsum([len(each) for each in of_each]) - 1
    openness: FloatArray = np.repeat(openness_of_groups(grouped, lasts), sizes) * part
    return openness.reshape(-1, buckets)


def _lattices(
    on: ScoreHistogram, counts: FloatArray, ties: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Tied rows, histogram x label x bucket, and the share of telling buckets that show a tie."""
    rows = counts.sum(axis=1)
    beside = np.zeros((len(rows), on.buckets + 2))
    beside[:, 1:-1] = rows / on.widths
    expected = 2.0 * np.maximum(beside[:, :-2], beside[:, 2:]) * on.widths
    is_clear = rows >= FEW
    is_apart = (expected <= (1.0 - APART) * rows) & is_clear
    is_apart &= has_room_for_one(on)
    is_apart &= is_apart.sum(axis=1, keepdims=True) >= LATTICE
    tied = np.minimum(np.maximum(ties, np.where(is_apart[:, None], counts, 0.0)), counts)
    is_tied = is_clear & (tied.sum(axis=1) > 0.5 * rows)
    telling = (is_clear & (on.is_narrow | is_tied)).sum(axis=1)
    number = is_tied.sum(axis=1)
    return tied, np.where(number >= LATTICE, number / np.maximum(telling, 1), 0.0)
