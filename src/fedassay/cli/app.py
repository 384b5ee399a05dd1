"""Commands, and one line instead of a traceback when something is wrong."""

import os
import sys
from contextlib import suppress
from typing import TextIO

import click
import typer
from typer.core import TyperGroup

from fedassay import __version__
from fedassay.cli.answer import answer
from fedassay.cli.calibrate import apply, calibrate
from fedassay.cli.check import check, compare
from fedassay.cli.console import err, out, plain
from fedassay.cli.demo import demo
from fedassay.cli.federation import federation_app
from fedassay.cli.ledger import app as ledger_app
from fedassay.cli.plan import plan
from fedassay.cli.report import report
from fedassay.cli.reproduce import reproduce_command
from fedassay.cli.show import show
from fedassay.cli.shuffle import shuffle
from fedassay.cli.simulate import simulate_command
from fedassay.cli.sql import sql
from fedassay.cli.survey import new_survey, show_survey
from fedassay.cli.tally import merge, tally
from fedassay.cli.track import track_app
from fedassay.cli.withdraw import withdraw
from fedassay.errors import FedassayError

_TRY, _ASK, _ADD = "Try, and plan", "Ask, and answer", "Add up"
_READ, _DECIDE, _PAPER = "Read", "Decide", "The paper"
_STORY = (
    *("demo", "simulate", "plan"),
    *("survey", "answer", "sql", "federation", "ledger"),
    *("shuffle", "tally", "merge", "withdraw"),
    *("show", "report"),
    *("check", "compare", "track", "calibrate", "apply"),
    "reproduce",
)


class _Story(TyperGroup):
    """Commands in the order in which they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(super().list_commands(ctx), key=_STORY.index)


app = typer.Typer(
    name="fedassay",
    cls=_Story,
    help="Assay binary classifiers on data nobody may collect.",
    epilog="Start with: fedassay demo\n\nExit codes: 0 done; 1 a check failed; 2 an error, in one "
    "line; 3 a check cannot tell; 130 stopped.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
survey_app = typer.Typer(help="Make a survey: what both sides agree on.", no_args_is_help=True)
survey_app.command("new")(new_survey)
survey_app.command("show")(show_survey)
app.command("demo", rich_help_panel=_TRY)(demo)
app.command("simulate", rich_help_panel=_TRY)(simulate_command)
app.command("plan", rich_help_panel=_TRY)(plan)
app.add_typer(survey_app, name="survey", rich_help_panel=_ASK)
app.command("answer", rich_help_panel=_ASK)(answer)
app.command("sql", rich_help_panel=_ASK)(sql)
app.add_typer(federation_app, name="federation", rich_help_panel=_ASK)
app.add_typer(ledger_app, name="ledger", rich_help_panel=_ASK)
app.command("shuffle", rich_help_panel=_ADD)(shuffle)
app.command("tally", rich_help_panel=_ADD)(tally)
app.command("merge", rich_help_panel=_ADD)(merge)
app.command("withdraw", rich_help_panel=_ADD)(withdraw)
app.command("show", rich_help_panel=_READ)(show)
app.command("report", rich_help_panel=_READ)(report)
app.command("check", rich_help_panel=_DECIDE)(check)
app.command("compare", rich_help_panel=_DECIDE)(compare)
app.add_typer(track_app, name="track", rich_help_panel=_DECIDE)
app.command("calibrate", rich_help_panel=_DECIDE)(calibrate)
app.command("apply", rich_help_panel=_DECIDE)(apply)
app.command("reproduce", rich_help_panel=_PAPER)(reproduce_command)


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
