"""The area under the precision-recall curve, as a mean of precisions."""

from dataclasses import replace
from math import hypot, sqrt

import numpy as np

from fedassay.estimate import REACH, Estimate, unless_too_coarse
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.bootstrap import (
    beyond_doubt,
    bias_and_spread,
    clear_at_the_top,
    few_buckets,
    with_more_at_the_top,
)
from fedassay.metrics.delta_method import (
    CLEAR_OF_NOISE,
    sampling_variance,
    weighted_sum,
    why_one_class,
)
from fedassay.metrics.fine_buckets import fine_buckets
from fedassay.metrics.lattices import lattice
from fedassay.metrics.nearer import beyond_cells
from fedassay.metrics.spans import clear_spikes, open_top, spans
from fedassay.metrics.top_bucket import LEAST_POWER, mean_precision, top_precision
from fedassay.noise import is_smoothed

_FEW_BUCKETS = 2**11
_PARTS = 8
_PLACES = 9
_LARGE = 16.0
_CLEAR_OF_CHANCE = 3.0
_OPEN_TOP = 0.4
# A chance that log-odds bend more than is usual, from which on a usual curve is refuted.
_REFUTED = 0.95
_TINY = 1e-300


def average_precision(histogram: ScoreHistogram) -> Estimate:
    """The mean precision over the positives' scores, as in scikit-learn.

    Within a bucket, spikes count as tied scores and the rest as evenly mixed.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(average_precision(h).value, 3)
    0.833
    """
    require_histogram(histogram)
    found = beyond_cells(histogram, _average_precision)
    if histogram.doubts is not None and histogram.doubts.cliffs > _REFUTED:
        # Precisions are steepest where a class falls off a cliff: cells alone are to be believed.
        found = replace(found, binning_sd=max(found.binning_sd, found.binning_bound / REACH))
    return unless_too_coarse(found, "average precision", 1.0)


def _average_precision(histogram: ScoreHistogram) -> Estimate:
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    bias = noise_sd = top_sd = 0.0
    if not histogram.noise.is_zero:
        histogram = histogram.by_cells()
        doubt = beyond_doubt(histogram.buckets)
        finer = clear_at_the_top(histogram, doubt / 2.0)
        histogram = clear_at_the_top(histogram, doubt)
        few = few_buckets(histogram)
        lifted = with_more_at_the_top(few)
        bias, noise_sd = bias_and_spread(few, _evenly_mixed, others=[lifted])
        top_sd = _top_sd(histogram, finer)
    P = histogram.total_positives
    mean, low, high, tie, drift = _mean_precisions(histogram)
    tied, tied_sd = _inside_fine(histogram)
    positives = np.maximum(histogram.positives, 0.0)
    above, below = high - mean, mean - low
    up, down = weighted_sum(positives, above), weighted_sum(positives, below)
    # However rows are tied, a sum of precisions lies between the least and the most of it.
    tied = float(np.clip(tied, -down, up))
    value = (weighted_sum(histogram.positives, mean) + tied) / P
    bound = max(up - tied, down + tied) / P
    return Estimate(
        value=value - bias,
        noise_sd=noise_sd,
        sampling_sd=sqrt(sampling_variance(histogram, _gradient(histogram, value))),
        binning_bound=bound + abs(bias),
        binning_sd=hypot(
            _binning_sd(histogram, high - tie, above, below, drift),
            lattice(histogram).share * weighted_sum(positives, np.abs(mean - tie)) / REACH,
            tied_sd,
            top_sd,
        )
        / P,
    )


