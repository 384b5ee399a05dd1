"""Groups on the command line: which there are, their figures, and how far they are apart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedassay.cli import options
from fedassay.cli.console import figures_table
from fedassay.cli.outputs import Voice
from fedassay.errors import SettingInvalid, SingleClass
from fedassay.examples import ScoredClients
from fedassay.group_names import GroupNames

if TYPE_CHECKING:
    from fedassay.assessment import Assessment

GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="COL",
        help="Column whose values are groups, each with figures of its own.",
        rich_help_panel=options.FIGURES,
    ),
]
GroupColumnOption = Annotated[
    str | None,
    typer.Option(
        "--group-column",
        metavar="COL",
        help="Column that says which group each row is in.",
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="A,B,...",
        help="Values of --group-column that are told apart; all other rows are counted too.",
    ),
]


def one_column(columns: Sequence[str] | None, scores: str | None = None) -> str | None:
    """The one column of groups that a survey of one score may have."""
    if not columns:
        return None
    if scores is not None:
        raise SettingInvalid(
            "groups are told apart for one score; found scores of several classes (--scores). "
            "Name the score of one class: --score p1 --positive 1."
        )
    if len(columns) > 1:
        raise SettingInvalid(
            f"a survey tells the groups of one column apart; found {', '.join(columns)}. An "
            "example is in one group of each, so that every column is a survey of its own, and "
            f"epsilon is spent {len(columns)} times; or join the columns into one, such as F/old, "
            "at one epsilon and fewer rows in a group."
        )
    return columns[0]


def named_groups(column: str | None, groups: str | None) -> GroupNames | None:
    """What a new survey tells apart."""
    if column is None and groups is None:
        return None
    if column is None or groups is None:
        raise SettingInvalid(
            "groups are values of a column; found one without the other. Add --group-column COL "
            "--groups A,B,... with both."
        )
    return GroupNames(column, tuple(name.strip() for name in groups.split(",")))


def groups_content(assessment: "Assessment") -> dict[str, Any]:
    """Every group's figures and the gaps between them; nothing where there are no groups."""
    if assessment.survey.groups is None:
        return {}
    from fedassay.groups.gaps import compare_groups

    return compare_groups(assessment).to_json()


def exact_groups(
    cohort: ScoredClients, thresholds: tuple[float, ...], more: Sequence[str] = ()
) -> dict[str, Any]:
    """Exact metrics of every group's rows; None for a group with one class only."""
    from fedassay.metrics.exact_rows import row_metrics

    codes = cohort.examples.groups
    if cohort.groups is None or codes is None:
        return {}
    exact: dict[str, Any] = {}
    for place, name in enumerate(cohort.groups.parts):
        rows = cohort.examples.rows(codes == place)
        if len(rows):
            try:
                exact[name] = row_metrics(rows, thresholds, more=more)
            except SingleClass:
                exact[name] = None
    return {"exact_groups": exact}


def say_groups(voice: Voice, assessment: "Assessment") -> None:
    """Print the groups' figures, differences and ratios, and what is to be said of them."""
    if assessment.survey.groups is None or voice.as_json or voice.quiet:
        return
    from fedassay.groups.gaps import compare_groups

    found = compare_groups(assessment)
    voice.say()
    voice.say(figures_table(found.header(), found.rows()))
    for line in found.lines():
        voice.say(line)
