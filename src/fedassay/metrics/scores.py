"""Proper scores and other summaries of the two score distributions."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, log, sqrt
from typing import NamedTuple

import numpy as np

from fedassay.estimate import REACH, Estimate, Shape, as_far_as_possible, unless_too_coarse
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.bootstrap import bias_and_spread, few_buckets
from fedassay.metrics.copies import copies_of
from fedassay.metrics.crowding import crowded_sums
from fedassay.metrics.delta_method import (
    counts_estimate,
    gradient_of_buckets,
    sampling_variance,
    why_one_class,
    why_undefined,
)
from fedassay.metrics.end_buckets import end_loss, without_empty_ends
from fedassay.metrics.heaps import heaped_share
from fedassay.metrics.lattices import unseen_shifts
from fedassay.metrics.log_odds import EPS
from fedassay.metrics.nearer import beyond_cells, nearer
from fedassay.metrics.range_noise import cell_noise_sd
from fedassay.metrics.spans import clear_spikes, openness_of_one_class, spans

_FEW_BUCKETS = 2**11
_BETWEEN = 1.5
_PARTS = 8
# A maximum is sought at so many edges more than a few buckets have.
_PEAK = 24
# What is possible at the ends lies so many standard deviations away.
_ROOM = 1.5
_EVERYBODY, _POSITIVES = (1.0, 1.0), (0.0, 1.0)
# A higher score costs negatives more, and positives less.
_SIDES = np.array([[1.0], [-1.0]])


def brier(histogram: ScoreHistogram) -> Estimate:
    """The mean squared difference between score and label.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(brier(h).value, 3)
    0.158
    """
    require_histogram(histogram)
    return _mean_loss(histogram, _SQUARE)


def log_loss(histogram: ScoreHistogram) -> Estimate:
    """The mean negative log likelihood, in nats; scores are clipped to [eps, 1 - eps].

    A label that contradicts a score of exactly 0 or 1 so costs 36 nats, as in scikit-learn
    (`end_buckets.end_loss` says what is known about those).

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(log_loss(h).value, 3)
    0.472
    """
    require_histogram(histogram)
    cells = histogram.by_cells()
    # Noise hides a heap at 0 or 1 from the leaves there, which then look surer than they are.
    is_heaped = any(heaped_share(without_empty_ends(cells), end) > 0.0 for end in (0, 1))
    found = _log_loss(cells) if is_heaped else nearer(histogram, _log_loss)
    if histogram.doubts is None or not found.is_available:
        return found
    # The likeliest counts are not those to be expected: it may be anywhere in between.
    losses = _LOG.over(histogram.edges).mean
    off = abs(float(histogram.doubts.skew @ (losses[1] - losses[0]))) / histogram.total
    noise_sd = hypot(found.noise_sd, min(off, found.noise_sd) / sqrt(3.0))
    return replace(found, noise_sd=noise_sd, shape=Shape.LOG)


def _log_loss(histogram: ScoreHistogram) -> Estimate:
    estimate = _mean_loss(without_empty_ends(histogram), _LOG, ends=True)
    # It has no largest value: half of it either way says nothing any more.
    return unless_too_coarse(estimate, "log loss", 2.0 * abs(estimate.value))


def positive_log_loss(histogram: ScoreHistogram) -> Estimate:
    """The mean of -log of the score over positives alone, as a log loss of many classes has it.

    Negatives count for nothing but what they tell about the ends (`end_buckets.end_loss`).

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(positive_log_loss(h).value, 3)
    0.636
    """
    require_histogram(histogram)
    estimate = _mean_loss(without_empty_ends(histogram), _LOG, ends=True, of=_POSITIVES)
    return unless_too_coarse(estimate, "log loss", 2.0 * abs(estimate.value))


def prevalence(histogram: ScoreHistogram) -> Estimate:
    """The share of positives.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> prevalence(h).value
    0.5
    """
    require_histogram(histogram)
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    total = histogram.total
    share = histogram.total_positives / total
    gradient = np.empty_like(histogram.counts)
    gradient[0], gradient[1] = -share / total, (1.0 - share) / total
    return Estimate(
        value=share,
        noise_sd=sqrt(histogram.noise.variance(gradient)),
        sampling_sd=sqrt(max(share * (1.0 - share), 0.0) / total),
        shape=Shape.SCORE,
        trials=total,
    )


def ks(histogram: ScoreHistogram) -> Estimate:
    """The largest distance between the two classes' distributions (Kolmogorov, Smirnov).

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> ks(h).value
    0.5
    """
    require_histogram(histogram)
    return beyond_cells(histogram, _ks)


def _ks(histogram: ScoreHistogram) -> Estimate:
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    bias = noise_sd = 0.0
    if not histogram.noise.is_zero:
        # The largest of many noisy gaps is larger than the largest gap.
        histogram = _few_with_peak(histogram.by_cells())
        bias, noise_sd = bias_and_spread(histogram, _largest_gap)
    P, N = histogram.total_positives, histogram.total_negatives
    gap = histogram.cumulative[0] / N - histogram.cumulative[1] / P
    share_n, share_p = np.abs(histogram.negatives) / N, np.abs(histogram.positives) / P
    ends = np.maximum(np.abs(gap[:-1]), np.abs(gap[1:]))
    # Inside a bucket one class may all come first: from its start a gap grows by that class's
    # share at most, and to its end it falls by the other's at most.
    furthest = np.maximum(
        np.minimum(gap[:-1] + share_n, gap[1:] + share_p),
        np.minimum(share_p - gap[:-1], share_n - gap[1:]),
    )
    largest = float(ends.max())
    value = largest
    if histogram.smooth and histogram.buckets <= _FEW_BUCKETS:
        value = float(_largest_gap(histogram.refined(_PARTS)[1]))
    room = np.maximum(furthest - ends, 0.0)
    reached = ends + room * _open_part(histogram)
    peak = int(np.argmax(reached))
    by_class = np.maximum(histogram.counts[:, peak], 0.0) / np.array([N, P]) ** 2
    chance = min(sqrt(by_class.sum()) / 2.0, float(room[peak]))
    chance = max(chance, _by_chance(histogram, ends, room) / REACH)
    possible = max(float(reached[peak]) - largest, value - largest)
    estimate = Estimate(
        value=value - bias,
        noise_sd=noise_sd,
        sampling_sd=sqrt(sampling_variance(histogram, _gap_gradient(histogram))),
        binning_bound=max(float(furthest.max()), value) - largest + abs(bias),
        binning_sd=hypot(possible / REACH, chance),
    )
    return unless_too_coarse(as_far_as_possible(estimate), "the largest gap", 1.0)


def _few_with_peak(histogram: ScoreHistogram) -> ScoreHistogram:
    """A few buckets, and beside their edges those at which the gap is largest.

    Buckets that hold as much of both classes each are wide where the gap is flat, as it is at its
    largest: without these edges the maximum would be cut off.
    """
    few = few_buckets(histogram)
    if few is histogram:
        return few
    rates = histogram.cumulative / histogram.cumulative[:, -1:]
    peak = np.argsort(np.abs(rates[0] - rates[1]))[-_PEAK:]
    return histogram.merge(np.union1d(np.searchsorted(histogram.edges, few.edges), peak))


def _open_part(histogram: ScoreHistogram) -> FloatArray:
    """How much of a bucket's largest possible gap its neighbours leave open, by bucket.

    Of a smooth curve that is of second order, and of first where rates jump. In the few buckets
    that noise leaves they may do so unseen: between both.
    """
    tied = np.minimum(histogram.ties / np.maximum(histogram.counts, 1.0), 1.0).min(axis=0)
    openness = spans(histogram).openness
    open_part = openness**2.0
    if not histogram.noise.is_zero:
        open_part = np.maximum(openness, openness_of_one_class(histogram)) ** _BETWEEN
    part: FloatArray = open_part * (1.0 - tied)
    return part


def _by_chance(histogram: ScoreHistogram, ends: FloatArray, room: FloatArray) -> float:
    """How far rows by chance take the largest gap inside buckets beyond those at their ends.

    Inside a bucket the gap walks from one known point to another. It goes beyond both by x with a
    chance of exp(-2 x^2 / v) at most, v = n / N^2 + p / P^2 without ties; of m buckets within two
    deviations of the largest gap one does in 5 of 100 tables at x = sqrt(v log(20 m) / 2).
    """
    loose = np.maximum(histogram.counts - histogram.ties, 0.0)
    variance = (loose / histogram.cumulative[:, -1:] ** 2).sum(axis=0)
    near = ends + 2.0 * np.sqrt(variance) >= ends.max()
    beyond = np.minimum(np.sqrt(variance * log(20.0 * near.sum()) / 2.0), room)
    return float((ends + beyond)[near].max() - ends.max())


def _largest_gap(counts: FloatArray) -> FloatArray:
    """The largest gap at the ends of buckets; counts are ... x label x bucket."""
    running = np.cumsum(counts, axis=-1)
    share = running / running[..., -1:]
    largest: FloatArray = np.abs(share[..., 0, :] - share[..., 1, :]).max(axis=-1)
    return largest


def _gap_gradient(histogram: ScoreHistogram) -> FloatArray:
    """How the largest gap moves with each count, if it stays where it is."""
    P, N = histogram.total_positives, histogram.total_negatives
    share_n, share_p = histogram.cumulative[0] / N, histogram.cumulative[1] / P
    peak = int(np.argmax(np.abs(share_n - share_p)))
    sign = 1.0 if share_n[peak] >= share_p[peak] else -1.0
    below = np.arange(histogram.buckets) < peak
    return sign * np.stack([(below - share_n[peak]) / N, (share_p[peak] - below) / P])


@dataclass(frozen=True, slots=True, eq=False)
class _Losses:
    """A loss over each bucket, label x bucket: its mean for even scores, and its range."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


