"""`survey new`, `answer`, `tally`, `show`: a federation that travels as files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fedassay.assessment import Assessment, estimates_json
from fedassay.cli import accounts, columns, options, outputs
from fedassay.cli.console import err, estimates_table, out, progress, reasons
from fedassay.cli.promise import ExactSumsOption, LargestEpsilonOption, agreed_policy
from fedassay.decoding import require_enough
from fedassay.engines.report_files import answer_file, read_messages, report_files, write_answer
from fedassay.errors import FedassayError, SurveyMismatch
from fedassay.ledger import Status
from fedassay.mechanisms import Privacy, Unit, UnitKind
from fedassay.planning.request import (
    LevelChoice,
    Preset,
    SurveyRequest,
    check_buckets,
    check_thresholds,
)
from fedassay.planning.search import (
    decode_options_for,
    design_survey,
)
from fedassay.randomness import SystemRandomness
from fedassay.report.charts import write_plots
from fedassay.survey import Survey
from fedassay.survey_json import load_survey
from fedassay.tables.reading import read_reference
from fedassay.tables.sources import row_count
from fedassay.tally import Tally, TallyBuilder

SurveyArgument = Annotated[Path, typer.Argument(metavar="SURVEY", help="Survey file.")]


def new_survey(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Survey file.")],
    privacy: options.PrivacyOption = Privacy.SECURE,
    epsilon: options.EpsilonOption = None,
    clients: Annotated[
        int | None, typer.Option(metavar="M", help="Expected reports (default: the minimum).")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(metavar="R", help="Expected rows in all (default: one each).")
    ] = None,
    positive_rate: options.RateOption = None,
    preset: options.PresetOption = Preset.DEFAULT,
    height: options.HeightOption = None,
    fanout: options.FanoutOption = None,
    reference: options.ReferenceOption = None,
    score: columns.ScoreOption = None,
    label: columns.LabelOption = None,
    positive: columns.PositiveOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    threshold: options.ThresholdOption = None,
    minimum_reports: options.MinimumOption = None,
    colluders: options.ColludersOption = 0,
    unit: options.UnitOption = UnitKind.EXAMPLE,
    max_examples: options.MaxExamplesOption = 1,
    levels: options.LevelsOption = LevelChoice.EVERY,
    budget: options.BudgetOption = None,
    allow_empty: options.EmptyOption = False,
    level_by_hash: Annotated[
        bool, typer.Option("--level-by-hash", help="Draw a client's level from its id.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Model file; its digest is recorded.")
    ] = None,
    ledger: accounts.LedgerOption = None,
    data_id: accounts.DataOption = None,
    window: accounts.WindowOption = None,
    group: accounts.GroupOption = None,
    who: accounts.WhoOption = accounts.NOBODY,
    again: accounts.AgainOption = False,
    witness: accounts.WitnessOption = None,
) -> None:
    """Write a survey for clients to answer.

    [bold]Examples[/bold]

      fedassay survey new -o survey.json

      fedassay survey new --privacy distributed --epsilon 1 --minimum-reports 5000 -o survey.json

      fedassay survey new --threshold 0.3 --minimum-reports 5 --model model.bin -o survey.json

      fedassay survey new --privacy local --epsilon 1 --ledger ledger.db --data-id q3 -o survey.json
    """
    tables = columns.TableOptions(
        score=score,
        label=label,
        positive=positive,
        scale=scale,
        separator=separator,
        decimal=decimal,
    )
    request = SurveyRequest(
        privacy=privacy,
        epsilon=options.fraction_option(epsilon, "epsilon"),
        clients=clients,
        examples=examples,
        positive_rate=positive_rate,
        preset=preset,
        levels=levels,
        height=height,
        fanout=fanout,
        budget=options.parse_budget(budget),
        thresholds=tuple(threshold or ()),
        reference=None
        if reference is None
        else read_reference(reference, tables.for_reference(reference)),
        unit=Unit(unit, max_examples),
        minimum_reports=minimum_reports,
        colluders=colluders,
        allow_empty=allow_empty,
        level_by_hash=level_by_hash,
        model_digest=None if model is None else options.file_digest(model),
    )
    survey = design_survey(request).survey
    account = accounts.receipt_keeper(
        ledger, data_id, window=window, group=group, who=who, again=again, witness=witness
    )
    if account is not None:
        accounts.check_output(output, reference, model, account=account)
        account.status = Status.ISSUED
        account.charge(survey)
    survey.save(output)
    out.print(
        f"Wrote {output}: {survey.grid.cells:,} cells in {survey.hierarchy.levels} "
        f"level(s), fingerprint {survey.fingerprint.hex()[:12]}.\n{survey.guarantee.sentence()}",
        markup=False,
    )
    if account is not None:
        account.print_receipt()


def answer(
    survey_file: SurveyArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="This client's scored table.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Report file.")],
    score: columns.ScoreOption = None,
    label: columns.LabelOption = None,
    positive: columns.PositiveOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    smallest_cohort: Annotated[
        int, typer.Option(metavar="N", help="Refuse surveys that decode fewer honest reports.")
    ] = 1,
    client_id: Annotated[
        str | None, typer.Option(metavar="ID", help="For surveys that draw levels from ids.")
    ] = None,
    largest_epsilon: LargestEpsilonOption = None,
    exact_sums: ExactSumsOption = False,
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
) -> None:
    """Answer a survey as one client; only the report file leaves.

    [bold]Examples[/bold]

      fedassay answer survey.json scores.parquet -o report.fa

      fedassay answer survey.json scores.parquet --exact-sums -o report.fa

      fedassay answer survey.json scores.csv --score s --label y --smallest-cohort 5 -o report.fa

      fedassay answer survey.json scores.parquet --ledger ledger.db --data-id ward-3 -o report.fa
    """
    survey = load_survey(survey_file)
    account = accounts.receipt_keeper(
        ledger, data_id, window=window, group=group, who=who, again=again, witness=witness
    )
    accounts.check_output(output, file, survey_file, account=account)
    policy = agreed_policy(
        survey,
        smallest_cohort=smallest_cohort,
        largest_epsilon=largest_epsilon,
        exact_sums=exact_sums,
        model=model,
    )
    tables = columns.TableOptions(
        score=score,
        label=label,
        positive=positive,
        scale=scale,
        separator=separator,
        decimal=decimal,
    )
    with progress("reading rows", row_count(file)) as advance:
        answered = answer_file(
            survey,
            file,
            tables.for_table(file),
            randomness=SystemRandomness(),
            policy=policy,
            client_id=client_id,
            account=account,
            progress=advance,
        )
    size = write_answer(answered, output)
    out.print(
        f"Wrote {output}: {size:,} bytes for survey {survey.fingerprint.hex()[:12]}.",
        markup=False,
    )
    if account is not None:
        account.print_receipt()


def tally(
    survey_file: SurveyArgument,
    reports: Annotated[
        list[Path], typer.Argument(metavar="REPORT...", help="Report files, or folders of them.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Assessment; added to if there.")
    ],
    threshold: options.ThresholdOption = None,
    preset: Annotated[
        Preset | None, typer.Option(help="How to read the tally (default: as before, or the best).")
    ] = None,
    buckets: options.BucketsOption = None,
) -> None:
    """Add reports up and assess the classifier.

    A bad report is named and left out, the others are counted, and the exit code is 2; a file
    that was cut counts up to the cut.
    An assessment of the same survey that is already there is added to.

    [bold]Examples[/bold]

      fedassay tally survey.json reports/*.fa -o assessment.json

      fedassay tally survey.json inbox/ -o assessment.json
    """
    survey = load_survey(survey_file)
    check_buckets(buckets)
    saved = _saved(output, survey)
    thresholds = tuple(dict.fromkeys(threshold or saved.thresholds))
    check_thresholds(thresholds)
    decode_options = saved.decode_options
    if preset is not None or buckets is not None:
        decode_options = decode_options_for(preset or Preset.DEFAULT, buckets)
    builder = TallyBuilder(saved.tally, survey)
    before = builder.tally().clients(survey)
    rejected = _add_files(builder, report_files(reports), survey)
    assessment = Assessment(survey, builder.tally(), decode_options, thresholds)
    assessment.save(output)
    in_all = assessment.tally.clients(survey)
    out.print(
        f"Counted {in_all - before:,} reports, rejected {rejected:,} files or blocks; "
        f"{in_all:,} reports in all in {output}.",
        markup=False,
    )
    require_enough(survey, assessment.tally)
    _print_assessment(assessment)
    if rejected:
        raise typer.Exit(2)


def show(
    assessment_file: Annotated[Path, typer.Argument(metavar="ASSESSMENT", help="Assessment file.")],
    threshold: options.ThresholdOption = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw ROC and precision-recall curves.")
    ] = None,
    as_json: outputs.JsonOption = False,
) -> None:
    """Print an assessment, at any thresholds.

    [bold]Examples[/bold]

      fedassay show assessment.json --threshold 0.2 --threshold 0.8

      fedassay show assessment.json --plot curves.png
    """
    saved = Assessment.load(assessment_file)
    thresholds = tuple(dict.fromkeys(threshold or saved.thresholds))
    check_thresholds(thresholds)
    assessment = Assessment(saved.survey, saved.tally, saved.decode_options, thresholds)
    require_enough(assessment.survey, assessment.tally)
    if plot is not None:
        write_plots(assessment, plot)
    if as_json:
        typer.echo(json.dumps(estimates_json(assessment.estimates()), allow_nan=False))
        return
    _print_assessment(assessment)
    if plot is not None:
        out.print(f"\nWrote {plot}.", markup=False)


def _add_files(builder: TallyBuilder, paths: list[Path], survey: Survey) -> int:
    """Add every message of every file; says what is wrong with the others and counts them."""
    rejected = 0
    with progress("files", len(paths)) as advance:
        for path in paths:
            try:
                for message in read_messages(path, survey):
                    try:
                        builder.add(message)
                    except FedassayError as error:
                        rejected += 1
                        _say(f"{path}: {type(error).__name__}: {error}")
            except FedassayError as error:
                rejected += 1
                _say(f"{path}: {type(error).__name__}: {error}")
            advance(1)
    return rejected


def _saved(path: Path, survey: Survey) -> Assessment:
    """The assessment that is already there, or an empty one."""
    if not path.exists():
        return Assessment(survey, Tally.zero(survey), decode_options_for(Preset.DEFAULT, None))
    saved = Assessment.load(path)
    if saved.survey.fingerprint != survey.fingerprint:
        raise SurveyMismatch(
            f"{path} holds survey {saved.survey.fingerprint.hex()[:12]}; these reports go to "
            f"{survey.fingerprint.hex()[:12]}. Choose another output file."
        )
    return saved


def _print_assessment(assessment: Assessment) -> None:
    estimates = assessment.estimates()
    histogram = assessment.histogram()
    reports = assessment.tally.clients(assessment.survey)
    out.print(
        f"{reports:,} reports, {histogram.total:,.0f} examples, "
        f"{histogram.buckets:,} buckets. {assessment.survey.guarantee.sentence()}\n"
    )
    out.print(estimates_table(estimates))
    for reason in reasons(estimates):
        _say(reason)


def _say(message: str) -> None:
    err.print(message, style="red", markup=False, soft_wrap=True)
