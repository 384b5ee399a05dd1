"""Options that say where a table keeps its scores and labels, and how they are written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedassay.cli.console import err
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.pair_grid import check_names
from fedassay.tables.columns import LABEL, SCORE, Columns, pair_columns

if TYPE_CHECKING:
    from fedassay.planning.pair_model import References

PANEL = "How the table is written"

ScoreOption = Annotated[
    str | None,
    typer.Option("--score", metavar="COL", help='Column with scores (default: "score").'),
]
ModelScoresOption = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        metavar="COL",
        help='Column with scores (default: "score"); of two models a=COL, and again b=COL.',
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", metavar="COL", help='Column with labels (default: "label").'),
]
ClientOption = Annotated[
    str | None,
    typer.Option(
        "--client",
        metavar="COL",
        help="Column that names each row's client (default: each row is one).",
    ),
]
PatientOption = Annotated[
    str | None,
    typer.Option(
        "--patient",
        metavar="COL",
        help="Column that says whose each row is (--unit patient).",
        rich_help_panel=PANEL,
    ),
]
TimeOption = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="Column that says when each row was (--keep latest).",
        rich_help_panel=PANEL,
    ),
]
PositiveOption = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="VALUE",
        help="Label of a positive, such as yes (default: 1 or true).",
        rich_help_panel=PANEL,
    ),
]
ScaleOption = Annotated[
    float,
    typer.Option(
        "--scale",
        metavar="S",
        help="Score of certainty: 100 for percentages.",
        rich_help_panel=PANEL,
    ),
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="C",
        help="Between a CSV file's values: ; or tab (default: comma; ; beside decimal commas).",
        rich_help_panel=PANEL,
    ),
]
DecimalOption = Annotated[
    str,
    typer.Option(
        "--decimal",
        metavar="C",
        help="Decimal mark in a CSV file, such as a comma.",
        rich_help_panel=PANEL,
    ),
]


def one_score(given: list[str] | None) -> str | None:
    """The column of one model's scores; raises where two models are named."""
    if models_of(given):
        raise SettingInvalid(
            "this takes the scores of one model; found two (--score a=COL --score b=COL). "
            "Name one column."
        )
    return given[0] if given else None


def models_of(given: list[str] | None) -> dict[str, str]:
    """The columns of two models by name, where two are given as NAME=COL; else nothing.

    >>> models_of(["a=s1", "b=s2"]), models_of(["risk"]), models_of(None)
    ({'a': 's1', 'b': 's2'}, {}, {})
    """
    if given is None or len(given) < 2:
        return {}
    parts = [text.partition("=") for text in given]
    for text, (name, sign, column) in zip(given, parts, strict=True):
        if not (name and sign and column):
            raise SettingInvalid(
                "the scores of two models are named, as in --score a=COL --score b=COL; found "
                f"{text[:40]!r}. Name both."
            )
    names = tuple(name for name, _, _ in parts)
    check_names(names)
    scores = {name: column for name, _, column in parts}
    pair_columns(Columns(), scores)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What a command was told about its tables; None where it was told nothing."""

    score: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    """Columns of two models' scores by the models' names; empty for one model."""
    label: str | None = None
    client: str | None = None
    patient: str | None = None
    time: str | None = None
    group: str | None = None
    positive: str | None = None
    scale: float = 1.0
    separator: str | None = None
    decimal: str = "."
    quiet: bool = False

    def for_table(self, path: Path) -> Columns:
        """The columns of a table with scores and labels."""
        return self._chosen(path, self._open(), ())

    def for_reference(self, path: Path) -> Columns:
        """The columns of a table that may lack labels."""
        return self._chosen(path, self._open(), (LABEL,))

    def reference(
        self, path: Path | None, *, is_simulated: bool = False
    ) -> Examples | FloatArray | None:
        """A table's scores, or where an earlier assessment found them."""
        if path is None:
            return None
        # What reads tables is loaded where there is one.
        from fedassay.api_inputs import as_reference, is_assessment

        others = replace(self, client=None, patient=None, time=None, group=None)
        columns = None if is_assessment(path) else others.for_reference(path)
        return as_reference(path, columns=columns, is_simulated=is_simulated)

    def for_scores(self, path: Path) -> Columns:
        """The columns of a table whose labels, if any, nobody needs."""
        return self._chosen(path, self._open() - {LABEL}, ())

    def references(self, path: Path | None) -> "References | None":
        """Public rows that both models scored."""
        if path is None:
            return None
        from fedassay.tables.reading import read_both

        chosen = replace(self, client=None, patient=None, time=None).for_table(path)
        first, second = read_both(path, chosen)
        return first.examples, second

    def as_named(self) -> Columns:
        """The columns as they were named, whatever the table holds."""
        columns = Columns(
            self.score or SCORE,
            self.label or LABEL,
            self.client,
            separator="\t" if self.separator in ("tab", "\\t") else self.separator,
            decimal=self.decimal,
            positive=self.positive,
            patient=self.patient,
            time=self.time,
            group=self.group,
            scale=self.scale,
        )
        return pair_columns(columns, self.models) if self.models else columns

    def _open(self) -> set[str]:
        named = {SCORE: self.score or next(iter(self.models), None), LABEL: self.label}
        return {name for name, given in named.items() if given is None}

    def _chosen(self, path: Path, unnamed: Collection[str], optional: Collection[str]) -> Columns:
        """Columns by name, or by content where that is safe, which is then said."""
        from fedassay.tables.names import choose_columns

        columns = self.as_named()
        choice = choose_columns(path, columns, unnamed=unnamed, optional=optional)
        if choice.note and not self.quiet:
            err.print(choice.note, markup=False, soft_wrap=True)
        return choice.columns
