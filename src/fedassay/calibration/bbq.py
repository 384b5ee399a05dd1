"""Bayesian binning into quantiles (Naeini, Cooper, Hauskrecht 2015), from one fine histogram."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from fedassay.calibration.calibrator import Calibrator, Interpolation, Method
from fedassay.calibration.rates import (
    BucketRates,
    bucket_rates,
    quantile_boundaries,
    require_classes,
)
from fedassay.examples import FloatArray, IntArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram, require_histogram

PRIOR_EXAMPLES = 2.0
_NEGLIGIBLE = 1e-14
_FEWEST_BINNINGS = 24
_LEAST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Binning:
    boundaries: IntArray
    log_score: float
    values: FloatArray
    centres: FloatArray
    """The mean score, or the middle, of every bucket."""


def fit_bbq(histogram: ScoreHistogram, *, noise_aware: bool = True) -> Calibrator:
    """A weighted average of quantile binnings, weighted by how well each explains the data.

    Without noise, or with `noise_aware=False`, it is the method of `app:calibexpts`: every
    number of buckets from M^(1/3)/10 to 10 M^(1/3), scored by Gamma functions.
    """
    require_histogram(histogram)
    if noise_aware and not histogram.noise.is_zero:
        return bbq_from(bucket_rates(histogram))
    require_classes(histogram)
    positives = np.maximum(histogram.positives, 0.0)
    negatives = np.maximum(histogram.negatives, 0.0)
    below = np.stack([np.append(0.0, np.cumsum(row)) for row in (negatives, positives)])
    everyone = below.sum(axis=0)
    cuts = [quantile_boundaries(everyone, count) for count in bucket_range(below[:, -1])]
    return _averaged(histogram.edges, _gamma_binnings(histogram.edges, below, cuts))


def bucket_range(totals: FloatArray) -> range:
    """Numbers of buckets to try: M^(1/3)/10 to 10 M^(1/3) (`app:calibexpts`)."""
    root = float(totals.sum()) ** (1 / 3)
    return range(max(int(root / 10), 1), max(ceil(10 * root), 1) + 1)


def _gamma_binnings(edges: FloatArray, below: FloatArray, cuts: list[IntArray]) -> list[_Binning]:
    """The marginal likelihood under a Beta prior around each bucket's middle score.

    The prior is worth N' = 2 examples, shared evenly by the buckets. A bucket's value is its
    posterior mean. All binnings are computed at once, one after the other in long arrays.
    """
    with needed_for("calibration"):
        from scipy.special import gammaln

    first = np.concatenate([own[:-1] for own in cuts])
    last = np.concatenate([own[1:] for own in cuts])
    sizes = np.array([len(own) - 1 for own in cuts])
    starts = np.cumsum(sizes) - sizes
    n, m = below[:, last] - below[:, first]
    middle = 0.5 * (edges[last] + edges[first])
    prior = np.repeat(PRIOR_EXAMPLES / sizes, sizes)
    alpha, beta = prior * middle, prior * (1.0 - middle)
    score = gammaln(m + alpha) - gammaln(alpha) + gammaln(n + beta) - gammaln(beta)
    score -= gammaln(m + n + prior)
    scores = np.add.reduceat(score, starts) + sizes * gammaln(PRIOR_EXAMPLES / sizes)
    values = np.split((m + alpha) / (m + n + prior), starts[1:])
    middles = np.split(middle, starts[1:])
    return [
        _Binning(own, float(log_score), value, centres)
        for own, log_score, value, centres in zip(cuts, scores, values, middles, strict=True)
    ]


def bbq_from(rates: BucketRates) -> Calibrator:
    """The same average with a score that knows the covariance of the rates.

    Differs: the paper applies the Gamma score blindly, and noise then looks like detail that
    only many buckets explain. Here what rates have beyond the mean score of their bucket is
    normal with their sampling and noise variance, and the prior has the Beta's variance; all
    binnings explain the same rates, so their scores compare. Cells are wide under noise, and
    steps would add their width to the error: what a bucket adds to the score is drawn as
    straight lines between the buckets' mean scores.
    """
    below = np.append(0.0, np.cumsum(rates.totals))
    counts = np.unique(np.geomspace(1, len(rates), min(len(rates), _FEWEST_BINNINGS)).round())
    binnings = [_normal_binning(rates, below, int(count)) for count in counts]
    weights = _weights(binnings)
    knots = np.unique(np.concatenate([[0.0, 1.0], *(own.centres for own in binnings)]))
    added = sum(
        weight * np.interp(knots, own.centres, own.values)
        for weight, own in zip(weights, binnings, strict=True)
    )
    return Calibrator(
        Method.BBQ,
        knots,
        np.clip(knots + added, 0.0, 1.0),
        parameters=_heaviest(binnings, weights),
    )


def _normal_binning(rates: BucketRates, below: FloatArray, buckets: int) -> _Binning:
    boundaries = quantile_boundaries(below, buckets)
    starts = boundaries[:-1]
    sizes = np.add.reduceat(rates.totals, starts)
    centres = np.add.reduceat(rates.totals * rates.scores, starts) / sizes
    prior = np.maximum(centres * (1.0 - centres), _LEAST) / (1.0 + PRIOR_EXAMPLES / len(starts))
    beyond = rates.rates - rates.scores
    covariance = rates.covariance
    if covariance is not None:
        member = np.repeat(np.eye(len(starts)), np.diff(boundaries), axis=0)
        both = covariance + member * prior @ member.T
        solved = np.linalg.solve(both, beyond)
        score = float(beyond @ solved) + float(np.linalg.slogdet(both)[1])
        return _Binning(boundaries, -0.5 * score, prior * (solved @ member), centres)
    precision = 1.0 / rates.variance
    weight = np.add.reduceat(precision, starts)
    mean = np.add.reduceat(precision * beyond, starts) / weight
    spread = np.add.reduceat(precision * beyond**2, starts) - weight * mean**2
    each = spread + np.log1p(weight * prior) + mean**2 / (prior + 1.0 / weight)
    values = weight * mean / (weight + 1.0 / prior)
    return _Binning(boundaries, -0.5 * float(each.sum()), values, centres)


def _weights(binnings: list[_Binning]) -> FloatArray:
    scores = np.array([binning.log_score for binning in binnings])
    shares = np.exp(scores - scores.max())
    weights: FloatArray = shares / shares.sum()
    return weights


def _heaviest(binnings: list[_Binning], weights: FloatArray) -> dict[str, float]:
    """The binning with the largest share in the average: its buckets, and that share."""
    place = int(np.argmax(weights))
    return {
        "heaviest_buckets": float(len(binnings[place].values)),
        "heaviest_weight": float(weights[place]),
    }


def _averaged(edges: FloatArray, binnings: list[_Binning]) -> Calibrator:
    """The binnings' average, weighted by their scores, on the edges of all that matter."""
    weights = _weights(binnings)
    heavy = [i for i in np.argsort(-weights) if weights[i] > _NEGLIGIBLE]
    boundaries = np.unique(np.concatenate([binnings[i].boundaries for i in heavy]))
    values = np.zeros(len(boundaries) - 1)
    for i in heavy:
        own = binnings[i]
        place = np.searchsorted(own.boundaries, boundaries[:-1], side="right") - 1
        values += weights[i] * own.values[place]
    return Calibrator(
        Method.BBQ,
        edges[boundaries],
        np.clip(values, 0.0, 1.0),
        Interpolation.STEP,
        parameters=_heaviest(binnings, weights),
    )
