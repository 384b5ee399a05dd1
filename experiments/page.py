"""A measured page: tables in Markdown, progress on the way, and the script's options."""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from experiments.data import SHARED, Scored, load

QUICK_TRIALS = 5


def markdown_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Rows under a header; all columns but the first are numbers."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def say(message: str) -> None:
    """What is measured now."""
    print(f"{time.strftime('%H:%M:%S')} {message} ...", file=sys.stderr, flush=True)


def run(
    script: Path,
    about: str | None,
    page: Callable[[list[Scored], int, bool], Iterator[str]],
    *,
    trials: int,
) -> None:
    """Measure a page and write it beside its script; with --quick only print it."""
    parser = ArgumentParser(prog=f"python -m experiments.{script.stem}", description=about)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of scored tables")
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    parser.add_argument("--trials", type=int, default=trials, help=f"default: {trials}")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    counted: int = QUICK_TRIALS if quick else arguments.trials
    text = "\n\n".join(page(load(arguments.data), counted, quick)) + "\n"
    print(text)
    if not quick:
        script.with_suffix(".md").write_text(text, encoding="utf-8")
