"""`fedassay report`: one page about an assessment, for people who will never run this."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedassay.api_files import load_assessment
from fedassay.calibration import Calibrator
from fedassay.classes.result import ClassAssessment
from fedassay.cli import options
from fedassay.cli.console import plain
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.errors import SettingInvalid
from fedassay.ledger import Ledger
from fedassay.planning.request import check_thresholds
from fedassay.report.any_page import write_any_report
from fedassay.report.material import ReportDetails

REPORT_FORMAT = "fedassay.report-written/1"
_WORDS = "Words for the page"


def _words(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}", metavar="TEXT", help=what, rich_help_panel=_WORDS
    )
    return option


def report(
    file: Annotated[Path, typer.Argument(metavar="ASSESSMENT", help="Assessment file.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page.")],
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", metavar="FILE", help="Show calibration after it, too."),
    ] = None,
    threshold: options.ThresholdOption = None,
    title: Annotated[str, _words("title", "Its heading.")] = "",
    model: Annotated[str, _words("model", "The model's name.")] = "",
    outcome: Annotated[str, _words("outcome", "What is predicted.")] = "",
    population: Annotated[str, _words("population", "Whose rows these are.")] = "",
    period: Annotated[str, _words("period", "When the rows were gathered.")] = "",
    invited: Annotated[
        int | None,
        typer.Option(
            "--invited", metavar="N", help="How many clients were asked.", rich_help_panel=_WORDS
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FILE", help="Show what it charged for this survey."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write one self-contained page: figures, curves, a threshold slider, texts to paste.

    [bold]Examples[/bold]

      fedassay report assessment.json -o report.html

      fedassay report assessment.json --calibrator calibrator.json -o report.html

      fedassay report assessment.json --model "sepsis 2.1" --period 2025 -o report.html
    """
    voice = Voice(as_json, quiet)
    check_output(output, file, calibrator, ledger, force=force)
    assessment = load_assessment(file)
    if threshold and isinstance(assessment, ClassAssessment):
        raise SettingInvalid("figures of classes have no threshold; found one. Leave it out.")
    if threshold and not isinstance(assessment, ClassAssessment):
        thresholds = tuple(dict.fromkeys(threshold))
        check_thresholds(thresholds)
        assessment = replace(assessment, thresholds=thresholds)
    details = ReportDetails(
        title=title,
        model=model,
        outcome=outcome,
        population=population,
        period=period,
        invited=invited,
    )
    fitted = None if calibrator is None else Calibrator.load(calibrator)
    entries = () if ledger is None else Ledger(ledger).entries()
    size = write_any_report(assessment, output, calibrator=fitted, details=details, ledger=entries)
    voice.result({"format": REPORT_FORMAT, "output": str(output), "bytes": size})
    voice.say(f"Wrote {plain(output)}: {size / 1000:,.0f} KB, to open in any browser.")
