"""`fedassay plan`: is there enough data, and if not, what would make it enough?"""

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from fedassay.cli import columns, options
from fedassay.cli.class_options import ScoresOption
from fedassay.cli.console import figures_table, plain, working
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import metric_at
from fedassay.planning.forecast import ErrorForecast, forecast_header, forecast_rows
from fedassay.planning.pipeline import PipelinePlan, PipelineStep, plan_pipeline
from fedassay.planning.plan import (
    DEFAULT_ERROR,
    Goal,
    Plan,
    Progress,
    assumptions,
    check_start,
    make_plan,
)
from fedassay.planning.request import Preset, Steps, SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.planning.solve import Target, predicted
from fedassay.planning.validation import parse_widths
from fedassay.sites.sample_size import IntervalWidths


def plan(
    privacy: options.PrivacyOption = Privacy.SECURE,
    epsilon: options.EpsilonOption = None,
    clients: Annotated[
        int | None, typer.Option(metavar="M", help="Expected reports; left out, they are found.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(metavar="R", help="Expected rows in all (default: one each).")
    ] = None,
    positive_rate: options.RateOption = None,
    auc: Annotated[
        float | None, typer.Option(metavar="A", help="Assumed ROC AUC, where no reference is.")
    ] = None,
    reference: options.ReferenceOption = None,
    score: columns.ModelScoresOption = None,
    label: columns.LabelOption = None,
    positive: columns.PositiveOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    target_error: Annotated[
        float | None,
        typer.Option(metavar="E", help=f"Error to stay below (default {DEFAULT_ERROR})."),
    ] = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Of which metric: roc_auc, precision@0.5, ...")
    ] = "roc_auc",
    power: Annotated[
        float, typer.Option(metavar="P", help="Chance to see a difference between two models.")
    ] = 0.8,
    widths: Annotated[
        str | None,
        typer.Option(
            metavar="A=W,...",
            help="Widths of intervals that rows are found for: oe, slope, c_statistic, "
            "net_benefit.",
        ),
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(metavar="T", help="How much sites differ in ROC AUC, on the logit scale."),
    ] = None,
    threshold: options.ThresholdOption = None,
    preset: options.PresetOption = Preset.DEFAULT,
    steps: options.StepsOption = Steps.AUTO,
    minimum_reports: options.MinimumOption = None,
    colluders: options.ColludersOption = 0,
    smallest_cell: options.SmallestCellOption = None,
    sum_only: options.SumOnlyOption = False,
    delta: options.DeltaOption = None,
    largest_local_epsilon: options.LargestLocalOption = None,
    site_moments: options.SiteMomentsOption = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw error against clients.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the survey there.")
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Split epsilon over boundaries, evaluation, calibration, monitoring.",
        ),
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(
            metavar="months=N", help="Split epsilon over N looks, and say how soon changes show."
        ),
    ] = None,
    shift: Annotated[
        list[float] | None,
        typer.Option(metavar="D", help="With --track: a change of the metric; may be repeated."),
    ] = None,
    false_alarms: Annotated[
        float, typer.Option(metavar="P", help="With --track: chance of any false alarm in a year.")
    ] = 0.05,
    scores: ScoresOption = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...",
            help="What groups cost; repeated, what each attribute more costs.",
        ),
    ] = None,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="What one survey of two models gains over two surveys."),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Predict every metric's error before anybody answers.

    [bold]Examples[/bold]

      fedassay plan --privacy distributed --epsilon 1 --clients 20000

      fedassay plan --privacy local --epsilon 2 --target-error 0.005

      fedassay plan --privacy local --clients 100000 --metric recall@0.3

      fedassay plan --clients 50000 --reference train.parquet -o survey.json

      fedassay plan --paired --privacy distributed --epsilon 1 --clients 20000

      fedassay plan --scores p0,p1,p2,p3 --privacy local --epsilon 5 --clients 100000

      fedassay plan --groups F,M --groups young,old --privacy site --epsilon 1 --clients 8

      fedassay plan --clients 12 --examples 6000 --widths oe=0.2,c_statistic=0.05 --tau 0.2

      fedassay plan --privacy distributed --epsilon 6 --clients 20000 --track months=12

      fedassay plan --privacy local --epsilon 5 --clients 200000 --pipeline evaluation,calibration=2
    """
    thresholds = tuple(dict.fromkeys(threshold or (0.5,)))
    voice = Voice(as_json, quiet)
    for path in (output, plot):
        if path is not None:
            check_output(path, reference, force=force)
    goal = Goal(
        Target(
            # Looks over time have no target: their metric may be ece too.
            "roc_auc" if track is not None else metric_at(metric, thresholds),
            DEFAULT_ERROR if target_error is None else target_error,
        ),
        power,
        IntervalWidths() if widths is None else parse_widths(widths),
        tau,
    )
    models = columns.models_of(score) if paired else {}
    tables = columns.TableOptions(
        score=None if models else columns.one_score(score),
        models=models,
        label=label,
        positive=positive,
        scale=scale,
        separator=separator,
        decimal=decimal,
        quiet=quiet,
    )
    request = SurveyRequest(
        privacy=privacy,
        epsilon=options.fraction_option(epsilon, "epsilon"),
        clients=clients,
        examples=examples,
        positive_rate=positive_rate,
        auc=auc,
        preset=preset,
        steps=steps,
        thresholds=() if preset is Preset.PAPER else thresholds,
        reference=None if paired else tables.reference(reference),
        minimum_reports=minimum_reports,
        colluders=colluders,
        smallest_cell=smallest_cell,
        sum_only=sum_only,
        delta=options.fraction_option(delta, "delta"),
        largest_local_epsilon=options.fraction_option(
            largest_local_epsilon, "the largest local epsilon"
        ),
        site_moments=site_moments,
    )
    # Most plans are about one survey of one score: the rest is loaded for the others.
    if scores is not None or groups:
        from fedassay.cli.plan_more import plan_several

        one_score = (plot, output, target_error, pipeline, track)
        has_more = paired or any(each is not None for each in one_score)
        plan_several(request, voice, scores, groups or [], has_more=has_more)
        return
    if paired:
        from fedassay.cli.plan_more import plan_pair

        both = tables.references(reference)
        has_more = pipeline is not None or plot is not None
        plan_pair(request, voice, output, references=both, has_more=has_more)
        return
    if track is not None:
        one_survey = (plot, output, target_error, pipeline)
        if any(each is not None for each in one_survey):
            raise SettingInvalid(
                "looks over time are several surveys: --plot, --output, --target-error and "
                "--pipeline do not go with --track. Plan one survey with its own epsilon."
            )
        from fedassay.cli.plan_more import plan_looks

        shifts = None if shift is None else tuple(shift)
        named = metric_at(metric, thresholds)
        plan_looks(request, voice, track, named, shifts, false_alarms)
        return
    check_start(request, target_error)
    if pipeline is not None:
        if plot is not None or output is not None or target_error is not None:
            raise SettingInvalid(
                "a pipeline is several surveys: --plot, --output and --target-error do not go "
                "with it. Plan each survey with its own epsilon."
            )
        with working() as say:
            split = split_epsilon(request, pipeline, goal.target.metric, say)
        voice.result(split.to_json())
        print_pipeline(split, voice)
        return
    with working() as say:
        made = make_plan(request, goal, thresholds=thresholds, progress=say)
        if plot is not None:
            from fedassay.report.plan_chart import write_plan_plot

            write_plan_plot(made, plot, progress=say)
        errors = errors_by_steps(made)
    if output is not None:
        made.design.survey.save(output)
    tell_plan(made, errors, voice)
    for path in filter(None, (output, plot)):
        voice.say(f"Wrote {plain(path)}.")


def tell_plan(made: Plan, errors: dict[str, float], voice: Voice) -> None:
    """Print the plan, and what the other number of steps would give; or all of it as JSON."""
    if voice.as_json:
        taken = {"taken": 1 if made.design.second is None else 2, "errors": errors}
        voice.result({**made.to_json(), "steps": taken})
        return
    print_plan(made, voice)
    if len(errors) > 1:
        once, twice = (f"{error:.2g}" for error in errors.values())
        voice.say(
            f"\nAsked in one survey, {made.goal.target.metric} would be within {once}; in two, "
            f"within {twice} (--steps)."
        )


def errors_by_steps(made: Plan) -> dict[str, float]:
    """The target metric's error in 95 of 100 surveys, asked once and asked twice.

    Only the way that was taken, where the request leaves no choice.
    """
    request, metric = made.request, made.goal.target.metric
    two = made.design.second is not None
    errors = {Steps.TWO if two else Steps.ONE: made.central.error_quantile()}
    if request.steps is Steps.AUTO and not request.fixes_levels:
        other = replace(request, steps=Steps.ONE if two else Steps.TWO)
        expected = predicted(other, design_survey(other), metric)
        errors[other.steps] = expected.error_quantile()
    return {
        steps.value: errors[steps]
        for steps in (Steps.ONE, Steps.TWO)
        if steps in errors and isfinite(errors[steps])
    }


def split_epsilon(
    request: SurveyRequest, stages: str, metric: str, progress: Progress
) -> PipelinePlan:
    """Read stages such as evaluation,calibration=2, with weights, and split the epsilon."""
    known = {stage.value: stage for stage in PipelineStep}
    weights: dict[PipelineStep, float] = {}
    steps = []
    for item in stages.split(","):
        name, equals, weight = item.strip().partition("=")
        if name not in known:
            raise SettingInvalid(
                f"stages are {', '.join(known)}, each with a weight or without, such as "
                f"calibration=2; found {item[:40]!r}."
            )
        steps.append(known[name])
        if equals:
            weights[known[name]] = float(options.fraction_option(weight, "a weight") or 0)
    return plan_pipeline(
        request,
        steps,
        metric=metric,
        weights=weights,
        generator=np.random.default_rng(0),
        progress=progress,
    )


def print_pipeline(split: PipelinePlan, voice: Voice) -> None:
    """Print what each survey spends and how good it will be."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("survey", no_wrap=True)
    for title in ("share", "epsilon", "cells", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("of what", no_wrap=True)
    for each in split.stages:
        table.add_row(
            each.stage.value,
            str(each.share),
            str(each.epsilon),
            str(each.design.survey.grid.cells),
            f"{each.error:.2g}",
            each.stage.measure,
        )
    voice.say(table)
    voice.say(
        f"\nA client that answers all of them spends epsilon {split.epsilon}, by sequential "
        f"composition.\nThe metric is {split.metric}.",
    )


def print_plan(made: Plan, voice: Voice) -> None:
    """Print the survey's shape, a table of predicted errors, and the verdict."""
    survey = made.design.survey
    assumed = assumptions(made.request)
    scores = (
        "scores as in the reference"
        if assumed["scores"] == "reference"
        else f"a calibrated classifier of ROC AUC {assumed['auc']:g} with "
        f"{assumed['positive_rate']:.3g} positives"
    )
    cells = "/".join(f"{cells:,}" for cells in survey.hierarchy.cells_per_level)
    voice.say(
        f"{survey.grid.cells:,} cells in {survey.hierarchy.levels} level(s) ({cells}), "
        f"for {scores}.\n{survey.guarantee.sentence()}\n",
    )
    if made.design.second is not None:
        voice.say("The errors are those of both surveys, read together:\n")
    voice.say(predictions_table(made.forecasts))
    if assumed["scores"] == "reference":
        voice.say(f"\nECE after calibrating from this survey: about {made.calibrated_ece:.2g}.")
    if isfinite(made.detectable):
        voice.say(
            f"\nTwo models are told apart in {made.goal.target.metric} from a difference of "
            f"{made.detectable:.2g} on,\nwith power {made.goal.power:g}, by two such surveys of "
            "different clients.",
        )
    voice.say()
    voice.say(Text(made.verdict, style="green" if made.is_enough else "yellow"))
    voice.say("\nRows for 95 % intervals of a wanted width (--widths), from sampling alone:\n")
    needs = made.needs
    voice.say(figures_table(*needs.table()))
    voice.say(f"\n{needs.sentence()}")
    if needs.sites is not None:
        voice.say(f"{needs.sites}")


def predictions_table(forecasts: dict[str, ErrorForecast]) -> Table:
    """Predicted errors by cause, and the 95 % half-width."""
    return figures_table(forecast_header(), forecast_rows(forecasts))
