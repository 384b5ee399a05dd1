"""A million rows: histogram and every metric, against ROC AUC alone in other libraries."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)
from torchmetrics.functional.classification import binary_auroc

from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import race, shown, three_digits
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.named import AT_THRESHOLD, OVERALL, named_metrics
from fedassay.metrics.roc_auc import roc_auc

_ROWS = 1_000_000
_THRESHOLDS = (0.5,)
_FINEST = 2**11
_WANTED_RATIO = 20.0
_OURS = "fedassay: histogram and every metric"
_AREA = "fedassay: histogram and ROC AUC with its errors"
_FIRST = "fedassay: histogram and the 13 metrics that the aim was set for"
_THIRTEEN = ("precision", "recall", "accuracy", "f1", "specificity", "balanced_accuracy", "mcc")
_SKLEARN = "scikit-learn: `roc_auc_score`"
_SKLEARNS = "scikit-learn: the same 13 metrics, without intervals"


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

    def first_metrics() -> float:
        fresh = ScoreHistogram.from_scores(labels, scores)
        for name in _THIRTEEN:
            AT_THRESHOLD[name](fresh, _THRESHOLDS[0])
        return {name: metric(fresh) for name, metric in OVERALL.items()}["roc_auc"].value

    def metrics_alone() -> float:
        # A new histogram, because one remembers its cumulative counts.
        fresh = ScoreHistogram(histogram.edges, histogram.counts)
        return named_metrics(fresh, _THRESHOLDS)["roc_auc"].value

    def torch_auc(thresholds: int | None) -> Callable[[], float]:
        return lambda: float(binary_auroc(torch_scores, torch_labels, thresholds=thresholds))

    tasks: dict[str, Callable[[], float]] = {
        _OURS: all_metrics,
        "— of which every metric": metrics_alone,
        _FIRST: first_metrics,
        _AREA: area_alone,
        _SKLEARN: lambda: float(roc_auc_score(labels, scores)),
        _SKLEARNS: lambda: _sklearns(labels, scores),
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
    like_for_like = seconds[_SKLEARNS] / seconds[_FIRST]
    return Section(
        title="One million rows",
        about=f"{_ROWS:,} rows of float64 scores and int8 labels. Ours is "
        f"`ScoreHistogram.from_scores` ({histogram.buckets:,} buckets) and all {len(metrics)} "
        "metrics of `named_metrics` with their intervals' ingredients; theirs is ROC AUC alone, as "
        "in our row of it, unless a row says more. The aim of "
        f"{_WANTED_RATIO:.0f} times was set for the 13 metrics that there were; calibration slopes "
        "and indices with their intervals, and operating points, have come since, and take most "
        "of the time.",
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
            Aim(
                f"the 13 metrics {_WANTED_RATIO:.0f} times faster than scikit-learn's; "
                f"measured {three_digits(like_for_like)} times",
                like_for_like >= _WANTED_RATIO,
            ),
        ],
    )


def _sklearns(labels: npt.NDArray[np.int8], scores: npt.NDArray[np.float64]) -> float:
    """What people call for the 13 metrics; the gap of Kolmogorov and Smirnov from the ROC curve."""
    called = scores > _THRESHOLDS[0]
    for score in (brier_score_loss, log_loss, average_precision_score):
        score(labels, scores)
    fpr, tpr, _ = roc_curve(labels, scores)
    np.abs(tpr - fpr).max(), labels.mean()
    for score in (precision_score, recall_score, accuracy_score, f1_score):
        score(labels, called)
    recall_score(labels, called, pos_label=0)  # specificity
    balanced_accuracy_score(labels, called)
    matthews_corrcoef(labels, called)
    return float(roc_auc_score(labels, scores))
