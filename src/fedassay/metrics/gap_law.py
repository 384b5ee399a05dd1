"""How a figure of calibration gaps comes out by chance, and the interval that follows.

Noise only ever adds to a mean, a quantile or a maximum of absolute gaps. So an interval holds
those multiples of the gaps seen under which the figure that was seen is not unlikely. Chance is
played with the same points every time, spread as a normal law is: no random numbers.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from functools import lru_cache
from math import sqrt

import numpy as np

from fedassay.estimate import Estimate, Interval, check_confidence
from fedassay.examples import FloatArray
from fedassay.extras import needed_for

_DRAWS = 256
_HALVINGS = 14


class Figure(Enum):
    """Which figure of |gap| over the examples."""

    MEAN = None
    HALF = 0.5
    MOST = 0.9
    LARGEST = 1.0


def figure_of(sizes: FloatArray, masses: FloatArray, figure: Figure) -> float:
    """A figure of absolute gaps that weigh as their examples do.

    >>> figure_of(np.array([0.3, 0.1]), np.array([1.0, 3.0]), Figure.HALF)
    0.1
    """
    if figure is Figure.MEAN:
        return float(sizes @ masses / masses.sum())
    if figure is Figure.LARGEST:
        return float(sizes.max())
    order = np.argsort(sizes)
    below = np.cumsum(masses[order])
    return float(sizes[order][np.searchsorted(below, figure.value * below[-1] * (1.0 - 1e-12))])


@dataclass(frozen=True, slots=True, eq=False)
class GapLaw:
    """How a figure comes out when the gaps at the nodes vary about what they are."""

    figure: Figure
    gaps: FloatArray
    noise: FloatArray
    """Covariance of the gaps from privacy noise and coarse cells."""
    sampling: FloatArray
    groups: FloatArray
    """Hats, node x group of examples."""
    masses: FloatArray
    """What part of the examples each group is."""
    spread_noise: float
    """How much which examples there are varies the figure, or for a quantile its level."""
    spread_sampling: float

    def drawn(self, factor: float, *, noise: bool = True, sampling: bool = True) -> FloatArray:
        """The figure of so many times the gaps, once for each of many errors, sorted."""
        covariance = self.noise * noise + self.sampling * sampling
        spread = sqrt(self.spread_noise**2 * noise + self.spread_sampling**2 * sampling)
        normals = spread_normals(len(self.gaps) + 1)
        gaps = factor * self.gaps + normals[:, :-1] @ _root(covariance)
        return np.sort(self._figures(gaps, spread * normals[:, -1]))

    def _figures(self, gaps: FloatArray, moved: FloatArray) -> FloatArray:
        """One figure for each row of gaps."""
        if self.figure is Figure.LARGEST:
            largest: FloatArray = np.abs(gaps).max(axis=1)
            return largest
        sizes = np.abs(gaps @ self.groups)
        if self.figure is Figure.MEAN:
            mean: FloatArray = np.maximum(sizes @ self.masses + moved, 0.0)
            return mean
        order = np.argsort(sizes, axis=1)
        below = np.cumsum(self.masses[order], axis=1)
        level = np.clip(self.figure.value + moved, 0.0, 1.0 - 1e-9)
        place = (below >= level[:, None] * below[:, -1:]).argmax(axis=1)
        quantile: FloatArray = np.take_along_axis(
            sizes, np.take_along_axis(order, place[:, None], axis=1), axis=1
        )[:, 0]
        return quantile

    def factors(self, tail: float, *, population: bool) -> tuple[float, float]:
        """Between how many times the gaps seen what was seen has more than the tail's chance."""
        none = np.zeros(len(self.gaps))
        seen = float(self._figures(self.gaps[None], none[:1])[0])

        def law(factor: float) -> FloatArray:
            return self.drawn(factor, sampling=population)

        nothing = law(0.0)
        # Luck that leaves less than noise alone should have makes nobody surer than it would.
        unlucky = max(seen, float(np.median(nothing)))
        low, high = 0.0, 1.0
        if float((nothing >= seen).mean()) < tail:
            low = _crossing(lambda factor: float((law(factor) >= seen).mean()) >= tail, 0.0, 1.0)
        while float((law(high) <= unlucky).mean()) > tail and high < 2.0**20:
            high *= 2.0
        high = _crossing(lambda factor: float((law(factor) <= unlucky).mean()) <= tail, 0.0, high)
        return low, high


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GapFigure(Estimate):
    """A figure of the calibration gaps, with an interval that knows that noise only adds."""

    _: KW_ONLY
    plain: float = 0.0
    """The figure before what noise adds was taken off."""
    law: GapLaw | None = field(default=None)

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        check_confidence(confidence)
        tail = (1.0 - confidence) / 2.0
        if self.law is None:
            return Estimate.interval(self, confidence, population=population)
        if self.plain <= 0.0:
            most = np.quantile(self.law.drawn(0.0, sampling=population), 1.0 - tail)
            return Interval(0.0, float(most))
        low, high = self.law.factors(tail, population=population)
        return Interval(min(low * self.plain, self.value), max(high * self.plain, self.value))


@lru_cache(maxsize=16)
def spread_normals(dimensions: int) -> FloatArray:
    """Points spread as a standard normal is, in pairs of opposite ones, the same every time.

    >>> points = spread_normals(3)
    >>> np.abs(points.T @ points / len(points)).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    with needed_for("intervals of calibration errors"):
        from scipy.special import ndtri

    # Multiples of the powers of the root of x^(d+1) = x + 1 fill a cube evenly.
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    points = ndtri((0.5 + np.arange(1, _DRAWS + 1)[:, None] * steps) % 1.0)
    both = np.concatenate([points, -points])
    scale = np.linalg.cholesky(both.T @ both / len(both))
    normals: FloatArray = np.linalg.solve(scale, both.T).T
    normals.flags.writeable = False
    return normals


def _root(covariance: FloatArray) -> FloatArray:
    """A matrix whose transpose times itself is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return root


def _crossing(is_beyond: Callable[[float], bool], low: float, high: float) -> float:
    """Where something that holds at high and not at low begins to."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return 0.5 * (low + high)
