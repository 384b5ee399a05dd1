"""`sql`: the query whose result is a survey's counts."""

from typing import Annotated

import typer

from fedassay.cli import columns
from fedassay.cli.outputs import JsonOption, QuietOption, Voice
from fedassay.cli.survey import SurveyArgument
from fedassay.survey_json import load_survey
from fedassay.tables.columns import LABEL, SCORE
from fedassay.tables.sql import Dialect, counts_query


def sql(
    survey_file: SurveyArgument,
    dialect: Annotated[Dialect, typer.Option(help="The warehouse that the query is for.")],
    table: Annotated[str, typer.Option(metavar="NAME", help="Table with scores and labels.")],
    score: columns.ScoreOption = None,
    label: columns.LabelOption = None,
    positive: columns.PositiveOption = None,
    mark: Annotated[
        bool,
        typer.Option(
            "--mark",
            help="Add a row that counts nothing and names the edges, so that `answer` notices "
            "counts of another survey with as many cells.",
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the query whose result is a survey's counts, for tables that stay where they are.

    Export its result as CSV, and answer from that with `answer --counts`: policy, ledger and noise
    are on this side, and the warehouse sees no epsilon.

    [bold]Examples[/bold]

      fedassay sql survey.json --dialect duckdb --table scored

      fedassay sql survey.json --dialect postgres --table risk.scored --score p --label died
    """
    query = counts_query(
        load_survey(survey_file),
        dialect,
        table=table,
        score=score or SCORE,
        label=label or LABEL,
        positive=positive,
        mark=mark,
    )
    voice = Voice(as_json, quiet)
    voice.result({"query": query})
    if not (as_json or quiet):
        typer.echo(query, nl=False)