class _Loss(NamedTuple):
    """A loss of rows by label and score."""

    over: Callable[[FloatArray], _Losses]
    """Edges to what is known of it over each bucket."""
    at: Callable[[FloatArray], FloatArray]
    """Scores to the losses of both labels there."""


def _mean_loss(
    histogram: ScoreHistogram,
    loss: _Loss,
    *,
    ends: bool = False,
    of: tuple[float, float] = _EVERYBODY,
) -> Estimate:
    """The average of a loss whose mean and range over any bucket are known.

    With `ends` it is a logarithm, and rows that contradict an end bucket are read apart. `of` is
    what rows of each label count.
    """
    counted = np.array(of)[:, None]
    weights = np.broadcast_to(counted, histogram.counts.shape)
    total = float((counted * histogram.counts).sum())
    who = "examples" if of == _EVERYBODY else "positives"
    undefined = why_undefined(histogram, weights, who)
    if undefined is not None:
        return undefined
    over = loss.over(histogram.edges)
    contradicted = {(1, 0): end_loss(histogram, 1), (0, -1): end_loss(histogram, 0)} if ends else {}
    # Scores that are orders of magnitude apart are no more likely even than their logarithms are.
    far, beside = histogram.is_far_flung, 0.5 * (over.low + over.high) - over.mean
    over.mean[:, far] += 0.5 * beside[:, far]
    for place, end in contradicted.items():
        over.mean[place] = end.likely
    even = float((counted * histogram.counts * over.mean).sum() / total)
    value, slopes, guessed = even, counted * over.mean, over.mean
    if histogram.smooth and histogram.buckets <= _FEW_BUCKETS:
        fine = loss.over(histogram.refined(_PARTS)[0]).mean.reshape(2, -1, _PARTS)
        fine[:, far] = over.mean[:, far, None]
        for place, end in contradicted.items():
            fine[place] = end.likely
        parts = np.maximum(histogram.parts(_PARTS), 0.0)
        guessed = (parts * fine).sum(axis=-1) / np.maximum(parts.sum(axis=-1), 1e-300)
        fine *= counted[..., None]

        def sums(counts: FloatArray) -> FloatArray:
            pieces = replace(histogram, counts=counts).parts(_PARTS)
            whole: FloatArray = (pieces * fine).sum(axis=(0, 2))
            return whole

        value = float(sums(histogram.counts).sum() / total)
        slopes = gradient_of_buckets(histogram, sums)
    for (label, bucket), end in contradicted.items():
        slopes[1 - label] += of[label] * float(histogram.counts[label, bucket]) * end.slopes
    counts, noise_sd = counted * np.maximum(histogram.counts, 0.0), cell_noise_sd(histogram)
    # For even scores in a bucket -log varies by 1 at most, however far it reaches.
    varies = np.minimum((over.high - over.low) ** 2 / 12.0, 1.0)
    chance = float((copies_of(histogram) * counts * varies).sum())
    spikes = (counted * clear_spikes(histogram) * np.minimum(over.high - over.low, 1.0)) ** 2 / 12.0
    crowded = counted * crowded_sums(histogram, loss.at, guessed)
    crowded[:, far] = np.hypot(crowded, 0.5 * counts * beside)[:, far]
    for place in contradicted:
        crowded[place] = 0.0
    # Tied scores are often round, and so are edges: all may lie at the same side of their buckets.
    sides = counts * _SIDES * np.minimum(over.high - over.low, 1.0) / 2.0
    unseen = 2.0 * unseen_shifts(histogram) / histogram.widths
    aligned = (
        max(abs(float((sides * part).sum())) for part in (spans(histogram).tied_elsewhere, unseen))
        / REACH
    )
    loose = chance + spikes.sum() + (crowded**2).sum() + aligned**2
    open_at = [
        of[place[0]] * (max(float(histogram.counts[place]), 0.0) + noise_sd) * end.room
        for place, end in contradicted.items()
    ]
    at_ends = sum(open_at) / _ROOM
    furthest = np.maximum(over.high - over.mean, over.mean - over.low)
    estimate = counts_estimate(
        histogram,
        value,
        (slopes - value * weights) / total,
        binning_bound=float((counts * furthest).sum() / total) + abs(value - even),
        binning_sd=hypot(sqrt(float(loose)), at_ends) / total + abs(value - even) / 3.0,
    )
    return as_far_as_possible(estimate)


