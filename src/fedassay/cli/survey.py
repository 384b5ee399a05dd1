"""`survey new` and `survey show`: what both sides agree on, and what it promises."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fedassay.cli import accounts, class_options, columns, options
from fedassay.cli.groups import GroupColumnOption, GroupsOption, named_groups
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.errors import SettingInvalid
from fedassay.ledger import Status
from fedassay.mechanisms import Keep, Privacy, Unit, UnitKind
from fedassay.mechanisms.plain_words import plain_words
from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.survey import Survey
from fedassay.survey_json import load_survey
from fedassay.survey_steps import FirstOfTwo

SHOWN_FORMAT = "fedassay.survey-shown/1"
_FITS_AFTER = {
    "output", "after", "clients", "threshold", "ledger", "data_id", "window", "group", "who",
    "again", "witness", "force", "as_json", "quiet",
}  # fmt: skip
SurveyArgument = Annotated[Path, typer.Argument(metavar="SURVEY", help="Survey file.")]


def new_survey(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Survey file.")],
    after: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="First assessment: makes the second of two surveys."),
    ] = None,
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
    steps: options.StepsOption = Steps.AUTO,
    height: options.HeightOption = None,
    fanout: options.FanoutOption = None,
    reference: options.ReferenceOption = None,
    paired: Annotated[
        bool,
        typer.Option(
            "--paired",
            help="Ask for two models' scores of the same rows, a and b, or as --score names them.",
        ),
    ] = False,
    score: columns.ModelScoresOption = None,
    label: columns.LabelOption = None,
    positive: columns.PositiveOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    scores: class_options.ScoresOption = None,
    class_design: class_options.ClassDesignOption = None,
    threshold: options.ThresholdOption = None,
    group_column: GroupColumnOption = None,
    groups: GroupsOption = None,
    minimum_reports: options.MinimumOption = None,
    colluders: options.ColludersOption = 0,
    smallest_cell: options.SmallestCellOption = None,
    sum_only: options.SumOnlyOption = False,
    delta: options.DeltaOption = None,
    largest_local_epsilon: options.LargestLocalOption = None,
    site_moments: options.SiteMomentsOption = False,
    unit: options.UnitOption = UnitKind.EXAMPLE,
    max_examples: options.MaxExamplesOption = 1,
    keep: options.KeepOption = Keep.RANDOM,
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
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a survey for clients to answer.

    [bold]Examples[/bold]

      fedassay survey new -o survey.json

      fedassay survey new --privacy distributed --epsilon 1 --clients 500 -o s.json

      fedassay survey new --privacy site --epsilon 1 --clients 8 --examples 40000 -o survey.json

      fedassay survey new --privacy site --epsilon 1 --clients 8 --examples 40000
        --group-column sex --groups F,M -o survey.json

      fedassay survey new --minimum-reports 5 --model model.bin -o survey.json

      fedassay survey new --privacy local --epsilon 1 --threshold 0.3 -o survey.json

      fedassay survey new --privacy local --epsilon 1 --ledger ledger.db --data-id q3 -o survey.json

      fedassay survey new --privacy distributed --epsilon 1 --clients 500 --steps 2 -o first.json

      fedassay survey new --paired --privacy distributed --epsilon 1 --clients 500 -o survey.json

      fedassay survey new --scores p0,p1,p2 --clients 500 --examples 40000 -o survey.json

      fedassay survey new --after first-assessment.json -o second.json
    """
    account = accounts.receipt_keeper(
        ledger, data_id, window=window, group=group, who=who, again=again, witness=witness
    )
    check_output(output, reference, model, after, *accounts.files_of(account), force=force)
    request = SurveyRequest()
    if after is not None:
        # Most surveys are first ones, of two classes and one model: the rest is loaded for others.
        from fedassay.api import new_survey as make_survey

        _check_after(context)
        survey = make_survey(after=after, clients=clients, thresholds=threshold or ())
    else:
        models = columns.models_of(score)
        if models and not paired:
            raise SettingInvalid(
                "two models' scores are asked for with --paired; found two columns without it. "
                "Add it, or name one column."
            )
        tables = columns.TableOptions(
            score=None if models else columns.one_score(score),
            models=models,
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
            steps=steps,
            levels=levels,
            height=height,
            fanout=fanout,
            budget=options.parse_budget(budget),
            thresholds=tuple(threshold or ()),
            reference=None if paired else tables.reference(reference),
            unit=Unit(unit, max_examples, keep),
            minimum_reports=minimum_reports,
            colluders=colluders,
            smallest_cell=smallest_cell,
            sum_only=sum_only,
            delta=options.fraction_option(delta, "delta"),
            largest_local_epsilon=options.fraction_option(
                largest_local_epsilon, "the largest local epsilon"
            ),
            site_moments=site_moments,
            allow_empty=allow_empty,
            level_by_hash=level_by_hash,
            model_digest=None if model is None else options.file_digest(model),
            groups=named_groups(group_column, groups),
        )
        if class_options.are_asked(scores, class_design):
            from fedassay.cli.class_files import new_class_survey, refuse

            refuse(
                {
                    "--paired": paired,
                    "--score": score,
                    "--reference": reference,
                    "--threshold": threshold,
                    "--groups": groups or group_column,
                    "--level-by-hash": level_by_hash,
                },
                "a survey of classes chooses its own cells, and asks for no single score",
            )
            new_class_survey(
                scores or "",
                class_design,
                request,
                output,
                account=account,
                voice=Voice(as_json, quiet),
            )
            return
        if paired:
            from fedassay.planning.pair_search import design_pair

            names = tuple(models) or ("a", "b")
            both = tables.references(reference) if reference is not None else None
            survey = design_pair(request, (names[0], names[1]), references=both).survey
        else:
            survey = design_survey(request).survey
    if account is not None:
        account.status = Status.ISSUED
        account.charge(survey)
    survey.save(output)
    voice = Voice(as_json, quiet)
    voice.say(
        f"Wrote {output}: {survey.leaves:,} cells in {survey.hierarchy.levels} "
        f"level(s), fingerprint {survey.fingerprint.hex()[:12]}.\n{survey.guarantee.sentence()}"
    )
    if survey.smallest_cell and after is None and examples is None:
        voice.say(
            f"Its cells are sized for {request.rows_expected:,} rows in all; say how many there "
            "are with --examples."
        )
    if isinstance(survey.step, FirstOfTwo):
        voice.say(
            f"A second survey follows, when this one is answered: fedassay tally {output} "
            "REPORTS... -o first-assessment.json, then fedassay survey new --after "
            "first-assessment.json -o second.json."
        )
    if minimum_reports is None and clients is not None and survey.privacy.shares_noise:
        voice.say(
            f"Nothing is decoded below {survey.minimum_reports:,} reports on a level: of the "
            f"{clients:,} clients one in ten may stay away. Change it with --minimum-reports."
        )
    voice.result({"file": str(output), **survey_content(survey)})
    if account is not None:
        voice.say(account.receipt_text())


