"""A million rows: histogram and every metric, against ROC AUC alone in other libraries."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torchmetrics.functional.classification import binary_auroc

from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import race, shown, three_digits
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.named import named_metrics
from fedassay.metrics.roc_auc import roc_auc

_ROWS = 1_000_000
_THRESHOLDS = (0.5,)
_FINEST = 2**11
_WANTED_RATIO = 20.0
_OURS = "fedassay: histogram and every metric"
_AREA = "fedassay: histogram and ROC AUC with its errors"
_SKLEARN = "scikit-learn: `roc_auc_score`"


def measure(*, quick: bool) -> Section:
    """Time each library on the same rows, and compare its ROC AUC with scikit-learn's."""
    labels, scores = scored_rows(_ROWS, generator=np.random.default_rng(20))
    histogram = ScoreHistogram.from_scores(labels, scores)
    metrics = named_metrics(histogram, _THRESHOLDS)
    torch_scores, torch_labels = torch.from_numpy(scores), torch.from_numpy(labels).long()

    def all_metrics() -> float:
        fresh = ScoreHistogram.from_scores(labels, scores)
        return named_metrics(fresh, _THRESHOLDS)["roc_auc"].value

    def area_alone() -> float:
        return roc_auc(ScoreHistogram.from_scores(labels, scores)).value

    def metrics_alone() -> float:
        # A new histogram, because one remembers its cumulative counts.
        fresh = ScoreHistogram(histogram.edges, histogram.counts)
        return named_metrics(fresh, _THRESHOLDS)["roc_auc"].value

    def torch_auc(thresholds: int | None) -> Callable[[], float]:
        return lambda: float(binary_auroc(torch_scores, torch_labels, thresholds=thresholds))

    tasks: dict[str, Callable[[], float]] = {
        _OURS: all_metrics,
        "— of which every metric": metrics_alone,
        _AREA: area_alone,
        _SKLEARN: lambda: float(roc_auc_score(labels, scores)),
        "torchmetrics: exact `binary_auroc`": torch_auc(None),
        "torchmetrics: `binary_auroc`, 200 thresholds": torch_auc(200),
    }
    seconds = race(2 if quick else 10, tasks)
    values = {name: task() for name, task in tasks.items()}
    if not quick:
        name = f"torchmetrics: `binary_auroc`, {_FINEST:,} thresholds, one run"
        start = perf_counter()
        values[name] = torch_auc(_FINEST)()
        seconds[name] = perf_counter() - start
    exact = values[_SKLEARN]
    rows = [
        (
            name,
            shown(taken),
            f"{three_digits(taken / seconds[_OURS])} ×",
            f"{abs(values[name] - exact):.0e}",
        )
        for name, taken in seconds.items()
    ]
    ratio, alike = (seconds[_SKLEARN] / seconds[name] for name in (_OURS, _AREA))
    return Section(
        title="One million rows",
        about=f"{_ROWS:,} rows of float64 scores and int8 labels. Ours is "
        f"`ScoreHistogram.from_scores` ({histogram.buckets:,} buckets) and all {len(metrics)} "
        "metrics of `named_metrics` with their intervals' ingredients; theirs is ROC AUC alone, as "
        f"in our row of it. The aim of {_WANTED_RATIO:.0f} times was set for the 13 metrics that "
        "there were; calibration slopes and indices with their intervals, and operating points, "
        "have come since, and take most of the time.",
        header=("what", "time", "times ours", "ROC AUC: distance from scikit-learn"),
        rows=rows,
        aims=[
            Aim(
                f"every metric {_WANTED_RATIO:.0f} times faster than `roc_auc_score`; "
                f"measured {three_digits(ratio)} times",
                ratio >= _WANTED_RATIO,
            ),
            Aim(
                f"ROC AUC {_WANTED_RATIO:.0f} times faster than `roc_auc_score`; "
                f"measured {three_digits(alike)} times",
                alike >= _WANTED_RATIO,
            ),
        ],
    )
