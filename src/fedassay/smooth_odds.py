"""Noisy counters read through a smooth curve of log-odds.

A score says how likely an example is positive, if not exactly: the log-odds of a positive rise
with those of the score, about as fast, and bend away from them slowly. So few counters tell
what lies between them. None of it is taken for known: the slope may be off by half of itself, and
bends wander as a Brownian path does, over the ranks of the scores. What counters leave open has
the variance of that prior, and is in every interval (docs/adr/0027-smooth-log-odds.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.odds_guess import (
    intercept_for,
    lengths_of,
    marks_of,
    pieces_between,
    score_odds,
    smoothed_through,
)
from fedassay.reconcile import Observed, Sums

_WAVES = 24
# Prior standard deviations, all of logarithms: what is as good as free, a tilt between two
# quantiles, and log-odds. Beyond a reach these may go on as the scores' do, or level off.
_FREE, _TILT = 3.0, 1.0
_INTERCEPT, _SLOPE = 100.0, 0.5
_BEYOND = 0.5
# How many times as high waves of pooled counts and of log-odds may be: what is usual first.
_SIZES = ((1.0, 1.0), (4.0, 1.0), (1.0, 4.0), (4.0, 4.0), (4.0, 16.0))
_CAUTION = 3.0
_MOST_STEPS, _SETTLED = 60, 1e-2
_DAMPING, _STUCK = 1e-2, 1e9
# A step that multiplies a count by more than that, about 20, is one out of sight.
_LONGEST = 3.0
# So many deviations more than counters miss by chance, a curve is not what they say.
_UNLIKELY = 8.0


class Reading(NamedTuple):
    """Counts that fit the counters, and how they may still move."""

    counts: FloatArray
    """Label x leaf."""
    moves: FloatArray
    """How every count moves with every bend, label x leaf x bend."""
    covariance: FloatArray
    """Of the bends, after the counters."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothOdds:
    """Histograms whose pooled counts and log-odds are a guess and bends of it."""

    pooled: FloatArray
    """The guess of all examples' counts per leaf; its sum is their number."""
    odds: FloatArray
    """The guess of log-odds per leaf."""
    of_pooled: FloatArray
    """Bends of the pooled counts' logarithm, leaf x bend; waves are last."""
    of_odds: FloatArray
    """Bends of the log-odds, leaf x bend; waves are last."""
    spreads: FloatArray
    """Prior standard deviation of every bend: those of pooled counts, then those of log-odds."""
    towers: IntArray
    """Leaves with log-odds of their own."""
    total_is_known: bool
    is_lumpy: bool = False
    """Whether every leaf's pooled count is free."""
    sizes: tuple[float, float] = (1.0, 1.0)
    """How many times as high as is usual waves of pooled counts and of log-odds are."""

    @classmethod
    def around(
        cls,
        edges: FloatArray,
        guess: FloatArray,
        *,
        cuts: Sequence[int] = (),
        towers: IntArray | None = None,
        is_lumpy: bool = False,
        total_is_known: bool,
    ) -> "SmoothOdds":
        """Around counts (label x leaf, none negative) that are known roughly.

        Between `cuts`, and between quantiles of the guess, pooled counts are free; leaves that
        are towers have counts and log-odds of their own. Where scores are lumpy all pooled
        counts are free, and nothing but log-odds is smooth.

        >>> edges = np.arange(9) / 8
        >>> family = SmoothOdds.around(edges, np.ones((2, 8)), total_is_known=True)
        >>> family.counts(np.zeros(len(family.spreads))).sum(axis=1).round(3).tolist()
        [8.0, 8.0]
        """
        leaves = len(edges) - 1
        lengths = lengths_of(edges)
        shares = guess / guess.sum(axis=1, keepdims=True)
        marks = marks_of(shares.mean(axis=0), cuts)
        smooth = np.stack([smoothed_through(row, marks, lengths) for row in shares])
        ranks = np.cumsum(smooth.mean(axis=0)) - 0.5 * smooth.mean(axis=0)
        pooled = guess.sum(axis=1) @ smooth
        own = np.zeros(0, np.int64) if towers is None else towers
        near, beyond = score_odds(edges, ranks)
        beyond[own] = 0.0
        odds = near + _BEYOND * beyond
        odds = odds + intercept_for(pooled, odds, float(guess[1].sum()))
        alone = np.eye(leaves)[:, own]
        number = np.arange(1, _WAVES + 1)
        waves = np.sqrt(2.0) * np.cos(np.pi * np.outer(ranks, number))
        falling, free = 1.0 / (np.pi * number), np.full(alone.shape[1], _FREE)
        if is_lumpy:
            of_pooled, pooled_spreads = np.eye(leaves), np.full(leaves, _FREE)
        else:
            pieces, tilts = pieces_between(marks, lengths)
            tilted = np.full(tilts.shape[1], _TILT)
            tilted[[0, -1]] = _FREE
            of_pooled = np.hstack([pieces, alone, tilts, waves])
            pooled_spreads = np.concatenate([np.full(len(tilted), _FREE), free, tilted, falling])
        of_odds = np.hstack([np.column_stack([np.ones(leaves), near, beyond]), alone, waves])
        odds_spreads = np.concatenate([[_INTERCEPT, _SLOPE, _BEYOND], free, falling])
        spreads = np.concatenate([pooled_spreads, odds_spreads])
        return cls(pooled, odds, of_pooled, of_odds, spreads, own, total_is_known, is_lumpy)

    def rougher(self, pooled: float, odds: float) -> "SmoothOdds":
        """The same with waves so many times as high."""
        spreads, first = self.spreads.copy(), self.of_pooled.shape[1]
        if not self.is_lumpy:
            spreads[first - _WAVES : first] *= pooled
        spreads[-_WAVES:] *= odds
        return replace(self, spreads=spreads, sizes=(pooled, odds))

    def counts(self, bends: FloatArray) -> FloatArray:
        """Label x leaf."""
        first = self.of_pooled.shape[1]
        pooled = self.pooled * np.exp(_within(self.of_pooled @ bends[:first], 30.0))
        if self.total_is_known:
            pooled *= self.pooled.sum() / pooled.sum()
        odds = _within(self.odds + self.of_odds @ bends[first:], 50.0)
        positive = 1.0 / (1.0 + np.exp(-odds))
        counts = np.empty((2, len(pooled)))
        np.multiply(pooled, 1.0 - positive, out=counts[0])
        np.multiply(pooled, positive, out=counts[1])
        return counts

    def moves(self, counts: FloatArray) -> FloatArray:
        """How counts move with every bend, at these counts: label x leaf x bend."""
        pooled = np.maximum(counts.sum(axis=0), 1e-300)
        of_pooled = self._shares(pooled)
        swing = (counts[0] * counts[1] / pooled)[:, None] * self.of_odds
        rows = zip(counts, (-swing, swing), strict=True)
        return np.stack([np.hstack([row[:, None] * of_pooled, swung]) for row, swung in rows])

    def _shares(self, pooled: FloatArray) -> FloatArray:
        """Bends of the pooled counts' logarithm, which leave a total that is known as it is."""
        of_pooled = self.of_pooled
        if self.total_is_known:
            of_pooled = of_pooled - pooled @ of_pooled / pooled.sum()
        return of_pooled

    def tried(self, observed: Observed) -> "list[Read]":
        """The likeliest counts of every prior: as smooth as is usual, and rougher."""
        sums, bends, reads = Sums.of(observed), np.zeros(len(self.spreads)), list[Read]()
        for pooled, odds in _SIZES:
            if self.is_lumpy and pooled > 1.0:
                continue
            reads.append(self.rougher(pooled, odds)._read(sums, bends))
            bends = reads[0].bends
        return reads

    def likeliest(self, observed: Observed) -> Reading:
        """The reading of the prior that has most evidence."""
        return self.cautiously(most_evident(self.tried(observed)), observed)

    def cautiously(self, best: "Read", observed: Observed) -> Reading:
        """The likeliest counts, and how far they may move.

        Of scores that bend three times as far as is usual, intervals are still to hold.
        """
        cautious = np.maximum(best.family.spreads, self.cautious().spreads)
        return replace(self, spreads=cautious).reading(best.counts, observed)

    def cautious(self) -> "SmoothOdds":
        """The same with bends as high as intervals allow for."""
        return replace(self, spreads=_CAUTION * self.spreads)

    def reading(self, counts: FloatArray, observed: Observed) -> Reading:
        """Counts, and how far they may move: as their sizes and the guess's allow.

        What noise took to 0 may be off by as much as the guess is large; of a tower nothing is
        guessed but that it may be like all others.
        """
        guess = self.counts(np.zeros(len(self.spreads)))
        rates = counts.sum(axis=1) / counts.sum()
        guess[:, self.towers] = np.outer(rates, counts[:, self.towers].sum(axis=0))
        at = 0.5 * (counts + guess)
        precision = self._precision(at, Sums.of(observed))
        covariance = np.linalg.inv(precision).astype(np.float64, copy=False)
        return Reading(counts, self.moves(at), covariance)

    def read(self, observed: Observed) -> "Read":
        """The likeliest counts of this prior."""
        return self._read(Sums.of(observed), np.zeros(len(self.spreads)))

    def _read(self, sums: Sums, bends: FloatArray) -> "Read":
        """The likeliest counts, from such bends on (Levenberg-Marquardt)."""
        counts, damping = self.counts(bends), _DAMPING
        badness = self._badness(bends, counts, sums)
        for _ in range(_MOST_STEPS):
            precision, pull = self._precision(counts, sums), self._pull(bends, counts, sums)
            step = _damped(precision, pull, damping)
            # Undamped it is at least as long: most steps are plainly too long to stop at.
            if pull @ step < _SETTLED and pull @ np.linalg.solve(precision, pull) < _SETTLED:
                break
            while True:
                tried = bends + step * min(1.0, _LONGEST / self._furthest(step))
                reached = self.counts(tried)
                found = self._badness(tried, reached, sums)
                if found <= badness or damping > _STUCK:
                    break
                damping *= 4.0
                step = _damped(precision, pull, damping)
            if found > badness:
                break
            bends, counts, badness, damping = tried, reached, found, damping / 10.0
        spread = float(np.linalg.slogdet(precision)[1]) + 2.0 * float(np.log(self.spreads).sum())
        return Read(self, bends, counts, -0.5 * (badness + spread), precision)

    def _furthest(self, step: FloatArray) -> float:
        """How far a step moves the logarithm of any leaf's pooled count, or its log-odds."""
        first = self.of_pooled.shape[1]
        moved = (self.of_pooled @ step[:first], self.of_odds @ step[first:])
        return max(*(float(np.abs(each).max()) for each in moved), 1e-300)

    def _badness(self, bends: FloatArray, counts: FloatArray, sums: Sums) -> float:
        missed = (sums.values - sums.over(counts)) ** 2 / sums.variances
        return float(missed.sum() + ((bends / self.spreads) ** 2).sum())

    def _pull(self, bends: FloatArray, counts: FloatArray, sums: Sums) -> FloatArray:
        """Where counters would have the bends go, less what holds them back."""
        held = sums.told - sums.felt(counts[..., None])[..., 0]
        pooled, swing = _pooled_and_swing(counts)
        of_both = (counts * held).sum(axis=0)
        pull = np.append(self.of_pooled.T @ of_both, self.of_odds.T @ (swing * (held[1] - held[0])))
        if self.total_is_known:
            first = self.of_pooled.shape[1]
            pull[:first] -= (pooled @ self.of_pooled) * (of_both.sum() / pooled.sum())
        return pull - bends / self.spreads**2

    def _precision(self, counts: FloatArray, sums: Sums) -> FloatArray:
        """Of the bends, after the counters, at these counts: M'WM + 1 / spreads^2.

        M is what `moves` says, and its two labels have the same bends in them, each leaf's
        times a number. So counters of one leaf need no product for each label, and of M itself
        nothing is made but the sums over wider counters.
        """
        pooled, swing = _pooled_and_swing(counts)
        of_pooled, of_odds, first = self._shares(pooled), self.of_odds, self.of_pooled.shape[1]
        weighed = counts * sums.lone
        precision = np.empty((len(self.spreads), len(self.spreads)))
        own = np.sqrt((counts * weighed).sum(axis=0))[:, None] * of_pooled
        precision[:first, :first] = own.T @ own
        crossed = of_pooled.T @ ((swing * (weighed[1] - weighed[0]))[:, None] * of_odds)
        precision[:first, first:], precision[first:, :first] = crossed, crossed.T
        own = (swing * np.sqrt(sums.lone.sum(axis=0)))[:, None] * of_odds
        precision[first:, first:] = own.T @ own
        swings = np.stack([-swing, swing])
        seen = [
            (sums.wide * moved[:, None]).reshape(-1, len(swing)) @ of_bends
            for moved, of_bends in ((counts, of_pooled), (swings, of_odds))
        ]
        wide = np.hstack(seen)
        precision += wide.T @ wide
        precision[np.diag_indices(len(self.spreads))] += 1.0 / self.spreads**2
        return precision


