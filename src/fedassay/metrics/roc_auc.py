"""Areas under the ROC and precision-recall curves."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import REACH, Estimate, NotEnoughData, Shape, unless_too_coarse
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.interpolation import monotone_slopes
from fedassay.metrics.copies import COPIES, DRAWN
from fedassay.metrics.delta_method import (
    SPECK,
    counts_estimate,
    gradient_of_buckets,
    weighted_sum,
    why_one_class,
)
from fedassay.metrics.many_spans import many_possible_pairs, spikes_and_ties
from fedassay.metrics.spans import possible_pairs

# In a bucket, the cumulative count at part t is a cubic in t, linear in (slope at the start,
# rise, slope at the end). So the pairs with the positive above, the integral of negatives below
# times density of positives, are a bilinear form. Three Gauss-Legendre nodes are exact to
# degree 5, which it has.
_NODES = 0.5 + 0.5 * np.array([-sqrt(0.6), 0.0, sqrt(0.6)])
_NODE_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
_BELOW = np.stack(
    [
        _NODES**3 - 2 * _NODES**2 + _NODES,
        3 * _NODES**2 - 2 * _NODES**3,
        _NODES**3 - _NODES**2,
    ]
)
_DENSITY = np.stack(
    [
        3 * _NODES**2 - 4 * _NODES + 1,
        6 * _NODES - 6 * _NODES**2,
        3 * _NODES**2 - 2 * _NODES,
    ]
)
_FEW_BUCKETS = 2**11
_PAIRS = _BELOW * _NODE_WEIGHTS @ _DENSITY.T

BUT_FOR_LUCK = sqrt(DRAWN / COPIES)
"""The part of a binning error that may make a grid too coarse: a table's own luck does not, since
more rows would help."""


def roc_auc(histogram: ScoreHistogram, *, max_fpr: float | None = None) -> Estimate:
    """The area under the ROC curve (`eq:histauc`); ties count one half.

    With `max_fpr`, the standardised partial area, as in scikit-learn. `binning_bound` is
    half the sum of p_i n_i over P N for even buckets (`lem:auc`); see
    `auc_guideline` for the 1/(3B^2) of `thm:aucbetter`.

    Differs: with a smooth histogram, pairs within a bucket are ordered by a monotone
    cubic instead of by halves, which removes most of the binning error.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(roc_auc(h).value, 3)
    0.75
    """
    require_histogram(histogram)
    if max_fpr is not None:
        return _partial_auc(histogram, max_fpr)
    area = likely_area(histogram)
    drawn = replace(area, binning_sd=BUT_FOR_LUCK * area.binning_sd)
    coarse = unless_too_coarse(drawn, "ROC AUC", 0.5)
    return coarse if isinstance(coarse, NotEnoughData) else area


def likely_area(histogram: ScoreHistogram) -> Estimate:
    """The area under the ROC curve however coarse the grid is, as planning compares grids.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> likely_area(h).is_available, roc_auc(h).is_available
    (True, False)
    """
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    p, n = histogram.positives, histogram.negatives
    P, N = histogram.total_positives, histogram.total_negatives
    slopes = histogram.slopes if histogram.smooth else None
    within = pairs_within(histogram.widths, histogram.counts, slopes, smooth=histogram.smooth)
    area, gradient = _area(histogram, within)
    bound = np.maximum(np.abs(within), np.abs(p * n - within)).sum() / abs(P * N)
    return Estimate(
        value=area,
        noise_sd=_noise_sd(histogram, gradient),
        sampling_sd=sqrt(_delong(histogram, gradient)),
        binning_bound=float(bound),
        # What buckets do not hide cannot be wrong: classes that share none are told apart.
        binning_sd=min(float(binning_sds([histogram], np.array([area]))[0]), float(bound)),
        shape=Shape.LOGIT,
        trials=max(min(P, N), 1.0),
    )


def even_area(histogram: ScoreHistogram) -> tuple[float, float]:
    """`eq:histauc` to the letter, halves of the pairs within buckets, and its noise.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> even_area(h)
    (0.75, 0.0)
    """
    area, gradient = _area(histogram, 0.5 * histogram.positives * histogram.negatives)
    return area, sqrt(histogram.noise.variance(gradient))


def area_gradient(histogram: ScoreHistogram) -> FloatArray:
    """How the area moves with each count, label x bucket: an example's placement.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> area_gradient(h)[1].round(5).tolist()  # (0.375 - 0.75) / 4 and (0.875 - 0.75) / 4
    [-0.09375, 0.03125]
    """
    return _area(histogram, 0.5 * histogram.positives * histogram.negatives)[1]


def _area(histogram: ScoreHistogram, within: FloatArray) -> tuple[float, FloatArray]:
    """The area, and how it moves with each count if pairs within buckets count by halves."""
    p, n = histogram.positives, histogram.negatives
    P, N = histogram.total_positives, histogram.total_negatives
    negatives_below = histogram.cumulative[0, :-1]
    area = (weighted_sum(p, negatives_below) + float(within.sum())) / (P * N)
    # An example's placement: the share of the other class that it is ranked above or below.
    placement_n = (negatives_below + 0.5 * n) / N
    placement_p = 1.0 - (histogram.cumulative[1, :-1] + 0.5 * p) / P
    return area, np.stack([(placement_p - area) / N, (placement_n - area) / P])


def binning_sds(histograms: Sequence[ScoreHistogram], areas: FloatArray) -> FloatArray:
    """The likely binning errors of the areas of histograms on the same edges, one for each.

    Chance order, what half the buckets would change, and what is open. Ties count one half,
    whatever their order: only pairs of untied examples are open. With half the buckets the error
    would be some four times as large, so a quarter of the difference stands for it. Buckets that
    hold much and whose neighbours tell nothing about their order may be wrong by whatever is
    possible (`spans.possible_pairs`). Of a class that is missing they say nothing.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 0.0], [0.0, 3.0]]))
    >>> binning_sds([h], np.array([1.0])).tolist() < [0.2]
    True
    """
    counts = np.stack([each.counts for each in histograms])
    spikes, ties = spikes_and_ties(histograms, counts)
    totals = np.stack([each.cumulative[:, -1] for each in histograms])
    pairs = np.where(totals > SPECK, totals, 1.0).prod(axis=1)
    (n, p), (tied_n, tied_p) = counts.swapaxes(0, 1), ties.swapaxes(0, 1)
    loose_p, loose_n = p - tied_p, n - tied_n
    order = COPIES * np.maximum(loose_p * loose_n * (p + n + 1.0) / 12.0, 0.0).sum(axis=1)
    # Where tied scores lie among a bucket's others is not known either.
    order += ((tied_p * loose_n) ** 2 + (tied_n * loose_p) ** 2).sum(axis=1) / 12.0
    whole = histograms[0]
    starts = np.arange(0, whole.buckets, 2)
    halved = np.add.reduceat(counts, starts, axis=2)
    widths = np.diff(np.append(whole.edges[starts], whole.edges[-1]))
    before = halved[:, 0].cumsum(axis=1) - halved[:, 0]
    within = pairs_within(widths, halved, smooth=whole.smooth).sum(axis=1)
    coarse = (np.einsum("mb,mb->m", halved[:, 1], before) + within) / pairs
    if len(histograms) > 1 and all(each.noise.is_zero for each in histograms):
        most = many_possible_pairs(histograms[0], counts, spikes, ties)
    else:
        most = np.array([possible_pairs(each) for each in histograms])
    possible = most / pairs / REACH
    # Of few buckets even likeness says little: the third power of the pairs that are open.
    open_pairs = 0.5 * np.maximum(p * n - tied_p * tied_n, 0.0).sum(axis=1) / pairs
    curve = ((coarse - areas) / 4.0) ** 2 + possible**2 + (2.0 * open_pairs**3) ** 2
    spreads: FloatArray = np.sqrt(order / pairs**2 + curve)
    return spreads


def _noise_sd(histogram: ScoreHistogram, gradient: FloatArray) -> float:
    """Noise through the gradient; that of the pairs within buckets is taken by differences."""
    if histogram.noise.is_zero:
        return 0.0
    if histogram.smooth and 2 < histogram.buckets <= _FEW_BUCKETS:
        pairs = histogram.total_positives * histogram.total_negatives
        within = gradient_of_buckets(
            histogram, lambda counts: pairs_within(histogram.widths, counts)
        )
        gradient = gradient + (within - 0.5 * histogram.counts[::-1]) / pairs
    return sqrt(histogram.noise.variance(gradient))


def auc_guideline(buckets: int) -> float:
    """1/(3B^2): the AUC error expected of B quantile buckets (`thm:aucbetter`, `fig:auc`).

    >>> auc_guideline(100)
    3.3333333333333335e-05
    """
    if buckets < 1:
        raise SettingInvalid(f"buckets must be at least 1; found {buckets}.")
    return 1.0 / (3.0 * buckets * buckets)


def pairs_within(
    widths: FloatArray, counts: FloatArray, slopes: FloatArray | None = None, *, smooth: bool = True
) -> FloatArray:
    """Expected pairs per bucket with the positive above the negative, for ... x label x bucket.

    `slopes` are those of the monotone cubic through the counts, where they are known.

    >>> pairs_within(np.array([1.0, 1.0]), np.array([[4.0, 2.0], [1.0, 3.0]]), smooth=False)
    array([2., 3.])
    """
    if not smooth or len(widths) < 2:
        halves: FloatArray = 0.5 * counts[..., 1, :] * counts[..., 0, :]
        return halves
    if slopes is None:
        slopes = monotone_slopes(widths, counts)
    # An empty bucket has slopes of 0 at both ends, hence no pairs.
    parts = np.stack([slopes[..., :-1] * widths, counts, slopes[..., 1:] * widths])
    negatives, positives = parts[..., 0, :], parts[..., 1, :]
    pairs: FloatArray = np.einsum("i...b,ij,j...b->...b", negatives, _PAIRS, positives)
    return pairs


def _delong(histogram: ScoreHistogram, gradient: FloatArray) -> float:
    """The variance of DeLong, DeLong and Clarke-Pearson (1988), from buckets."""
    squares = (histogram.counts * gradient**2).sum(axis=1)
    totals = histogram.cumulative[:, -1]
    spare = np.maximum(totals - 1.0, 1.0)
    return float(np.maximum(squares * totals / spare, 0.0).sum())


def _partial_auc(histogram: ScoreHistogram, max_fpr: float) -> Estimate:
    if not 0.0 < max_fpr <= 1.0:
        raise SettingInvalid(f"max_fpr must lie in (0, 1]; found {max_fpr}.")
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    P, N = histogram.total_positives, histogram.total_negatives
    fpr = np.concatenate([[0.0], np.cumsum(histogram.negatives[::-1])]) / N
    tpr = np.concatenate([[0.0], np.cumsum(histogram.positives[::-1])]) / P
    fpr_monotone = np.maximum.accumulate(fpr)
    last = int(np.searchsorted(fpr_monotone, max_fpr, side="right")) - 1
    room = fpr[last + 1] - fpr[last] if last < histogram.buckets else 0.0
    part = (max_fpr - fpr[last]) / room if room > 0.0 else 0.0
    ceiling = tpr[last] + part * (tpr[last + 1] - tpr[last]) if room > 0.0 else tpr[last]
    steps = np.diff(fpr[: last + 1])
    area = weighted_sum(steps, tpr[:last] + tpr[1 : last + 1]) / 2.0
    area += (max_fpr - float(fpr[last])) * float(tpr[last] + ceiling) / 2.0
    # McClish's standardisation: 1 is perfect, 1/2 is chance.
    floor = max_fpr**2 / 2.0
    scale = 0.5 / (max_fpr - floor)
    gradient = _partial_gradient(histogram, max_fpr, area, float(ceiling)) * scale
    jumps = np.abs(np.diff(tpr)) * np.abs(np.diff(fpr))
    return counts_estimate(
        histogram,
        0.5 + scale * (area - floor),
        gradient,
        binning_bound=float(scale * jumps[: last + 1].sum()),
        binning_sd=float(scale * sqrt((jumps[: last + 1] ** 2).sum() / 12.0)),
        shape=Shape.LOGIT,
    )


def _partial_gradient(
    histogram: ScoreHistogram, max_fpr: float, area: float, ceiling: float
) -> FloatArray:
    """How the partial area moves with each count; ranks stand for scores."""
    P, N = histogram.total_positives, histogram.total_negatives
    reach_n = 1.0 - (histogram.cumulative[0, :-1] + 0.5 * histogram.negatives) / N
    reach_p = 1.0 - (histogram.cumulative[1, :-1] + 0.5 * histogram.positives) / P
    gain_p = np.maximum(max_fpr - reach_n, 0.0)
    inside = reach_n < max_fpr
    # A negative above the cut pushes the curve right; the cut keeps the fpr fixed.
    gain_n = np.where(inside, reach_p - ceiling, 0.0)
    mean_n = float((histogram.negatives * gain_n).sum() / N)
    return np.stack([(gain_n - mean_n) / N, (gain_p - area) / P])
