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

from fedassay.estimate import Estimate, Interval, check_confidence, normal_quantile
from fedassay.examples import FloatArray

_DRAWS = 2**8
_SEED = 0
_HALVINGS = 11


class Figure(Enum):
    """Which figure of |gap| over the examples."""

    MEAN = None
    HALF = 0.5
    MOST = 0.9
    LARGEST = 1.0


def figure_of(
    sizes: FloatArray, masses: FloatArray, figure: Figure, *, is_sorted: bool = False
) -> float:
    """A figure of absolute gaps, rising ones or any, that weigh as their examples do.

    >>> figure_of(np.array([0.3, 0.1]), np.array([1.0, 3.0]), Figure.HALF)
    0.1
    """
    if figure is Figure.MEAN:
        return float(sizes @ masses / masses.sum())
    if figure is Figure.LARGEST:
        return float(sizes.max())
    if not is_sorted:
        order = np.argsort(sizes)
        sizes, masses = sizes[order], masses[order]
    below = np.cumsum(masses)
    return float(sizes[np.searchsorted(below, figure.value * below[-1] * (1.0 - 1e-12))])


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
    plain: float
    """The figure of the gaps over all examples, one by one, which groups are only near to."""

    def drawn(self, gaps: FloatArray, *, noise: bool = True, sampling: bool = True) -> FloatArray:
        """The figure of such gaps, once for each of many errors, sorted."""
        covariance = self.noise * noise + self.sampling * sampling
        spread = sqrt(self.spread_noise**2 * noise + self.spread_sampling**2 * sampling)
        normals = spread_normals(len(gaps) + 1)
        moved = gaps + normals[:, :-1] @ _root(covariance)
        return np.sort(self._figures(moved, spread * normals[:, -1]))

    def of(self, gaps: FloatArray) -> float:
        """The figure of such gaps, as they are."""
        return float(self._figures(gaps[None], np.zeros(1))[0])

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

    def ends(self, tail: float, *, population: bool) -> tuple[float, float]:
        """The figures between which what was seen has more than the tail's chance.

        How a figure comes out depends on how its gaps lie along the scores, so ends are taken
        over several ways: as seen, as far as they are clear of their errors, and all the same.
        """
        seen = self.of(self.gaps)
        nothing = self.drawn(np.zeros_like(self.gaps), sampling=population)
        # Luck that leaves less than noise alone should have makes nobody surer than it would.
        unlucky = max(seen, float(np.median(nothing)))
        is_clear = float((nothing >= seen).mean()) < tail
        lows, highs = [seen if is_clear else 0.0], [seen]
        for way in self._ways(population=population):

            def at_least(size: float, way: FloatArray = way) -> bool:
                drawn = self.drawn(size * way, sampling=population)
                return float((drawn >= seen).mean()) >= tail

            def at_most(size: float, way: FloatArray = way) -> bool:
                drawn = self.drawn(size * way, sampling=population)
                return float((drawn <= unlucky).mean()) <= tail

            if is_clear:
                lows.append(_crossing(at_least, 0.0, seen))
            most = unlucky
            while not at_most(most) and most < 2.0**20 * unlucky:
                most *= 2.0
            highs.append(_crossing(at_most, 0.0, most))
        # A quantile of groups is a step beside that of the examples: ends belong around the latter.
        scale = self.plain / seen if seen > 0.0 else 1.0
        return scale * min(lows), scale * max(highs)

    def _ways(self, *, population: bool) -> list[FloatArray]:
        """Gaps whose figure is 1."""
        sd = np.sqrt(np.maximum(np.diag(self.noise + self.sampling * population), 0.0))
        clear = np.sign(self.gaps) * np.maximum(np.abs(self.gaps) - 2.0 * sd, 0.0)
        ways = [(way, self.of(way)) for way in (self.gaps, clear, np.ones_like(self.gaps))]
        return [way / size for way, size in ways if size > 0.0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GapFigure(Estimate):
    """A figure of the calibration gaps, with an interval that knows that noise only adds."""

    _: KW_ONLY
    law: GapLaw | None = field(default=None)

    def interval(self, confidence: float = 0.95, *, population: bool = True) -> Interval:
        """Cover the population's value, or with `population=False` that of these very rows."""
        check_confidence(confidence)
        tail = (1.0 - confidence) / 2.0
        if self.law is None:
            return Estimate.interval(self, confidence, population=population)
        low, high = self.law.ends(tail, population=population)
        return Interval(min(low, self.value), max(high, self.value))


@lru_cache(maxsize=16)
def spread_normals(dimensions: int) -> FloatArray:
    """Points spread as a standard normal is, in pairs of opposite ones, the same every time.

    >>> points = spread_normals(3)
    >>> np.abs(points.T @ points / len(points)).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    # A Latin hypercube: in every dimension one point in each of equally many steps.
    in_order = np.tile(np.arange(_DRAWS), (dimensions, 1))
    steps = np.random.default_rng(_SEED).permuted(in_order, axis=1).T
    points = np.array([normal_quantile((step + 0.5) / _DRAWS) for step in range(_DRAWS)])[steps]
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
