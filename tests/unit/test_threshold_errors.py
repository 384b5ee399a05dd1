"""Precision, recall and accuracy of the paper's figures, against scikit-learn."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, precision_score, recall_score

from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.reproduction import sweeps, threshold_errors
from fedassay.reproduction.datasets import Dataset
from fedassay.reproduction.settings import DISTRIBUTED, LOCAL, QUICK, SECURE, THRESHOLDS, Model
from fedassay.reproduction.threshold_errors import (
    FAMILIES,
    errors,
    exact_values,
    nearest_edges,
    read_values,
    threshold_points,
)

SMALL = replace(QUICK, heights=(4, 10), repetitions=2, rows=None, trees={2: (4,), 3: (3,)})


def made(rows: int = 4_000) -> Dataset:
    generator = np.random.default_rng(4)
    labels = generator.random(rows) < 0.5
    scores = 1.0 / (1.0 + np.exp(-generator.normal(1.2 * labels - 0.6, 1.0)))
    return Dataset("made", "two normal classes", Examples(labels, scores))


def test_exact_values_are_those_of_scikit_learn() -> None:
    examples = made().examples
    found = exact_values(examples)
    for place, threshold in enumerate(THRESHOLDS):
        said = examples.scores > threshold
        assert found["precision"][place] == pytest.approx(precision_score(examples.labels, said))
        assert found["recall"][place] == pytest.approx(recall_score(examples.labels, said))
        assert found["accuracy"][place] == pytest.approx(accuracy_score(examples.labels, said))


def test_nothing_above_a_threshold_has_no_precision() -> None:
    found = exact_values(Examples([0, 1], [0.2, 0.4]))
    assert np.isnan(found["precision"][9])
    assert found["recall"][9] == 0.0


def test_cells_with_edges_at_the_thresholds_read_the_exact_values() -> None:
    examples = made().examples
    grid = Grid.uniform(22).with_edges_at(THRESHOLDS)
    counts = grid.count(examples).astype(np.float64)
    found = errors(ScoreHistogram(grid.edges, counts, smooth=False), exact_values(examples))
    assert max(each.max() for each in found.values()) < 1e-12


def test_what_noise_drives_out_of_range_is_read_as_the_nearest_rate() -> None:
    counts = np.array([[10.0, -6.0], [-4.0, 10.0]])
    values = read_values(ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, smooth=False))
    assert all(((each >= 0.0) & (each <= 1.0)).all() for each in values.values())


def test_bars_are_the_spread_over_thresholds_and_values_one_for_each_repetition() -> None:
    first, second = np.array([0.1, np.nan, 0.3]), np.array([0.3, 0.2, 0.7])
    (point,) = threshold_points("a", "b", {("recall", 4.0): [first, second]})
    assert point.values == pytest.approx((0.2, 0.5))
    assert point.spread == pytest.approx(0.15)


def test_without_noise_ten_levels_beat_four_and_the_default_knows_the_thresholds() -> None:
    points = threshold_errors.by_heights(made(20_000), SECURE, SMALL, np.random.default_rng(5))
    at = {(point.curve, point.x): point.mean for point in points}
    for family in FAMILIES:
        assert at[family, 10.0] < at[family, 4.0] / 5
        assert at[f"{family}: default", 4.0] < 1e-12


def test_fanouts_are_compared_by_their_leaves() -> None:
    points = threshold_errors.by_fanout(made(), DISTRIBUTED, SMALL, np.random.default_rng(5))
    assert {(point.curve, point.x) for point in points} == {
        ("fan-out 2", 16.0),
        ("fan-out 3", 27.0),
    }


def test_an_epsilon_has_a_point_for_every_metric_of_preset_and_default() -> None:
    model = Model(DISTRIBUTED.privacy, Fraction(20))
    points = sweeps.by_epsilon(made(), model, SMALL, np.random.default_rng(6))
    at = {(point.panel, point.curve): point for point in points}
    curves = ("distributed", "distributed: default")
    panels = (sweeps.AREA, sweeps.RATES, sweeps.CALIBRATION)
    assert set(at) == {(panel, curve) for panel in panels for curve in curves}
    assert {point.x for point in points} == {20.0}
    # So little noise is left that errors are those of the grid and of sampling.
    assert at[sweeps.AREA, "distributed"].mean < 2e-3
    assert at[sweeps.RATES, "distributed: default"].mean < 5e-3


@pytest.mark.parametrize("model", [SECURE, DISTRIBUTED, LOCAL], ids=lambda m: m.privacy.value)
def test_a_given_classifier_is_exact_without_noise_and_close_with_it(model: Model) -> None:
    rows = made(20_000).examples
    design = sweeps.given_classifier(model, len(rows))
    error = sweeps.given_error(design, rows, np.random.default_rng(7))
    assert error == 0.0 if model is SECURE else 0.0 < error < 0.05


def test_thresholds_that_have_no_value_anywhere_have_no_point() -> None:
    nothing = np.full(10, np.nan)
    assert threshold_points("made", "panel", {("curve", 1.0): [nothing, nothing]}) == []


def test_a_population_has_a_point_for_every_family_of_preset_and_default() -> None:
    found = threshold_errors.by_clients(made(600), SECURE, 500, SMALL, np.random.default_rng(8))
    curves = {each for family in FAMILIES for each in (family, f"{family}: default")}
    assert {point.curve for point in found} == curves
    assert {point.x for point in found} == {500.0}
    # Without noise and with edges at the thresholds, values are exact.
    assert all(point.mean < 1e-9 for point in found if point.curve.endswith("default"))


@pytest.mark.parametrize("model", [SECURE, DISTRIBUTED], ids=lambda m: m.privacy.value)
def test_rates_have_a_panel_for_each_result_and_a_given_classifier_only_with_noise(
    model: Model,
) -> None:
    found = sweeps.by_rate(made(600), model, 500, SMALL, np.random.default_rng(9))
    panels = {sweeps.AREA, sweeps.RATES, sweeps.CALIBRATION}
    given = set() if model is SECURE else {sweeps.GIVEN}
    assert {point.panel for point in found} == panels | given
    assert {point.x for point in found if point.panel != sweeps.CALIBRATION} == {500.0}
    # Half of the rows are judged on.
    assert {point.x for point in found if point.panel == sweeps.CALIBRATION} == {300.0}


def test_the_nearest_edge_to_a_threshold_has_no_other_edge_nearer() -> None:
    histogram = ScoreHistogram(np.linspace(0.0, 1.0, 17), np.ones((2, 16)))
    edges = [i / 16 for i in range(17)]
    expected = [min(edges, key=lambda edge, t=t: abs(edge - t)) for t in THRESHOLDS]  # type: ignore[misc]  # bound at once
    assert nearest_edges(histogram) == tuple(expected)
    # Half of the rows lie above 8/16 whatever the threshold inside that leaf is.
    at_edges = read_values(histogram, nearest_edges(histogram))
    assert at_edges["recall"][4] == pytest.approx(1.0 - 7 / 16)
