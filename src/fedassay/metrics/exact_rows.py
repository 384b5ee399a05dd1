"""The exact metrics of rows at hand: what a simulation compares its estimates with."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from fedassay.errors import SingleClass
from fedassay.examples import Examples, FloatArray
from fedassay.metrics.exact_clinical import (
    SortedRows,
    at_goal,
    calibration_of_rows,
    clinical_at_threshold,
)
from fedassay.metrics.named import USUAL_GOALS, metric_name, threshold_of

_EPS = float(np.finfo(np.float64).eps)


def row_metrics(
    examples: Examples, thresholds: Sequence[float], *, more: Sequence[str] = ()
) -> dict[str, float | None]:
    """Every metric of `metrics.named`, from sorted rows; None where it is undefined.

    With `more`, other names too, such as lift@0.05.

    >>> row_metrics(Examples([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), [0.5])["roc_auc"]
    0.75
    """
    P = examples.positives
    N = len(examples) - P
    if P == 0 or N == 0:
        raise SingleClass(
            f"both classes are needed; all {len(examples)} labels are the same. "
            "Use a table with positives and negatives."
        )
    scores, labels = _by_score(examples)
    # The last row of each run of equal scores.
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    below_p = np.concatenate([[0.0], np.cumsum(labels)[ends]])
    below_n = np.concatenate([[0.0], ends + 1.0]) - below_p
    values: dict[str, float | None] = {
        "roc_auc": float(np.diff(below_p) @ (below_n[:-1] + below_n[1:]) / (2.0 * P * N)),
        "average_precision": _average_precision(P - below_p, N - below_n),
        "brier": float(np.mean((scores - labels) ** 2)),
        "log_loss": _log_loss(scores, labels),
        "ks": float(np.abs(below_p / P - below_n / N).max()),
        "prevalence": P / (P + N),
    }
    rows = SortedRows(scores[ends], below_n, below_p)
    # Of many rows each column is most of what memory there is.
    del scores, labels, ends
    values |= calibration_of_rows(rows)
    asked = [threshold for threshold in map(threshold_of, more) if threshold is not None]
    for threshold in dict.fromkeys([*thresholds, *asked]):
        place = int(np.searchsorted(rows.scores, threshold, side="right"))
        tp, fp = float(P - below_p[place]), float(N - below_n[place])
        at = _at_threshold(tp, fp, P, N)
        at |= clinical_at_threshold(tp, fp, P, N, threshold=threshold)
        named = {metric_name(name, threshold): value for name, value in at.items()}
        values |= {k: v for k, v in named.items() if threshold in thresholds or k in more}
    goals = [*USUAL_GOALS, *(name for name in more if name not in values)]
    return values | {name: at_goal(rows, name) for name in goals}


def _by_score(examples: Examples) -> tuple[FloatArray, FloatArray]:
    """Scores from low to high, each with its label: one sort of whole numbers, and no order kept.

    As whole numbers the patterns of doubles from 0 rise with them; up to 1 their first two bits
    are 0, so that a label fits behind the last.
    """
    keys = examples.scores.copy().view(np.uint64)
    # The sign of -0 goes out at the top.
    keys <<= 1
    keys |= examples.labels
    keys.sort()
    labels = (keys & 1).astype(np.float64)
    keys >>= 1
    return keys.view(np.float64), labels


def row_calibration(
    examples: Examples, predictions: FloatArray, *, bins: int = 20
) -> dict[str, float]:
    """Calibration error in bins of equal width, Brier score and log loss of predictions.

    >>> examples = Examples([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> row_calibration(examples, examples.scores)["ece"]
    0.25
    """
    labels = examples.labels.astype(np.float64)
    place = np.clip(np.ceil(predictions * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(place, labels - predictions, bins)
    return {
        "ece": float(np.abs(gaps).sum() / len(labels)),
        "brier": float(np.mean((predictions - labels) ** 2)),
        "log_loss": _log_loss(predictions, labels),
    }


def _average_precision(above_p: FloatArray, above_n: FloatArray) -> float:
    steps = above_p[:-1] - above_p[1:]
    return float(steps @ (above_p[:-1] / (above_p[:-1] + above_n[:-1])) / above_p[0])


def _log_loss(scores: FloatArray, labels: FloatArray) -> float:
    clipped = np.clip(scores, _EPS, 1.0 - _EPS)
    return float(-np.mean(np.where(labels == 1.0, np.log(clipped), np.log1p(-clipped))))


def _at_threshold(tp: float, fp: float, P: int, N: int) -> dict[str, float | None]:
    fn, tn = P - tp, N - fp
    sides = (tp + fp) * P * N * (tn + fn)
    return {
        "precision": tp / (tp + fp) if tp + fp > 0 else None,
        "recall": tp / P,
        "accuracy": (tp + tn) / (P + N),
        "f1": 2.0 * tp / (2.0 * tp + fp + fn),
        "specificity": tn / N,
        "balanced_accuracy": 0.5 * (tp / P + tn / N),
        "mcc": (tp * tn - fp * fn) / sqrt(sides) if sides > 0 else None,
    }
