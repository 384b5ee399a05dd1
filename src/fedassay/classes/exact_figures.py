"""The exact figures of rows of many classes: what a simulation compares its estimates with."""

import numpy as np

from fedassay.classes.rows import ClassRows
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.metrics.exact_rows import row_calibration

_EPS = float(np.finfo(np.float64).eps)
_AVERAGED = ("roc_auc", "average_precision")


def exact_figures(rows: ClassRows) -> dict[str, float | None]:
    """Every figure of `figures`, from the rows; None where a class never occurs.

    >>> rows = ClassRows([0, 1, 2], np.full((3, 3), 1 / 3), [0, 1, 2])
    >>> round(exact_figures(rows)["log_loss"], 4), exact_figures(rows)["roc_auc/macro"]
    (1.0986, 0.5)
    """
    each = [_of_class(rows.one_vs_rest(number)) for number in range(rows.classes)]
    shares = np.bincount(rows.labels, minlength=rows.classes) / len(rows)
    labels = np.eye(rows.classes, dtype=np.uint8)[rows.labels]
    together = _of_class(Examples(labels.ravel(), rows.scores.ravel()))
    named: dict[str, float | None] = {}
    for metric in _AVERAGED:
        values = [figures[metric] for figures in each]
        known = [value for value in values if value is not None]
        named |= {f"{metric}/{n}": value for n, value in zip(rows.names, values, strict=True)}
        named[f"{metric}/macro"] = float(np.mean(known)) if len(known) == len(values) else None
        named[f"{metric}/weighted"] = _weighted(values, shares)
        named[f"{metric}/micro"] = together[metric]
    own = np.clip(rows.scores[np.arange(len(rows)), rows.labels], _EPS, 1.0 - _EPS)
    top = rows.top_label()
    return named | {
        "accuracy": float(np.mean(top.labels)),
        "log_loss": float(-np.mean(np.log(own))),
        "brier": float(np.mean(((rows.scores - labels) ** 2).sum(axis=1))),
        "ece/classwise": classwise_ece(rows, rows.scores),
        "ece/top": row_calibration(top, top.scores)["ece"],
    }


def classwise_ece(rows: ClassRows, predictions: FloatArray, *, bins: int = 20) -> float:
    """The mean over classes of |observed - predicted| in bins of equal width (cwECE).

    >>> rows = ClassRows([0, 1, 2], np.eye(3), [0, 1, 2])
    >>> classwise_ece(rows, rows.scores)
    0.0
    """
    errors = [
        row_calibration(rows.one_vs_rest(number), predictions[:, number], bins=bins)["ece"]
        for number in range(rows.classes)
    ]
    return float(np.mean(errors))


def exact_confusion(rows: ClassRows) -> IntArray:
    """How many rows of each class are taken for each: true x predicted.

    >>> exact_confusion(ClassRows([0, 1, 1], np.full((3, 3), 1 / 3), [0, 1, 2]))[:, 0].tolist()
    [1, 2, 0]
    """
    pairs = rows.labels * rows.classes + rows.predicted
    return np.bincount(pairs, minlength=rows.classes**2).reshape(rows.classes, -1)


def _weighted(values: list[float | None], shares: FloatArray) -> float | None:
    """The mean weighted by how common classes are; None where one that occurs has no value.

    >>> _weighted([0.5, None], np.array([1.0, 0.0])), _weighted([None, None], np.array([1.0, 0.0]))
    (0.5, None)
    """
    total = 0.0
    for value, share in zip(values, shares.tolist(), strict=True):
        if value is None and share:
            return None
        total += share * (value or 0.0)
    return total


def _of_class(examples: Examples) -> dict[str, float | None]:
    """ROC AUC and average precision alone, in one sort: there may be a thousand classes."""
    P, N = examples.positives, len(examples) - examples.positives
    if P == 0 or N == 0:
        return dict.fromkeys(_AVERAGED)
    order = np.argsort(examples.scores)
    scores, labels = examples.scores[order], examples.labels[order].astype(np.float64)
    # The last row of each run of equal scores.
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    below_p = np.append(0.0, np.cumsum(labels)[ends])
    below_n = np.append(0.0, np.cumsum(1.0 - labels)[ends])
    above = P - below_p[:-1]
    return {
        "roc_auc": float(np.diff(below_p) @ (below_n[:-1] + below_n[1:]) / (2.0 * P * N)),
        "average_precision": float(np.diff(below_p) @ (above / (above + N - below_n[:-1])) / P),
    }
