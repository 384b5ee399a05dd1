"""Rows drawn again with replacement: their exact metrics and their counts on a grid."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan, sqrt

import numpy as np

from fedassay.estimate import NotEnoughData
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.metrics.exact_clinical import SortedRows as RowsBelow
from fedassay.metrics.exact_clinical import at_goal
from fedassay.metrics.log_odds import log_odds
from fedassay.metrics.named import USUAL_GOALS
from fedassay.metrics.regression import LogisticModel
from fedassay.metrics.weak_calibration import IN_THE_LARGE, INTERCEPT_AND_SLOPE

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """A table's rows in the order of their scores, sorted once for any number of draws."""

    labels: IntArray
    starts: IntArray
    """The first row of each distinct score."""
    distinct: FloatArray
    losses: FloatArray
    """What a row adds to Brier score and to log loss: loss x label x distinct score."""
    odds: FloatArray
    """The log-odds of each distinct score."""

    @classmethod
    def of(cls, examples: Examples) -> "SortedRows":
        """Sort a table."""
        order = np.argsort(examples.scores, kind="stable")
        scores = examples.scores[order]
        starts = np.flatnonzero(np.diff(scores, prepend=-1.0))
        distinct = scores[starts]
        clipped = np.clip(distinct, _EPS, 1.0 - _EPS)
        brier = np.stack([distinct**2, (1.0 - distinct) ** 2])
        logs = np.stack([-np.log1p(-clipped), -np.log(clipped)])
        labels = examples.labels[order].astype(np.int64)
        return cls(labels, starts, distinct, np.stack([brier, logs]), log_odds(distinct))

    def __len__(self) -> int:
        return len(self.labels)

    def counts(self) -> IntArray:
        """The rows themselves: label x distinct score."""
        return self._counted(np.ones(len(self), dtype=np.int64))

    def drawn(self, generator: np.random.Generator) -> IntArray:
        """As many rows, drawn with replacement: label x distinct score."""
        picked = generator.integers(0, len(self), len(self))
        return self._counted(np.bincount(picked, minlength=len(self)))

    def on_grid(self, counts: IntArray, edges: FloatArray) -> IntArray:
        """Counts of distinct scores summed up to cells, which hold their right edge."""
        ends = np.searchsorted(self.distinct, edges, side="right")
        ends[0] = 0  # the first cell holds its left edge too
        below = np.concatenate(
            [np.zeros((2, 1), dtype=np.int64), np.cumsum(counts, axis=1)], axis=1
        )
        cells: IntArray = np.diff(below[:, ends], axis=1)
        return cells

    def _counted(self, weights: IntArray) -> IntArray:
        positives = np.add.reduceat(weights * self.labels, self.starts)
        return np.stack([np.add.reduceat(weights, self.starts) - positives, positives])


def exact_metrics(
    rows: SortedRows, counts: IntArray, thresholds: dict[str, float]
) -> dict[str, float]:
    """Metrics from sorted rows and nothing else; NaN where there is none."""
    n, p = counts.astype(np.float64)
    N, P = float(n.sum()), float(p.sum())
    below_n, below_p = np.cumsum(n), np.cumsum(p)
    above_p, above_n = P - below_p + p, N - below_n + n
    with np.errstate(invalid="ignore"):
        at_each = np.where(p > 0, p * above_p / (above_p + above_n), 0.0)
    brier, log_loss = rows.losses.reshape(2, -1) @ np.append(n, p) / (N + P)
    values = {
        "roc_auc": p @ (below_n - n / 2.0) / (P * N),
        "average_precision": at_each.sum() / P,
        "brier": brier,
        "log_loss": log_loss,
        "ks": np.abs(below_p / P - below_n / N).max(),
        "prevalence": P / (N + P),
        "oe_ratio": P / float(rows.distinct @ (n + p)),
    }
    values |= _weak_calibration(rows, counts.astype(np.float64))
    sums = RowsBelow(rows.distinct, np.append(0.0, below_n), np.append(0.0, below_p))
    goals = {name: at_goal(sums, name) for name in USUAL_GOALS}
    values |= {name: nan if value is None else value for name, value in goals.items()}
    for label, threshold in thresholds.items():
        place = int(np.searchsorted(rows.distinct, threshold, side="right"))
        tp, fp = (float(above_p[place]), float(above_n[place])) if place < len(p) else (0.0, 0.0)
        at = _at_threshold(tp, fp, P, N, threshold)
        values |= {f"{name}@{label}": value for name, value in at.items()}
    return {name: float(value) for name, value in values.items()}


@lru_cache(maxsize=2)
def _regressions(rows: SortedRows) -> tuple[LogisticModel, ...]:
    """Both, begun at the table's own parameters: those of rows drawn again are near."""
    models = (IN_THE_LARGE, INTERCEPT_AND_SLOPE)
    fits = [model.fit(rows.odds, rows.counts().astype(np.float64)) for model in models]
    return tuple(
        model if isinstance(fit, NotEnoughData) else replace(model, start=fit.parameters)
        for model, fit in zip(models, fits, strict=True)
    )


def _weak_calibration(rows: SortedRows, counts: FloatArray) -> dict[str, float]:
    """The logistic regressions of labels on log-odds: an offset, and a line; NaN without one."""
    # Of rows drawn again a third is not there.
    there = np.flatnonzero(counts.any(axis=0))
    odds, held = rows.odds[there], counts[:, there]
    fits = [model.fit(odds, held) for model in _regressions(rows)]
    found = [
        [nan, nan] if isinstance(fit, NotEnoughData) else list(map(float, fit.parameters))
        for fit in fits
    ]
    return {
        "calibration_in_the_large": found[0][0],
        "calibration_intercept": found[1][0],
        "calibration_slope": found[1][1],
    }


def _at_threshold(tp: float, fp: float, P: float, N: float, threshold: float) -> dict[str, float]:
    fn, tn = P - tp, N - fp
    return {
        "precision": _over(tp, tp + fp),
        "recall": tp / P,
        "accuracy": (tp + tn) / (N + P),
        "f1": 2.0 * tp / (2.0 * tp + fp + fn),
        "specificity": tn / N,
        "balanced_accuracy": (tp / P + tn / N) / 2.0,
        "mcc": _over(tp * tn - fp * fn, sqrt((tp + fp) * P * N * (tn + fn))),
        "npv": _over(tn, tn + fn),
        "lr_plus": _over(tp / P, fp / N),
        "lr_minus": _over(fn / P, tn / N),
        "flagged": 1000.0 * (tp + fp) / (N + P),
        "net_benefit": (tp - fp * _over(threshold, 1.0 - threshold)) / (N + P),
    }


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else nan
