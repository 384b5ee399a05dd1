"""Scores on a lattice: which buckets are seen to hold one score each, and what that says of others.

Scores are rounded, or come from a few leaves of a tree. Narrow buckets show it, and buckets
among empty ones; in a wide one between full neighbours many rows of one score look like a smooth
stretch. Where all buckets that can tell hold ties, those that cannot hold them as well.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import floor, log10, sqrt

import numpy as np
import numpy.typing as npt

from fedassay.estimate import REACH
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.copies import COPIES
from fedassay.metrics.range_noise import CLEAR, FEW, cell_noise_sd

LATTICE = 3
"""So many spikes apart from each other are tied scores: one alone may be a narrow hump."""
APART = 0.9
"""So much of a spike is more than its neighbours explain."""
WIDE = 0.25
"""A bucket of so much of its distance from 0 or 1 has room for several scores."""
_ONE_IN_TEN = 0.1
_INNER = 3
# Edges are decimals, and their differences nearly so.
_NEARLY = 1.0 + 1e-6
_MOST_DIGITS = 10
_A_TENTH_MORE = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The ties of a histogram, and how likely another bucket holds some."""

    tied: FloatArray
    """Tied rows, label x bucket."""
    share: float
    """Of the buckets that would show a tie, and have enough rows for one, those that do."""
    spacing: float
    """How far apart two ties usually are."""

    @property
    def part(self) -> float:
        """How much of what a tie in one bucket may do an interval needs, if it is there by chance.

        A threshold is at a tied score as often as not, and the tie then all on one side: from a
        chance of one in ten on that is more than one interval in twenty. Below, less of it.
        """
        return min(self.share / _ONE_IN_TEN, 1.0) ** 2

    def likely(self, histogram: ScoreHistogram) -> FloatArray:
        """How many rows have the score of others, label x bucket: seen, or as in other buckets."""
        counts = np.maximum(histogram.counts, 0.0)
        rows: FloatArray = np.maximum(histogram.ties, self.share * counts)
        return rows

    def largest(self, own: FloatArray, width: float) -> FloatArray:
        """How many of a bucket's rows may have one score, per label.

        As many as any tie has that was seen, or one of as many even ones as the bucket has room
        for; no more than there are.
        """
        even = own * min(self.spacing / width, 1.0)
        sizes: FloatArray = np.minimum(np.maximum(self.tied.max(axis=1), even), own)
        return sizes


@lru_cache(maxsize=4)
def lattice(histogram: ScoreHistogram) -> Lattice:
    """The ties that are plain to see, and the share of buckets that show one.

    The last answers are kept, because several metrics ask for them one after the other.

    >>> rows = np.tile([0.0, 90.0, 0.0, 0.0], 16)
    >>> found = lattice(ScoreHistogram(np.arange(65) / 64, np.stack([rows, rows])))
    >>> found.share, found.spacing, found.tied.sum() / 180  # not next to 0 and 1
    (1.0, 0.0625, np.float64(14.0))
    """
    noise_sd = cell_noise_sd(histogram)
    counts = np.maximum(histogram.counts, 0.0)
    tied = np.minimum(np.maximum(histogram.ties, _apart(histogram, noise_sd)), counts)
    is_clear = counts.sum(axis=0) >= FEW + CLEAR * noise_sd * sqrt(2.0)
    is_tied = is_clear & (tied.sum(axis=0) > 0.5 * counts.sum(axis=0))
    telling = int((is_clear & (histogram.is_narrow | is_tied)).sum())
    if is_tied.sum() < LATTICE:
        return Lattice(tied, 0.0, 0.0)
    middles = 0.5 * (histogram.edges[:-1] + histogram.edges[1:])[is_tied]
    return Lattice(tied, float(is_tied.sum()) / telling, float(np.median(np.diff(middles))))


def _apart(histogram: ScoreHistogram, noise_sd: float) -> FloatArray:
    """Spikes among nearly empty neighbours, where there are several: tied scores.

    Not at the ends, where scores crowd, nor in wide buckets, such as merged ones, which may hold
    several. A narrow hump would be one, and would touch an edge.
    """
    counts = np.maximum(histogram.counts, 0.0)
    total = counts.sum(axis=0)
    density = total / histogram.widths
    beside = np.zeros(len(density) + 2)
    beside[1:-1] = density
    expected = 2.0 * np.maximum(beside[:-2], beside[2:]) * histogram.widths
    is_apart = expected <= (1.0 - APART) * total
    is_apart &= total >= FEW + CLEAR * noise_sd * sqrt(2.0)
    is_apart &= has_room_for_one(histogram)
    if is_apart.sum() < LATTICE:
        return np.zeros_like(counts)
    return np.where(is_apart, counts, 0.0)


