"""What people see: tables, progress and one-line errors."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fedassay.estimate import Estimate, NotEnoughData
from fedassay.tables.reading import Progress as Advance


def plain(text: object) -> str:
    r"""Text from outside, such as a file's name, with what a terminal would obey spelled out.

    >>> print(plain("scores\x1b[2J.csv"))
    scores\x1b[2J.csv
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


class SafeConsole(Console):
    """A console that prints no control character but the line breaks that we wrote."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does; whatever text holds, the terminal shows it and does not obey it."""
        safe = (
            "\n".join(map(plain, item.split("\n"))) if isinstance(item, str) else item
            for item in objects
        )
        super().print(*safe, **options)


out = SafeConsole(highlight=False)
err = SafeConsole(stderr=True, highlight=False)


def cell(text: object) -> Text:
    """Text from outside for a table: as `plain`, and no markup either."""
    return Text(plain(text))


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Advance]:
    """A progress bar on standard error, gone when done; silent when not on a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


def estimates_table(
    estimates: Mapping[str, Estimate],
    *,
    exact: Mapping[str, float | None] | None = None,
    trials: Sequence[Mapping[str, Estimate]] = (),
) -> Table:
    """Estimates with 95 % intervals and, where known, exact values and errors.

    With several trials, their mean absolute error stands beside the last one's.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    table.add_column("estimate", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    if exact is not None:
        table.add_column("exact", justify="right", no_wrap=True)
        table.add_column("error", justify="right", no_wrap=True)
    if len(trials) > 1:
        table.add_column("mean |error|", justify="right", no_wrap=True)
    for name, estimate in estimates.items():
        row = [_short(name), *_value_and_interval(estimate)]
        if exact is not None:
            row += _exact_and_error(estimate, exact.get(name))
            if len(trials) > 1:
                row.append(_mean_error([trial[name].value for trial in trials], exact.get(name)))
        table.add_row(*row)
    return table


def reasons(estimates: Mapping[str, Estimate]) -> list[str]:
    """Why some metrics have no value, each reason once."""
    found = {
        estimate.reason: name
        for name, estimate in estimates.items()
        if isinstance(estimate, NotEnoughData)
    }
    return [f"{_short(name)}: {reason}" for reason, name in found.items()]


def _value_and_interval(estimate: Estimate) -> tuple[str, str]:
    if not estimate.is_available:
        return "-", "not enough data"
    low, high = estimate.interval()
    return f"{estimate.value:.5f}", f"[{low:.4f}, {high:.4f}]"


def _exact_and_error(estimate: Estimate, exact: float | None) -> tuple[str, str]:
    if exact is None:
        return "-", "-"
    error = estimate.value - exact
    return f"{exact:.5f}", f"{error:+.0e}" if isfinite(error) else "-"


def _mean_error(values: Sequence[float], exact: float | None) -> str:
    errors = [] if exact is None else [abs(value - exact) for value in values if isfinite(value)]
    return f"{sum(errors) / len(errors):.1e}" if errors else "-"


def _short(name: str) -> str:
    """A threshold with many digits is shown with four."""
    metric, at, threshold = name.partition("@")
    return f"{metric}@{float(threshold):.4g}" if at else name