class Read(NamedTuple):
    """The likeliest counts of a prior, and what speaks for it."""

    family: SmoothOdds
    bends: FloatArray
    counts: FloatArray
    evidence: float
    """Its logarithm, up to what all priors have in common."""
    precision: FloatArray
    """Of the bends, after the counters."""

    def follows(self, observed: Observed) -> bool:
        """Whether counters miss these counts by no more than noise makes them.

        Of n counters the squared misses, over their variances, are about n, give or take
        sqrt(2 n).
        """
        sums = Sums.of(observed)
        missed = (sums.values - sums.over(self.counts)) ** 2 / sums.variances
        return bool(missed.sum() < missed.size + _UNLIKELY * (2.0 * missed.size) ** 0.5)


def most_evident(tried: "Sequence[Read]") -> "Read":
    """The likeliest counts of the prior that most speaks for."""
    return max(tried, key=lambda each: each.evidence)


def _pooled_and_swing(counts: FloatArray) -> FloatArray:
    """All of a leaf's counts, and how many cross over as its log-odds rise by 1."""
    pooled = np.maximum(counts.sum(axis=0), 1e-300)
    return np.stack([pooled, counts[0] * counts[1] / pooled])


def _within(values: FloatArray, most: float) -> FloatArray:
    """Neither above nor below so much: `np.clip` takes longer than all else of short rows."""
    return np.minimum(np.maximum(values, -most), most)


