"""Noisy counters read through a smooth curve of log-odds.

A score says how likely an example is positive, if not exactly: the log-odds of a positive rise
with those of the score, about as fast, and bend away from them slowly. Few counters then tell
what lies between them. How fast is not taken for known: the slope is free, by half of itself, and
the bends wander as a Brownian path does, over the ranks of the scores. What counters leave open
has the variance of that prior, and so is in every interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.interpolation import cubic, monotone_slopes
from fedassay.reconcile import Observed

_MARKS = 16
_TAILS = 3
_WAVES = 24
_FLOOR = 1e-4
# Leaves of a first survey: 128ths, near the ends a fifth of what they are away from them.
_COARSEST = 2.0**-7
_OF_DISTANCE = 0.2
# Prior standard deviations, all of logarithms. A piece of the pooled counts may be off by e^3
# and more; a slope of log-odds is 1 in a calibrated classifier.
_FREE = 3.0
_TILT = 1.0
_SLOPE = 0.5
_INTERCEPT = 100.0
# This far from the median, log-odds may go on as the scores' do, or level off: a half, by a half.
_REACH = 3.0
_BEYOND = 0.5
_FURTHEST = 9.0
_SIZES = (1.0, 4.0)
_CAUTION = 2.0
_MOST_STEPS = 60
_SETTLED = 1e-2
_STUCK = 1e9


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
    """Bends of the pooled counts' logarithm, leaf x bend."""
    of_odds: FloatArray
    """Bends of the log-odds, leaf x bend."""
    spreads: FloatArray
    """Prior standard deviation of every bend: those of pooled counts, then those of log-odds."""
    waves: FloatArray
    """Which of them are waves: whose size a prior may double."""
    total_is_known: bool

    @classmethod
    def around(
        cls,
        edges: FloatArray,
        guess: FloatArray,
        *,
        cuts: Sequence[int] = (),
        towers: IntArray | None = None,
        total_is_known: bool,
    ) -> "SmoothOdds":
        """Around counts (label x leaf, none negative) that are known roughly.

        Between `cuts`, and between quantiles of the guess, pooled counts are free; leaves that
        are towers have counts and log-odds of their own.
        """
        leaves = len(edges) - 1
        shares = guess / guess.sum(axis=1, keepdims=True)
        marks = _marks(shares.mean(axis=0), cuts)
        lengths = _lengths(edges)
        smooth = np.stack([_through(row, marks, lengths) for row in shares])
        ranks = np.cumsum(smooth.mean(axis=0)) - 0.5 * smooth.mean(axis=0)
        pooled = guess.sum(axis=1) @ smooth
        log_odds, beyond = _score_odds(edges, ranks)
        number = np.arange(1, _WAVES + 1)
        waves = np.sqrt(2.0) * np.cos(np.pi * np.outer(ranks, number))
        piece = np.searchsorted(marks, np.arange(leaves), side="right") - 1
        pieces = (piece[:, None] == np.arange(len(marks) - 1)).astype(np.float64)
        place = np.cumsum(lengths) - 0.5 * lengths
        start, end = (
            np.append(0.0, np.cumsum(lengths))[marks[each]] for each in (piece, piece + 1)
        )
        tilts = pieces * (2.0 * (place - start) / (end - start) - 1.0)[:, None]
        tilt_spreads = np.full(pieces.shape[1], _TILT)
        tilt_spreads[[0, -1]] = _FREE
        alone = np.eye(leaves)[:, np.zeros(0, np.int64) if towers is None else towers]
        wave_spreads, towering = 1.0 / (np.pi * number), np.ones(alone.shape[1])
        flat = np.ones((leaves, 1))
        of_pooled = np.hstack([pieces, tilts, alone, waves])
        of_odds = np.hstack([flat, log_odds[:, None], beyond[:, None], alone, waves])
        spreads = np.concatenate(
            [
                np.full(pieces.shape[1], _FREE),
                tilt_spreads,
                _FREE * towering,
                wave_spreads,
                [_INTERCEPT, _SLOPE, _BEYOND],
                _FREE * towering,
                wave_spreads,
            ]
        )
        column = np.arange(len(spreads))
        is_wave = (column >= len(spreads) - _WAVES).astype(np.float64)
        first = of_pooled.shape[1]
        is_wave[first - _WAVES : first] = -1.0
        rate = float(guess[1].sum() / guess.sum())
        odds = log_odds + _BEYOND * beyond
        odds = odds + _intercept(pooled, odds, rate)
        return cls(pooled, odds, of_pooled, of_odds, spreads, is_wave, total_is_known)

    def rougher(self, pooled: float, odds: float) -> "SmoothOdds":
        """The same with waves so many times as high."""
        times = np.where(self.waves < 0.0, pooled, np.where(self.waves > 0.0, odds, 1.0))
        return replace(self, spreads=self.spreads * times)

    def counts(self, bends: FloatArray) -> FloatArray:
        """Label x leaf."""
        first = self.of_pooled.shape[1]
        pooled = self.pooled * np.exp(np.clip(self.of_pooled @ bends[:first], -30.0, 30.0))
        if self.total_is_known:
            pooled *= self.pooled.sum() / pooled.sum()
        odds = np.clip(self.odds + self.of_odds @ bends[first:], -50.0, 50.0)
        positive = 1.0 / (1.0 + np.exp(-odds))
        return np.stack([pooled * (1.0 - positive), pooled * positive])

    def moves(self, counts: FloatArray) -> FloatArray:
        """How counts move with every bend, at these counts: label x leaf x bend."""
        pooled = np.maximum(counts.sum(axis=0), 1e-300)
        of_pooled = self.of_pooled
        if self.total_is_known:
            of_pooled = of_pooled - pooled @ of_pooled / pooled.sum()
        swing = (counts[0] * counts[1] / pooled)[:, None] * self.of_odds
        return np.stack(
            [
                np.hstack([counts[0][:, None] * of_pooled, -swing]),
                np.hstack([counts[1][:, None] * of_pooled, swing]),
            ]
        )

    def after(self, moves: FloatArray, observed: Observed) -> FloatArray:
        """Precision of the bends after counters, where counts move so with them."""
        precision = np.diag(1.0 / self.spreads**2)
        seen = observed.rows @ moves
        for label in (0, 1):
            precision += seen[label].T @ (seen[label] / observed.variances[label][:, None])
        return precision

    def read(self, observed: Observed, bends: FloatArray) -> "_Read":
        """The likeliest counts (Levenberg-Marquardt), from such bends on."""
        damping = 1e-2
        counts = self.counts(bends)
        badness = self._badness(bends, counts, observed)
        for _ in range(_MOST_STEPS):
            moves = self.moves(counts)
            precision = self.after(moves, observed)
            missed = (observed.values - _seen(observed, counts)) / observed.variances
            pull = np.einsum("lc,lcb->b", missed, observed.rows @ moves) - bends / self.spreads**2
            diagonal = np.diag(np.diag(precision))
            if float(pull @ np.linalg.solve(precision, pull)) < _SETTLED:
                break
            while True:
                tried = bends + np.linalg.solve(precision + damping * diagonal, pull)
                reached = self.counts(tried)
                found = self._badness(tried, reached, observed)
                if found <= badness or damping > _STUCK:
                    break
                damping *= 4.0
            if found > badness:
                break
            bends, counts, badness, damping = tried, reached, found, damping / 10.0
        precision = self.after(self.moves(counts), observed)
        spread = float(np.linalg.slogdet(precision)[1]) + 2.0 * float(np.log(self.spreads).sum())
        return _Read(self, bends, counts, -0.5 * (badness + spread))

    def _badness(self, bends: FloatArray, counts: FloatArray, observed: Observed) -> float:
        missed = (observed.values - _seen(observed, counts)) ** 2 / observed.variances
        return float(missed.sum() + ((bends / self.spreads) ** 2).sum())

    def likeliest(self, observed: Observed) -> Reading:
        """The reading of the prior that has most evidence: as smooth as is usual, or rougher."""
        bends, reads = np.zeros(len(self.spreads)), []
        for pooled in _SIZES:
            start = bends
            for odds in _SIZES:
                reads.append(self.rougher(pooled, odds).read(observed, start))
                start = reads[-1].bends
                bends = start if odds == _SIZES[0] else bends
        best = max(reads, key=lambda each: each.evidence)
        return best.family.reading(best.counts, observed)

    def reading(self, counts: FloatArray, observed: Observed) -> Reading:
        """Counts and how they may move: as far as theirs and the guess's sizes allow.

        What noise took to 0 may be off by as much as the guess is large. And of scores that bend
        twice as far as is likely, intervals are still to hold.
        """
        guess = self.counts(np.zeros(len(self.spreads)))
        moves = self.moves(0.5 * (counts + guess))
        cautious = replace(self, spreads=_CAUTION * self.spreads)
        covariance = np.linalg.inv(cautious.after(moves, observed)).astype(np.float64, copy=False)
        return Reading(counts, moves, covariance)


