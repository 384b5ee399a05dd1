"""What clinics ask, of rows: against scipy's regressions and rows taken one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from fedassay import Examples
from fedassay.errors import SettingInvalid
from fedassay.metrics import exact_clinical, logistic
from fedassay.metrics.exact_clinical import SortedRows, at_goal
from fedassay.metrics.exact_rows import row_metrics
from tests import oracles
from tests.tables import Table, tables


def calibrated_badly(rows: int = 3000) -> Table:
    rng = np.random.default_rng(9)
    scores = np.round(rng.beta(0.8, 2.0, rows), 2)
    return Table((rng.random(rows) < 0.1 + 0.6 * scores).astype(np.int64), scores)


@pytest.mark.parametrize("piece", [2**15, 16])
def test_calibration_of_rows_is_scipys_and_numpys(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over all rows at once, and in pieces."""
    for module in (exact_clinical, logistic):
        monkeypatch.setattr(module, "_PIECE", piece)
    table = calibrated_badly()
    found = row_metrics(Examples(*table), ())
    for name, value in oracles.weak_calibration(table).items():
        assert found[name] == pytest.approx(value, abs=1e-7), name
    shares = (np.arange(8) + 0.5) / 8
    gaps = oracles.calibration_gaps(table, oracles.half_and_half_quantiles(table.scores, shares))
    assert found["ici"] == pytest.approx(gaps.mean(), abs=1e-9)
    assert found["e50"] == pytest.approx(np.quantile(gaps, 0.5, method="inverted_cdf"), abs=1e-9)
    assert found["e90"] == pytest.approx(np.quantile(gaps, 0.9, method="inverted_cdf"), abs=1e-9)
    assert found["emax"] == pytest.approx(gaps.max(), abs=1e-9)


@settings(max_examples=60)
@given(tables(), st.floats(0.05, 0.95) | st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_goals_of_rows_are_scikit_learns_and_those_of_rows_one_by_one(
    table: Table, goal: float
) -> None:
    names = [f"{begin}{goal!r}" for begin in ("recall@specificity=", "specificity@recall=")]
    more = [*names, f"gain@{goal!r}", f"lift@{goal!r}"]
    found = row_metrics(Examples(*table), (), more=more)
    expected = (
        oracles.recall_at_specificity(table, goal),
        oracles.specificity_at_recall(table, goal),
    )
    for name, value in zip(names, expected, strict=True):
        assert found[name] is None or found[name] == pytest.approx(value), name
    assert found[f"gain@{goal!r}"] == pytest.approx(oracles.gain_of(table, goal))
    assert found[f"lift@{goal!r}"] == pytest.approx(oracles.gain_of(table, goal) / goal)


def test_a_threshold_asked_for_by_name_brings_that_metric_alone() -> None:
    table = calibrated_badly()
    found = row_metrics(Examples(*table), (0.5,), more=["npv@0.25"])
    said = table.scores > 0.25
    assert found["npv@0.25"] == pytest.approx(1 - table.labels[~said].mean())
    assert "recall@0.25" not in found


def test_where_no_row_decides_there_is_no_exact_value() -> None:
    found = row_metrics(Examples([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]), (1.0,))
    for name in ("recall@specificity=0.9", "specificity@recall=0.9", "net_benefit@1.0"):
        assert found[name] is None, name
    assert found["lr_plus@1.0"] is None
    separated = row_metrics(Examples([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8]), ())
    assert separated["calibration_slope"] is None
    assert separated["oe_ratio"] == pytest.approx(2 / 1.8)


def test_a_goal_has_a_name() -> None:
    rows = SortedRows(np.array([0.5]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    with pytest.raises(SettingInvalid, match="a goal is one of"):
        at_goal(rows, "recall@0.5")


def test_zeros_of_either_sign_and_ends_are_equal_scores_as_scikit_learn_has_them() -> None:
    scores = np.array([-0.0, 0.0, 1.0, 5e-324, 0.0, -0.0, 1.0, 1.0 - 2**-53, 0.5, 0.5])
    labels = np.array([0, 1, 1, 0, 0, 1, 0, 1, 1, 0])
    found = row_metrics(Examples(labels, scores), ())
    assert found["roc_auc"] == pytest.approx(roc_auc_score(labels, scores), abs=1e-15)
    expected = average_precision_score(labels, scores)
    assert found["average_precision"] == pytest.approx(expected, abs=1e-15)
