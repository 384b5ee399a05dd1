"""The privacy noise of neighbouring buckets taken together.

Sums of a tree's leaves, or of leaves that a second survey asked for as one, are known far better
than the leaves: what stands clear of the noise is a question about sums.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.noise import DenseNoise, NoiseModel

_MOST_BUCKETS = 2**9
FEW = 16.0
"""So many of a class give a density to judge by."""
CLEAR = 3.0
"""Standard deviations of noise that a sum must be beyond."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeNoise:
    """The noise of sums of one class's neighbouring buckets."""

    each_sd: float
    """Of a single count."""
    covariances: FloatArray | None
    """Of the counts below any two edges, label x edge x edge; None where counts are independent."""

    @property
    def is_zero(self) -> bool:
        """Whether there is none."""
        return self.each_sd == 0.0 and self.covariances is None

    def sd(self, label: int, start: int, stop: int) -> float:
        """Of the sum of one class's buckets from `start` up to before `stop`."""
        if self.covariances is None:
            return self.each_sd * sqrt(stop - start)
        form = self.covariances[label]
        variance = form[stop, stop] + form[start, start] - 2.0 * form[start, stop]
        return sqrt(max(float(variance), 0.0))

    def is_clear(
        self, count: float, label: int, start: int, stop: int, *, by: float = CLEAR
    ) -> bool:
        """Whether so many in these buckets are more than chance and noise make."""
        return count >= FEW and count >= FEW + by * self.sd(label, start, stop)


@lru_cache(maxsize=8)
def range_noise(histogram: ScoreHistogram) -> RangeNoise:
    """What noise does to sums of neighbouring buckets.

    Of more than 512 buckets each counts as independent, which the leaves of a tree are not:
    their sums then look less sure than they are.

    >>> from fedassay.noise import DenseNoise
    >>> halves = np.array([[1.0, -1.0], [-1.0, 1.0]])  # two leaves whose sum is known
    >>> noise = DenseNoise(np.kron(np.eye(2), halves))
    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.ones((2, 2)), noise)
    >>> range_noise(h).sd(0, 0, 1), range_noise(h).sd(0, 0, 2)
    (1.0, 0.0)
    """
    each_sd, buckets = cell_noise_sd(histogram), histogram.buckets
    if histogram.noise.is_zero or buckets > _MOST_BUCKETS:
        return RangeNoise(each_sd, None)
    forms = [_below(histogram.noise, label, buckets) for label in (0, 1)]
    return RangeNoise(each_sd, np.stack(forms))


def _below(noise: NoiseModel, label: int, buckets: int) -> FloatArray:
    """Covariances of one class's counts below any two edges, edge x edge."""
    if isinstance(noise, DenseNoise):
        return noise.below(label)
    weights = np.zeros((buckets + 1, 2, buckets))
    weights[:, label] = np.tri(buckets + 1, buckets, -1)
    return noise.covariances(weights)


@lru_cache(maxsize=8)
def cell_noise_sd(histogram: ScoreHistogram) -> float:
    """The root mean square noise of single counts; signs take turns, so that sums cancel.

    >>> cell_noise_sd(ScoreHistogram.from_scores([0, 1], [0.2, 0.7]))
    0.0
    """
    if histogram.noise.is_zero:
        return 0.0
    signs = np.tile(1.0 - 2.0 * (np.arange(histogram.buckets) % 2), (2, 1))
    signs[1] *= -1.0
    return sqrt(histogram.noise.variance(signs) / signs.size)
