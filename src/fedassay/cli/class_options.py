"""Options about more than two classes, apart from what answers them."""

from typing import Annotated

import typer

from fedassay.classes.class_design import ClassDesign
from fedassay.errors import SettingInvalid

_PANEL = "More than two classes"

ScoresOption = Annotated[
    str | None,
    typer.Option(
        "--scores",
        metavar="COLS",
        help="Columns with the probability of each class: 'p*', or p0,p1,p2.",
        rich_help_panel=_PANEL,
    ),
]
ClassDesignOption = Annotated[
    ClassDesign | None,
    typer.Option(
        "--class-design",
        help="How classes share epsilon (default: the smallest predicted error).",
        rich_help_panel=_PANEL,
    ),
]


def are_asked(scores: str | None, design: ClassDesign | None) -> bool:
    """Whether a simulation is about more than two classes."""
    if scores is None and design is not None:
        raise SettingInvalid("--class-design goes with --scores; found it alone. Leave it out.")
    return scores is not None
