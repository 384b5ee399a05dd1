"""Metrics by name: the right one, of the cells or of the merged buckets."""

import re

import numpy as np
import pytest

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.errors import SettingInvalid
from fedassay.metrics.named import (
    check_metric,
    headings,
    metric_at,
    metric_name,
    named_metric,
    named_metrics,
)
from tests.oracles import (
    calibration_gaps,
    gain_of,
    half_and_half_quantiles,
    recall_at_specificity,
    row_values,
    specificity_at_recall,
    weak_calibration,
)
from tests.tables import Table

CELLS = 64


def table() -> Table:
    rng = np.random.default_rng(6)
    scores = (rng.integers(0, CELLS, 4000) + 1) / CELLS
    return Table((rng.random(4000) < scores**2).astype(np.int64), scores)


def histogram() -> ScoreHistogram:
    return ScoreHistogram.from_scores(*table(), grid=Grid.uniform(CELLS))


def curve_figures() -> dict[str, float]:
    shares = (np.arange(8) + 0.5) / 8
    gaps = calibration_gaps(table(), half_and_half_quantiles(table().scores, shares))
    return {
        "ici": float(gaps.mean()),
        "e50": float(np.median(gaps)),
        "e90": float(np.quantile(gaps, 0.9)),
        "emax": float(gaps.max()),
    }


def test_every_name_is_scikit_learns_metric_of_that_name() -> None:
    """All scores lie on edges, so that binning hides only where in a cell they lie."""
    truth = row_values(table(), [0.25, 0.5]) | weak_calibration(table()) | curve_figures()
    truth |= {
        "recall@specificity=0.9": recall_at_specificity(table(), 0.9),
        "specificity@recall=0.9": specificity_at_recall(table(), 0.9),
        "gain@0.1": gain_of(table(), 0.1),
        "lift@0.1": 10.0 * gain_of(table(), 0.1),
    }
    estimates = named_metrics(histogram(), [0.25, 0.5])
    assert set(estimates) == set(truth)
    for name, value in truth.items():
        assert value is not None
        # A goal falls inside a cell, and so do scores for what is no count at an edge.
        is_count = re.search(r"@0\.(25|5)$", name) or name == "prevalence"
        on_other_scales = 0.2 if name.startswith(("lift", "calibration")) else 0.04
        exact = 1e-9 if is_count else on_other_scales
        assert estimates[name].value == pytest.approx(value, abs=exact), name
        assert named_metric(histogram(), name).value == estimates[name].value


def test_buckets_are_for_areas_and_thresholds_are_read_from_cells() -> None:
    h, few = histogram(), histogram().equi_depth(3)
    for name in ("roc_auc", "brier", "ks"):
        merged = {
            "roc_auc": metrics.roc_auc,
            "brier": metrics.brier,
            "ks": metrics.ks,
        }[name](few).value
        assert named_metrics(h, [0.25], buckets=3)[name].value == merged
        assert named_metric(h, name, buckets=3).value == merged
        assert merged != named_metric(h, name).value
    said = table().scores > 0.25
    recall = float(said[table().labels == 1].mean())
    assert named_metrics(h, [0.25], buckets=3)["recall@0.25"].value == pytest.approx(recall)
    assert named_metric(h, "recall@0.25", buckets=3).value == pytest.approx(recall)


def test_a_name_holds_every_digit_of_its_threshold() -> None:
    assert metric_name("recall", 0.1) == "recall@0.1"
    assert metric_name("recall", 1 / 3) == "recall@0.3333333333333333"


@pytest.mark.parametrize(
    "name",
    [
        "recall", "roc_auc@0.5", "recall@", "recall@1.01", "recall@nan", "lift", "lift@0", "lift@2",
        "recall@specificity=", "recall@specificity=1.5", "recall@recall=0.5", "gain@recall=0.5",
        "ici@0.5", "specificity@recall=nan",
    ],
)  # fmt: skip
def test_a_name_that_names_nothing_is_refused(name: str) -> None:
    with pytest.raises(SettingInvalid, match="a metric is one of"):
        check_metric(name)


def test_a_goal_is_part_of_the_name() -> None:
    h = histogram()
    for name, value in {
        "lift@0.25": 4.0 * gain_of(table(), 0.25),
        "gain@0.25": gain_of(table(), 0.25),
        "recall@specificity=0.5": recall_at_specificity(table(), 0.5),
        "specificity@recall=0.5": specificity_at_recall(table(), 0.5),
    }.items():
        assert named_metric(h, name).value == pytest.approx(value, abs=0.05), name


def test_recall_and_specificity_at_a_goal_are_not_each_other() -> None:
    """Negatives evenly; of the positives half evenly, and half in the upper tenth."""
    even = (np.arange(1000) + 0.5) / 1000
    scores = np.concatenate([even, even, 0.9 + even / 10])
    lopsided = ScoreHistogram.from_scores([0] * 1000 + [1] * 2000, scores)
    assert named_metric(lopsided, "recall@specificity=0.9").value == pytest.approx(0.55, abs=0.01)
    assert named_metric(lopsided, "specificity@recall=0.9").value == pytest.approx(0.2, abs=0.01)


def test_a_table_has_a_heading_where_another_kind_of_metric_begins() -> None:
    above = headings(named_metrics(histogram(), [0.25, 0.5]))
    assert above == {
        "calibration_in_the_large": "calibration",
        "precision@0.25": "at threshold 0.25",
        "precision@0.5": "at threshold 0.5",
        "recall@specificity=0.9": "at a wanted rate",
    }


def test_numbers_in_names_are_written_as_in_files() -> None:
    assert metric_at("recall@.50", [0.3]) == "recall@0.5"
    assert metric_at("recall@specificity=0.90", []) == "recall@specificity=0.9"
    assert metric_at("npv", [0.3]) == "npv@0.3"
    assert metric_at("no metric", [0.3]) == "no metric"
