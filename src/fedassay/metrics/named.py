"""The metrics by name, as the command line and result files know them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fedassay.checks import require_thresholds, require_type
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.average_precision import average_precision
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

OVERALL: Mapping[str, Callable[[ScoreHistogram], Estimate]] = {
    "roc_auc": roc_auc,
    "average_precision": average_precision,
    "brier": brier,
    "log_loss": log_loss,
    "ks": ks,
    "prevalence": prevalence,
}

AT_THRESHOLD: Mapping[str, Callable[[ScoreHistogram, float], Estimate]] = {
    "precision": precision,
    "recall": recall,
    "accuracy": accuracy,
    "f1": f1,
    "specificity": specificity,
    "balanced_accuracy": balanced_accuracy,
    "mcc": mcc,
}


def metric_name(name: str, threshold: float) -> str:
    """A threshold metric's name, such as precision@0.5.

    >>> metric_name("precision", 0.5)
    'precision@0.5'
    """
    return f"{name}@{threshold!r}"


def metric_at(name: str, thresholds: Sequence[float]) -> str:
    """A metric's full name: one at a threshold, where none is said, is meant at the first.

    >>> metric_at("precision", [0.3, 0.7]), metric_at("roc_auc", [0.3])
    ('precision@0.3', 'roc_auc')
    """
    return metric_name(name, thresholds[0]) if name in AT_THRESHOLD and thresholds else name


def check_metric(name: str) -> None:
    """Raise unless a name is one of `named_metrics`, such as roc_auc or precision@0.5.

    >>> check_metric("precision@0.5")
    """
    require_type(name, str, "a metric's name", "Write it as in roc_auc or precision@0.5.")
    metric, at, threshold = name.partition("@")
    known = metric in (AT_THRESHOLD if at else OVERALL)
    try:
        if known and (not at or 0.0 <= float(threshold) <= 1.0):
            return
    except ValueError:
        pass
    raise SettingInvalid(
        f"a metric is one of {', '.join(OVERALL)}, or one of {', '.join(AT_THRESHOLD)} at a "
        f"threshold in [0, 1], such as precision@0.5; found {name[:40]!r}."
    )


def named_metric(histogram: ScoreHistogram, name: str, *, buckets: int | None = None) -> Estimate:
    """One metric by name.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> named_metric(h, "recall@0.5").value
    0.5
    """
    require_histogram(histogram)
    check_metric(name)
    metric, at, threshold = name.partition("@")
    if at:
        return AT_THRESHOLD[metric](histogram, float(threshold))
    return OVERALL[metric](histogram if buckets is None else histogram.equi_depth(buckets))


def named_metrics(
    histogram: ScoreHistogram, thresholds: Sequence[float], *, buckets: int | None = None
) -> dict[str, Estimate]:
    """Every metric of a histogram, by name.

    With `buckets`, areas and scores come from that many quantile buckets, as in the paper's
    AUC experiments; thresholds are always read from the cells.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> list(named_metrics(h, [0.5]))[:3]
    ['roc_auc', 'average_precision', 'brier']
    """
    require_histogram(histogram)
    require_type(thresholds, Iterable, "thresholds", "Write them as [0.5].")
    require_thresholds(thresholds)
    merged = histogram if buckets is None else histogram.equi_depth(buckets)
    estimates = {name: metric(merged) for name, metric in OVERALL.items()}
    for threshold in thresholds:
        for name, at in AT_THRESHOLD.items():
            estimates[metric_name(name, threshold)] = at(histogram, threshold)
    return estimates
