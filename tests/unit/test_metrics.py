"""Every metric of a histogram against scikit-learn on the rows it was made of."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from fedassay import Examples, Grid, ScoreHistogram, metrics
from fedassay.errors import SettingInvalid, SingleClass
from fedassay.estimate import Estimate, NotEnoughData, TooCoarse
from fedassay.metrics.exact_rows import row_metrics
from tests.oracles import row_values
from tests.tables import AWKWARD_SCORES, Table, scores, tables

ROUNDING = 1e-9
MAY_DECLINE = ("precision@", "mcc@", "npv@", "lr_plus@", "lr_minus@")
BEYOND_ONE = ("lr_plus@", "lr_minus@", "flagged@", "net_benefit@")
GRID_NAMES = ("fine", "2^14", "16", "warped", "warped by class", "few", "two cells", "one cell")


def grid_named(name: str, table: Table) -> Grid:
    match name:
        case "fine":
            return Grid.fine()
        case "2^14":
            return Grid.uniform(2**14)
        case "16":
            return Grid.uniform(16)
        case "warped":
            return Grid.warped(table.scores, 64)
        case "warped by class":
            return Grid.warped(table.scores, 32, labels=table.labels)
        case "few":
            return Grid.warped(table.scores, 5)
        case "two cells":
            return Grid.given_classifier(0.3)
        case _:
            return Grid.uniform(1)


_known: dict[float, dict[str, float | None]] = {}


def exact_values(table: Table, thresholds: tuple[float, ...]) -> dict[str, float | None]:
    """scikit-learn's values of a large table, computed once."""
    key = float(table.scores.sum())
    if key not in _known:
        _known[key] = row_values(table, thresholds)
    return _known[key]


def check_within_bound(
    found: dict[str, Estimate], exact: dict[str, float | None], *, in_range: bool = True
) -> None:
    for name, value in exact.items():
        estimate = found[name]
        if value is None:
            continue
        if isinstance(estimate, NotEnoughData) and name.startswith(MAY_DECLINE):
            # With nothing interpolated on one side it may decline to answer, and says why.
            assert estimate.reason
            continue
        if isinstance(estimate, TooCoarse):
            # No answer, where any other would have been possible too.
            assert estimate.binning_bound > 0.1 * (value if name == "log_loss" else 1.0), name
            continue
        assert not isnan(estimate.value), name
        assert abs(estimate.value - value) <= estimate.binning_bound + ROUNDING, name
        floor = -1.0 if name.startswith("mcc") else 0.0
        if in_range and name != "log_loss" and not name.startswith(BEYOND_ONE):
            assert floor - ROUNDING <= estimate.value <= 1.0 + ROUNDING, name


@pytest.mark.parametrize("name", GRID_NAMES)
def test_real_metrics_lie_within_their_binning_bound(real_table: Table, name: str) -> None:
    thresholds = (0.0, 0.1, 0.25, 0.3, 0.5, 0.7312345, 0.999, 1.0)
    h = ScoreHistogram.from_scores(*real_table, grid=grid_named(name, real_table))
    check_within_bound(metrics.named_metrics(h, thresholds), exact_values(real_table, thresholds))


@settings(max_examples=80)
@given(
    tables(),
    st.sampled_from(GRID_NAMES),
    st.booleans(),
    st.lists(scores() | st.sampled_from(AWKWARD_SCORES), min_size=1, max_size=3, unique=True),
)
def test_made_up_metrics_lie_within_their_binning_bound(
    table: Table, name: str, smooth: bool, thresholds: list[float]
) -> None:
    made = ScoreHistogram.from_scores(*table, grid=grid_named(name, table))
    h = ScoreHistogram(made.edges, made.counts, smooth=smooth)
    check_within_bound(metrics.named_metrics(h, thresholds), row_values(table, thresholds))


@settings(max_examples=40)
@given(tables(), st.integers(1, 20), st.lists(scores(), min_size=1, max_size=2, unique=True))
def test_metrics_of_merged_buckets_lie_within_their_binning_bound(
    table: Table, buckets: int, thresholds: list[float]
) -> None:
    h = ScoreHistogram.from_scores(*table).equi_depth(buckets)
    check_within_bound(metrics.named_metrics(h, thresholds), row_values(table, thresholds))


@settings(max_examples=40)
@given(tables(), st.sampled_from(GRID_NAMES), st.floats(0.01, 1.0))
def test_partial_areas_lie_within_their_binning_bound(
    table: Table, name: str, max_fpr: float
) -> None:
    h = ScoreHistogram.from_scores(*table, grid=grid_named(name, table))
    found = metrics.roc_auc(h, max_fpr=max_fpr)
    exact = sk.roc_auc_score(*table, max_fpr=max_fpr)
    assert abs(found.value - exact) <= found.binning_bound + ROUNDING


