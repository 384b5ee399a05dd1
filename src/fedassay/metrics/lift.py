"""Gain and lift: what acting on the highest scores finds, beside acting at random."""

from functools import lru_cache
from math import sqrt
from statistics import fmean

import numpy as np

from fedassay.checks import require_number
from fedassay.errors import SettingInvalid
from fedassay.estimate import REACH, Estimate, Shape, as_far_as_possible, unless_too_coarse
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.cutoffs import Cutoff, chords, cutoff
from fedassay.metrics.delta_method import sampling_variance, why_one_class, why_undefined
from fedassay.metrics.multiples import multiple
from fedassay.metrics.nearer import beyond_cells

_ALL = np.ones(2)


def gain(histogram: ScoreHistogram, share: float) -> Estimate:
    """The share of all positives among the given share of examples with the highest scores.

    Of examples with equal scores, where only some are taken, each counts in part.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> gain(h, 0.25).value
    0.5
    """
    if not 0.0 < require_number(share, "a share of examples") <= 1.0:
        raise SettingInvalid(
            f"the share of examples to act on must lie in (0, 1]; found {share}. Usual is 0.1."
        )
    require_histogram(histogram)
    found = beyond_cells(histogram, lambda counted: _gain(counted, share))
    return unless_too_coarse(found, "gain", 1.0)


@lru_cache(maxsize=4)
def _gain(histogram: ScoreHistogram, share: float) -> Estimate:
    """The last answers are kept, because lift asks for them after gain."""
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    wanted, P = share * histogram.total, histogram.total_positives
    found = cutoff(histogram, _ALL, wanted, reached=True)
    own = found.at.above - share
    of = f"the highest {share:.3g} of examples"
    undefined = why_undefined(histogram, own + share, of, size=wanted)
    if undefined is not None:
        return undefined
    rates, missing = [0.0], wanted - found.above
    taken = found.at.counts[0]
    if share < 1.0:
        beside = chords(histogram, _ALL, found, own)
        rates = [min(float(each[1]), 1.0) for each in (beside.fewer, beside.more)]
        taken += min(float(beside.towards(missing)[1]), 1.0) * missing
    if found.is_tied:
        taken, rate = _pro_rata(histogram, found)
        rates = [rate]
    value = taken / P
    # Where the curve has a kink, what errs goes along either side of it as often.
    gradients = [_gradient(found, own, rate, value) / P for rate in rates]
    spreads = [np.array([rate, 1.0 - rate]) * found.at.spread / P for rate in rates]
    estimate = Estimate(
        value,
        noise_sd=sqrt(fmean(histogram.noise.variance(each) for each in gradients)),
        sampling_sd=sqrt(fmean(sampling_variance(histogram, each) for each in gradients)),
        binning_bound=_bound(histogram, found, value),
        binning_sd=_beside_tie(histogram, found, rates[0]) / P
        if found.is_tied
        else max(float(np.hypot(*each)) for each in spreads),
        shape=Shape.LOGIT,
        trials=max(P, 1.0),
    )
    return as_far_as_possible(estimate)


def lift(histogram: ScoreHistogram, share: float) -> Estimate:
    """How many times as many positives that share holds as one taken at random would.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> lift(h, 0.25).value
    2.0
    """
    return multiple(gain(histogram, share), 1.0 / share)


def _gradient(found: Cutoff, own: FloatArray, rate: float, value: float) -> FloatArray:
    """How the positives taken move with each count, where so many of the next rows are positive."""
    gradient = -rate * own
    gradient[1] += found.at.above[1] - value
    return gradient


def _pro_rata(histogram: ScoreHistogram, found: Cutoff) -> tuple[float, float]:
    """Positives above the cutoff where its bucket is one score, and their rate there."""
    n, p = histogram.counts[:, found.bucket]
    above = histogram.cumulative[:, -1] - histogram.cumulative[:, found.bucket + 1]
    rate = float(p / (n + p))
    return float(above[1]) + rate * (found.wanted - float(above.sum())), rate


def _beside_tie(histogram: ScoreHistogram, found: Cutoff, rate: float) -> float:
    """The standard deviation of positives above, from rows in a tie's bucket that are not in it.

    All may lie on one side, and as many more as chance puts there.
    """
    loose = np.maximum((histogram.counts - histogram.ties)[:, found.bucket], 0.0)
    beside: FloatArray = (loose / REACH + np.sqrt(loose)) * [rate, 1.0 - rate]
    return float(np.hypot(*beside))


def _bound(histogram: ScoreHistogram, found: Cutoff, value: float) -> float:
    """The furthest that gain can be, however the rows of the cutoff's bucket are ordered."""
    n, p = np.maximum(histogram.counts[:, found.bucket], 0.0)
    above = histogram.cumulative[:, -1] - histogram.cumulative[:, found.bucket + 1]
    taken = min(max(found.wanted - float(above.sum()), 0.0), float(n + p))
    fewest, most = max(taken - float(n), 0.0), min(float(p), taken)
    ends = (np.array([fewest, most]) + above[1]) / histogram.total_positives
    return float(np.abs(ends - value).max())