def _binning_sd(
    histogram: ScoreHistogram,
    untied: FloatArray,
    above: FloatArray,
    below: FloatArray,
    drift: FloatArray,
) -> float:
    """The likely error of the sum of precisions: chance order, spikes, densities, what is open.

    Whether a spike in a wide bucket is one score or several close ones is not known; `untied`
    is what that changes, per positive. So much more or less, `above` and `below`, is possible.
    """
    furthest = np.maximum(above, below)
    positives = np.maximum(histogram.positives, 0.0)
    loose = positives - np.minimum(histogram.ties[1], positives)
    spiked = np.minimum(clear_spikes(histogram)[1], loose)
    spike = weighted_sum(spiked, untied) / 4.0
    drifted = weighted_sum(positives, drift) / 2.0
    openness = spans(histogram).openness
    # A tie's precision counts half of the bucket's other rows: all may lie on one side of it, and
    # as many more as chance puts there.
    called = np.maximum(histogram.total - histogram.cumulative[:, :-1].sum(axis=0), 1.0)
    apart = np.maximum(histogram.negatives - histogram.ties[0], 0.0)
    others = (0.5 * apart + np.sqrt(apart)) / called
    hits = np.maximum(histogram.total_positives - histogram.cumulative[1, :-1], 0.0) / called
    beside = weighted_sum(positives - loose, np.minimum(hits, 1.0) * others) / REACH
    # Precisions are steepest at the top: there even a smooth curve leaves all of its room open,
    # unless it is read apart, for the noise.
    top = _highest(histogram)
    # Where scores are tied, those of a bucket are a few values: all of the room is open.
    share = openness ** (2.0 - lattice(histogram).share)
    share[histogram.is_far_flung] = 1.0
    share[top] = openness[top] if histogram.noise.is_zero else 0.0
    possible = loose * furthest * share
    if histogram.noise.is_zero:
        # Few counts may hide that positives come first up there.
        possible[top] = max(possible[top], loose[top] * _first_at_the_top(histogram, above))
    # Of few buckets even likeness says little: a part of the most that there can be.
    most = weighted_sum(loose, furthest)
    few = most * most / (3.0 * histogram.total_positives)
    open_sum = hypot(float(possible.sum()) / REACH, few)
    chance = _chance_order(histogram, loose - spiked)
    return sqrt(chance + spike**2 + beside**2 + drifted**2 + open_sum**2)


def _first_at_the_top(histogram: ScoreHistogram, above: FloatArray) -> float:
    """How much larger the highest positives' mean precision may be, each."""
    top = _highest(histogram)
    n, p = float(histogram.negatives[top]), float(histogram.positives[top])
    if n <= 0.0 or p <= 0.0:
        return 0.0
    steeper = mean_precision(p, n, max(1.0 - open_top(histogram), LEAST_POWER))
    return float(min(max(steeper - p / (p + n), 0.0), above[top]))


def _highest(histogram: ScoreHistogram) -> int:
    """The bucket of the highest scores: of exact counts the last that anybody is in.

    Cells that nobody is in are published like others, and scores of rare events end far below 1.
    """
    if not histogram.noise.is_zero:
        return histogram.buckets - 1
    filled = np.flatnonzero((histogram.counts > 0.0).any(axis=0))
    return int(filled[-1]) if len(filled) else histogram.buckets - 1


def _inside_fine(histogram: ScoreHistogram) -> tuple[float, float]:
    """What ties inside buckets of a fine grid add to the sum of precisions, and a likely error.

    A positive that is tied with another counts it too: fp / (tp + fp)^2 more, where by chance
    half of the two would. One that is tied with a negative counts that one in full. Rows
    that come in clumps change places together. Inside a bucket positives lean upwards, and each
    pair in order adds tp / (tp + fp)^2.
    """
    if not histogram.noise.is_zero or histogram.buckets <= _FEW_BUCKETS:
        return 0.0, 0.0
    ties = fine_buckets(histogram)
    tp = histogram.total_positives - histogram.cumulative[1, :-1] - 0.5 * histogram.positives
    fp = histogram.total_negatives - histogram.cumulative[0, :-1] - 0.5 * histogram.negatives
    called = np.maximum(tp + fp, 1.0)
    per_positive, per_negative = 0.5 * fp / called**2, -0.5 * tp / called**2
    added = weighted_sum(ties.positives, per_positive)
    variance = weighted_sum(ties.positives_variance, per_positive**2)
    mixed = weighted_sum(ties.both, per_negative)
    by_chance = weighted_sum(ties.both_variance, per_negative**2)
    # Without ties the order of both classes inside buckets is chance, and counted as such.
    if abs(mixed) > _CLEAR_OF_CHANCE * sqrt(by_chance):
        added, variance = added + mixed, variance + by_chance
    loose = np.where(clear_spikes(histogram).any(axis=0), 0.0, histogram.positives)
    clumped = (ties.clumps - 1.0) * _chance_order(histogram, loose)
    leaning = weighted_sum(ties.lean, -2.0 * per_negative)
    return added + leaning, hypot(sqrt(variance + clumped), added / 8.0, leaning / 4.0)


def _reads_top_apart(histogram: ScoreHistogram) -> bool:
    return not histogram.noise.is_zero and histogram.buckets > 1


