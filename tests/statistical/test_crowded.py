"""The tables that coverage is measured on, and the exact values that it is measured against."""

import numpy as np
import numpy.typing as npt
import pytest
from experiments.crowded import made_rare
from experiments.resampled import SortedRows, exact_metrics
from sklearn import metrics as sk

from fedassay import Examples
from tests import oracles
from tests.tables import Table

THRESHOLDS = {"low": 0.1, "tie": 0.25, "high": 0.6}


@pytest.fixture(scope="module")
def table() -> Examples:
    """Ties at 0.25, 0 and 1, and a smooth rest."""
    generator = np.random.default_rng(3)
    scores = generator.beta(0.5, 2.0, 4000)
    scores[:700] = generator.choice([0.0, 0.25, 1.0], 700)
    return Examples((generator.random(4000) < scores).astype(np.int8), scores)


def repeated(rows: SortedRows, counts: npt.NDArray[np.int64]) -> tuple[list[int], list[float]]:
    labels = np.repeat([0, 1], counts.sum(axis=1))
    scores = np.concatenate([np.repeat(rows.distinct, row) for row in counts])
    return labels.tolist(), scores.tolist()


def test_exact_metrics_of_drawn_rows_are_those_of_scikit_learn(table: Examples) -> None:
    rows = SortedRows.of(table)
    counts = rows.drawn(np.random.default_rng(1))
    y, s = repeated(rows, counts)
    found = exact_metrics(rows, counts, THRESHOLDS)
    expected = {
        "roc_auc": sk.roc_auc_score(y, s),
        "average_precision": sk.average_precision_score(y, s),
        "brier": sk.brier_score_loss(y, s),
        "log_loss": sk.log_loss(y, s),
        "prevalence": np.mean(y),
    }
    fpr, tpr, _ = sk.roc_curve(y, s)
    expected["ks"] = np.abs(tpr - fpr).max()
    for label, threshold in THRESHOLDS.items():
        called = np.array(s) > threshold
        expected |= {
            f"precision@{label}": sk.precision_score(y, called),
            f"recall@{label}": sk.recall_score(y, called),
            f"accuracy@{label}": sk.accuracy_score(y, called),
            f"f1@{label}": sk.f1_score(y, called),
            f"specificity@{label}": sk.recall_score(y, called, pos_label=0),
            f"balanced_accuracy@{label}": sk.balanced_accuracy_score(y, called),
            f"mcc@{label}": sk.matthews_corrcoef(y, called),
            f"npv@{label}": sk.precision_score(y, called, pos_label=0),
            f"flagged@{label}": 1000.0 * called.mean(),
        }
        plus, minus = sk.class_likelihood_ratios(y, called)
        expected |= {f"lr_plus@{label}": plus, f"lr_minus@{label}": minus}
        (_, fp), (_, tp) = sk.confusion_matrix(y, called)
        expected[f"net_benefit@{label}"] = (tp - fp * threshold / (1 - threshold)) / len(y)
    drawn = Table(np.array(y), np.array(s))
    expected |= {
        "oe_ratio": np.sum(y) / np.sum(s),
        "recall@specificity=0.9": oracles.recall_at_specificity(drawn, 0.9),
        "specificity@recall=0.9": oracles.specificity_at_recall(drawn, 0.9),
        "gain@0.1": oracles.gain_of(drawn, 0.1),
        "lift@0.1": oracles.gain_of(drawn, 0.1) / 0.1,
    }
    weak = oracles.weak_calibration(drawn)
    assert {name: found.pop(name) for name in weak} == pytest.approx(weak, abs=1e-5)
    assert found == pytest.approx({k: v for k, v in expected.items() if k not in weak}, abs=1e-9)


def test_drawn_rows_are_as_many_as_the_table_has(table: Examples) -> None:
    rows = SortedRows.of(table)
    assert rows.drawn(np.random.default_rng(2)).sum() == len(table)
    assert rows.counts().sum(axis=1).tolist() == [len(table) - table.positives, table.positives]


def test_rows_on_a_grid_lie_in_cells_that_hold_their_right_edge(table: Examples) -> None:
    rows, edges = SortedRows.of(table), np.array([0.0, 0.25, 0.5, 1.0])
    cells = rows.on_grid(rows.counts(), edges)
    for label in (0, 1):
        scores = table.scores[table.labels == label]
        expected = [(scores <= 0.25).sum(), ((scores > 0.25) & (scores <= 0.5)).sum()]
        assert cells[label].tolist() == [*expected, (scores > 0.5).sum()]


def test_a_table_made_rare_keeps_its_order_and_its_calibration() -> None:
    generator = np.random.default_rng(9)
    scores = generator.beta(2.0, 3.0, 400_000)
    table = Examples((generator.random(400_000) < scores).astype(np.int8), scores)
    rare = made_rare(table, 0.01, generator)
    assert rare.positives / len(rare) == pytest.approx(0.01, rel=1e-3)
    # Scores that were probabilities still are: their mean is the new prevalence.
    # False alarm below 1e-6: a mean of 240,000 scores with a standard deviation of 0.012.
    assert rare.scores.mean() == pytest.approx(0.01, abs=2e-4)
    assert sk.roc_auc_score(rare.labels, rare.scores) == pytest.approx(
        sk.roc_auc_score(table.labels, table.scores), abs=0.03
    )