@pytest.mark.parametrize("max_fpr", [0.01, 0.1, 0.5, 1.0])
def test_partial_areas_of_real_scores_are_scikit_learns(real_table: Table, max_fpr: float) -> None:
    found = metrics.roc_auc(ScoreHistogram.from_scores(*real_table), max_fpr=max_fpr)
    exact = sk.roc_auc_score(*real_table, max_fpr=max_fpr)
    assert abs(found.value - exact) <= min(found.binning_bound, 1e-5)


def test_a_fine_grid_gives_the_area_to_a_millionth(real_table: Table) -> None:
    exact = sk.roc_auc_score(*real_table)
    h = ScoreHistogram.from_scores(*real_table, grid=Grid.uniform(2**14))
    assert abs(metrics.roc_auc(h).value - exact) <= 1e-6


@pytest.mark.parametrize("smooth", [True, False])
def test_a_hundred_quantile_buckets_give_the_area_to_a_ten_thousandth(
    real_table: Table, smooth: bool
) -> None:
    exact = sk.roc_auc_score(*real_table)
    fine = ScoreHistogram.from_scores(*real_table, grid=Grid.uniform(2**14))
    h = ScoreHistogram(fine.edges, fine.counts, smooth=smooth).equi_depth(100)
    assert abs(metrics.roc_auc(h).value - exact) <= 1e-4


def test_the_area_error_of_quantile_buckets_falls_as_the_guideline_says(real_table: Table) -> None:
    exact = sk.roc_auc_score(*real_table)
    fine = ScoreHistogram.from_scores(*real_table)
    plain = ScoreHistogram(fine.edges, fine.counts, smooth=False)
    for buckets in (8, 32, 128):
        error = abs(metrics.roc_auc(plain.equi_depth(buckets)).value - exact)
        assert error <= 1.5 * metrics.auc_guideline(buckets)
        assert metrics.auc_guideline(buckets) == pytest.approx(1 / (3 * buckets**2))


@settings(max_examples=40)
@given(tables())
def test_the_even_area_bound_is_half_the_pairs_within_buckets(table: Table) -> None:
    grid = Grid.uniform(8)
    h = ScoreHistogram.from_scores(*table, grid=grid)
    found = metrics.roc_auc(ScoreHistogram(h.edges, h.counts, smooth=False))
    cells = np.maximum(np.searchsorted(grid.edges, table.scores) - 1, 0)
    p = np.bincount(cells[table.labels == 1], minlength=8)
    n = np.bincount(cells[table.labels == 0], minlength=8)
    assert found.binning_bound == pytest.approx(0.5 * (p * n).sum() / (p.sum() * n.sum()))


@settings(max_examples=40)
@given(tables(), st.lists(scores(), min_size=1, max_size=4, unique=True))
def test_row_metrics_are_scikit_learns(table: Table, thresholds: list[float]) -> None:
    found = row_metrics(Examples(*table), thresholds)
    for name, value in row_values(table, thresholds).items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


def test_row_metrics_of_real_scores_are_scikit_learns(real_table: Table) -> None:
    thresholds = (0.0, 0.3, 0.5, 1.0)
    found = row_metrics(Examples(*real_table), thresholds)
    for name, value in row_values(real_table, thresholds).items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_row_metrics_need_two_classes(labels: list[int]) -> None:
    with pytest.raises(SingleClass):
        row_metrics(Examples(labels, [0.1, 0.2]), ())


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_metrics_of_one_class_are_not_available_instead_of_wrong(labels: list[int]) -> None:
    h = ScoreHistogram.from_scores(labels, [0.1, 0.9])
    found = metrics.named_metrics(h, (0.5,))
    for name in ("roc_auc", "average_precision", "ks", "balanced_accuracy@0.5", "mcc@0.5"):
        assert not found[name].is_available
    assert found["prevalence"].value == labels[0]
    assert found["accuracy@0.5"].value == 0.5
    assert not metrics.roc_auc(h, max_fpr=0.5).is_available
    with pytest.raises(SettingInvalid):
        metrics.roc_curve(h)


def test_an_empty_histogram_has_no_metric() -> None:
    h = ScoreHistogram(np.array([0.0, 1.0]), np.zeros((2, 1)))
    assert not any(e.is_available for e in metrics.named_metrics(h, (0.0, 0.5, 1.0)).values())


