"""The metrics by name, as the command line and result files know them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from fedassay.checks import require_thresholds, require_type
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.average_precision import average_precision
from fedassay.metrics.clinical_thresholds import flagged, lr_minus, lr_plus, npv
from fedassay.metrics.fixed_rates import recall_at_specificity, specificity_at_recall
from fedassay.metrics.ici import e50, e90, emax, ici
from fedassay.metrics.lift import gain, lift
from fedassay.metrics.net_benefit import net_benefit
from fedassay.metrics.roc_auc import roc_auc
from fedassay.metrics.scores import brier, ks, log_loss, prevalence
from fedassay.metrics.thresholds import (
    accuracy,
    balanced_accuracy,
    f1,
    mcc,
    precision,
    recall,
    specificity,
)
from fedassay.metrics.weak_calibration import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    oe_ratio,
)

OVERALL: Mapping[str, Callable[[ScoreHistogram], Estimate]] = {
    "roc_auc": roc_auc,
    "average_precision": average_precision,
    "brier": brier,
    "log_loss": log_loss,
    "ks": ks,
    "prevalence": prevalence,
}

CALIBRATION: Mapping[str, Callable[[ScoreHistogram], Estimate]] = {
    "calibration_in_the_large": calibration_in_the_large,
    "calibration_intercept": calibration_intercept,
    "calibration_slope": calibration_slope,
    "oe_ratio": oe_ratio,
    "ici": ici,
    "e50": e50,
    "e90": e90,
    "emax": emax,
}

AT_THRESHOLD: Mapping[str, Callable[[ScoreHistogram, float], Estimate]] = {
    "precision": precision,
    "recall": recall,
    "accuracy": accuracy,
    "f1": f1,
    "specificity": specificity,
    "balanced_accuracy": balanced_accuracy,
    "mcc": mcc,
    "npv": npv,
    "lr_plus": lr_plus,
    "lr_minus": lr_minus,
    "flagged": flagged,
    "net_benefit": net_benefit,
}

AT_GOAL: Mapping[str, Callable[[ScoreHistogram, float], Estimate]] = {
    "recall@specificity=": recall_at_specificity,
    "specificity@recall=": specificity_at_recall,
    "gain@": gain,
    "lift@": lift,
}
"""By what their names begin with; what follows is the wanted rate, or the share to act on."""

UNBOUNDED = frozenset(
    {"calibration_in_the_large", "calibration_intercept", "calibration_slope", "oe_ratio"}
    | {"lr_plus", "lr_minus", "flagged", "lift"}
)
"""Those that may lie beyond 1, and whose errors may too."""

USUAL_GOALS = ("recall@specificity=0.9", "specificity@recall=0.9", "gain@0.1", "lift@0.1")
"""Those that are given without being asked for."""


def metric_name(name: str, threshold: float) -> str:
    """A threshold metric's name, such as precision@0.5.

    >>> metric_name("precision", 0.5)
    'precision@0.5'
    """
    return f"{name}@{threshold!r}"


def metric_at(name: str, thresholds: Sequence[float]) -> str:
    """A metric's full name: one at a threshold, where none is said, is meant at the first.

    Numbers are written as in files, so that 0.50 is 0.5.

    >>> metric_at("precision", [0.3, 0.7]), metric_at("roc_auc", [0.3]), metric_at("lift@.10", [])
    ('precision@0.3', 'roc_auc', 'lift@0.1')
    """
    if name in AT_THRESHOLD and thresholds:
        return metric_name(name, thresholds[0])
    *begin, text = re.split("([@=])", name)
    number = _number(text) if begin else None
    return name if number is None else f"{''.join(begin)}{number!r}"


def threshold_of(name: str) -> float | None:
    """The threshold in a metric's name; None where it has none.

    >>> threshold_of("recall@0.5"), threshold_of("recall@specificity=0.9"), threshold_of("lift@0.1")
    (0.5, None, None)
    """
    metric, _, threshold = name.partition("@")
    return _number(threshold) if metric in AT_THRESHOLD else None


def check_metric(name: str) -> None:
    """Raise unless a name is one of `named_metrics`, such as roc_auc or precision@0.5.

    >>> check_metric("precision@0.5")
    """
    require_type(name, str, "a metric's name", "Write it as in roc_auc or precision@0.5.")
    _of_name(name, None)


def named_metric(histogram: ScoreHistogram, name: str, *, buckets: int | None = None) -> Estimate:
    """One metric by name.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> named_metric(h, "recall@0.5").value
    0.5
    """
    require_histogram(histogram)
    check_metric(name)
    return _of_name(name, buckets)(histogram)


def named_metrics(
    histogram: ScoreHistogram, thresholds: Sequence[float], *, buckets: int | None = None
) -> dict[str, Estimate]:
    """Every metric of a histogram, by name.

    With `buckets`, areas and scores come from that many quantile buckets, as in the paper's
    AUC experiments; all others are always read from the cells.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> list(named_metrics(h, [0.5]))[:3]
    ['roc_auc', 'average_precision', 'brier']
    """
    require_histogram(histogram)
    require_type(thresholds, Iterable, "thresholds", "Write them as [0.5].")
    require_thresholds(thresholds)
    merged = histogram if buckets is None else histogram.equi_depth(buckets)
    estimates = {name: metric(merged) for name, metric in OVERALL.items()}
    estimates |= {name: metric(histogram) for name, metric in CALIBRATION.items()}
    for threshold in thresholds:
        for name, at in AT_THRESHOLD.items():
            estimates[metric_name(name, threshold)] = at(histogram, threshold)
    return estimates | {name: _of_name(name, None)(histogram) for name in USUAL_GOALS}


def headings(names: Iterable[str]) -> dict[str, str]:
    """What to print above some of the names, so that a long table reads as short ones.

    >>> headings(["roc_auc", "ici", "emax", "recall@0.5"])
    {'ici': 'calibration', 'recall@0.5': 'at threshold 0.5'}
    """
    above, last = {}, ""
    for name in names:
        heading = _heading(name)
        if heading != last:
            above[name] = last = heading
    return above


def _heading(name: str) -> str:
    threshold = threshold_of(name)
    if threshold is not None:
        return f"at threshold {threshold:.4g}"
    if "@" in name:
        return "at a wanted rate"
    return "" if name in OVERALL else "calibration"


def _of_name(name: str, buckets: int | None) -> Callable[[ScoreHistogram], Estimate]:
    """The function that a name stands for."""
    if name in OVERALL:
        metric = OVERALL[name]
        return lambda h: metric(h if buckets is None else h.equi_depth(buckets))
    if name in CALIBRATION:
        return CALIBRATION[name]
    threshold = threshold_of(name)
    if threshold is not None and 0.0 <= threshold <= 1.0:
        at = AT_THRESHOLD[name.partition("@")[0]]
        return lambda h: at(h, threshold)
    for begin, of_goal in AT_GOAL.items():
        goal = _number(name.removeprefix(begin)) if name.startswith(begin) else None
        if goal is not None and 0.0 < goal <= 1.0:
            return partial(_with_goal, of_goal, goal)
    raise SettingInvalid(
        f"a metric is one of {', '.join((*OVERALL, *CALIBRATION))}, or one of "
        f"{', '.join(AT_THRESHOLD)} at a threshold in [0, 1], such as precision@0.5, or one of "
        f"{', '.join(USUAL_GOALS)} with a rate or share in (0, 1]; found {name[:40]!r}."
    )


def _with_goal(
    metric: Callable[[ScoreHistogram, float], Estimate], goal: float, histogram: ScoreHistogram
) -> Estimate:
    return metric(histogram, goal)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
