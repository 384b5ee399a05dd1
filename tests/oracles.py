"""What the metrics of rows are: by scikit-learn, by scipy's optimiser, and by counting rows."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit
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
            "npv": None if said.all() else float(sk.precision_score(1 - y, 1 - said)),
            "lr_plus": _likelihood_ratio(y, said, 1),
            "lr_minus": _likelihood_ratio(y, said, 0),
            "flagged": 1000.0 * float(np.mean(said)),
            "net_benefit": _net_benefit(y, said, threshold),
        }
        found |= {f"{name}@{threshold!r}": value for name, value in at.items()}
    return found


def _largest_gap(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    places = np.concatenate([a, b])
    share_a = np.searchsorted(np.sort(a), places, side="right") / len(a)
    share_b = np.searchsorted(np.sort(b), places, side="right") / len(b)
    return float(np.abs(share_a - share_b).max())


Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def _likelihood_ratio(y: Rows, said: Rows, what: int) -> float | None:
    """How much likelier a positive is said to be so than a negative is."""
    of_positives, of_negatives = np.mean(said[y == 1] == what), np.mean(said[y == 0] == what)
    return float(of_positives / of_negatives) if of_negatives > 0.0 else None


def _net_benefit(y: Rows, said: Rows, threshold: float) -> float | None:
    if threshold == 1.0:
        return None
    worth = np.where(y == 1, 1.0, -threshold / (1.0 - threshold))
    return float(np.mean(worth * said))


def recall_at_specificity(table: Table, wanted: float) -> float:
    fpr, tpr, _ = sk.roc_curve(*table, drop_intermediate=False)
    return float(tpr[1.0 - fpr >= wanted - 1e-12].max())


def specificity_at_recall(table: Table, wanted: float) -> float:
    fpr, tpr, _ = sk.roc_curve(*table, drop_intermediate=False)
    return float((1.0 - fpr)[tpr >= wanted - 1e-12].max())


def gain_of(table: Table, share: float) -> float:
    """Positives among the highest scores, row by row; of ties, each in part."""
    wanted, taken, found = share * len(table.scores), 0.0, 0.0
    for score in np.unique(table.scores)[::-1]:
        here = table.scores == score
        part = min((wanted - taken) / here.sum(), 1.0)
        taken += part * here.sum()
        found += part * table.labels[here].sum()
        if part < 1.0:
            break
    return float(found / table.labels.sum())


def clipped_log_odds(scores: Scores) -> Scores:
    clipped = np.clip(scores, 2.0**-52, 1.0 - 2.0**-52)
    odds: Scores = np.log(clipped) - np.log1p(-clipped)
    return odds


def most_likely(
    features: Scores, labels: Rows, offset: Scores | float = 0.0
) -> npt.NDArray[np.float64]:
    """A logistic regression of rows, by scipy's trust-region optimiser; features are row x k."""

    def loss(b: Scores) -> tuple[float, Scores]:
        odds = offset + features @ b
        value = float(np.mean(np.logaddexp(0.0, odds) - labels * odds))
        return value, features.T @ (expit(odds) - labels) / len(labels)

    def curvature(b: Scores) -> Scores:
        p = expit(offset + features @ b)
        matrix: Scores = (features.T * (p * (1.0 - p))) @ features / len(labels)
        return matrix

    start = np.zeros(features.shape[1])
    found = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", tol=1e-13)
    most: npt.NDArray[np.float64] = found.x
    return most


def weak_calibration(table: Table) -> dict[str, float]:
    """Calibration in the large, intercept, slope and O/E of rows."""
    odds = clipped_log_odds(table.scores)
    ones = np.ones((len(odds), 1))
    line = most_likely(np.column_stack([ones, odds]), table.labels)
    return {
        "calibration_in_the_large": float(most_likely(ones, table.labels, odds)[0]),
        "calibration_intercept": float(line[0]),
        "calibration_slope": float(line[1]),
        "oe_ratio": float(table.labels.sum() / table.scores.sum()),
    }


def calibration_gaps(table: Table, nodes: Scores) -> Scores:
    """Each row's distance of a line through nodes, by numpy's least squares, from its score."""
    hats = np.stack([np.interp(table.scores, nodes, own) for own in np.eye(len(nodes))], axis=1)
    at_nodes = np.linalg.lstsq(hats, table.labels - table.scores)[0]
    gaps: Scores = np.abs(hats @ at_nodes)
    return gaps


def half_and_half_quantiles(scores: Scores, shares: Scores) -> Scores:
    """Quantiles of a measure that is half the rows' and half that of their s (1 - s)."""
    rows = np.sort(scores)
    told = np.cumsum(rows * (1.0 - rows))
    below = 0.5 * np.arange(1, len(rows) + 1) / len(rows) + 0.5 * told / told[-1]
    places = [int(np.argmax(below >= share - 1e-12)) for share in shares]
    return np.unique(rows[places])


def rare(table: Table, rate: float, seed: int = 0) -> Table:
    """A crowded table: a share of the positives, and scores moved to the new prevalence."""
    y, s = table
    odds = rate / (1.0 - rate) * (1.0 - y.mean()) / y.mean()
    kept = (y == 0) | (np.random.default_rng(seed).random(len(y)) < odds)
    return Table(y[kept], odds * s[kept] / (odds * s[kept] + 1.0 - s[kept]))
