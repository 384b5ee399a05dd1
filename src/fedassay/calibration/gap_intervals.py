"""Intervals for a sum of absolute values, and for the largest, when only noisy ones are seen."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from math import erf, pi, sqrt

import numpy as np

from fedassay.estimate import Estimate, Interval, check_confidence, normal_quantile
from fedassay.examples import FloatArray
from fedassay.extras import needed_for

_PRECISE = 1e-12
_FARTHEST = 6.0


def _nothing() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SumOfSizes(Estimate):
    """Sum of |gap| over bins, with an interval that holds where gaps are lost in noise too.

    Near zero a sum of sizes is far from normal: noise only ever adds to it. The interval holds
    those sums under which the plain sum that was seen is not unlikely. Its law depends on how a
    sum is spread over the bins, so ends are taken over several ways: as it was seen, over few
    bins, and as thinly as noise allows. It is therefore wider than need be near zero, and the
    usual one where gaps stand clear of their noise.
    """

    _: KW_ONLY
    gaps: FloatArray = field(default_factory=_nothing)
    gap_noise: FloatArray = field(default_factory=_nothing)
    """Covariance of the gaps from privacy noise and coarse cells, bin x bin."""
    gap_sampling: FloatArray = field(default_factory=_nothing)
    """Variance of every gap from rows being a sample."""

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        check_confidence(confidence)
        covariance = self.gap_noise + np.diag(self.gap_sampling * population)
        tail = (1.0 - confidence) / 2.0
        law = _PlainSum.of(self.gaps, covariance)
        ends = [law.ends(way, tail) for way in _ways(np.abs(self.gaps), law.sd)]
        low = min(*(end[0] for end in ends), self.value)
        high = max(*(end[1] for end in ends), self.value)
        placing = normal_quantile(1.0 - tail) * self.binning_sd
        return Interval(
            max(self.value - sqrt((self.value - low) ** 2 + placing**2), 0.0),
            self.value + sqrt((high - self.value) ** 2 + placing**2),
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LargestSize(Estimate):
    """The largest |gap rate| of any bin, with an interval that holds for all bins at once.

    Each end is the largest of the bins' own, every bin at a confidence so high that all hold
    together: whichever bin is the worst, it is covered.
    """

    _: KW_ONLY
    rates: FloatArray = field(default_factory=_nothing)
    """Observed minus predicted share of positives, of every bin clear of its noise."""
    rate_noise: FloatArray = field(default_factory=_nothing)
    rate_sampling: FloatArray = field(default_factory=_nothing)

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        check_confidence(confidence)
        if not len(self.rates):
            return Interval(0.0, 1.0)
        sd = np.sqrt(self.rate_noise + self.rate_sampling * population)
        z = normal_quantile(1.0 - (1.0 - confidence) / 2.0 / len(self.rates))
        sizes = np.abs(self.rates)
        low = max(float((sizes - z * sd).max()), 0.0)
        return Interval(min(low, self.value), max(float((sizes + z * sd).max()), self.value))


@dataclass(frozen=True, slots=True, eq=False)
class _PlainSum:
    """The law of the sum of absolute values of normal gaps."""

    seen: FloatArray
    sd: FloatArray
    signed: FloatArray
    """Covariance of the gaps, each taken with the sign that was seen."""
    folded: FloatArray
    """Covariance that absolute values would have if all gaps were nil."""

    @classmethod
    def of(cls, gaps: FloatArray, covariance: FloatArray) -> "_PlainSum":
        sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        known = np.where(sd > 0.0, sd, 1.0)
        r = np.clip(covariance / known / known[:, None], -1.0, 1.0)
        shape = r * np.arcsin(r) + np.sqrt(1.0 - r * r) - 1.0
        sign = np.where(gaps < 0.0, -1.0, 1.0)
        return cls(
            np.abs(gaps),
            sd,
            covariance * sign * sign[:, None],
            2.0 / pi * shape * sd * sd[:, None],
        )

    def ends(self, way: FloatArray, tail: float) -> tuple[float, float]:
        """Sums, spread this way, at which seeing so much or so little has the tail's chance."""
        total = float(self.seen.sum())
        if not self.sd.any():
            return total, total
        most = total + _FARTHEST * float(self.sd.sum())

        def at_most(seen_total: float) -> Callable[[float], float]:
            return lambda size: self.chance(seen_total, size * way)

        # Luck that leaves less than noise alone should have makes nobody surer than it would.
        usual = sqrt(2.0 / pi) * float(self.sd.sum())
        low = _falling(at_most(total), 1.0 - tail, most)
        return low, _falling(at_most(max(total, usual)), tail, most)

    def chance(self, total: float, sizes: FloatArray) -> float:
        """The chance of a plain sum of at most so much, by a gamma law with the same moments."""
        with needed_for("intervals of calibration errors"):
            from scipy.special import gammainc

        means, leans = folded_mean(sizes, self.sd)
        own = float((sizes**2 + self.sd**2 - means**2).sum())
        unclear = 1.0 - leans**2
        together = leans @ self.signed @ leans + unclear @ self.folded @ unclear
        alone = float((leans**2 * np.diag(self.signed) + unclear**2 * np.diag(self.folded)).sum())
        mean = float(means.sum())
        spread = max(own + float(together) - alone, 0.1 * own)
        return float(gammainc(mean**2 / spread, mean * total / spread))


