"""Commands, and one line instead of a traceback when something is wrong."""

import os
import sys

import typer

from fedassay import __version__
from fedassay.cli.calibrate import apply, calibrate
from fedassay.cli.console import err, out
from fedassay.cli.demo import demo
from fedassay.cli.federation import federation_app
from fedassay.cli.files import answer, new_survey, show, tally
from fedassay.cli.ledger import app as ledger_app
from fedassay.cli.plan import plan
from fedassay.cli.simulate import simulate_command
from fedassay.errors import FedassayError

app = typer.Typer(
    name="fedassay",
    help="Assay binary classifiers on data nobody may collect.",
    epilog="Start with: fedassay demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
survey_app = typer.Typer(help="Make a survey: what both sides agree on.", no_args_is_help=True)
survey_app.command("new")(new_survey)
app.command("demo")(demo)
app.command("simulate")(simulate_command)
app.command("plan")(plan)
app.add_typer(survey_app, name="survey")
app.add_typer(federation_app, name="federation")
app.command("answer")(answer)
app.command("tally")(tally)
app.command("show")(show)
app.command("calibrate")(calibrate)
app.command("apply")(apply)
app.add_typer(ledger_app, name="ledger")


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
        app()
    except FedassayError as error:
        err.print(f"{type(error).__name__}: {error}", style="red", markup=False, soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader (head, less) has what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        err.print("Stopped.")
        sys.exit(130)