def _check_after(context: typer.Context) -> None:
    """Refuse options that only a first survey takes: a second one keeps what that said."""
    given = [
        name.replace("_", "-")
        for name in context.params
        if name not in _FITS_AFTER
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if given:
        raise SettingInvalid(
            "a second survey keeps what the first one said, but for --threshold and --clients; "
            f"found --{given[0]}. Leave it out."
        )


def show_survey(
    survey_file: SurveyArgument,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what a survey asks and promises, in plain words too.

    [bold]Example[/bold]

      fedassay survey show survey.json
    """
    from fedassay.classes.survey_file import is_class_survey

    voice = Voice(as_json, quiet)
    if is_class_survey(survey_file):
        from fedassay.cli.class_files import show_class_survey

        show_class_survey(survey_file, voice)
        return
    survey = load_survey(survey_file)
    levels = survey.hierarchy.levels
    voice.say(
        f"{survey_file}: {survey.privacy.value} privacy, {survey.leaves:,} cells in "
        f"{levels} level(s), fingerprint {survey.fingerprint.hex()[:12]}.\n"
        f"Model: {survey.model_digest or 'any'}.\n"
        f"Decoded from {survey.minimum_reports:,} reports on.\n\n{survey.guarantee.sentence()}\n"
    )
    for sentence in plain_words(survey.guarantee):
        voice.say(f"- {sentence}")
    voice.result(survey_content(survey))


def survey_content(survey: Survey) -> dict[str, Any]:
    """What a survey asks and promises, in JSON's terms."""
    return {
        "format": SHOWN_FORMAT,
        "fingerprint": survey.fingerprint.hex(),
        "privacy": survey.privacy.value,
        "epsilon": None if survey.epsilon is None else str(survey.epsilon),
        "delta": None if survey.shuffled is None else str(survey.shuffled.delta),
        "local_epsilon": None if survey.local_epsilon is None else str(survey.local_epsilon),
        "total_epsilon": None if survey.total_epsilon is None else str(survey.total_epsilon),
        "step": None if survey.step is None else survey.step.to_json()["kind"],
        "unit": survey.unit.to_json(),
        "minimum_reports": survey.minimum_reports,
        "colluders": survey.colluders,
        "smallest_cell": survey.smallest_cell,
        "allow_empty": survey.allow_empty,
        "model_digest": survey.model_digest,
        "sum_only": survey.sum_only,
        "moments": None if survey.moments is None else survey.moments.to_json(),
        "models": None if survey.pair is None else list(survey.pair.names),
        "cells_per_level": list(survey.hierarchy.cells_per_level),
        "mechanisms": [mechanism.kind for mechanism in survey.mechanisms],
        "guarantee": survey.guarantee.sentence(),
        "plain_words": list(plain_words(survey.guarantee)),
    }


survey_app = typer.Typer(help="Make a survey: what both sides agree on.", no_args_is_help=True)
survey_app.command("new")(new_survey)
survey_app.command("show")(show_survey)