@settings(max_examples=40)
@given(tables(), scores().filter(bool), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_counts_and_f_beta_on_an_edge_are_scikit_learns(
    table: Table, threshold: float, beta: float
) -> None:
    h = ScoreHistogram.from_scores(*table, grid=Grid.uniform(16).with_edges_at([threshold]))
    said = (table.scores > threshold).astype(int)
    tn, fp, fn, tp = sk.confusion_matrix(table.labels, said, labels=[0, 1]).ravel()
    found = {k: e.value for k, e in metrics.confusion_counts(h, threshold).items()}
    assert found == {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    expected = sk.fbeta_score(table.labels, said, beta=beta, zero_division=0.0)
    assert metrics.f_beta(h, threshold, beta=beta).value == pytest.approx(expected, abs=1e-12)
    assert metrics.f_beta(h, threshold, beta=beta).binning_bound == 0.0


@settings(max_examples=40)
@given(tables(), scores())
def test_counts_inside_a_cell_lie_within_their_bound(table: Table, threshold: float) -> None:
    h = ScoreHistogram.from_scores(*table, grid=Grid.uniform(3))
    said = (table.scores > threshold).astype(int)
    tn, fp, fn, tp = sk.confusion_matrix(table.labels, said, labels=[0, 1]).ravel()
    exact = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    for name, estimate in metrics.confusion_counts(h, threshold).items():
        assert abs(estimate.value - exact[name]) <= estimate.binning_bound + ROUNDING


def test_a_given_classifier_is_exact_with_two_cells(real_table: Table) -> None:
    h = ScoreHistogram.from_scores(*real_table, grid=Grid.given_classifier(0.3))
    exact = row_values(real_table, (0.3,))
    for name, estimate in metrics.named_metrics(h, (0.3,)).items():
        if name.endswith("@0.3"):
            assert estimate.value == pytest.approx(exact[name], abs=1e-12)
            assert estimate.binning_bound == 0.0


@pytest.mark.parametrize("beta", [0.0, -1.0, float("nan"), float("inf")])
def test_f_beta_needs_a_positive_beta(beta: float) -> None:
    with pytest.raises(SettingInvalid):
        metrics.f_beta(ScoreHistogram.from_scores([0, 1], [0.1, 0.9]), 0.5, beta=beta)


@pytest.mark.parametrize("max_fpr", [0.0, -0.1, 1.1, float("nan")])
def test_a_partial_area_needs_a_rate(max_fpr: float) -> None:
    with pytest.raises(SettingInvalid):
        metrics.roc_auc(ScoreHistogram.from_scores([0, 1], [0.1, 0.9]), max_fpr=max_fpr)


def delong_variance(labels: np.ndarray, values: np.ndarray) -> float:
    """DeLong's variance from all pairs of a positive and a negative."""
    x, y = values[labels == 1], values[labels == 0]
    wins = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
    over, under = wins.mean(axis=1), wins.mean(axis=0)
    return float(over.var(ddof=1) / len(x) + under.var(ddof=1) / len(y))


@given(st.integers(0, 2**31), st.integers(2, 25), st.integers(2, 25))
def test_the_sampling_variance_of_the_area_is_delongs(seed: int, p: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    cells = generator.choice(1000, p + n, replace=False)
    values = (cells + 1) / 1000
    labels = generator.permutation(np.repeat([1, 0], [p, n]))
    found = metrics.roc_auc(ScoreHistogram.from_scores(labels, values, grid=Grid.uniform(1000)))
    assert found.sampling_sd**2 == pytest.approx(delong_variance(labels, values), abs=1e-12)
    assert found.binning_bound == 0.0


@given(st.integers(0, 2**31), st.integers(2, 40))
def test_delongs_variance_holds_with_tied_scores(seed: int, rows: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 7, 2 * rows) / 6
    labels = np.tile([0, 1], rows)
    h = ScoreHistogram.from_scores(labels, values, grid=Grid.uniform(6))
    found = metrics.roc_auc(ScoreHistogram(h.edges, h.counts, smooth=False))
    assert found.sampling_sd**2 == pytest.approx(delong_variance(labels, values), abs=1e-12)


def test_extremes_give_the_values_they_should() -> None:
    perfect = ScoreHistogram.from_scores([0, 1], [0.0, 1.0])
    assert metrics.roc_auc(perfect).value == 1.0
    assert metrics.average_precision(perfect).value == pytest.approx(1.0)
    assert metrics.ks(perfect).value == 1.0
    same = ScoreHistogram.from_scores([0, 0, 0, 1], [0.5] * 4)
    assert metrics.roc_auc(same).value == pytest.approx(0.5)
    assert metrics.recall(same, 0.5).value == 0.0
    assert not metrics.precision(same, 0.5).is_available
    assert metrics.recall(same, float(np.nextafter(0.5, 0.0))).binning_bound == 1.0