class _Read(NamedTuple):
    family: SmoothOdds
    bends: FloatArray
    counts: FloatArray
    evidence: float
    """Its logarithm, up to what all priors have in common."""


def table_covariance(
    reading: Reading, observed: Observed, *, table: FloatArray | None
) -> FloatArray:
    """Of errors against the clients' own counts, over negatives then positives per leaf.

    Counters of a part of the clients vary with who they are, and so does the table of all of
    them. With J the moves, C their covariance, F the counters' precision and T the
    covariance of a table that is drawn from a population, errors against that table have
    K - H T - T H' + T, where K = J C J' and H = K F. Without `table`, K.
    """
    bends = reading.moves.shape[-1]
    moves = reading.moves.reshape(-1, bends)
    covariance: FloatArray = moves @ reading.covariance @ moves.T
    if table is None:
        return covariance
    seen = observed.rows @ reading.moves
    felt = [
        (seen[label] / observed.variances[label][:, None]).T @ observed.rows[label]
        for label in (0, 1)
    ]
    response = reading.covariance @ np.hstack(felt)
    flat = table.ravel()
    with_table = response * flat - np.outer(response @ flat, flat / flat.sum())
    shared = moves @ with_table
    drawn = np.diag(flat) - np.outer(flat, flat / flat.sum())
    return covariance - shared - shared.T + drawn


