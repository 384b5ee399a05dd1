"""What a tally says of two models: either one's histogram, and how their scores go together."""

from dataclasses import dataclass

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.noise import NoiseModel
from fedassay.pair_grid import Names


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PairHistogram:
    """Both margins, and joint counts of label x groups of the first x groups of the second."""

    names: Names
    first: ScoreHistogram
    second: ScoreHistogram
    joint: FloatArray
    """Label x row x column."""
    rows: FloatArray
    """Edges of the joint counts' rows: of the first model's scores."""
    columns: FloatArray
    noise: NoiseModel
    """Of the joint counts, label x (row x column)."""
    is_margin: bool = False
    """Whether the margins are sums of the joint counts, and share their noise."""
    is_drawn: bool = False
    """Whether each row answered for one margin or for the joint counts: the margins are of
    different rows, and their errors independent."""

    def noise_variance(self, first: FloatArray, second: FloatArray) -> float:
        """The variance from privacy noise of one margin's weighted sum less the other's."""
        if not self.is_margin:
            return self.first.noise.variance(first) + self.second.noise.variance(second)
        weights = first[:, :, None] - second[:, None, :]
        return self.noise.variance(weights.reshape(2, -1))

    def of(self, name: str) -> ScoreHistogram:
        """The histogram of one model by name."""
        return self.first if name == self.names[0] else self.second


@dataclass(frozen=True, slots=True, eq=False)
class MarginNoise:
    """The noise of one model's cells, where each is a sum of joint cells."""

    base: NoiseModel
    sizes: tuple[int, int]
    axis: int
    """0 for the first model, whose cells are rows; 1 for the second's columns."""

    @property
    def is_zero(self) -> bool:
        """As for the joint cells."""
        return self.base.is_zero

    def variance(self, weights: FloatArray) -> float:
        """Give every joint cell its row's or its column's weight."""
        return self.base.variance(self._spread(weights))

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same for several sums."""
        return self.base.covariances(self._spread(weights))

    def _spread(self, weights: FloatArray) -> FloatArray:
        other = self.sizes[1 - self.axis]
        wide = np.repeat(np.expand_dims(weights, -1 if self.axis == 0 else -2), other, self._along)
        return wide.reshape(*weights.shape[:-1], -1)

    @property
    def _along(self) -> int:
        return -1 if self.axis == 0 else -2

    @property
    def local_epsilon(self) -> float | None:
        """As for the joint cells."""
        return self.base.local_epsilon

    def reports_for(self, growth: float) -> float:
        """As for the joint cells."""
        return self.base.reports_for(growth)


def margins_of(
    joint: FloatArray, edges: tuple[FloatArray, FloatArray], noise: NoiseModel, *, smooth: bool
) -> tuple[ScoreHistogram, ScoreHistogram]:
    """Both models' histograms as sums of joint counts."""
    sizes = (joint.shape[1], joint.shape[2])
    first, second = (
        ScoreHistogram(
            edges[axis],
            joint.sum(axis=2 - axis),
            noise if noise.is_zero else MarginNoise(noise, sizes, axis),
            smooth,
        )
        for axis in (0, 1)
    )
    return first, second
