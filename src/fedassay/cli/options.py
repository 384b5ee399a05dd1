"""Options that several commands share."""

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import parse_fraction
from fedassay.mechanisms import Keep, Privacy, UnitKind
from fedassay.planning.request import LevelChoice, Preset, Steps

SHAPE = "The survey"
FIGURES = "More figures"

PrivacyOption = Annotated[Privacy, typer.Option("--privacy", help="Privacy model.")]
PresetOption = Annotated[
    Preset,
    typer.Option(
        "--preset", help="The best we know, or the paper's own choices.", rich_help_panel=SHAPE
    ),
]
HeightOption = Annotated[
    int | None,
    typer.Option(
        "--height", metavar="H", help="Levels of the tree: F^H leaf cells.", rich_help_panel=SHAPE
    ),
]
FanoutOption = Annotated[
    int | None,
    typer.Option(
        "--fanout", metavar="F", help="Children per cell (default 2).", rich_help_panel=SHAPE
    ),
]
BucketsOption = Annotated[
    int | None,
    typer.Option(
        "--buckets", metavar="B", help="Merge cells into B quantile buckets.", rich_help_panel=SHAPE
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="FILE",
        help="Public scores, or an earlier assessment, whose quantiles shape the grid.",
        rich_help_panel=SHAPE,
    ),
]
ThresholdOption = Annotated[
    list[float] | None,
    typer.Option("--threshold", metavar="T", help="Decision threshold; may be repeated."),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="One more metric, such as lift@0.05; may be repeated.",
        rich_help_panel=FIGURES,
    ),
]
MinimumOption = Annotated[
    int | None,
    typer.Option(
        "--minimum-reports",
        metavar="N",
        help="Decode nothing below N reports.",
        rich_help_panel=SHAPE,
    ),
]
EpsilonOption = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="Privacy budget of the survey: 1, 0.5 or 1/3."),
]
DeltaOption = Annotated[
    str | None,
    typer.Option(
        "--delta",
        metavar="D",
        help="Under shuffled privacy: the chance that epsilon says nothing about (default 1e-8).",
        rich_help_panel=SHAPE,
    ),
]
LargestLocalOption = Annotated[
    str | None,
    typer.Option(
        "--largest-local",
        metavar="E",
        help="Under shuffled privacy: the most that a report may cost alone (default 5).",
        rich_help_panel=SHAPE,
    ),
]
ColludersOption = Annotated[
    int,
    typer.Option(
        "--colluders",
        metavar="C",
        help="Clients that may conspire at no loss.",
        rich_help_panel=SHAPE,
    ),
]
SmallestCellOption = Annotated[
    int | None,
    typer.Option(
        "--smallest-cell",
        metavar="K",
        help="Publish no exact count below K of either label (default 10; 0: any).",
        rich_help_panel=SHAPE,
    ),
]
SumOnlyOption = Annotated[
    bool,
    typer.Option(
        "--sum-only",
        help="Under site privacy: let nobody see more than the sum over sites.",
        rich_help_panel=SHAPE,
    ),
]
SiteMomentsOption = Annotated[
    bool,
    typer.Option(
        "--site-moments",
        help="Under secure privacy: let sites add moments, so that their spread shows.",
        rich_help_panel=SHAPE,
    ),
]
UnitOption = Annotated[
    UnitKind, typer.Option("--unit", help="What is protected.", rich_help_panel=SHAPE)
]
MaxExamplesOption = Annotated[
    int,
    typer.Option(
        "--max-examples",
        metavar="K",
        help="Most examples of a client or patient (--unit).",
        rich_help_panel=SHAPE,
    ),
]
KeepOption = Annotated[
    Keep,
    typer.Option(
        "--keep",
        help="Which rows of a patient count (--unit patient); latest needs --time.",
        rich_help_panel=SHAPE,
    ),
]
RateOption = Annotated[
    float | None,
    typer.Option(
        "--positive-rate", metavar="P", help="Expected share of positives.", rich_help_panel=SHAPE
    ),
]
StepsOption = Annotated[
    Steps,
    typer.Option(
        "--steps",
        help="Ask once, or first find where scores lie and then ask there (auto: where it pays).",
        rich_help_panel=SHAPE,
    ),
]
LevelsOption = Annotated[
    LevelChoice,
    typer.Option("--levels", help="Split epsilon over levels, or clients.", rich_help_panel=SHAPE),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="A,B,...",
        help="Shares of epsilon per level, top down.",
        rich_help_panel=SHAPE,
    ),
]
EmptyOption = Annotated[
    bool,
    typer.Option(
        "--allow-empty",
        help="Clients without examples answer too (--privacy local).",
        rich_help_panel=SHAPE,
    ),
]


def fraction_option(text: str | None, name: str) -> Fraction | None:
    """Read 1, 0.5 or 1/3 exactly, where it is given."""
    return None if text is None else parse_fraction(text, name)


def parse_budget(text: str | None) -> tuple[Fraction, ...] | None:
    """Read weights such as 2,1 as shares that add up to 1."""
    if text is None:
        return None
    weights = [parse_fraction(item, "a share of the budget") for item in text.split(",")]
    if min(weights) <= 0:
        raise SettingInvalid(f"shares of a budget must be positive; found {text[:40]!r}.")
    return tuple(weight / sum(weights) for weight in weights)


def file_digest(path: Path) -> str:
    """The SHA-256 of a model file, in hexadecimal."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
