"""What claims are read with: curves of a figure, intervals of slopes and ratios, closed forms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, inf, log, sqrt

import numpy as np

from fedassay.reproduction.pages import slope
from fedassay.reproduction.results import Point


@dataclass(frozen=True, slots=True)
class Finding:
    """What we measured for a claim on one table."""

    preset: str
    default: str
    agrees: bool | None
    """None where the measurement's interval holds both."""


class Curves:
    """The points of one figure on one table, by panel and curve."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points

    def curve(self, panel: str, name: str) -> list[Point]:
        """A curve from left to right; empty where it was not measured."""
        found = [p for p in self._points if (p.panel, p.curve) == (panel, name)]
        return sorted(found, key=lambda point: point.x)

    def near(self, panel: str, name: str, x: float) -> Point:
        """The point of a curve nearest to x."""
        return min(self.curve(panel, name), key=lambda point: abs(point.x - x))


Find = Callable[[Curves], Finding]


def within(value: float, half_width: float, low: float, high: float) -> bool | None:
    """Whether all of an interval is within bounds; None where it is so in part.

    >>> within(1.0, 0.1, 0.5, 2.0), within(3.0, 0.1, 0.5, 2.0), within(2.0, 0.1, 0.5, 2.0)
    (True, False, None)
    """
    if low <= value - half_width and value + half_width <= high:
        return True
    return False if value + half_width < low or value - half_width > high else None


def slope_and_reach(points: Sequence[Point]) -> tuple[float, float] | None:
    """The log-log slope of a curve, and half of its 95 % interval; None without two places.

    Each mean's own interval, on the logarithm, carried through least squares.
    """
    found = slope(points)
    used = [point for point in points if point.mean > 0.0]
    if found is None:
        return None
    x = np.log([point.x for point in used])
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    reaches = np.array([point.half_width / point.mean for point in used])
    return found, float(np.sqrt(np.sum((weights * reaches) ** 2)))


def ratio_and_reach(one: Point, other: Point) -> tuple[float, float]:
    """How many times one mean is another, and half of its 95 % interval (delta method).

    Repetitions are taken in pairs: those of one part share their rows, and some their noise.
    """
    ratio = one.mean / other.mean
    if len(one.values) != len(other.values):
        parts = (one.half_width / one.mean, other.half_width / other.mean)
        return ratio, ratio * sqrt(sum(part**2 for part in parts))
    rest = [a - ratio * b for a, b in zip(one.values, other.values, strict=True)]
    return ratio, replace(one, values=tuple(rest)).half_width / other.mean


def crossing(points: Sequence[Point], bound: float, shift: float) -> float:
    """Where a falling curve, so many half-widths above itself, comes below a bound: log-log.

    It is the first place where it begins below it, and infinite where it never gets there.

    >>> from fedassay.reproduction.results import points_of
    >>> places = points_of("", "", {("a", 10.0): [0.1], ("a", 1000.0): [0.001]})
    >>> round(crossing(places, 0.01, 0.0), 6)
    100.0
    """
    heights = [point.mean + shift * point.half_width for point in points]
    if heights[0] < bound:
        return points[0].x
    for i, j in pairwise(range(len(points))):
        if heights[j] < bound:
            if heights[j] <= 0.0:  # anywhere between the two
                return points[i].x
            share = log(heights[i] / bound) / log(heights[i] / heights[j])
            return float(points[i].x * (points[j].x / points[i].x) ** share)
    return inf


def shared_prefix_variance(fanout: int, levels: int) -> float:
    """Of a prefix by naive sums under shared noise, but for a factor: (f - 1) h³.

    A prefix takes (f - 1)/2 nodes of each of h levels, each with variance 2h²/ε².

    >>> shared_prefix_variance(2, 12), shared_prefix_variance(4, 6)
    (1728.0, 648.0)
    """
    return float((fanout - 1) * levels**3)


def local_prefix_variance(fanout: int, levels: int, epsilon: float) -> float:
    """The same under local privacy, per client, of a prefix with a quarter of the rows.

    A row in it adds h(p(1-q)² + (1-p)q²)/(p-q)² - 1, any row hq(1-q)/(p-q)² for each node
    (unary encoding: p = 1/2, q = 1/(e^ε + 1)); there are (f - 1)h/2 nodes.

    >>> round(local_prefix_variance(4, 6, 5.0) / local_prefix_variance(2, 12, 5.0), 2)
    0.55
    """
    p, q = 0.5, 1.0 / (exp(epsilon) + 1.0)
    gap = (p - q) ** 2
    inside = levels * (p * (1.0 - q) ** 2 + (1.0 - p) * q**2) / gap - 1.0
    each = levels * q * (1.0 - q) / gap
    return inside / 4.0 + (fanout - 1) * levels / 2.0 * each
