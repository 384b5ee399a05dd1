"""Metrics: functions of a `ScoreHistogram` that return an `Estimate` or a curve of them."""

from fedassay.metrics.average_precision import average_precision
from fedassay.metrics.curves import Curve, precision_recall_curve, roc_curve
from fedassay.metrics.displays import PrecisionRecallDisplay, RocCurveDisplay
from fedassay.metrics.named import named_metrics
from fedassay.metrics.operating_points import (
    ThresholdChoice,
    threshold_for_f1,
    threshold_for_precision,
    threshold_for_recall,
)
from fedassay.metrics.roc_auc import auc_guideline, roc_auc
from fedassay.metrics.scores import brier, ks, log_loss, prevalence
from fedassay.metrics.thresholds import (
    accuracy,
    balanced_accuracy,
    confusion_counts,
    f1,
    f_beta,
    mcc,
    precision,
    recall,
    specificity,
)

__all__ = [
    "Curve",
    "PrecisionRecallDisplay",
    "RocCurveDisplay",
    "ThresholdChoice",
    "accuracy",
    "auc_guideline",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "confusion_counts",
    "f1",
    "f_beta",
    "ks",
    "log_loss",
    "mcc",
    "named_metrics",
    "precision",
    "precision_recall_curve",
    "prevalence",
    "recall",
    "roc_auc",
    "roc_curve",
    "specificity",
    "threshold_for_f1",
    "threshold_for_precision",
    "threshold_for_recall",
]
