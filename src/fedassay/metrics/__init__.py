"""Metrics: functions of a `ScoreHistogram` that return an `Estimate` or a curve of them."""

from fedassay.metrics.average_precision import average_precision
from fedassay.metrics.clinical_thresholds import flagged, lr_minus, lr_plus, npv
from fedassay.metrics.curves import Curve, precision_recall_curve, roc_curve
from fedassay.metrics.decision_display import DecisionCurveDisplay
from fedassay.metrics.displays import PrecisionRecallDisplay, RocCurveDisplay
from fedassay.metrics.fixed_rates import recall_at_specificity, specificity_at_recall
from fedassay.metrics.ici import e50, e90, emax, ici
from fedassay.metrics.lift import gain, lift
from fedassay.metrics.named import named_metrics
from fedassay.metrics.net_benefit import (
    DecisionCurve,
    decision_curve,
    net_benefit,
    net_benefit_of_all,
    net_benefit_over_all,
)
from fedassay.metrics.operating_points import (
    ThresholdChoice,
    threshold_for_f1,
    threshold_for_precision,
    threshold_for_recall,
)
from fedassay.metrics.roc_auc import auc_guideline, roc_auc
from fedassay.metrics.score_display import ScoreHistogramDisplay
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
from fedassay.metrics.weak_calibration import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    oe_ratio,
)

__all__ = [
    "Curve",
    "DecisionCurve",
    "DecisionCurveDisplay",
    "PrecisionRecallDisplay",
    "RocCurveDisplay",
    "ScoreHistogramDisplay",
    "ThresholdChoice",
    "accuracy",
    "auc_guideline",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "confusion_counts",
    "decision_curve",
    "e50",
    "e90",
    "emax",
    "f1",
    "f_beta",
    "flagged",
    "gain",
    "ici",
    "ks",
    "lift",
    "log_loss",
    "lr_minus",
    "lr_plus",
    "mcc",
    "named_metrics",
    "net_benefit",
    "net_benefit_of_all",
    "net_benefit_over_all",
    "npv",
    "oe_ratio",
    "precision",
    "precision_recall_curve",
    "prevalence",
    "recall",
    "recall_at_specificity",
    "roc_auc",
    "roc_curve",
    "specificity",
    "specificity_at_recall",
    "threshold_for_f1",
    "threshold_for_precision",
    "threshold_for_recall",
]
