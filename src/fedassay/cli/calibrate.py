"""`calibrate` and `apply`: from an assessment to probabilities in a table."""

from pathlib import Path
from typing import Annotated

import click
import typer

from fedassay.assessment import Assessment
from fedassay.calibration import METHODS, Calibrator, Method, ece, fit
from fedassay.cli import columns
from fedassay.cli.console import err, plain, progress
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.cli.sites import recalibration_of
from fedassay.estimate import Estimate
from fedassay.estimate_json import estimates_json
from fedassay.tables.sources import row_count
from fedassay.tables.writing import apply_file

CALIBRATION_FORMAT = "fedassay.calibration/1"
APPLY_FORMAT = "fedassay.apply/1"
AUTO = "auto"
CHOICES = {AUTO: None} | {m.value: m for m in METHODS if m is not Method.NONE}
_HELP = "How to fit; auto chooses and may decline. " + "; ".join(
    f"{name}: {METHODS[method].summary}" for name, method in CHOICES.items() if method is not None
)


def calibrate(
    assessment: Annotated[Path, typer.Argument(metavar="ASSESSMENT", help="Assessment file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Calibrator file.")
    ],
    method: Annotated[
        str, typer.Option("--method", click_type=click.Choice(list(CHOICES)), help=f"{_HELP}.")
    ] = AUTO,
    monotone: Annotated[
        bool, typer.Option("--monotone", help="Refuse a map that would change ranks.")
    ] = False,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", metavar="ASSESSMENT", help="Of other clients: judge the map on them."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Fit a calibrator to an assessment's tally; no rows are needed.

    [bold]Examples[/bold]

      fedassay calibrate result/assessment.json -o calibrator.json

      fedassay calibrate result/assessment.json --method isotonic -o calibrator.json

      fedassay calibrate half.json --test other-half.json -o calibrator.json
    """
    voice = Voice(as_json, quiet)
    check_output(output, assessment, test, force=force)
    loaded = Assessment.load(assessment)
    histogram = loaded.histogram()
    tested = None if test is None else Assessment.load(test).histogram()
    calibrator = fit(histogram, CHOICES[method], monotone=monotone)
    calibrator.save(output)
    errors = {"ece": ece(histogram)}
    if tested is not None:
        errors["test_ece"] = ece(tested)
        errors["test_ece_calibrated"] = ece(tested, calibrator=calibrator)
    advice, advised = recalibration_of(loaded)
    voice.result(
        {
            "format": CALIBRATION_FORMAT,
            "output": str(output),
            "method": calibrator.method.value,
            "reason": calibrator.reason,
            "values": len(calibrator.values),
            **estimates_json(errors),
            **advised,
        }
    )
    voice.say(
        f"Wrote {plain(output)}: {calibrator.method.value}, {len(calibrator.values):,} values."
    )
    voice.say(f"ECE of the scores, 20 bins: {_shown(errors['ece'])}")
    if tested is not None:
        voice.say(f"On the test clients: {_shown(errors['test_ece'])}")
        voice.say(f"On the test clients, calibrated: {_shown(errors['test_ece_calibrated'])}")
    for line in advice:
        voice.say(line)
    if calibrator.reason and not quiet:
        err.print(calibrator.reason, markup=False, soft_wrap=True)


def _shown(estimate: Estimate) -> str:
    if not estimate.is_available:
        return "not enough data"
    low, high = estimate.interval()
    return f"{estimate.value:.4f} [{max(low, 0.0):.4f}, {high:.4f}]"


def apply(
    calibrator: Annotated[Path, typer.Argument(metavar="CALIBRATOR", help="Calibrator file.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scored table: CSV or Parquet.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Table with one more column.")
    ],
    score: columns.ScoreOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Copy a table with a new column `calibrated`; all other columns stay.

    [bold]Examples[/bold]

      fedassay apply calibrator.json scores.parquet -o calibrated.parquet

      fedassay apply calibrator.json percent.csv --scale 100 -o calibrated.csv
    """
    voice = Voice(as_json, quiet)
    check_output(output, calibrator, file, force=force)
    loaded = Calibrator.load(calibrator)
    tables = columns.TableOptions(
        score=score, scale=scale, separator=separator, decimal=decimal, quiet=quiet
    )
    chosen = tables.for_scores(file)
    with progress("rows", row_count(file)) as advance:
        rows = apply_file(loaded, file, output, chosen, progress=advance)
    method = loaded.method.value
    voice.result({"format": APPLY_FORMAT, "output": str(output), "rows": rows, "method": method})
    voice.say(f"Wrote {plain(output)}: {rows:,} rows, calibrated by {method}.")
