"""What the metrics of rows are, by scikit-learn."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn import metrics as sk

from tests.tables import Table


def row_values(table: Table, thresholds: Sequence[float]) -> dict[str, float | None]:
    """Every named metric; None where it is undefined.

    scikit-learn never sees a threshold: predictions are made here, by `score > threshold`.
    """
    y, s = table.labels, table.scores
    found: dict[str, float | None] = {
        "roc_auc": float(sk.roc_auc_score(y, s)),
        "average_precision": float(sk.average_precision_score(y, s)),
        "brier": float(sk.brier_score_loss(y, s)),
        "log_loss": float(sk.log_loss(y, s, labels=[0, 1])),
        "ks": _largest_gap(s[y == 1], s[y == 0]),
        "prevalence": float(np.mean(y)),
    }
    for threshold in thresholds:
        said = (s > threshold).astype(np.int64)
        one_sided = said.min() == said.max()
        at: dict[str, float | None] = {
            "precision": float(sk.precision_score(y, said)) if said.any() else None,
            "recall": float(sk.recall_score(y, said)),
            "accuracy": float(sk.accuracy_score(y, said)),
            "f1": float(sk.f1_score(y, said, zero_division=0.0)),
            "specificity": float(sk.recall_score(1 - y, 1 - said)),
            "balanced_accuracy": float(sk.balanced_accuracy_score(y, said)),
            "mcc": None if one_sided else float(sk.matthews_corrcoef(y, said)),
        }
        found |= {f"{name}@{threshold!r}": value for name, value in at.items()}
    return found


def _largest_gap(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    places = np.concatenate([a, b])
    share_a = np.searchsorted(np.sort(a), places, side="right") / len(a)
    share_b = np.searchsorted(np.sort(b), places, side="right") / len(b)
    return float(np.abs(share_a - share_b).max())