def _top_sd(histogram: ScoreHistogram, finer: ScoreHistogram) -> float:
    """The likely error of the sum of precisions from the highest scores, read as one bucket.

    From the power that their ROC curve is taken for, from what fewer of them say, noisier, and
    from what is possible, as far as neighbours leave it open: two fifths of it while they are
    few, all of it where nearly all positives are up there. Negatives may come first, too, as some
    classifiers are surest where they are wrong, and no bucket above tells: anything from there to
    what is read is as likely. Smoothed counts have a curve up there, with its own errors. Where
    both classes are tied up there, ties have no order.
    """
    if not _reads_top_apart(histogram):
        return 0.0
    top = top_precision(histogram)
    positives = max(float(histogram.positives[-1]), 0.0)
    share = min(positives / histogram.total_positives, 1.0)
    room = (1.0 - min(top.mean, 1.0)) * float(spans(histogram).openness[-1])
    possible = room * (_OPEN_TOP + (1.0 - _OPEN_TOP) * share)
    none, ranks = np.zeros(1), np.array([max(positives, 1.0)])
    fp = max(float(histogram.negatives[-1]), 0.0)
    last = float(_mean_of(none, ranks, none + fp, none + 1.0)[0])
    apart = [weighted_sum(each.positives, _mean_precisions(each)[0]) for each in (histogram, finer)]
    below = 0.0 if is_smoothed(histogram.noise) else max(top.mean - last, 0.0) / sqrt(12.0)
    of_each = hypot(top.sd, possible / REACH, below)
    last_rows = np.maximum(histogram.counts[:, -1], _TINY)
    tied = min(float((histogram.ties[:, -1] / last_rows).min()), 1.0)
    return hypot((1.0 - tied) * positives * of_each, apart[0] - apart[1])


def _evenly_mixed(counts: FloatArray) -> FloatArray:
    """Average precision with every bucket's scores mixed evenly; counts ... x label x bucket."""
    running = np.cumsum(counts, axis=-1)
    fp, tp = np.moveaxis(np.maximum(running[..., -1:] - running, 0.0), -2, 0)
    n, p = np.moveaxis(np.maximum(counts, 0.0), -2, 0)
    ranks = np.maximum(p, 1.0)
    mean = _mean_of(tp, ranks, tp + fp - 0.5 * n / ranks, 1.0 + n / ranks)
    sums: FloatArray = (counts[..., 1, :] * mean).sum(axis=-1) / running[..., 1, -1]
    return sums


def _chance_order(histogram: ScoreHistogram, loose: FloatArray) -> float:
    """The variance of the sum of precisions when loose positives mix with negatives by chance.

    The pairs of p positives below n negatives of their bucket vary by p n (p + n + 1) / 12
    (Mann and Whitney), and one more such pair takes tp / (tp + fp)^2 off the sum.
    """
    n = np.maximum(histogram.negatives, 0.0)
    above_p = np.maximum(histogram.total_positives - histogram.cumulative[1, 1:], 0.0)
    above_n = np.maximum(histogram.total_negatives - histogram.cumulative[0, 1:], 0.0)
    # What a pair takes off changes on the way through the bucket: the mean of five places.
    at = (np.arange(5)[:, None] + 0.5) / 5.0
    tp, fp = above_p + at * loose, above_n + at * n
    per_pair = (tp / np.maximum(tp + fp, 1.0) ** 2).mean(axis=0)
    return float((per_pair**2 * loose * n * (loose + n + 1.0) / 12.0).sum())