def _squares_at(scores: FloatArray) -> FloatArray:
    return np.stack([scores**2, (1.0 - scores) ** 2])


def _logs_at(scores: FloatArray) -> FloatArray:
    clipped = np.clip(scores, EPS, 1.0 - EPS)
    return np.stack([-np.log1p(-clipped), -np.log(clipped)])


def _squares(edges: FloatArray) -> _Losses:
    lo, hi = edges[:-1], edges[1:]
    mean = np.stack([_mean_square(lo, hi), _mean_square(1.0 - hi, 1.0 - lo)])
    low = np.stack([lo**2, (1.0 - hi) ** 2])
    high = np.stack([hi**2, (1.0 - lo) ** 2])
    return _Losses(mean, low, high)


def _logs(edges: FloatArray) -> _Losses:
    clipped = np.clip(edges, EPS, 1.0 - EPS)
    near_zero = -np.log(clipped)
    near_one = -np.log1p(-clipped)
    widths = np.diff(edges)
    mean = np.stack(
        [
            _mean_log(1.0 - edges[1:], 1.0 - edges[:-1], near_one[1:], near_one[:-1], widths),
            _mean_log(edges[:-1], edges[1:], near_zero[:-1], near_zero[1:], widths),
        ]
    )
    low = np.stack([near_one[:-1], near_zero[1:]])
    high = np.stack([near_one[1:], near_zero[:-1]])
    return _Losses(np.clip(mean, low, high), low, high)


def _mean_square(lo: FloatArray, hi: FloatArray) -> FloatArray:
    """The mean of x^2 over [lo, hi]."""
    return (lo * lo + lo * hi + hi * hi) / 3.0


def _mean_log(
    lo: FloatArray, hi: FloatArray, at_lo: FloatArray, at_hi: FloatArray, width: FloatArray
) -> FloatArray:
    """The mean of -log x over [lo, hi], given its values at the ends.

    The width comes apart, because 1 - lo and 1 - hi may be the same number.
    """
    rise = hi * at_hi - lo * at_lo
    return np.where(width > 0.0, 1.0 + rise / np.where(width > 0.0, width, 1.0), at_lo)


_SQUARE, _LOG = _Loss(_squares, _squares_at), _Loss(_logs, _logs_at)
