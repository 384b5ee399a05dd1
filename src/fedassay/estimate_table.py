"""Estimates as a table, beside exact values where they are known."""

from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType

from fedassay.estimate import Estimate, NotEnoughData, TooCoarse

Exact = Mapping[str, float | None]
NO_HEADINGS: Mapping[str, str] = MappingProxyType({})
_LARGE = 10.0


def estimate_header(*, exact: Exact | None = None, trials: int = 0) -> list[str]:
    """What the columns of `estimate_rows` are."""
    header = ["metric", "estimate", "95 % interval"]
    if exact is not None:
        header += ["exact", "error"]
        if trials > 1:
            header.append("|error|")
    return header


def estimate_rows(
    estimates: Mapping[str, Estimate],
    *,
    exact: Exact | None = None,
    trials: Sequence[Mapping[str, Estimate]] = (),
    headings: Mapping[str, str] = NO_HEADINGS,
) -> list[list[str]]:
    """Estimates with 95 % intervals and, where known, exact values and errors.

    With several trials, their mean absolute error stands beside the last one's. A heading is a
    row of its own above the metric that it stands for.
    """
    rows = []
    empty = len(estimate_header(exact=exact, trials=len(trials))) - 1
    for name, estimate in estimates.items():
        if headings.get(name):
            rows.append([f"-- {headings[name]}", *[""] * empty])
        row = [short_name(name), *value_and_interval(estimate)]
        if exact is not None:
            row += _exact_and_error(estimate, exact.get(name))
            if len(trials) > 1:
                row.append(_mean_error([trial[name].value for trial in trials], exact.get(name)))
        rows.append(row)
    return rows


def reasons(estimates: Mapping[str, Estimate]) -> list[str]:
    """Why some metrics have no value, each reason once."""
    metric_of_reason = {
        estimate.reason: name
        for name, estimate in estimates.items()
        if isinstance(estimate, NotEnoughData)
    }
    return [f"{short_name(name)}: {reason}" for reason, name in metric_of_reason.items()]


def short_name(name: str) -> str:
    """A metric's name, with a threshold or a goal of many digits shown with four."""
    metric, at, where = name.partition("@")
    goal, equals, number = where.rpartition("=")
    return f"{metric}@{goal}{equals}{float(number):.4g}" if at else name


def value_and_interval(estimate: Estimate) -> tuple[str, str]:
    """A figure and its 95 % interval, as people read them."""
    if not estimate.is_available:
        return "-", "too coarse" if isinstance(estimate, TooCoarse) else "not enough data"
    low, high = estimate.interval()
    return _figure(estimate.value, 5), f"[{_figure(low, 4)}, {_figure(high, 4)}]"


def _figure(value: float, digits: int) -> str:
    """A number with so many digits after the point; large and negative ones with fewer."""
    return f"{value:.{digits - (value < 0.0) if abs(value) < _LARGE else 2}f}"


def _exact_and_error(estimate: Estimate, exact: float | None) -> tuple[str, str]:
    if exact is None:
        return "-", "-"
    error = estimate.value - exact
    return _figure(exact, 5), f"{error:+.0e}" if isfinite(error) else "-"


def _mean_error(values: Sequence[float], exact: float | None) -> str:
    errors = [] if exact is None else [abs(value - exact) for value in values if isfinite(value)]
    return f"{sum(errors) / len(errors):.1e}" if errors else "-"