@dataclass(frozen=True, slots=True)
class NilLaw:
    """The law of a sum of sizes whose means are nil: gamma, with the moments of |N(0, V)|."""

    shape: float
    mean: float

    @classmethod
    def of(cls, covariance: FloatArray) -> "NilLaw":
        """From the covariance of what is summed."""
        law = _PlainSum.of(np.zeros(len(covariance)), covariance)
        mean, spread = sqrt(2.0 / pi) * float(law.sd.sum()), float(law.folded.sum())
        return cls(mean**2 / spread, mean)

    def scores(self, sums: FloatArray) -> FloatArray:
        """Sums that were seen as standard normal figures.

        >>> NilLaw.of(np.eye(20)).scores(np.array([10.0, 15.7, 30.0])).round(1).tolist()
        [-2.5, -0.0, 4.2]
        """
        with needed_for("intervals of calibration errors"):
            from scipy.special import gammainc, gammaincc, ndtri

        place = self.shape / self.mean * sums
        above = gammaincc(self.shape, place)
        lower, upper = gammainc(self.shape, place), np.maximum(above, 1e-300)
        found: FloatArray = np.where(above > 0.5, ndtri(lower), -ndtri(upper))
        return found


def nil_score(seen: FloatArray, covariance: FloatArray) -> float:
    """The sum of sizes that was seen, as a standard normal figure if all means are nil.

    >>> nil_score(np.full(20, 0.8), np.eye(20)) < 0.1 < nil_score(np.full(20, 1.0), np.eye(20))
    True
    """
    return float(NilLaw.of(covariance).scores(np.array([np.abs(seen).sum()]))[0])


def folded_mean(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of |X| for a normal X, and its derivative by the mean."""
    spread = sd > 0.0
    ratio = np.where(spread, mean / np.where(spread, sd, 1.0), 0.0)
    # Of some twenty bins: no library need be loaded for it.
    inside = np.array([erf(each) for each in (ratio / sqrt(2.0)).tolist()])
    lean = np.where(spread, inside, np.sign(mean))
    return sd * sqrt(2.0 / pi) * np.exp(-0.5 * ratio**2) + mean * lean, lean


def _ways(seen: FloatArray, sd: FloatArray) -> list[FloatArray]:
    """Shares of a sum over the bins: as seen, where it is beyond noise, and as noise is.

    The clearer gaps are, the less of them can be spread otherwise than seen.
    """
    beyond = np.sqrt(np.maximum(seen**2 - sd**2, 0.0))
    clear = float((beyond**2).sum() / max(float((seen**2 + sd**2).sum()), 1e-300)) ** 2
    ways = [
        sizes / sizes.sum()
        for sizes in (seen, np.maximum(seen - 2.0 * sd, 0.0), beyond, sd)
        if sizes.any()
    ]
    return [clear * ways[0] + (1.0 - clear) * way for way in ways] or [
        np.full(len(seen), 1.0 / max(len(seen), 1))
    ]


def _falling(function: Callable[[float], float], level: float, most: float) -> float:
    """Where a falling function crosses a level: 0 where it starts below, `most` if never."""
    with needed_for("intervals of calibration errors"):
        from scipy.optimize import brentq

    if function(0.0) <= level:
        return 0.0
    if function(most) >= level:
        return most
    crossing: float = brentq(lambda size: function(size) - level, 0.0, most, xtol=_PRECISE * most)
    return crossing
