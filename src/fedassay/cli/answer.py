"""`answer`: one client's report, made once and kept."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedassay.classes.survey_file import is_class_survey
from fedassay.cli import accounts, columns
from fedassay.cli.class_answer import ClassAnswer, answer_class_survey
from fedassay.cli.class_files import refuse
from fedassay.cli.class_options import ScoresOption
from fedassay.cli.console import progress
from fedassay.cli.groups import GroupColumnOption
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.cli.promise import (
    ExactSumsOption,
    LargestEpsilonOption,
    LargestLocalEpsilonOption,
    SmallestCellOption,
    agreed_policy,
    client_policy,
)
from fedassay.cli.survey import SurveyArgument
from fedassay.client import rows_counted
from fedassay.engines.base import RowCounter
from fedassay.engines.departure import Departure, slot_seconds
from fedassay.engines.kept_answers import KeptAnswers
from fedassay.engines.report_files import answer_counts_file, answer_file, read_messages
from fedassay.engines.spark import answer_spark
from fedassay.errors import FedassayError, SettingInvalid, SurveyRepeated
from fedassay.files import write_whole
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from fedassay.survey_json import load_survey
from fedassay.tables.sources import row_count
from fedassay.tables.split_rows import splits_rows

ANSWERED_FORMAT = "fedassay.answered/1"


def answer(
    survey_file: SurveyArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Report file.")],
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="This client's scored table.")
    ] = None,
    engine: Annotated[
        RowCounter,
        typer.Option(
            help="What counts the rows; for spark FILE is also a folder, an address or a table's "
            "name."
        ),
    ] = RowCounter.PLAIN,
    counts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of a table: counts by the query of `sql`."),
    ] = None,
    score: columns.ModelScoresOption = None,
    scores: ScoresOption = None,
    label: columns.LabelOption = None,
    patient: columns.PatientOption = None,
    time: columns.TimeOption = None,
    group_column: GroupColumnOption = None,
    positive: columns.PositiveOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    smallest_cohort: Annotated[
        int, typer.Option(metavar="N", help="Refuse surveys that decode fewer honest reports.")
    ] = 1,
    client_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="For surveys that go by ids."),
    ] = None,
    largest_epsilon: LargestEpsilonOption = None,
    largest_local_epsilon: LargestLocalEpsilonOption = None,
    exact_sums: ExactSumsOption = False,
    smallest_cell: SmallestCellOption = 10,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Refuse surveys of any other model.")
    ] = None,
    ledger: accounts.LedgerOption = None,
    data_id: accounts.DataOption = None,
    window: accounts.WindowOption = None,
    group: accounts.GroupOption = None,
    who: accounts.WhoOption = accounts.NOBODY,
    again: accounts.AgainOption = False,
    witness: accounts.WitnessOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Answer a survey as one client; only the report file leaves.

    [bold]Examples[/bold]

      fedassay answer survey.json scores.parquet -o report.fa

      fedassay answer survey.json scores.parquet --exact-sums -o report.fa

      fedassay answer survey.json scores.csv --score s --label y -o report.fa

      fedassay answer survey.json scores.csv --score a=old --score b=new -o report.fa

      fedassay answer survey.json w.csv --ledger ledger.db --data-id w -o report.fa

      fedassay answer survey.json scores.csv --scores 'p*' --label y -o report.fa

      fedassay answer survey.json --counts counts.csv -o report.fa

      fedassay answer survey.json scored/ --engine spark -o report.fa
    """
    given = _given(file, counts)
    voice = Voice(as_json, quiet)
    account = accounts.receipt_keeper(
        ledger, data_id, window=window, group=group, who=who, again=again, witness=witness
    )
    models = columns.models_of(score)
    tables = columns.TableOptions(
        score=None if models else columns.one_score(score),
        models=models,
        label=label,
        patient=patient,
        time=time,
        group=group_column,
        positive=positive,
        scale=scale,
        separator=separator,
        decimal=decimal,
    )
    if is_class_survey(survey_file):
        answer_class_survey(
            ClassAnswer(
                survey_file=survey_file,
                file=given,
                scores=scores,
                tables=tables,
                policy=client_policy(
                    smallest_cohort=smallest_cohort,
                    largest_epsilon=largest_epsilon,
                    largest_local_epsilon=largest_local_epsilon,
                    exact_sums=exact_sums,
                    smallest_cell=smallest_cell,
                    model=model,
                ),
                account=account,
                output=output,
                again=again,
                force=force,
                of_one_score={
                    "--score": score,
                    "--counts": counts,
                    "--client-id": client_id,
                    "--group-column": group_column,
                    "--positive": positive,
                    "--engine": engine is not RowCounter.PLAIN,
                },
            ),
            voice,
        )
        return
    survey = load_survey(survey_file)
    refuse({"--scores": scores}, "this survey asks for one score, by --score COL")
    policy = agreed_policy(
        survey,
        smallest_cohort=smallest_cohort,
        largest_epsilon=largest_epsilon,
        largest_local_epsilon=largest_local_epsilon,
        exact_sums=exact_sums,
        smallest_cell=smallest_cell,
        model=model,
        quiet=as_json or quiet,
    )
    answers = None if account is None else KeptAnswers.beside(account.ledger.path)
    if account is not None and answers is not None and not again:
        earlier = answers.find(survey, account.part)
        if earlier is not None:
            # An older copy of the ledger is refused here too.
            account.ledger.read()
            _send_again(earlier, output, voice, force=force)
            return
    is_answer = _holds_answer(output, survey)
    if is_answer and not (force or again):
        raise SurveyRepeated(
            f"{output}: holds an answer to this survey already. Send that file, as often as you "
            "like: it counts once. A new answer would be a second report and spend again; --force "
            "makes one."
        )
    inputs = (given, survey_file, *accounts.files_of(account))
    check_output(output, *inputs, force=force or is_answer)
    kept: list[int] = []
    rows, departure = 0, Departure.begin()
    if counts is not None:
        made, rows = answer_counts_file(
            survey,
            counts,
            randomness=SystemRandomness(),
            policy=policy,
            client_id=client_id,
            account=account,
        )
    elif engine is RowCounter.SPARK:
        made, rows = answer_spark(
            survey,
            file or "",
            tables.as_named(),
            randomness=SystemRandomness(),
            policy=policy,
            client_id=client_id,
            account=account,
        )
    else:
        with progress("reading rows", row_count(given)) as advance:

            def read(steps: int) -> None:
                nonlocal rows
                rows += steps
                advance(steps)

            made = answer_file(
                survey,
                given,
                tables.for_table(given),
                randomness=SystemRandomness(),
                policy=policy,
                client_id=client_id,
                account=account,
                progress=read,
                counted=kept.append,
            )
    content = made.to_bytes()
    if account is not None and answers is not None:
        answers.keep(survey, account.part, content)
    # Whoever sees when the file appears must not see how long the noise took.
    departure.wait(slot_seconds(survey))
    write_whole(output, content)
    splits = splits_rows(survey)
    counted = made.reports if splits else kept[0] if kept else rows_counted(survey, rows)
    voice.say(f"Wrote {output}: {len(content):,} bytes for survey {survey.fingerprint.hex()[:12]}.")
    if splits:
        voice.say(
            f"Counted {counted:,} of {rows:,} rows: each answers one of two surveys, by its number "
            "in the table and the client id. Keep both as they are until the other is answered."
        )
    elif counted < rows:
        voice.say(
            f"Counted {counted:,} of {rows:,} rows, and left out "
            f"{100 * (1 - counted / rows):.2g} %: the survey protects {survey.unit}. How many that "
            "were is told to nobody else."
        )
    if account is not None:
        voice.say(account.receipt_text())
    voice.result(_content(output, survey, content, rows=rows, counted=counted))


