"""`show`: an assessment, at any thresholds; of a tally no more than how far it is."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fedassay.assessment import Assessment
from fedassay.classes.class_tally import is_class_tally
from fedassay.cli import options
from fedassay.cli.class_files import is_classes_file, refuse, show_class_tally, show_classes
from fedassay.cli.console import err
from fedassay.cli.estimates import estimates_table
from fedassay.cli.groups import groups_content, say_groups
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice, check_output
from fedassay.cli.show_pair import is_pair_file, show_pair
from fedassay.cli.sites import (
    SiteQuestions,
    TauPriorOption,
    WantedOption,
    recalibration_of,
    say_sites,
    sites_content,
)
from fedassay.errors import SettingInvalid
from fedassay.estimate_json import estimates_json
from fedassay.estimate_table import reasons
from fedassay.metrics.manipulation import manipulation
from fedassay.metrics.named import check_metric, metric_at
from fedassay.planning.request import check_thresholds
from fedassay.report.charts import write_forest, write_plots
from fedassay.tally_file import KeptTally, is_tally_file

SHOWN_FORMAT = "fedassay.assessment-shown/1"
TALLY_SHOWN_FORMAT = "fedassay.tally-shown/1"


def show(
    file: Annotated[
        Path, typer.Argument(metavar="ASSESSMENT", help="Assessment file, or a tally.")
    ],
    threshold: options.ThresholdOption = None,
    metric: options.MetricOption = None,
    wanted: WantedOption = None,
    tau_prior: TauPriorOption = None,
    plot_sites: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw a forest plot of ROC AUC by site.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw ROC and precision-recall curves.")
    ] = None,
    liar: Annotated[
        int | None,
        typer.Option(metavar="ROWS", help="How far so many false rows can move each metric."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print an assessment, at any thresholds; of a tally, how far it is.

    [bold]Examples[/bold]

      fedassay show assessment.json --threshold 0.2 --threshold 0.8

      fedassay show assessment.json --metric lift@0.05 --metric recall@specificity=0.95

      fedassay show assessment.json --plot curves.png

      fedassay show assessment.json --wanted roc_auc=0.8 --plot-sites forest.png

      fedassay show assessment.json --liar 500

      fedassay show study.tally
    """
    voice = Voice(as_json, quiet)
    if is_tally_file(file):
        _show_tally(KeptTally.load(file), file, voice)
        return
    if is_class_tally(file):
        show_class_tally(file, voice)
        return
    if is_classes_file(file):
        refuse(
            {"--threshold": threshold, "--metric": metric, "--wanted": wanted, "--plot": plot,
             "--plot-sites": plot_sites, "--liar": liar is not None},
            "of classes all figures are shown, which have no threshold",
        )  # fmt: skip
        show_classes(file, voice)
        return
    if is_pair_file(file):
        if metric or wanted or plot_sites or plot or liar is not None:
            raise SettingInvalid(
                "of two models their figures and differences are shown, at any --threshold; found "
                "an option for one model. Leave it out."
            )
        show_pair(file, threshold, voice)
        return
    saved = Assessment.load(file)
    thresholds = tuple(dict.fromkeys(threshold or saved.thresholds))
    check_thresholds(thresholds)
    more = tuple(metric_at(name, thresholds) for name in metric or ())
    for name in more:
        check_metric(name)
    assessment = replace(saved, thresholds=thresholds)
    if plot is not None:
        check_output(plot, file, force=force)
        write_plots(assessment, plot)
    if plot_sites is not None:
        check_output(plot_sites, file, plot, force=force)
        write_forest(assessment, plot_sites)
    asked = SiteQuestions.asked(thresholds, more, wanted, tau_prior)
    between = sites_content(assessment.sites, asked) | groups_content(assessment) if as_json else {}
    advice, advised = recalibration_of(assessment)
    ranges = {} if liar is None else _ranges(assessment, liar)
    moved = {"manipulation": {"rows": liar, "ranges": ranges}} if ranges else {}
    content = assessment_content(assessment, more)
    voice.result({"format": SHOWN_FORMAT, **content, **between, **advised, **moved})
    say_assessment(voice, assessment, more, asked)
    voice.say("\n" + "\n".join(advice))
    if ranges:
        voice.say(
            f"\nWith up to {liar:,} false rows more, wherever they hurt most, each metric lies "
            "within:"
        )
        for name, (low, high) in ranges.items():
            voice.say(f"  {name:24} {low:.4f} to {high:.4f}")
    for drawn in (plot, plot_sites):
        if drawn is not None:
            voice.say(f"\nWrote {drawn}.")


def say_assessment(
    voice: Voice,
    assessment: Assessment,
    more: Sequence[str] = (),
    questions: SiteQuestions | None = None,
) -> None:
    """Print the table of estimates, why some have no value, and what is known of sites."""
    estimates = assessment.estimates() | {name: assessment[name] for name in more}
    histogram = assessment.histogram()
    voice.say(
        f"{assessment.reports:,} reports, {histogram.total:,.0f} examples, "
        f"{histogram.buckets:,} buckets. {assessment.guarantee.sentence()}"
        f"{assessment.cells_note}\n"
    )
    voice.say(estimates_table(estimates))
    if not (voice.as_json or voice.quiet):
        for reason in reasons(estimates):
            err.print(reason, style="red", markup=False, soft_wrap=True)
    say_sites(voice, assessment.sites, questions or SiteQuestions(assessment.thresholds))
    say_groups(voice, assessment)


def assessment_content(assessment: Assessment, more: Sequence[str] = ()) -> dict[str, Any]:
    """An assessment in JSON's terms: promise, counts and estimates, also of more metrics."""
    histogram = assessment.histogram()
    return {
        "survey": assessment.survey.fingerprint.hex(),
        "steps": assessment.steps,
        "guarantee": assessment.guarantee.sentence(),
        "reports": assessment.reports,
        "reports_per_level": list(assessment.tally.reports),
        "examples": float(histogram.total),
        "buckets": histogram.buckets,
        "thresholds": list(assessment.thresholds),
        "estimates": estimates_json(
            assessment.estimates() | {name: assessment[name] for name in more}
        ),
    }


def _ranges(assessment: Assessment, rows: int) -> dict[str, tuple[float, float]]:
    """How far false rows move each metric, where a report counts its rows as they are."""
    if assessment.survey.is_local:
        raise SettingInvalid(
            "a locally private report weighs more than its row; what false ones move is in "
            "docs/threat-model-local.md. Drop --liar."
        )
    return manipulation(assessment.histogram(), assessment.thresholds, rows=rows)


def _show_tally(kept: KeptTally, file: Path, voice: Voice) -> None:
    """How far a tally is; its sums are nobody's to see before they are released."""
    missing = max(kept.survey.minimum_reports - min(kept.tally.reports), 0)
    wait = f"{missing:,} more needed on a level" if missing else "enough for an assessment"
    voice.say(
        f"{file}: a tally, {kept.state.value}, of survey {kept.survey.fingerprint.hex()[:12]} with "
        f"{kept.reports:,} reports; {wait}.\n{kept.survey.guarantee.sentence()}\n"
        "It stays with its owner. Release an assessment: fedassay tally SURVEY --from "
        f"{file} -o FILE"
    )
    voice.result(
        {
            "format": TALLY_SHOWN_FORMAT,
            "survey": kept.survey.fingerprint.hex(),
            "state": kept.state.value,
            "reports": kept.reports,
            "reports_per_level": list(kept.tally.reports),
            "minimum_reports": kept.survey.minimum_reports,
            "guarantee": kept.survey.guarantee.sentence(),
        }
    )
