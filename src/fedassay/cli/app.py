"""Commands, and one line instead of a traceback when something is wrong."""

import os
import sys
from contextlib import suppress
from typing import TextIO

import click
import typer

from fedassay import __version__
from fedassay.cli.commands import Story
from fedassay.cli.console import err, out, plain
from fedassay.errors import FedassayError

app = typer.Typer(
    name="fedassay",
    cls=Story,
    help="Assay binary classifiers on data nobody may collect.",
    epilog="Start with: fedassay demo\n\nExit codes: 0 done; 1 a check failed; 2 an error, in one "
    "line; 3 a check cannot tell; 130 stopped.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        out.print(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command; errors made on purpose become one line and exit code 2."""
    try:
        sys.exit(_run())
    except FedassayError as error:
        _fail(f"{type(error).__name__}: {error}")
    except BrokenPipeError:
        # The reader (head, less) has what it wanted.
        _drop(sys.stdout)
        sys.exit(0)
    except OSError as error:
        # Files are written by functions that say what went wrong; what is left is our own output.
        _drop(sys.stdout)
        what = "standard output" if error.filename is None else error.filename
        _fail(f"{what}: cannot be written ({error.strerror}). Free space, or write elsewhere.")
    except (KeyboardInterrupt, click.Abort):
        _fail("Stopped.", code=130)


def _run() -> int:
    """Run the command that the arguments name; returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter gets its code, not a traceback.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except SystemExit as end:
        # The framework turns a broken pipe into exit code 1, and wraps the stream.
        if isinstance(sys.stdout, click.utils.PacifyFlushWrapper):
            raise BrokenPipeError from end
        raise
    except click.ClickException as error:
        from typer.rich_utils import rich_format_error

        # Arguments may be names of files that somebody else chose.
        text, context = error.format_message(), getattr(error, "ctx", None)
        rich_format_error(
            error if plain(text) == text else click.UsageError(plain(text), ctx=context)
        )
        return error.exit_code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int = 2) -> None:
    with suppress(OSError):
        err.print(plain(message), style="red", markup=False, soft_wrap=True)
        sys.stderr.flush()
    sys.exit(code)


def _drop(stream: TextIO) -> None:
    """Let go of what a stream could not take, so that leaving does not fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
