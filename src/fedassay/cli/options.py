"""Options that several commands share."""

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from fedassay.errors import FileInvalid
from fedassay.planner import Preset, Privacy

ScoreOption = Annotated[str, typer.Option("--score", metavar="COL", help="Column with scores.")]
LabelOption = Annotated[str, typer.Option("--label", metavar="COL", help="Column with labels.")]
ClientOption = Annotated[
    str | None,
    typer.Option("--client", metavar="COL", help="Column that names each row's client."),
]
PrivacyOption = Annotated[Privacy, typer.Option("--privacy", help="Privacy model.")]
PresetOption = Annotated[
    Preset, typer.Option("--preset", help="The best we know, or the paper's own choices.")
]
HeightOption = Annotated[
    int | None, typer.Option("--height", metavar="H", help="Levels of the tree: F^H leaf cells.")
]
FanoutOption = Annotated[
    int | None, typer.Option("--fanout", metavar="F", help="Children per cell (default 2).")
]
BucketsOption = Annotated[
    int | None, typer.Option("--buckets", metavar="B", help="Merge cells into B quantile buckets.")
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        "--reference", metavar="FILE", help="Public scores whose quantiles shape the grid."
    ),
]
ThresholdOption = Annotated[
    list[float] | None,
    typer.Option("--threshold", metavar="T", help="Decision threshold; may be repeated."),
]
MinimumOption = Annotated[
    int | None,
    typer.Option("--minimum-reports", metavar="N", help="Decode nothing below N reports."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def file_digest(path: Path) -> str:
    """The SHA-256 of a model file, in hexadecimal."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
