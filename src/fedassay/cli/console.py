"""What people see: tables, progress and one-line errors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Advance = Callable[[int], None]


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

    def on_broken_pipe(self) -> None:
        """Leave it to the program, which then ends as if all had been read; rich would fail."""
        raise BrokenPipeError


out = SafeConsole(highlight=False)
err = SafeConsole(stderr=True, highlight=False)
_MOST_COMPLAINTS = 20


def complain(complaints: Sequence[str]) -> None:
    """Say on standard error what is wrong with files, one line for each of the first twenty."""
    for complaint in complaints[:_MOST_COMPLAINTS]:
        err.print(complaint, style="red", markup=False, soft_wrap=True)
    more = len(complaints) - _MOST_COMPLAINTS
    if more > 0:
        err.print(f"... and {more:,} more of the kind.", style="red", soft_wrap=True)


def cell(text: object) -> Text:
    """Text from outside for a table: as `plain`, and no markup either."""
    return Text(plain(text))


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Advance]:
    """A progress bar on standard error, gone when done; silent when not on a terminal."""
    # Help and figures need no bars.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

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


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """What is being worked on, on standard error, gone when done."""
    if not err.is_terminal:
        yield lambda _: None
        return
    with err.status("planning ...") as status:
        yield lambda what: status.update(f"{what} ...")


def figures_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column are names, to the left, and all others figures, to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    name, *figures = header
    table.add_column(name, no_wrap=True)
    for title in figures:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(cell, row))
    return table
