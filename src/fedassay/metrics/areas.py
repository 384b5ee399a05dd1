"""Areas under the ROC and precision-recall curves."""

from math import sqrt

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, Shape
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta import counts_estimate, missing_class

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
_PAIRS = _BELOW * _NODE_WEIGHTS @ _DENSITY.T


def roc_auc(histogram: ScoreHistogram, *, max_fpr: float | None = None) -> Estimate:
    """The area under the ROC curve (`eq:histauc`); ties count one half.

    With `max_fpr`, the standardised partial area, as in scikit-learn. `binning_bound` is
    half the sum of p_i n_i over P N for even buckets (`lem:auc`); see
    `auc_guideline` for the 1/(3B^2) of `thm:aucbetter`.

    Differs: with a smooth histogram, pairs within a bucket are ordered by a monotone
    cubic instead of by halves, which removes most of the binning error.
    """
    if max_fpr is not None:
        return _partial_auc(histogram, max_fpr)
    undefined = missing_class(histogram)
    if undefined is not None:
        return undefined
    p, n = histogram.positives, histogram.negatives
    P, N = histogram.total_positives, histogram.total_negatives
    within = _pairs_within(histogram)
    even = 0.5 * p * n
    negatives_below = histogram.cumulative[0, :-1]
    area = float((p @ negatives_below + within.sum()) / (P * N))
    # An example's placement: the share of the other class that it is ranked above or below.
    placement_n = (negatives_below + 0.5 * n) / N
    placement_p = 1.0 - (histogram.cumulative[1, :-1] + 0.5 * p) / P
    gradient = np.stack([(placement_p - area) / N, (placement_n - area) / P])
    bound = np.maximum(np.abs(within), np.abs(p * n - within)).sum() / abs(P * N)
    order = np.maximum(p * n * (p + n + 1.0) / 12.0, 0.0).sum()
    drift = (within - even).sum() / 4.0
    return Estimate(
        value=area,
        noise_sd=sqrt(histogram.noise.variance(gradient)),
        sampling_sd=sqrt(_delong(histogram, gradient)),
        binning_bound=float(bound),
        binning_sd=sqrt(order + drift**2) / abs(P * N),
        shape=Shape.LOGIT,
    )


def auc_guideline(buckets: int) -> float:
    """1/(3B^2): the AUC error expected of B quantile buckets (`thm:aucbetter`, `fig:auc`)."""
    if buckets < 1:
        raise SettingInvalid(f"buckets must be at least 1; found {buckets}.")
    return 1.0 / (3.0 * buckets * buckets)


def average_precision(histogram: ScoreHistogram) -> Estimate:
    """The mean precision over the positives' scores, as in scikit-learn."""
    undefined = missing_class(histogram)
    if undefined is not None:
        return undefined
    p, n = histogram.positives[::-1], histogram.negatives[::-1]
    P = histogram.total_positives
    # Noisy counts may be negative; a precision needs counts that are not.
    more_p, more_n = np.maximum(p, 0.0), np.maximum(n, 0.0)
    tp = np.maximum(np.cumsum(p) - p, 0.0)
    fp = np.maximum(np.cumsum(n) - n, 0.0)
    mean, low, high = _mean_precisions(tp, fp, more_p, more_n)
    value = float(p @ mean / P)
    bound = float(max(more_p @ (high - mean), more_p @ (mean - low)) / P)
    # In a random order the precisions vary within their range; tied scores take one end.
    tie = _share(tp + more_p, tp + fp + more_p + more_n)
    loose = (more_p * ((high - low) ** 2 / 12.0)).sum()
    spike = (histogram.spikes[1, ::-1] * (mean - tie)).sum()
    gradient = _precision_gradient(histogram, value)
    return counts_estimate(
        histogram,
        value,
        gradient,
        binning_bound=bound,
        binning_sd=sqrt(loose + spike**2) / P,
    )


def _pairs_within(histogram: ScoreHistogram) -> FloatArray:
    """Expected pairs per bucket with the positive above the negative."""
    p, n = histogram.positives, histogram.negatives
    if not histogram.smooth or histogram.buckets < 2:
        return 0.5 * p * n
    # An empty bucket has slopes of 0 at both ends, hence no pairs.
    starts = histogram.slopes[:, :-1] * histogram.widths
    ends = histogram.slopes[:, 1:] * histogram.widths
    negatives = np.stack([starts[0], n, ends[0]])
    positives = np.stack([starts[1], p, ends[1]])
    pairs: FloatArray = (negatives * (_PAIRS @ positives)).sum(axis=0)
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
    undefined = missing_class(histogram)
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
    area = float(steps @ (tpr[:last] + tpr[1 : last + 1]) / 2.0)
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


def _mean_precisions(
    tp: FloatArray, fp: FloatArray, p: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean precision over each bucket's positives: evenly mixed, at worst, and at best."""
    from scipy.special import digamma

    ranks = np.maximum(p, 1.0)

    def mean_of(offset: FloatArray, pace: FloatArray) -> FloatArray:
        # The mean over k = 1..p of (tp + k) / (offset + pace k), in closed form.
        base = offset / pace
        tail = digamma(base + ranks + 1.0) - digamma(base + 1.0)
        mean: FloatArray = 1.0 / pace + (tp - base) / pace * tail / ranks
        return mean

    one = np.ones_like(tp)
    mixed = mean_of(tp + fp - 0.5 * n / ranks, one + n / ranks)
    worst = mean_of(tp + fp + n, one)
    best = _share(tp + ranks, tp + fp + ranks)
    return mixed, worst, best


def _precision_gradient(histogram: ScoreHistogram, value: float) -> FloatArray:
    """How average precision moves with each count, with each bucket's scores tied."""
    p, P = histogram.positives, histogram.total_positives
    tp = P - histogram.cumulative[1, :-1]
    called = np.maximum(tp + histogram.total_negatives - histogram.cumulative[0, :-1], 1.0)
    at = tp / called
    # One more example above a bucket lifts or lowers the precision at all buckets below it.
    lift = np.cumsum(p * (1.0 - at) / called)
    drop = np.cumsum(p * at / called)
    return np.stack([-drop, at + lift - value]) / P


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)
