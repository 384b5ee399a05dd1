"""`calibrate` and `apply`: from an assessment to probabilities in a table."""

from pathlib import Path
from typing import Annotated

import click
import typer

from fedassay.assessment import Assessment
from fedassay.calibration import METHODS, Calibrator, Method, ece, fit
from fedassay.cli import options
from fedassay.cli.console import err, out, progress
from fedassay.estimate import Estimate
from fedassay.tables.reading import row_count
from fedassay.tables.writing import apply_file

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
) -> None:
    """Fit a calibrator to an assessment's tally; no rows are needed.

    [bold]Examples[/bold]

      fedassay calibrate result/assessment.json -o calibrator.json

      fedassay calibrate result/assessment.json --method isotonic -o calibrator.json

      fedassay calibrate half.json --test other-half.json -o calibrator.json
    """
    loaded = Assessment.load(assessment)
    histogram = loaded.histogram()
    tested = None if test is None else Assessment.load(test).histogram()
    calibrator = fit(histogram, CHOICES[method], monotone=monotone)
    calibrator.save(output)
    out.print(
        f"Wrote {output}: {calibrator.method.value}, {len(calibrator.values):,} values.",
        markup=False,
    )
    out.print(f"ECE of the scores, 20 bins: {_shown(ece(histogram))}", markup=False)
    if tested is not None:
        out.print(f"On the test clients: {_shown(ece(tested))}", markup=False)
        after = _shown(ece(tested, calibrator=calibrator))
        out.print(f"On the test clients, calibrated: {after}", markup=False)
    if calibrator.reason:
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
    score: options.ScoreOption = "score",
) -> None:
    """Copy a table with a new column `calibrated`; all other columns stay.

    [bold]Example[/bold]

      fedassay apply calibrator.json scores.parquet -o calibrated.parquet
    """
    loaded = Calibrator.load(calibrator)
    with progress("rows", row_count(file)) as advance:
        rows = apply_file(loaded, file, output, score=score, progress=advance)
    out.print(f"Wrote {output}: {rows:,} rows, calibrated by {loaded.method.value}.", markup=False)
