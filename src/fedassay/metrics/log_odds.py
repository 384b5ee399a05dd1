"""Log-odds of the scores in a histogram: each bucket in pieces, finer where log-odds run away.

Scores are clipped to [eps, 1 - eps] with eps = 2^-52, as log loss clips them: a score of
exactly 0 counts as log-odds of -36.04, one of exactly 1 as 36.04.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.interpolation import cubic
from fedassay.metrics.copies import COPIES
from fedassay.metrics.delta_method import gradient_of_buckets
from fedassay.metrics.lattices import lattice
from fedassay.metrics.range_noise import range_noise
from fedassay.metrics.spans import clear_spikes
from fedassay.noise import is_smoothed

EPS = float(np.finfo(np.float64).eps)
PIECES = 8
_FEW_BUCKETS = 2**11
# A bucket whose ends are so many times apart, from 0 or from 1, is cut by halves instead.
_FAR_APART = 4.0
# Densities so many times apart are no smooth stretch of scores.
_STEEP = 4.0
# What a uniform score's logarithm varies by is 1, whatever the bucket; a range has range^2 / 12.
_LIKELY_RANGE = 12.0**0.5
_NEAREST = 1e-12
_LARGEST_POWER = 64.0
# A logarithm that chance and noise move so far may be any.
_FURTHEST = 30.0


def log_odds(scores: FloatArray) -> FloatArray:
    """log(s / (1 - s)) of clipped scores.

    >>> log_odds(np.array([0.0, 0.5])).round(2).tolist()
    [-36.04, 0.0]
    """
    clipped = np.clip(scores, EPS, 1.0 - EPS)
    odds: FloatArray = np.log(clipped) - np.log1p(-clipped)
    return odds


@dataclass(frozen=True, eq=False)
class PiecedHistogram:
    """A histogram's buckets in pieces, with the mean log-odds of each."""

    histogram: ScoreHistogram
    cuts: FloatArray
    """Where each bucket is cut, as parts of its width, bucket x (piece + 1)."""

    @property
    def pieces(self) -> int:
        """How many a bucket has."""
        return int(self.cuts.shape[1]) - 1

    @cached_property
    def edges(self) -> FloatArray:
        """Scores at the cuts, bucket x (piece + 1)."""
        low, high = self.histogram.edges[:-1, None], self.histogram.edges[1:, None]
        # From either end, so that what is next to 1 keeps its distance from it.
        cut: FloatArray = np.where(self.cuts < 0.5, low + self.cuts * (high - low),
                                   high - (1.0 - self.cuts) * (high - low))  # fmt: skip
        return cut

    @cached_property
    def odds(self) -> FloatArray:
        """Mean log-odds over each piece if scores lie evenly in it, bucket x piece.

        A first or last bucket may hold nothing but 0 or 1 (`holds_an_end`), as in log loss.
        """
        low, high = self.edges[:, :-1], self.edges[:, 1:]
        odds: FloatArray = _mean_log(low, high) - _mean_log(1.0 - high, 1.0 - low)
        for place, holds_an_end in zip((0, -1), self.histogram.holds_an_end, strict=True):
            if holds_an_end:
                odds[place] = self._at_end(place)
        return odds

    def _at_end(self, place: int) -> float:
        """The log-odds of 0 or 1, or the middle of these and the bucket's edge where rows go on."""
        inner = self.histogram.edges[1 if place == 0 else -2]
        exact, near = log_odds(np.array([self.histogram.edges[place], inner])).tolist()
        return float(exact + 0.5 * self.histogram.far_flung[place] * (near - exact))

    @cached_property
    def ends(self) -> FloatArray:
        """Log-odds at the cuts, bucket x (piece + 1)."""
        return log_odds(self.edges)

    @cached_property
    def likely_ends(self) -> FloatArray:
        """The same, but what reaches to 0 or 1 only as far as evenly spread scores vary."""
        ends, (first, last) = self.ends.copy(), self._outermost
        if self.edges[first, 0] <= EPS:
            ends[first, 0] = max(ends[first, 0], ends[first, 1] - _LIKELY_RANGE)
        if self.edges[last, -1] >= 1.0 - EPS:
            ends[last, -1] = min(ends[last, -1], ends[last, -2] + _LIKELY_RANGE)
        return ends

    @property
    def _outermost(self) -> tuple[int, int]:
        """The first and the last bucket, but for heaps at exactly 0 and 1."""
        return self.histogram.stretch[0], self.histogram.stretch[-1]

    @cached_property
    def scores(self) -> FloatArray:
        """The middle of each piece, bucket x piece."""
        middle: FloatArray = 0.5 * (self.edges[:, :-1] + self.edges[:, 1:])
        return middle

    @cached_property
    def counts(self) -> FloatArray:
        """Interpolated counts, label x bucket x piece; noisy ones may be negative."""
        return self.counts_of(self.histogram)

    @cached_property
    def even_counts(self) -> FloatArray:
        """Counts if scores lay evenly in their buckets, label x bucket x piece."""
        even: FloatArray = self.histogram.counts[..., None] * np.diff(self.cuts, axis=1)
        return even

    @cached_property
    def shares(self) -> FloatArray:
        """What part of a bucket's examples each piece holds, label x bucket x piece."""
        counts = self.histogram.counts[..., None]
        even = np.broadcast_to(np.diff(self.cuts, axis=1), self.counts.shape)
        filled = counts != 0.0
        return np.where(filled, self.counts / np.where(filled, counts, 1.0), even)

    def mean(self, of_pieces: FloatArray) -> FloatArray:
        """Means over each bucket's examples, ... x label x bucket."""
        means: FloatArray = (of_pieces * self.shares).sum(axis=-1)
        return means

    def doubt(self, of_pieces: FloatArray) -> float:
        """How far a sum over examples may be off where scores crowd at one end of buckets."""
        return float(np.sqrt((self.doubts(of_pieces) ** 2).sum()))

    def doubts(self, of_pieces: FloatArray) -> FloatArray:
        """The same for each bucket's sum.

        In such a bucket scores may as well lie evenly in log-odds; the more so, the more its
        density differs from its neighbours'. Next to 0 and 1 counts say more, unless they were
        smoothed: there a class lies no further towards the end than by the power of the distance
        from it that it has beside its bucket, give or take chance and noise. Of pieces: (label x)
        bucket x piece.
        """
        if self.pieces == 1:
            return np.zeros(self.histogram.buckets)
        step = np.diff(self.likely_ends, axis=1)
        whole = step.sum(axis=1, keepdims=True)
        even_in_odds = np.where(
            whole > 0.0, step / np.where(whole > 0.0, whole, 1.0), np.diff(self.cuts, axis=1)
        )
        counts = np.maximum(self.histogram.counts, 0.0)
        means = self.mean(of_pieces)
        moved = (of_pieces * even_in_odds).sum(axis=-1) - means
        sums: FloatArray = (counts * moved).sum(axis=0)
        if not is_smoothed(self.histogram.noise) and len(self.histogram.stretch) > 1:
            of_both = np.broadcast_to(of_pieces, self.counts.shape)
            for end, inwards in zip(self._outermost, (1, -1), strict=True):
                by_powers = self._by_powers(end, inwards)
                ways = (of_both[:, end] * by_powers).sum(axis=-1) - means[:, end]
                powers = np.hypot(*np.abs(counts[:, end] * ways).max(axis=0))
                even = abs(float(sums[end]))
                tied = self._tied_at(end)
                sums[end] = tied * even + (1.0 - tied) * min(even, float(powers))
        return sums * self._steepness

    def _tied_at(self, end: int) -> float:
        """How likely the scores of the first or last bucket are a few values, and no power.

        As in other buckets; and under noise, where cells are wide, as far as it towers by itself.
        """
        elsewhere, histogram = lattice(self.histogram).share, self.histogram
        if histogram.noise.is_zero:
            return elsewhere
        rows = max(float(np.maximum(histogram.counts[:, end], 0.0).sum()), 1.0)
        return min(max(elsewhere, float(clear_spikes(histogram)[:, end].sum()) / rows), 1.0)

    def _by_powers(self, end: int, inwards: int) -> FloatArray:
        """What part of a class each piece of the first or last bucket holds, way x label x piece.

        With F = A x^a at a distance x from the end, n of a class in the bucket and m in the next,
        which reaches r times as far, a = log(1 + m/n) / log(r); chance and noise move log(m/n) by a
        deviation. The least power is that of scores which lie evenly in log-odds. Inwards is a step
        of 1 from the first bucket, of -1 from the last.
        """
        histogram = self.histogram
        places = [end, end + inwards]
        own, other = np.maximum(histogram.counts[:, places], 1.0).T
        if inwards > 0:
            near, far = histogram.edges[[end + 1, end + 2]]
        else:
            near, far = 1.0 - histogram.edges[[end, end - 1]]
        noise = range_noise(histogram)
        by_noise = np.array([[noise.sd(label, at, at + 1) for label in (0, 1)] for at in places])
        relative = COPIES * (1.0 / own + 1.0 / other) + ((by_noise / [own, other]) ** 2).sum(axis=0)
        spread = np.minimum(np.sqrt(relative), _FURTHEST)
        ratios = other / own * np.exp(np.stack([-spread, spread]))
        reach = np.abs(self.likely_ends[end, -1] - self.likely_ends[end, 0])
        apart = float(np.log(far) - np.log(near))
        powers = np.log1p(ratios) / max(apart, _NEAREST)
        powers = np.clip(powers, 2.0 / max(float(reach), _NEAREST), _LARGEST_POWER)
        cuts = self.cuts[end] if inwards > 0 else 1.0 - self.cuts[end]
        shares: FloatArray = np.abs(np.diff(cuts ** powers[..., None], axis=-1))
        return shares

    @property
    def _steepness(self) -> FloatArray:
        """From 0 where neighbouring buckets are as dense to 1 where they differ four times.

        A heap at exactly 0 or 1 is no neighbour.
        """
        density = np.log(np.maximum(self.histogram.counts.sum(axis=0), 1.0) / self.histogram.widths)
        jump = np.abs(np.diff(density))
        jump[: self.histogram.stretch.start] = 0.0
        jump[self.histogram.stretch.stop - 1 :] = 0.0
        steepest = np.maximum(np.append(jump, 0.0), np.append(0.0, jump))
        steepness: FloatArray = np.minimum(steepest / np.log(_STEEP), 1.0)
        return steepness

    def gradients(self, of_pieces: FloatArray) -> FloatArray:
        """How sums over examples move with each count, ... x label x bucket.

        Of pieces: ... x label x bucket x piece, what an example there adds to each sum. Counts
        also move where their neighbours lie in their buckets.
        """
        if self.pieces == 1:
            alone: FloatArray = of_pieces[..., 0]
            return alone

        def sums(counts: FloatArray) -> FloatArray:
            moved = replace(self.histogram, counts=counts)
            summed: FloatArray = (self.counts_of(moved) * of_pieces).sum(axis=(-3, -1))
            return summed

        return gradient_of_buckets(self.histogram, sums)

    def counts_of(self, histogram: ScoreHistogram) -> FloatArray:
        """Interpolated counts of another histogram with the same buckets."""
        if self.pieces == 1:
            return histogram.counts[..., None]
        start = (histogram.slopes[:, :-1] * histogram.widths)[..., None]
        end = (histogram.slopes[:, 1:] * histogram.widths)[..., None]
        return np.diff(cubic(self.cuts, histogram.counts[..., None], start, end), axis=-1)