def _damped(precision: FloatArray, pull: FloatArray, damping: float) -> FloatArray:
    """The step that a pull makes, shortened as Marquardt has it."""
    damped, place = precision.copy(), np.arange(len(precision))
    damped[place, place] *= 1.0 + damping
    return np.linalg.solve(damped, pull).astype(np.float64, copy=False)


def table_covariance(
    reading: Reading, observed: Observed, *, table: FloatArray | None
) -> FloatArray:
    """Of errors against the clients' own counts, over negatives then positives per leaf.

    Counters of a part of the clients vary with who they are, and so does the table of all of
    them. With J the moves, C their covariance, F the counters' precision and T the
    covariance of a table that is drawn from a population, errors against that table have
    K - H T - T H' + T, where K = J C J' and H = K F. Without `table`, K.
    """
    moves = reading.moves.reshape(-1, reading.moves.shape[-1])
    half = 0.5 * moves
    if table is not None:
        felt, flat = Sums.of(observed).felt(reading.moves).reshape(moves.shape), table.ravel()
        half -= flat[:, None] * (felt - flat @ felt / flat.sum())
    half = half @ reading.covariance
    if table is not None:
        # T is the counts on the diagonal less an outer product, which goes along with the rest.
        moves = np.column_stack([moves, flat])
        half = np.column_stack([half, -0.5 * flat / flat.sum()])
    one_side = half @ moves.T
    against: FloatArray = one_side + one_side.T
    if table is not None:
        against[np.diag_indices(len(flat))] += flat
    return against
