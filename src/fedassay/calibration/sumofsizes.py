"""An interval for a sum of absolute values of which only noisy versions are seen."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from fedassay.estimate import Estimate, Interval, normal_quantile
from fedassay.examples import FloatArray

_HALVINGS = 50
_FARTHEST = 12.0


@dataclass(frozen=True, slots=True)
class SumOfSizes(Estimate):
    """Sum of |gap| over bins, with an interval that holds where gaps are lost in noise too.

    Near zero a sum of sizes is far from normal: noise only ever adds to it. The interval holds
    those sums under which the plain sum that was seen is not unlikely. Its law depends on how a
    sum is spread over the bins, so ends are taken over several ways: as it was seen, over few
    bins, and as thinly as noise allows. It is therefore wider than need be near zero, and the
    usual one where gaps stand clear of their noise.
    """

    gaps: tuple[float, ...] = ()
    gap_noise: tuple[float, ...] = ()
    """Variance of every gap from privacy noise, and from not knowing where in a cell scores lie."""
    gap_sampling: tuple[float, ...] = ()
    """Variance of every gap from rows being a sample."""
    shared: float = 1.0
    """Variance of the sum of clear gaps, against that of gaps that err apart."""

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        variance = np.array(self.gap_noise)
        if population:
            variance = variance + np.array(self.gap_sampling)
        seen = np.abs(self.gaps)
        tail = (1.0 - confidence) / 2.0
        ends = [_ends(seen, variance, way, tail, self.shared) for way in _ways(seen, variance)]
        low = min(*(end[0] for end in ends), self.value)
        high = max(*(end[1] for end in ends), self.value)
        placing = normal_quantile(1.0 - tail) * self.binning_sd
        return Interval(
            max(self.value - sqrt((self.value - low) ** 2 + placing**2), 0.0),
            self.value + sqrt((high - self.value) ** 2 + placing**2),
        )


def folded_mean(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of |X| for a normal X, and its derivative by the mean."""
    from scipy.special import erf

    spread = sd > 0.0
    ratio = np.where(spread, mean / np.where(spread, sd, 1.0), 0.0)
    lean = np.where(spread, erf(ratio / sqrt(2.0)), np.sign(mean))
    return sd * sqrt(2.0 / pi) * np.exp(-0.5 * ratio**2) + mean * lean, lean


def _ways(seen: FloatArray, variance: FloatArray) -> list[FloatArray]:
    """Shares of a sum over the bins: where it was seen beyond noise, and in proportion to it."""
    sd = np.sqrt(variance)
    found = []
    for sizes in (
        seen,
        np.maximum(seen - 2.0 * sd, 0.0),
        np.sqrt(np.maximum(seen**2 - variance, 0.0)),
        sd,
    ):
        total = float(sizes.sum())
        if total > 0.0:
            found.append(sizes / total)
    return found


def _ends(
    seen: FloatArray, variance: FloatArray, way: FloatArray, tail: float, shared: float
) -> tuple[float, float]:
    """The sums, spread this way, at which seeing so much or so little has the tail's chance."""
    total = float(seen.sum())
    if not variance.any():
        return total, total
    most = total + _FARTHEST * sqrt(float(variance.sum()))

    def at_most(seen_total: float) -> Callable[[float], float]:
        return lambda size: _chance(seen_total, size * way, variance, shared)

    # Luck that leaves less than noise alone should have makes nobody surer than it would.
    usual = float(folded_mean(np.zeros_like(seen), np.sqrt(variance))[0].sum())
    low = _falling(at_most(total), 1.0 - tail, most)
    return low, _falling(at_most(max(total, usual)), tail, most)


def _chance(total: float, sizes: FloatArray, variance: FloatArray, shared: float) -> float:
    """The chance of a plain sum of at most so much, by a gamma law with the same moments."""
    from scipy.special import gammainc

    means, leans = folded_mean(sizes, np.sqrt(variance))
    own = sizes**2 + variance - means**2
    clear = leans**2 * variance
    spread = max(float((own - clear).sum()), 0.0) + shared * float(clear.sum())
    mean = float(means.sum())
    return float(gammainc(mean**2 / spread, mean * total / spread))


def _falling(function: Callable[[float], float], level: float, most: float) -> float:
    """Where a falling function crosses a level, or 0 where it starts below."""
    if function(0.0) <= level:
        return 0.0
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > level else (low, middle)
    return 0.5 * (low + high)