@lru_cache(maxsize=1)
def in_pieces(histogram: ScoreHistogram) -> PiecedHistogram:
    """Cut every bucket into pieces; those that reach to 0 or 1 by halves towards that end.

    The last answer is kept, because several figures ask for it one after the other.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.ones((2, 2)))
    >>> in_pieces(h).cuts[0, :3].tolist()
    [0.0, 0.0078125, 0.015625]
    """
    if not histogram.smooth or histogram.buckets > _FEW_BUCKETS:
        return PiecedHistogram(histogram, np.tile([0.0, 1.0], (histogram.buckets, 1)))
    even = np.arange(PIECES + 1) / PIECES
    halves = np.append(0.0, 2.0 ** np.arange(1 - PIECES, 1))
    low, high = histogram.edges[:-1], histogram.edges[1:]
    cuts = np.tile(even, (histogram.buckets, 1))
    cuts[high > _FAR_APART * low] = halves
    cuts[(1.0 - low > _FAR_APART * (1.0 - high)) & ~(high > _FAR_APART * low)] = 1.0 - halves[::-1]
    return PiecedHistogram(histogram, cuts)


def _mean_log(low: FloatArray, high: FloatArray) -> FloatArray:
    """The mean of log x over [low, high], x no less than eps; its middle where that is narrow."""
    at_low, at_high = np.log(np.maximum(low, EPS)), np.log(np.maximum(high, EPS))
    width = high - low
    wide = width > 1e-6 * np.maximum(high, EPS)
    rise = high * at_high - low * at_low
    mean = np.where(wide, rise / np.where(wide, width, 1.0) - 1.0, 0.5 * (at_low + at_high))
    return np.clip(mean, at_low, at_high)