def _given(file: str | None, counts: Path | None) -> Path:
    """The one file that the answer is made of."""
    if (file is None) == (counts is None):
        raise SettingInvalid(
            "an answer is made of one scored table, or of counts by the query of fedassay sql; "
            f"found {'neither' if file is None else 'both'}. Pass FILE, or --counts FILE."
        )
    return Path(file or counts or "")


def _send_again(earlier: bytes, output: Path, voice: Voice, *, force: bool) -> None:
    """Write the answer that was given before, to the last byte: one report, however often sent."""
    if not (output.is_file() and output.read_bytes() == earlier):
        check_output(output, force=force)
        write_whole(output, earlier)
    voice.say(
        f"Wrote {output}: the answer that was given to this survey before, with the same bytes.\n"
        "Nothing is charged: whoever counts reports counts it once. --again answers anew."
    )
    voice.result({"format": ANSWERED_FORMAT, "file": str(output), "given_before": True})


def _holds_answer(output: Path, survey: Survey) -> bool:
    """Whether the file is an answer to this survey: another one would be a second report."""
    try:
        return output.is_file() and next(read_messages(output, survey), None) is not None
    except FedassayError:
        return False


def _content(
    output: Path, survey: Survey, content: bytes, *, rows: int, counted: int
) -> dict[str, Any]:
    return {
        "format": ANSWERED_FORMAT,
        "file": str(output),
        "given_before": False,
        "survey": survey.fingerprint.hex(),
        "bytes": len(content),
        "rows": rows,
        "rows_counted": counted,
        "guarantee": survey.guarantee.sentence(),
    }
