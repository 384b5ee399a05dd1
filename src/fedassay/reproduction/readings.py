"""How a claim is read from a figure's points: a figure, its interval, and whether it agrees."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import exp, inf, log, sqrt

import numpy as np

from fedassay.reproduction.findings import (
    Curves,
    Find,
    Finding,
    crossing,
    ratio_and_reach,
    slope_and_reach,
    within,
)
from fedassay.reproduction.pages import figure_text

NOTHING = "–"


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


def alike_elsewhere(panel: str, other: str, curve: str, x: float, default: str) -> Find:
    """A curve's error in one panel differs from that in another by less than a factor of two."""

    def find(curves: Curves) -> Finding:
        noisy, exact = curves.near(panel, curve, x), curves.near(other, curve, x)
        ratio, reach = ratio_and_reach(noisy, exact)
        ours = figure_text(curves.near(panel, default, x))
        return Finding(f"{ratio:.2f} ± {reach:.2f} times", ours, within(ratio, reach, 0.5, 2.0))

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
        agrees = _all(steps)
        shown, other = (", ".join(f"{p.mean:.3f}" for p in each) for each in (last, ours))
        return Finding(shown, other, agrees)

    return find


def falls_per_level(panel: str, curve: str, low: float, high: float) -> Find:
    """So many levels more divide the error by ten: an error that halves takes log2(10) = 3.3."""

    def find(curves: Curves) -> Finding:
        points = [point for point in curves.curve(panel, curve) if point.mean > 0.0]
        x = np.array([point.x for point in points])
        weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        rate = float(weights @ np.log10([point.mean for point in points]))
        reaches = np.array([point.half_width / point.mean for point in points]) / log(10.0)
        levels = -1.0 / rate
        reach = levels**2 * float(np.sqrt(np.sum((weights * reaches) ** 2)))
        shown = f"a tenth in {levels:.1f} ± {reach:.1f} levels"
        return Finding(shown, NOTHING, within(levels, reach, low, high))

    return find


def largest_of(
    panel: str, one: str, others: Sequence[str], x: float, *, least: float = 1.0
) -> Find:
    """A curve's error at x is so many times those of others, as far as their intervals tell."""

    def find(curves: Curves) -> Finding:
        point = curves.near(panel, one, x)
        ratios = [ratio_and_reach(point, curves.near(panel, other, x)) for other in others]
        verdicts = [within(ratio, reach, least, np.inf) for ratio, reach in ratios]
        shown = ", ".join(
            f"{ratio:.1f} ± {reach:.1f} times {other}'s"
            for other, (ratio, reach) in zip(others, ratios, strict=True)
        )
        return Finding(shown, NOTHING, _all(verdicts))

    return find


def comparable(panel: str, one: str, other: str, x: float) -> Find:
    """Two curves' errors at the place nearest to x differ by less than a factor of two."""

    def find(curves: Curves) -> Finding:
        first, second = curves.near(panel, one, x), curves.near(panel, other, x)
        ratio, reach = ratio_and_reach(first, second)
        shown = f"{ratio:.2f} ± {reach:.2f} times at {first.x:,.0f}"
        return Finding(shown, NOTHING, within(ratio, reach, 0.5, 2.0))

    return find


def first_below(
    panel: str, curve: str, default: str, bound: float, *, within_clients: tuple[float, float]
) -> Find:
    """The number of clients from which an error is below a bound lies between two figures."""
    low, high = within_clients

    def find(curves: Curves) -> Finding:
        points, ours = (curves.curve(panel, name) for name in (curve, default))
        places = [crossing(points, bound, shift) for shift in (-1.0, 0.0, 1.0)]
        least, middle, most = places
        agrees = None
        if low <= least and most <= high:
            agrees = True
        elif most < low or least > high:
            agrees = False
        return Finding(
            f"{_clients(middle)} ({_clients(least)} to {_clients(most)})",
            _clients(crossing(ours, bound, 0.0)),
            agrees,
        )

    return find


def _clients(count: float) -> str:
    return "never" if count == inf else f"{float(f'{count:.2g}'):,.0f}"


def meets(panel: str, falling: str, flat: str, low: float, high: float) -> Find:
    """A falling curve, drawn on as it falls, reaches another's last error between two places."""

    def find(curves: Curves) -> Finding:
        points, goal = curves.curve(panel, falling), curves.curve(panel, flat)[-1]
        found, last = slope_and_reach(points), points[-1]
        if found is None or found[0] >= 0.0:
            return Finding(NOTHING, NOTHING, None)
        rate, rate_reach = -found[0], found[1]
        way = log(last.mean / goal.mean)
        parts = (last.half_width / last.mean, goal.half_width / goal.mean, way * rate_reach / rate)
        reach = sqrt(sum(part**2 for part in parts)) / rate
        middle = log(last.x) + way / rate
        ends = [exp(middle - reach), exp(middle), exp(middle + reach)]
        shown = f"{_clients(ends[1])} ({_clients(ends[0])} to {_clients(ends[2])})"
        return Finding(shown, NOTHING, within(middle, reach, log(low), log(high)))

    return find


def slower(panel: str, slow: str, fast: str) -> Find:
    """One curve's log-log slope is nearer to zero than another's."""

    def find(curves: Curves) -> Finding:
        both = [slope_and_reach(curves.curve(panel, name)) for name in (slow, fast)]
        shown = " against ".join(map(_slope_text, both))
        one, other = both
        if one is None or other is None:
            return Finding(shown, NOTHING, None)
        reach = sqrt(one[1] ** 2 + other[1] ** 2)
        return Finding(shown, NOTHING, within(one[0] - other[0], reach, 0.0, np.inf))

    return find


def at_least(panel: str, curve: str, x: float, bound: float) -> Find:
    """The value at x is at least a bound."""

    def find(curves: Curves) -> Finding:
        point = curves.near(panel, curve, x)
        return Finding(
            figure_text(point), NOTHING, within(point.mean, point.half_width, bound, np.inf)
        )

    return find


def near_to(panel: str, curve: str, x: float, wanted: float) -> Find:
    """The value at x is that of the paper, to a quarter."""

    def find(curves: Curves) -> Finding:
        point = curves.near(panel, curve, x)
        agrees = within(point.mean, point.half_width, 0.75 * wanted, 1.25 * wanted)
        return Finding(figure_text(point), NOTHING, agrees)

    return find


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    return False if False in verdicts else None if None in verdicts else True


def alike_at(panel: str, one: str, other: str, x: float, *, predicted: float) -> Find:
    """Two curves' errors at x are within a tenth of each other; beside it what theory says."""

    def find(curves: Curves) -> Finding:
        ratio, reach = ratio_and_reach(curves.near(panel, one, x), curves.near(panel, other, x))
        shown = f"{ratio:.2f} ± {reach:.2f} times the error (closed form {predicted:.2f})"
        return Finding(shown, NOTHING, within(ratio, reach, 0.9, 1.1))

    return find
