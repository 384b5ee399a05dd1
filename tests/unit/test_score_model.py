"""The planner's model of scores: calibrated, of the AUC and rate that are told."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fedassay import Examples, Grid
from fedassay.errors import SettingInvalid
from fedassay.planning.score_model import binormal, from_reference, on_grid


@pytest.mark.parametrize(("rate", "auc"), [(0.3, 0.8), (0.02, 0.9), (0.6, 0.65)])
def test_a_binormal_classifier_is_calibrated_and_has_the_area_it_is_told(
    rate: float, auc: float
) -> None:
    model = binormal(examples=1000.0, positive_rate=rate, auc=auc)
    middles = 0.5 * (model.edges[1:] + model.edges[:-1])
    both = model.counts.sum(axis=0)
    kept = both > 0.01
    assert np.abs(model.counts[1][kept] / both[kept] - middles[kept]).max() < 2e-3
    labels = np.repeat([0, 1], len(middles))
    area = roc_auc_score(labels, np.tile(middles, 2), sample_weight=model.counts.ravel())
    assert area == pytest.approx(auc, abs=1e-4)
    assert model.total == pytest.approx(1000.0)
    assert model.total_positives == pytest.approx(1000.0 * rate)


def test_a_reference_without_labels_is_taken_for_probabilities() -> None:
    model = from_reference(np.array([0.2, 0.2, 0.8]), examples=300.0, positive_rate=None)
    assert model.total_positives == pytest.approx(100 * (0.2 + 0.2 + 0.8), rel=1e-3)
    high = model.edges[:-1] >= 0.5
    assert model.counts[:, high].sum(axis=1) == pytest.approx([20.0, 80.0], rel=1e-3)


def test_a_told_rate_changes_the_classes_sizes_and_nothing_else() -> None:
    reference = Examples([0, 0, 0, 1], [0.1, 0.3, 0.6, 0.9])
    model = from_reference(reference, examples=1000.0, positive_rate=0.1)
    assert model.counts.sum(axis=1) == pytest.approx([900.0, 100.0])
    low = model.edges[1:] <= 0.5
    assert model.counts[0, low].sum() == pytest.approx(600.0)


def test_a_reference_of_one_class_is_no_model() -> None:
    with pytest.raises(SettingInvalid, match="both classes"):
        from_reference(Examples([1, 1], [0.2, 0.9]), examples=10.0, positive_rate=None)


def test_a_coarser_grid_holds_the_same_examples() -> None:
    model = from_reference(
        Examples([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]), examples=40.0, positive_rate=None
    )
    counts = on_grid(model, Grid.uniform(4))
    assert counts == pytest.approx(np.array([[10.0, 10.0, 0.0, 0.0], [0.0, 0.0, 10.0, 10.0]]))


@pytest.mark.parametrize("end", [0, 1])
def test_a_crowded_reference_keeps_its_order_in_the_model(end: int) -> None:
    """Scores near 1e-6, or as near to 1: the model's area is that of the rows."""
    generator = np.random.default_rng(7)
    labels = np.repeat([0, 1], [4000, 400])
    near = 1e-6 * np.exp(generator.normal(size=4400) + np.where(labels == 1 - end, 1.2, -1.2))
    scores = near if end == 0 else 1.0 - near
    model = from_reference(Examples(labels, scores), examples=4400.0, positive_rate=None)
    middles = 0.5 * (model.edges[1:] + model.edges[:-1])
    area = roc_auc_score(
        np.repeat([0, 1], len(middles)), np.tile(middles, 2), sample_weight=model.counts.ravel()
    )
    assert area == pytest.approx(roc_auc_score(labels, scores), abs=1e-4)


def test_a_rare_event_of_high_area_is_crowded_in_the_model_and_keeps_its_area() -> None:
    model = binormal(examples=1e6, positive_rate=1e-5, auc=0.99)
    assert model.counts[0, model.edges[1:] <= 2.0**-16].sum() > 0.9 * model.total
    middles = 0.5 * (model.edges[1:] + model.edges[:-1])
    area = roc_auc_score(
        np.repeat([0, 1], len(middles)), np.tile(middles, 2), sample_weight=model.counts.ravel()
    )
    assert area == pytest.approx(0.99, abs=1e-4)
