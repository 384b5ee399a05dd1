"""What a command leaves behind: its file, checked before any work, and what it says of it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from fedassay.cli.console import out
from fedassay.errors import FileInvalid

PANEL = "What it prints and writes"

ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace an output file that is already there.", rich_help_panel=PANEL
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=PANEL)
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only.", rich_help_panel=PANEL)
]


def check_output(output: Path, *inputs: Path | None, force: bool) -> None:
    """Refuse an output before anything is read, charged or computed for it.

    An input of the same command is never replaced, anything else that is there only with
    `force`.
    """
    try:
        is_there = output.is_symlink() or output.exists()
        is_input = output.exists() and any(
            path is not None and path.exists() and output.samefile(path) for path in inputs
        )
        is_writable = output.parent.is_dir() and os.access(output.parent, os.W_OK)
        is_writable = is_writable and not output.is_dir()
    except OSError:
        is_there, is_input, is_writable = False, False, False
    if is_input:
        raise FileInvalid(f"{output}: this is an input itself. Choose another output file.")
    if not is_writable:
        raise FileInvalid(f"{output}: cannot be written. Choose a folder you may write to.")
    if is_there and not force:
        raise FileInvalid(
            f"{output}: is already there, and would be lost. Choose another output file, or "
            "replace it with --force."
        )


@dataclass(frozen=True, slots=True)
class Voice:
    """How a command tells what it did: in words, as one JSON object, or not at all."""

    as_json: bool = False
    quiet: bool = False

    def say(self, what: RenderableType = "") -> None:
        """Print for people, unless JSON or silence was asked for."""
        if not (self.as_json or self.quiet):
            out.print(what, markup=False)

    def result(self, content: Mapping[str, Any]) -> None:
        """Print the one JSON object, if it was asked for; --quiet does not take it away."""
        if self.as_json:
            typer.echo(json.dumps(content, allow_nan=False))
