"""`fedassay simulate`: would a federation over this table give good answers?"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from fedassay.assessment import Assessment
from fedassay.cli import class_options, classes, columns, options
from fedassay.cli.console import plain, progress
from fedassay.cli.groups import (
    GroupOption,
    exact_groups,
    groups_content,
    one_column,
    say_groups,
)
from fedassay.cli.held_out import calibrate_half, calibration_json, print_calibration
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.cli.simulate_output import PAGE, print_results, save_results
from fedassay.cli.simulate_pair import PairRun, simulate_two
from fedassay.cli.sites import SiteQuestions, TauPriorOption, WantedOption, say_sites, sites_content
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.estimate_json import estimates_json
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Keep, Privacy, Unit, UnitKind
from fedassay.metrics.exact_rows import row_metrics
from fedassay.metrics.named import check_metric, metric_at
from fedassay.planning.request import (
    LevelChoice,
    Preset,
    Steps,
    SurveyRequest,
    simulated_smallest,
)
from fedassay.planning.search import (
    SurveyDesign,
    design_survey,
)
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import (
    check_sites,
    counted_rows,
    rows_counted,
)
from fedassay.simulation.site_rows import adds_moments, check_shown, shown_sites
from fedassay.simulation.two_steps import assess_cohort
from fedassay.tables.reading import read_clients
from fedassay.tables.sources import row_count

SIMULATION_FORMAT = "fedassay.simulation/1"
_RESULTS = ("assessment.json", "simulation.json", "curves.png", PAGE)

_EXAMPLES = """
[bold]Examples[/bold]

  fedassay simulate scores.parquet --score s --label y --privacy secure

  fedassay simulate scores.parquet --privacy distributed --epsilon 1 --trials 20

  fedassay simulate scores.csv --privacy local --epsilon 5 --reference train.csv

  fedassay simulate scores.csv --client hospital --threshold 0.3 --json

  fedassay simulate scores.csv --client hospital --privacy site --epsilon 1 --wanted roc_auc=0.8

  fedassay simulate s.csv --client site --unit patient --patient id --max-examples 3

  fedassay simulate scores.csv --privacy distributed --epsilon 1 --group sex

  fedassay simulate scores.csv --metric lift@0.05 --metric recall@specificity=0.95

  fedassay simulate scores.csv --score a=old_model --score b=new_model

  fedassay simulate scores.csv --separator tab --positive yes --scale 100

  fedassay simulate scores.csv --preset paper --buckets 50 --out result/

  fedassay simulate scores.csv --privacy distributed --epsilon 1 --steps 2

  fedassay simulate classes.csv --scores 'p*' --label y --privacy distributed --epsilon 1
