"""The noise of counts that are put together from several parts, or scaled up from some clients."""

from dataclasses import dataclass

import numpy as np

from fedassay.examples import FloatArray
from fedassay.noise import NoiseModel


@dataclass(frozen=True, slots=True, eq=False)
class ThinnedNoise:
    """The noise of counts scaled up from those of some clients, drawn without looking.

    A count c of all rows, of whom a share q was drawn, comes back as binomial(c, q) / q: that adds
    c (1/q - 1) to the variance of every cell, beside the noise of the drawn, times 1/q^2.
    """

    base: NoiseModel
    scale: float
    """1/q."""
    counts: FloatArray
    """Label x cell, scaled up."""

    @property
    def is_zero(self) -> bool:
        """Whether all clients answered, without noise."""
        return self.base.is_zero and self.scale == 1.0

    @property
    def local_epsilon(self) -> float | None:
        """As for the clients drawn."""
        return self.base.local_epsilon

    def variance(self, weights: FloatArray) -> float:
        """Noise of the drawn, scaled up, and the draw."""
        drawn = float((weights**2 * np.maximum(self.counts, 0.0)).sum()) * (self.scale - 1.0)
        return self.scale**2 * self.base.variance(weights) + drawn

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same for all pairs of sums."""
        flat = weights.reshape(len(weights), -1)
        drawn = (flat * np.maximum(self.counts, 0.0).ravel()) @ flat.T * (self.scale - 1.0)
        form: FloatArray = self.scale**2 * self.base.covariances(weights) + drawn
        return form

    def reports_for(self, growth: float) -> float:
        """As for the clients drawn; the draw itself grows as local noise does."""
        return self.base.reports_for(growth)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedNoise:
    """The noise of a class whose positives and negatives come from two parts."""

    negatives: NoiseModel
    """Of the class's own part, label x cell."""
    positives: NoiseModel
    """Of the part where all classes stand side by side, label x (class, cell)."""
    first: int
    """The first of the class's cells there."""
    cells: int
    """Of all classes there."""

    @property
    def is_zero(self) -> bool:
        """Whether both are exact."""
        return self.negatives.is_zero and self.positives.is_zero

    @property
    def local_epsilon(self) -> float | None:
        """As for the positives."""
        return self.positives.local_epsilon

    def _apart(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of both parts' counters: ... x label x cell."""
        below = weights.copy()
        below[..., 1, :] = 0.0
        own = np.zeros((*weights.shape[:-1], self.cells))
        own[..., 1, self.first : self.first + weights.shape[-1]] = weights[..., 1, :]
        return below, own

    def variance(self, weights: FloatArray) -> float:
        """Both parts' noises are independent."""
        below, own = self._apart(weights)
        return self.negatives.variance(below) + self.positives.variance(own)

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same for all pairs of sums."""
        below, own = self._apart(weights)
        return self.negatives.covariances(below) + self.positives.covariances(own)

    def reports_for(self, growth: float) -> float:
        """As for the positives, which are fewer."""
        return self.positives.reports_for(growth)


@dataclass(frozen=True, slots=True, eq=False)
class SummedNoise:
    """The noise of several classes' counts added up cell by cell."""

    parts: tuple[NoiseModel, ...]

    @property
    def is_zero(self) -> bool:
        """Whether all are exact."""
        return all(part.is_zero for part in self.parts)

    @property
    def local_epsilon(self) -> float | None:
        """As for the first."""
        return self.parts[0].local_epsilon

    def variance(self, weights: FloatArray) -> float:
        """Different counters' noises are independent."""
        return sum(part.variance(weights) for part in self.parts)

    def covariances(self, weights: FloatArray) -> FloatArray:
        """The same for all pairs of sums."""
        form = np.zeros((len(weights), len(weights)))
        for part in self.parts:
            form += part.covariances(weights)
        return form

    def reports_for(self, growth: float) -> float:
        """As for the first."""
        return self.parts[0].reports_for(growth)
