"""Metrics by name: the right one, of the cells or of the merged buckets."""

import numpy as np
import pytest

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.errors import SettingInvalid
from fedassay.metrics.named import check_metric, metric_name, named_metric, named_metrics
from tests.oracles import row_values
from tests.tables import Table

CELLS = 64


def table() -> Table:
    rng = np.random.default_rng(6)
    scores = (rng.integers(0, CELLS, 4000) + 1) / CELLS
    return Table((rng.random(4000) < scores**2).astype(np.int64), scores)


def histogram() -> ScoreHistogram:
    return ScoreHistogram.from_scores(*table(), grid=Grid.uniform(CELLS))


def test_every_name_is_scikit_learns_metric_of_that_name() -> None:
    """All scores lie on edges, so that binning hides only where in a cell they lie."""
    truth = row_values(table(), [0.25, 0.5])
    estimates = named_metrics(histogram(), [0.25, 0.5])
    assert list(estimates) == list(truth)
    for name, value in truth.items():
        assert value is not None
        exact = 1e-9 if "@" in name or name == "prevalence" else 0.03
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


@pytest.mark.parametrize("name", ["recall", "roc_auc@0.5", "recall@", "recall@1.01", "recall@nan"])
def test_a_name_that_names_nothing_is_refused(name: str) -> None:
    with pytest.raises(SettingInvalid, match="a metric is one of"):
        check_metric(name)