def _seen(observed: Observed, counts: FloatArray) -> FloatArray:
    return np.einsum("lcn,ln->lc", observed.rows, counts)


def _marks(shares: FloatArray, cuts: Sequence[int]) -> IntArray:
    """Leaves at which pieces begin, and the end."""
    below = np.append(0.0, np.cumsum(shares))
    tails = 0.5 ** np.arange(1, _TAILS + 1) / _MARKS
    shares_at = np.concatenate([tails, np.arange(1, _MARKS) / _MARKS, 1.0 - tails])
    at = np.searchsorted(below, shares_at * below[-1])
    return np.unique(np.concatenate([[0, len(shares)], at, np.asarray(cuts, np.int64)]))


def _lengths(edges: FloatArray) -> FloatArray:
    """How long leaves are on the axis of a first survey: 1, or less where a threshold cuts one."""
    middle = 0.5 * (edges[1:] + edges[:-1])
    usual = np.minimum(_COARSEST, _OF_DISTANCE * np.minimum(middle, 1.0 - middle))
    return np.minimum(np.diff(edges) / usual, 1.0)


def _through(shares: FloatArray, marks: IntArray, lengths: FloatArray) -> FloatArray:
    """Shares smoothed between marks: a monotone cubic through what is below them."""
    place = np.append(0.0, np.cumsum(lengths))
    widths, held = np.diff(place[marks]), np.add.reduceat(shares, marks[:-1])
    slopes = monotone_slopes(widths, held[None])[0]
    piece = np.searchsorted(marks, np.arange(len(shares)), side="right") - 1
    rise = (held[piece], slopes[piece] * widths[piece], slopes[piece + 1] * widths[piece])
    start, end = ((at - place[marks[piece]]) / widths[piece] for at in (place[:-1], place[1:]))
    least = _FLOOR * lengths / lengths.sum()
    smooth = np.maximum(cubic(end, *rise) - cubic(start, *rise), least)
    return smooth / smooth.sum()


def _score_odds(edges: FloatArray, ranks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-odds of every leaf's middle from their median: up to a reach, and what is beyond it."""
    middle = 0.5 * (edges[1:] + edges[:-1])
    log_odds = np.log(middle) - np.log1p(-middle)
    log_odds = np.clip(log_odds - np.interp(0.5, ranks, log_odds), -_FURTHEST, _FURTHEST)
    near = _REACH * np.tanh(log_odds / _REACH)
    return near, log_odds - near


def _intercept(pooled: FloatArray, log_odds: FloatArray, rate: float) -> float:
    """What makes the pooled counts' share of positives a given one."""
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        positive = pooled @ (1.0 / (1.0 + np.exp(-log_odds - middle)))
        low, high = (middle, high) if positive < rate * pooled.sum() else (low, middle)
    return 0.5 * (low + high)
