"""Mean absolute errors of a survey over simulated trials."""

from collections.abc import Mapping
from math import exp, log, nan

import numpy as np

from fedassay.estimate import Estimate
from fedassay.examples import Examples, ScoredClients
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.metrics.exact_rows import row_metrics
from fedassay.metrics.named import metric_name
from fedassay.planning.search import (
    SurveyDesign,
)
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import simulate

THRESHOLDS = tuple(i / 11 for i in range(1, 11))
FAMILIES = {"precision": precision, "recall": recall, "accuracy": accuracy}
METRICS = ("roc_auc", *FAMILIES)


def mean_errors(design: SurveyDesign, examples: Examples, *, trials: int) -> dict[str, float]:
    """The mean absolute error of ROC AUC, and of each threshold metric over the thresholds.

    A threshold where some trial has no answer, or the rows have none, is left out; the family's
    error is then the mean over the others. Rows are clients.
    """
    exact = row_metrics(examples, THRESHOLDS)
    cohort = ScoredClients(examples, None, len(examples))
    found: dict[str, list[float]] = {name: [] for name in exact}
    for trial in range(trials):
        histogram = simulate(
            design.survey,
            cohort,
            decode_options=design.decode_options,
            randomness=SimulatedRandomness(trial),
        )
        for name, estimate in _estimates(histogram, design.decode_options.buckets).items():
            truth = exact[name]
            found[name].append(nan if truth is None else abs(estimate.value - truth))
    return {name: float(np.mean(errors)) if errors else nan for name, errors in found.items()}


def family_means(*surveys: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
    """Errors of several surveys per metric, over the thresholds at which all have answers."""
    means = {"roc_auc": tuple(errors["roc_auc"] for errors in surveys)}
    for family in FAMILIES:
        names = [metric_name(family, threshold) for threshold in THRESHOLDS]
        rows = np.array([[errors[name] for errors in surveys] for name in names])
        rows = rows[np.isfinite(rows).all(axis=1)]
        means[family] = tuple(map(float, rows.mean(axis=0))) if len(rows) else (nan,) * len(surveys)
    return means


def answered(errors: Mapping[str, float]) -> int:
    """At how many thresholds precision had an answer in every trial."""
    names = [metric_name("precision", threshold) for threshold in THRESHOLDS]
    return int(np.isfinite([errors[name] for name in names]).sum())


def geometric_mean(ratios: list[float]) -> float:
    """The geometric mean of those that are finite."""
    finite = [ratio for ratio in ratios if np.isfinite(ratio)]
    return exp(sum(map(log, finite)) / len(finite)) if finite else nan


def _estimates(histogram: ScoreHistogram, buckets: int | None) -> dict[str, Estimate]:
    merged = histogram if buckets is None else histogram.equi_depth(buckets)
    found = {"roc_auc": roc_auc(merged)}
    for threshold in THRESHOLDS:
        for name, metric in FAMILIES.items():
            found[metric_name(name, threshold)] = metric(histogram, threshold)
    return found