def has_room_for_one(histogram: ScoreHistogram) -> npt.NDArray[np.bool_]:
    """Which buckets a spike among empty ones may be one score in: neither wide nor at an end.

    >>> edges = np.array([0.0, 0.1, 0.11, 0.5, 1.0])
    >>> has_room_for_one(ScoreHistogram(edges, np.ones((2, 4)))).tolist()
    [False, True, False, False]
    """
    middle = 0.5 * (histogram.edges[:-1] + histogram.edges[1:])
    fits: npt.NDArray[np.bool_] = histogram.widths <= WIDE * np.minimum(middle, 1.0 - middle)
    fits[[0, -1]] = False
    return fits


@lru_cache(maxsize=4)
def unseen_rounding(histogram: ScoreHistogram) -> float:
    """To which decimals scores may have been rounded without exact counts showing it.

    Of scores rounded more coarsely than two neighbouring buckets are wide, one would be empty;
    of those whose decimals are no edges, rows are on either side of their buckets' middles.
    Under noise nothing of the kind is seen, and errors are larger anyway: 0.

    >>> full = ScoreHistogram(np.array([0.0, 0.5, 0.75, 1.0]), np.full((2, 3), 50.0))
    >>> round(unseen_rounding(full), 9)
    0.01
    """
    if not histogram.noise.is_zero:
        return 0.0
    held = histogram.counts.sum(axis=0) > 0.0
    both = held[1:] & held[:-1]
    if not both.any():
        return 0.0
    wider = np.maximum(histogram.widths[1:], histogram.widths[:-1])[both]
    coarsest = -floor(log10(float(wider.min()) * _NEARLY))
    for digits in range(max(coarsest, 0), _MOST_DIGITS):
        places = histogram.edges[1:-1][both] * 10.0**digits
        if (np.abs(places - np.round(places)) < _NEARLY - 1.0).all():
            return float(10.0**-digits)
    return 0.0


def unseen_shifts(histogram: ScoreHistogram) -> FloatArray:
    """How far off all of a bucket's scores may be at once, since none shows their decimals.

    Half of a rounding, and a tenth more: at its very end an interval would hold every other value.

    >>> full = ScoreHistogram(np.array([0.0, 0.5, 0.75, 1.0]), np.full((2, 3), 50.0))
    >>> unseen_shifts(full).round(4).tolist()
    [0.0055, 0.0055, 0.0055]
    """
    return 0.5 * _A_TENTH_MORE * np.minimum(unseen_rounding(histogram), histogram.widths)


def lone_heaps(histogram: ScoreHistogram) -> FloatArray:
    """Rows of inner buckets, label x bucket, that the denser neighbour's density does not explain.

    In a bucket that towers by more than chance and noise make, these may have one score, and that
    may be a round one, as edges are, or the very threshold that was asked for.

    >>> lone_heaps(ScoreHistogram(np.arange(4) / 3, np.array([[9.0, 99.0, 9.0]] * 2))).tolist()
    [[0.0, 90.0, 0.0], [0.0, 90.0, 0.0]]
    """
    counts, least = np.maximum(histogram.counts, 0.0), FEW + CLEAR * cell_noise_sd(histogram)
    if histogram.buckets < _INNER:
        return np.zeros_like(counts)
    density = counts / histogram.widths
    more = counts[:, 1:-1].copy()
    more -= np.maximum(density[:, :-2], density[:, 2:]) * histogram.widths[1:-1]
    heaps = np.zeros_like(counts)
    # Of all rows together: a rare class may have none in excess.
    is_heap = (more[0] > 0.0) & (more.sum(axis=0) > sqrt(2.0) * least)
    is_heap &= more.sum(axis=0) > REACH * np.sqrt(COPIES * counts[:, 1:-1].sum(axis=0))
    heaps[:, 1:-1] = np.where(is_heap, np.maximum(more, 0.0), 0.0)
    return heaps
