"""How a claim is read from a figure's points: a figure, its interval, and whether it agrees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, sqrt

import numpy as np

from fedassay.reproduction.pages import figure_text, slope
from fedassay.reproduction.results import Point

NOTHING = "–"


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


def at_most(panel: str, curve: str, x: float, bound: float, default: str | None = None) -> Find:
    """The error at x is at most a bound."""

    def find(curves: Curves) -> Finding:
        point = curves.near(panel, curve, x)
        ours = NOTHING if default is None else figure_text(curves.near(panel, default, x))
        agrees = within(point.mean, point.half_width, -np.inf, bound)
        return Finding(figure_text(point), ours, agrees)

    return find


def slope_within(
    panel: str, curve: str, low: float, high: float, default: str | None = None
) -> Find:
    """The log-log slope lies between two figures."""

    def find(curves: Curves) -> Finding:
        found = slope_and_reach(curves.curve(panel, curve))
        ours = None if default is None else slope_and_reach(curves.curve(panel, default))
        agrees = None if found is None else within(*found, low, high)
        return Finding(_slope_text(found), _slope_text(ours), agrees)

    return find


def _slope_text(found: tuple[float, float] | None) -> str:
    return NOTHING if found is None else f"slope {found[0]:.2f} ± {found[1]:.2f}"


def best_within(panel: str, curve: str, low: float, high: float) -> Find:
    """The smallest error lies between two places, or cannot be told from one that does."""

    def find(curves: Curves) -> Finding:
        points = curves.curve(panel, curve)
        best = min(points, key=lambda point: point.mean)
        inside = [point for point in points if low <= point.x <= high]
        agrees: bool | None = best in inside
        if not agrees and inside:
            rival = min(inside, key=lambda point: point.mean)
            reach = sqrt(best.half_width**2 + rival.half_width**2)
            agrees = None if rival.mean - best.mean < reach else False
        return Finding(f"{best.x:g}, with {figure_text(best)}", NOTHING, agrees)

    return find


def flat_beyond(panel: str, curve: str, x: float) -> Find:
    """From x on more buckets change the error by less than a factor of two."""

    def find(curves: Curves) -> Finding:
        start, end = curves.near(panel, curve, x), curves.curve(panel, curve)[-1]
        ratio, reach = ratio_and_reach(end, start)
        shown = f"{ratio:.2f} ± {reach:.2f} times from {start.x:g} to {end.x:g}"
        return Finding(shown, NOTHING, within(ratio, reach, 0.5, 2.0))

    return find


def largest_gain(panel: str, even: str, deep: str, least: float) -> Find:
    """Somewhere the second curve's error is at least so many times smaller than the first's."""

    def find(curves: Curves) -> Finding:
        pairs = zip(curves.curve(panel, even), curves.curve(panel, deep), strict=True)
        wide, thin = max(pairs, key=lambda pair: pair[0].mean / pair[1].mean)
        ratio, reach = ratio_and_reach(wide, thin)
        shown = f"up to {ratio:.1f} ± {reach:.1f} times, at B = {thin.x:g}"
        return Finding(shown, NOTHING, within(ratio, reach, least, np.inf))

    return find


def changes(
    panel: str, before: str, after: str, x: float, default: str, *, low: float, high: float
) -> Find:
    """The second curve's error at x is between so many and so many times the first's."""

    def find(curves: Curves) -> Finding:
        raw, fitted = curves.near(panel, before, x), curves.near(panel, after, x)
        shown = f"{figure_text(raw)} before, {figure_text(fitted)} after"
        agrees = within(*ratio_and_reach(fitted, raw), low, high)
        return Finding(shown, figure_text(curves.near(panel, default, x)), agrees)

    return find


def worse_elsewhere(panel: str, other: str, curve: str, x: float, default: str) -> Find:
    """A curve's error in one panel is at least one and a half times that in another."""

    def find(curves: Curves) -> Finding:
        noisy, exact = curves.near(panel, curve, x), curves.near(other, curve, x)
        shown = f"{figure_text(noisy)} with noise, {figure_text(exact)} without"
        agrees = within(*ratio_and_reach(noisy, exact), 1.5, np.inf)
        return Finding(shown, figure_text(curves.near(panel, default, x)), agrees)

    return find


def in_order(panel: str, names: Sequence[str], default: Callable[[str], str]) -> Find:
    """The curves' last points rise, one after the other, as far as their intervals tell."""

    def find(curves: Curves) -> Finding:
        last = [curves.curve(panel, name)[-1] for name in names]
        ours = [curves.curve(panel, default(name))[-1] for name in names]
        steps = [
            within(b.mean - a.mean, sqrt(a.half_width**2 + b.half_width**2), 0.0, np.inf)
            for a, b in pairwise(last)
        ]
        agrees = False if False in steps else None if None in steps else True
        shown, other = (", ".join(f"{p.mean:.3f}" for p in each) for each in (last, ours))
        return Finding(shown, other, agrees)

    return find


def alike_at(panel: str, one: str, other: str, x: float, *, predicted: float) -> Find:
    """Two curves' errors at x are within a tenth of each other; beside it what theory says."""

    def find(curves: Curves) -> Finding:
        ratio, reach = ratio_and_reach(curves.near(panel, one, x), curves.near(panel, other, x))
        shown = f"{ratio:.2f} ± {reach:.2f} times the error (closed form {predicted:.2f})"
        return Finding(shown, NOTHING, within(ratio, reach, 0.9, 1.1))

    return find


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
