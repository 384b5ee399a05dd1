"""Every figure of more than two classes, by name, from their histograms."""

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from fedassay.calibration.calibration_error import ece
from fedassay.classes.averages import (
    area_sampling_sd,
    as_area,
    by_prevalence,
    mean_of_sizes,
    weighted_mean,
    why_unknown,
)
from fedassay.classes.joined_counts import area_parts, pooled
from fedassay.classes.one_vs_rest import ClassTables
from fedassay.estimate import Estimate, NotEnoughData, remedied
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.average_precision import average_precision
from fedassay.metrics.roc_auc import roc_auc
from fedassay.metrics.scores import brier, positive_log_loss, prevalence

Figure = Callable[[ScoreHistogram], Estimate]

_FINER = "Gather more rows, or assess one class against the rest (--score)."
"""Classes are asked in one step, on grids that the planner chooses."""


def class_estimates(tables: ClassTables) -> dict[str, Estimate]:
    """ROC AUC and average precision per class and averaged, and figures of all classes."""
    areas = _each(tables, roc_auc)
    precisions = _each(tables, average_precision)
    named = {f"roc_auc/{n}": e for n, e in zip(tables.names, areas, strict=True)}
    named |= _averages(tables, "roc_auc", areas)
    named |= {f"average_precision/{n}": e for n, e in zip(tables.names, precisions, strict=True)}
    named |= _averages(tables, "average_precision", precisions)
    named |= {
        "accuracy": _of_top(tables, prevalence),
        "log_loss": _log_loss(tables),
        "brier": _brier(tables),
        "ece/classwise": _classwise_ece(tables),
        "ece/top": _of_top(tables, ece),
    }
    return {name: remedied(estimate, _FINER) for name, estimate in named.items()}


def _each(tables: ClassTables, figure: Figure) -> list[Estimate]:
    return [h if isinstance(h, NotEnoughData) else figure(h) for h in tables.histograms]


def _of_top(tables: ClassTables, figure: Figure) -> Estimate:
    return tables.top if isinstance(tables.top, NotEnoughData) else figure(tables.top)


def _averages(tables: ClassTables, name: str, estimates: list[Estimate]) -> dict[str, Estimate]:
    """Macro: all classes alike; weighted: by prevalence; micro: rows of all classes pooled."""
    unknown = why_unknown(estimates, tables.names)
    known = tables.known
    is_area = name == "roc_auc"
    macro: Estimate
    if unknown is not None:
        macro = unknown
    else:
        weights = np.full(len(known), 1.0 / len(known))
        sampling_sd = area_sampling_sd(known, weights) if is_area else None
        macro = as_area(weighted_mean(estimates, weights, sampling_sd=sampling_sd))
    return {
        f"{name}/macro": macro,
        f"{name}/weighted": _weighted(tables, estimates, is_area=is_area),
        f"{name}/micro": _micro(tables, roc_auc if is_area else average_precision),
    }


def _weighted(tables: ClassTables, estimates: list[Estimate], *, is_area: bool) -> Estimate:
    """Weighted by prevalence; a class without a value counts where none of it may be seen."""
    heard = [
        (histogram, estimate, name)
        for histogram, estimate, name in zip(
            tables.histograms, estimates, tables.names, strict=True
        )
        if isinstance(histogram, ScoreHistogram) and _is_seen(histogram)
    ]
    if not heard:
        return NotEnoughData(reason="no class stands clear of the privacy noise")
    histograms, figures = [h for h, _, _ in heard], [e for _, e, _ in heard]
    unknown = why_unknown(figures, [name for _, _, name in heard])
    if unknown is not None:
        return unknown
    shares = [prevalence(histogram) for histogram in histograms]
    sampling_sd = None
    if is_area:
        weights = np.array([share.value for share in shares])
        sampling_sd = area_sampling_sd(histograms, weights / weights.sum())
    total = float(np.mean([h.total for h in histograms]))
    return as_area(by_prevalence(figures, shares, total, sampling_sd=sampling_sd))


def _is_seen(histogram: ScoreHistogram) -> bool:
    """Whether a class has rows beyond what noise alone would show."""
    weights = np.zeros_like(histogram.counts)
    weights[1] = 1.0
    sd = sqrt(histogram.noise.variance(weights))
    return histogram.total_positives > max(2.0 * sd, 0.5)


def _micro(tables: ClassTables, figure: Figure) -> Estimate:
    """Of the rows of all classes together: each row is in there once for each class.

    So a row's negatives, K - 1 of them, are no sample of their own: taken to go together.
    """
    missing = next((h for h in tables.histograms if isinstance(h, NotEnoughData)), None)
    if missing is not None:
        return missing
    everyone = pooled(tables.known)
    estimate = figure(everyone)
    if not estimate.is_available:
        return estimate
    others = len(tables.names) - 1
    if figure is roc_auc:
        parts = area_parts(everyone)
        sampling_sd = sqrt(parts.of_positives) + sqrt(others * parts.of_negatives)
    else:
        sampling_sd = estimate.sampling_sd * sqrt(others + 1.0)
    return replace(estimate, sampling_sd=sampling_sd)


def _log_loss(tables: ClassTables) -> Estimate:
    """The mean of -log p of the row's own class: classes' positives, weighted by prevalence."""
    heard = [
        (h, name)
        for h, name in zip(tables.histograms, tables.names, strict=True)
        if isinstance(h, ScoreHistogram) and _is_seen(h)
    ]
    seen = [h for h, _ in heard]
    # Withheld classes that are known to have no row have no loss.
    lacks_rows = len(tables.known) < len(tables.histograms) and (
        tables.seen is None or tables.seen.rest > 0
    )
    if lacks_rows or not seen:
        return next(
            (h for h in tables.histograms if isinstance(h, NotEnoughData)),
            NotEnoughData(reason="no class stands clear of the privacy noise"),
        )
    losses = [positive_log_loss(h) for h in seen]
    unknown = why_unknown(losses, [name for _, name in heard])
    if unknown is not None:
        return unknown
    # Each row is a positive of one class: their samples are independent.
    shares = [prevalence(h) for h in seen]
    weights = np.array([share.value for share in shares])
    weights = weights / weights.sum()
    sampling_sd = sqrt(sum((w * e.sampling_sd) ** 2 for w, e in zip(weights, losses, strict=True)))
    total = float(np.mean([h.total for h in seen]))
    return by_prevalence(losses, shares, total, sampling_sd=sampling_sd)


def _brier(tables: ClassTables) -> Estimate:
    """The sum over classes of their Brier scores, from 0 to 2."""
    scores = _each(tables, brier)
    unknown = why_unknown(scores, tables.names)
    if unknown is not None:
        return unknown
    return weighted_mean(scores, np.ones(len(scores)))


def _classwise_ece(tables: ClassTables) -> Estimate:
    """The mean over classes of their calibration errors, in 20 bins of equal width."""
    errors = _each(tables, ece)
    return why_unknown(errors, tables.names) or mean_of_sizes(errors)