"""


def simulate_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scored table: CSV or Parquet.")],
    score: columns.ModelScoresOption = None,
    scores: class_options.ScoresOption = None,
    label: columns.LabelOption = None,
    client: columns.ClientOption = None,
    patient: columns.PatientOption = None,
    time: columns.TimeOption = None,
    group: GroupOption = None,
    privacy: options.PrivacyOption = Privacy.SECURE,
    epsilon: options.EpsilonOption = None,
    threshold: options.ThresholdOption = None,
    metric: options.MetricOption = None,
    trials: Annotated[int, typer.Option(metavar="R", help="Repeat the federation R times.")] = 1,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Repeat the same random draws.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Calibrate on half the clients, test on the rest.")
    ] = False,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write results and plots there.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
    positive: columns.PositiveOption = None,
    scale: columns.ScaleOption = 1.0,
    separator: columns.SeparatorOption = None,
    decimal: columns.DecimalOption = ".",
    unit: options.UnitOption = UnitKind.EXAMPLE,
    max_examples: options.MaxExamplesOption = 1,
    keep: options.KeepOption = Keep.RANDOM,
    minimum_reports: options.MinimumOption = None,
    colluders: options.ColludersOption = 0,
    smallest_cell: options.SmallestCellOption = None,
    sum_only: options.SumOnlyOption = False,
    delta: options.DeltaOption = None,
    largest_local_epsilon: options.LargestLocalOption = None,
    wanted: WantedOption = None,
    tau_prior: TauPriorOption = None,
    show_sites: Annotated[
        bool,
        typer.Option(
            "--show-sites",
            help="Under secure privacy: as if sites let their own counts be seen.",
            rich_help_panel=options.FIGURES,
        ),
    ] = False,
    site_moments: Annotated[
        bool | None,
        typer.Option(
            help="Under secure privacy: let sites add moments (default: from 5 to 200 sites).",
            rich_help_panel=options.SHAPE,
        ),
    ] = None,
    class_design: class_options.ClassDesignOption = None,
    reference: options.ReferenceOption = None,
    preset: options.PresetOption = Preset.DEFAULT,
    steps: options.StepsOption = Steps.AUTO,
    height: options.HeightOption = None,
    fanout: options.FanoutOption = None,
    levels: options.LevelsOption = LevelChoice.EVERY,
    budget: options.BudgetOption = None,
    positive_rate: options.RateOption = None,
    buckets: options.BucketsOption = None,
    each_client: Annotated[
        bool,
        typer.Option(
            "--each-client",
            help="Make, send and add every client's report for real.",
            rich_help_panel=options.SHAPE,
        ),
    ] = False,
) -> None:
    """Run a federation over a scored table and compare its answers with the exact ones."""
    started = perf_counter()
    _check_run(trials, seed)
    thresholds = tuple(dict.fromkeys(threshold or (0.5,)))
    more = _more_metrics(metric, thresholds)
    voice = Voice(as_json, quiet)
    if out_dir is not None and out_dir.is_dir():
        for name in _RESULTS:
            check_output(out_dir / name, file, reference, force=force)
    models = columns.models_of(score)
    tables = columns.TableOptions(
        score=None if models else columns.one_score(score),
        models=models,
        label=label,
        client=client,
        patient=patient,
        time=time,
        group=one_column(group, scores),
        positive=positive,
        scale=scale,
        separator=separator,
        decimal=decimal,
        quiet=quiet,
    )
    settings: dict[str, Any] = {
        "privacy": privacy,
        "epsilon": options.fraction_option(epsilon, "epsilon"),
        "positive_rate": positive_rate,
        "preset": preset,
        "steps": steps,
        "levels": levels,
        "height": height,
        "fanout": fanout,
        "budget": options.parse_budget(budget),
        "buckets": buckets,
        "minimum_reports": minimum_reports,
        "colluders": colluders,
        "smallest_cell": simulated_smallest(preset, height, smallest_cell),
        "sum_only": sum_only,
        "delta": options.fraction_option(delta, "delta"),
        "largest_local_epsilon": options.fraction_option(
            largest_local_epsilon, "the largest local epsilon"
        ),
    }
    asked_unit = Unit(unit, max_examples, keep)
    if class_options.are_asked(scores, class_design):
        classes.simulate_classes_command(
            classes.ClassQuestion(
                file=file,
                scores=scores or "",
                design=class_design,
                tables=tables,
                trials=trials,
                seed=seed,
                each_client=each_client,
                out_dir=out_dir,
                calibrate=calibrate,
                unit=asked_unit,
                request=settings,
                of_one_score={
                    "--score": score,
                    "--threshold": threshold,
                    "--metric": metric,
                    "--positive": positive,
                    "--reference": reference,
                    "--group": group,
                    "--show-sites": show_sites,
                    "--wanted": wanted,
                    "--site-moments": site_moments,
                },
            ),
            voice,
        )
        return
    request = SurveyRequest(
        **settings, dropouts=Fraction(0), thresholds=thresholds, unit=asked_unit
    )
    if models:
        simulate_two(
            file,
            tables,
            request,
            PairRun(trials, seed, each_client, started, reference, voice, out_dir),
            of_one_model={
                "--metric": metric,
                "--calibrate": calibrate,
                "--wanted": wanted,
                "--show-sites": show_sites,
                "--site-moments": site_moments,
                "--group": group,
            },
        )
        return
    with progress("reading rows", row_count(file)) as advance:
        cohort = read_clients(file, tables.for_table(file), progress=advance)
    exact = row_metrics(cohort.examples, thresholds, more=more)
    request = replace(
        request,
        clients=cohort.clients,
        examples=counted_rows(cohort, request.unit, is_local=privacy.is_local),
        reference=tables.reference(reference, is_simulated=True),
        groups=cohort.groups,
    )
    check_sites(privacy, cohort)
    if show_sites:
        check_shown(request, cohort)
    asked = SiteQuestions.asked(thresholds, more, wanted, tau_prior)
    moments = adds_moments(request, cohort, site_moments)
    if not (show_sites or moments or (privacy is Privacy.SITE and not sum_only)):
        asked.fitting(None)
    design = design_survey(replace(request, site_moments=moments))
    shown = shown_sites(design.survey, cohort, design.decode_options) if show_sites else None
    between: list[dict[str, Any]] = []

    def after_trial(assessment: Assessment) -> None:
        wants_all = as_json or out_dir is not None
        between.append(
            sites_content(shown or assessment.sites, asked) | groups_content(assessment)
            if wants_all
            else {}
        )

    results, last = run_trials(
        design,
        cohort,
        thresholds=thresholds,
        trials=trials,
        seed=seed,
        each_client=each_client,
        more=more,
        after_trial=after_trial,
    )
    tested = calibrate_half(request, cohort, seed=seed) if calibrate else None
    content: dict[str, Any] = {
        "format": SIMULATION_FORMAT,
        "rows": len(cohort.examples),
        "rows_kept": rows_counted(design.survey, cohort),
        "clients": cohort.clients,
        "steps": last.steps,
        "guarantee": last.guarantee.sentence(),
        "exact": exact,
        **exact_groups(cohort, thresholds, more),
        "trials": [
            {**estimates_json(result), **sites}
            for result, sites in zip(results, between, strict=True)
        ],
        "seconds": perf_counter() - started,
    }
    if tested is not None:
        content["calibration"] = calibration_json(tested)
    if out_dir is not None:
        save_results(out_dir, content, last)
    voice.result(content)
    print_results(voice, cohort, results, exact, last)
    say_sites(voice, shown or last.sites, asked)
    say_groups(voice, last)
    if tested is not None:
        print_calibration(voice, tested)
    if out_dir is not None:
        voice.say(f"\nWrote {plain(out_dir)}/: {', '.join(_RESULTS)}")
        voice.say(f"To look at: {plain(out_dir / PAGE)}")


simulate_command.__doc__ = f"{simulate_command.__doc__}\n{_EXAMPLES}"


def _more_metrics(names: list[str] | None, thresholds: tuple[float, ...]) -> tuple[str, ...]:
    more = tuple(metric_at(name, thresholds) for name in names or ())
    for name in more:
        check_metric(name)
    return more


def _check_run(trials: int, seed: int | None) -> None:
    if not 1 <= trials <= 1_000_000:
        raise SettingInvalid(f"trials must be from 1 to 1000000; found {trials}.")
    if seed is not None and seed < 0:
        raise SettingInvalid(f"a seed must be 0 or more; found {seed}.")


def run_trials(
    design: SurveyDesign,
    cohort: ScoredClients,
    *,
    thresholds: tuple[float, ...],
    trials: int,
    seed: int | None,
    each_client: bool,
    more: Sequence[str] = (),
    after_trial: Callable[[Assessment], None] = lambda _: None,
) -> tuple[list[dict[str, Estimate]], Assessment]:
    """Run the federation several times; returns all estimates, and the last assessment."""
    results = []
    survey = design.survey
    asked = 2 if survey.step is not None and not survey.is_local else 1
    ticks = trials * (asked * cohort.clients if each_client else 1)
    with progress("clients" if each_client else "trials", ticks) as advance:
        for sequence in np.random.SeedSequence(seed).spawn(trials):
            last = assess_cohort(
                design,
                cohort,
                thresholds=thresholds,
                randomness=SimulatedRandomness(sequence),
                each_client=each_client,
                progress=advance,
            )
            if not each_client:
                advance(1)
            results.append(last.estimates() | {name: last[name] for name in more})
            after_trial(last)
    return results, last