def _mean_precisions(
    histogram: ScoreHistogram,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean precision over each bucket's positives: likely, at worst, at best, and if all tie.

    Last, how much the densities inside the bucket moved the likely one.
    """
    # Noisy counts may be negative; a precision needs counts that are not.
    p, n = np.maximum(histogram.positives, 0.0), np.maximum(histogram.negatives, 0.0)
    tp = np.maximum(histogram.total_positives - histogram.cumulative[1, 1:], 0.0)
    fp = np.maximum(histogram.total_negatives - histogram.cumulative[0, 1:], 0.0)
    ranks = np.maximum(p, 1.0)
    worst = _mean_of(tp, ranks, tp + fp + n, np.ones_like(tp))
    best = (tp + ranks) / (tp + fp + ranks)
    tie = (tp + ranks) / np.maximum(tp + fp + ranks + n, 1.0)
    even = _mean_of(tp, ranks, tp + fp - 0.5 * n / ranks, 1.0 + n / ranks)
    mixed = even.copy()
    if histogram.smooth and histogram.buckets <= _FEW_BUCKETS:
        mixed = _mixed_in_parts(histogram, tp, fp)
    if _reads_top_apart(histogram):
        mixed[-1] = even[-1] = top_precision(histogram).mean
    spiked_n, spiked_p = np.minimum(clear_spikes(histogram), np.stack([n, p]))
    share = np.where(p > 0.0, spiked_p / np.maximum(p, 1e-300), 0.0)
    # Of the negatives that are in no tie half are above it.
    at_tie = (tp + ranks) / np.maximum(tp + fp + ranks + 0.5 * (n + spiked_n), 1.0)
    likely = np.clip(share * at_tie + (1.0 - share) * mixed, worst, best)
    return likely, worst, best, tie, (1.0 - share) * (mixed - even)


def _mixed_in_parts(histogram: ScoreHistogram, tp: FloatArray, fp: FloatArray) -> FloatArray:
    """The mean precision when a bucket's scores follow its interpolated densities."""
    inside = np.maximum(histogram.parts(_PARTS), 0.0)[..., ::-1]
    # Positives and negatives above each part: those above the bucket, and its upper parts.
    above = np.cumsum(inside, axis=-1) - inside
    part_tp, part_fp = tp[:, None] + above[1], fp[:, None] + above[0]
    p, n = inside[1], inside[0]
    ranks = np.maximum(p, 1.0)
    mean = _mean_of(part_tp, ranks, part_tp + part_fp - 0.5 * n / ranks, 1.0 + n / ranks)
    total = p.sum(axis=1)
    evenly: FloatArray = mean.mean(axis=1)
    return np.where(total > 0.0, (p * mean).sum(axis=1) / np.maximum(total, 1e-300), evenly)


def _mean_of(tp: FloatArray, ranks: FloatArray, offset: FloatArray, pace: FloatArray) -> FloatArray:
    """The mean over k = 1..ranks of (tp + k) / (offset + pace k), in closed form."""
    base = offset / pace
    tail = _digamma(base + ranks + 1.0) - _digamma(base + 1.0)
    mean: FloatArray = 1.0 / pace + (tp - base) / pace * tail / ranks
    return mean


def _digamma(x: FloatArray) -> FloatArray:
    """The digamma function of positive numbers: by its asymptotic series, to 1e-12.

    That is good from 16 upwards; what is smaller gets there in steps of 1, each worth 1/x.
    """
    small = x < _LARGE
    far = np.where(small, x + _LARGE, x)
    inverse = 1.0 / far
    square = inverse * inverse
    series: FloatArray = np.log(far) - inverse * 0.5
    series -= square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
    if small.any():
        series[small] -= (1.0 / (x[small][..., None] + np.arange(_LARGE))).sum(axis=-1)
    return series


def _noise_above(histogram: ScoreHistogram) -> FloatArray:
    """The noise of the number of examples above each bucket's lower edge, from a few places."""
    if histogram.noise.is_zero:
        return np.zeros(histogram.buckets)
    places = np.unique(np.linspace(0, histogram.buckets - 1, _PLACES).astype(int))
    buckets = np.arange(histogram.buckets)
    spreads = [
        sqrt(histogram.noise.variance(np.tile((buckets >= place).astype(float), (2, 1))))
        for place in places
    ]
    return np.interp(buckets, places, spreads)


def _gradient(histogram: ScoreHistogram, value: float) -> FloatArray:
    """How average precision moves with each count, with each bucket's scores tied."""
    p, P = histogram.positives, histogram.total_positives
    tp = P - histogram.cumulative[1, :-1]
    # Where noise swamps the few examples above a bucket, their precision says nothing.
    called = tp + histogram.total_negatives - histogram.cumulative[0, :-1]
    called = np.maximum(called, 1.0 + CLEAR_OF_NOISE * _noise_above(histogram))
    at = np.clip(tp / called, 0.0, 1.0)
    # One more example above a bucket lifts or lowers the precision at all buckets below it.
    lift = np.cumsum(p * (1.0 - at) / called)
    drop = np.cumsum(p * at / called)
    return np.stack([-drop, at + lift - value]) / P


def precision_gradient(histogram: ScoreHistogram) -> FloatArray:
    """How average precision moves with each count, label x bucket, with buckets tied.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> precision_gradient(h)[1].round(4).tolist()
    [-0.0312, 0.0781]
    """
    running = histogram.cumulative
    tp = running[1, -1] - running[1, :-1]
    called = np.maximum(tp + running[0, -1] - running[0, :-1], 1.0)
    value = weighted_sum(histogram.positives, tp / called) / histogram.total_positives
    return _gradient(histogram, value)
