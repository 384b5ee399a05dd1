"""The privacy noise in a histogram, as the variance of any linear functional of it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedassay.examples import FloatArray, IntArray


class NoiseModel(Protocol):
    """What is known about the error of every cell's count."""

    @property
    def is_zero(self) -> bool:
        """Whether the counts are exact."""
        ...

    def variance(self, weights: FloatArray) -> float:
        """Variance of the sum of weights x counts; weights are (label x cell)."""
        ...


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Exact counts."""

    @property
    def is_zero(self) -> bool:
        """Always true."""
        return True

    def variance(self, weights: FloatArray) -> float:
        """Always zero."""
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class MergedNoise:
    """The noise of buckets that are sums of neighbouring cells."""

    base: NoiseModel
    sizes: IntArray

    @property
    def is_zero(self) -> bool:
        """As for the cells."""
        return self.base.is_zero

    def variance(self, weights: FloatArray) -> float:
        """Give every cell its bucket's weight."""
        return self.base.variance(np.repeat(weights, self.sizes, axis=1))


def merged(base: NoiseModel, sizes: IntArray) -> NoiseModel:
    """The noise after cells were summed into buckets of these sizes."""
    return base if base.is_zero else MergedNoise(base, sizes)
