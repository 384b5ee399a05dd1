"""Rows drawn again with replacement: their exact metrics and their counts on a grid."""

from dataclasses import dataclass

import numpy as np

from fedassay.examples import Examples, FloatArray, IntArray

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
        return cls(labels, starts, distinct, np.stack([brier, logs]))

    def __len__(self) -> int:
        return len(self.labels)

    def counts(self) -> IntArray:
        """The rows themselves: label x distinct score."""
        return self._counted(np.ones(len(self), dtype=np.int64))

    def drawn(self, generator: np.random.Generator) -> IntArray:
        """As many rows, drawn with replacement: label x distinct score."""
        picked = generator.integers(0, len(self), len(self))
        return self._counted(np.bincount(picked, minlength=len(self)))

    def cells(self, edges: FloatArray) -> IntArray:
        """The cell of every distinct score: above its left edge, at most its right one."""
        cells: IntArray = np.maximum(np.searchsorted(edges, self.distinct, side="left") - 1, 0)
        return cells

    def _counted(self, weights: IntArray) -> IntArray:
        positives = np.add.reduceat(weights * self.labels, self.starts)
        return np.stack([np.add.reduceat(weights, self.starts) - positives, positives])


def on_grid(counts: IntArray, cells: IntArray, size: int) -> IntArray:
    """Counts of distinct scores, summed up to cells."""
    summed = [np.bincount(cells, row, size) for row in counts]
    return np.rint(np.stack(summed)).astype(np.int64)


def exact_metrics(
    rows: SortedRows, counts: IntArray, thresholds: dict[str, float]
) -> dict[str, float]:
    """Every named metric, from sorted rows and nothing else; NaN where there is none."""
    n, p = counts.astype(np.float64)
    N, P = n.sum(), p.sum()
    below_n, below_p = np.cumsum(n), np.cumsum(p)
    above_p, above_n = P - below_p + p, N - below_n + n
    called = above_p + above_n
    brier, log_loss = (rows.losses * counts).sum(axis=(1, 2)) / (N + P)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "roc_auc": p @ (below_n - n / 2.0) / (P * N),
            "average_precision": np.where(p > 0, p * above_p / called, 0.0).sum() / P,
            "brier": brier,
            "log_loss": log_loss,
            "ks": np.abs(below_p / P - below_n / N).max(),
            "prevalence": P / (N + P),
        }
        for label, threshold in thresholds.items():
            place = int(np.searchsorted(rows.distinct, threshold, side="right"))
            tp, fp = (above_p[place], above_n[place]) if place < len(p) else (0.0, 0.0)
            fn, tn = P - tp, N - fp
            at = {
                "precision": tp / (tp + fp) if tp + fp > 0 else np.nan,
                "recall": tp / P,
                "accuracy": (tp + tn) / (N + P),
                "f1": 2.0 * tp / (2.0 * tp + fp + fn),
                "specificity": tn / N,
                "balanced_accuracy": (tp / P + tn / N) / 2.0,
                "mcc": (tp * tn - fp * fn) / np.sqrt((tp + fp) * P * N * (tn + fn))
                if (tp + fp) * (tn + fn) > 0
                else np.nan,
            }
            values |= {f"{name}@{label}": value for name, value in at.items()}
    return {name: float(value) for name, value in values.items()}
