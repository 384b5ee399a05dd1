import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.errors import SettingInvalid
from fedassay.noise import DenseNoise
from tests.tables import Table


@st.composite
def aligned_tables(draw: st.DrawFn) -> Table:
    """Scores on the edges of a grid of 32 cells, none at 0: binning loses nothing."""
    rows = draw(st.integers(2, 60))
    cells = draw(st.lists(st.integers(1, 32), min_size=rows, max_size=rows))
    positives = draw(st.integers(1, rows - 1))
    labels = draw(st.permutations([1] * positives + [0] * (rows - positives)))
    return Table(np.array(labels), np.array(cells) / 32)


def histogram_of(table: Table) -> ScoreHistogram:
    return ScoreHistogram.from_scores(*table, grid=Grid.uniform(32))


@given(aligned_tables())
def test_the_roc_curve_passes_through_scikit_learns_points(table: Table) -> None:
    fpr, tpr, _ = sk.roc_curve(*table, drop_intermediate=False)
    curve = metrics.roc_curve(histogram_of(table))
    points = {(round(x, 12), round(y, 12)) for x, y in zip(curve.x, curve.y, strict=True)}
    assert points == {(round(x, 12), round(y, 12)) for x, y in zip(fpr, tpr, strict=True)}
    assert (np.diff(curve.thresholds) < 0).all()


@given(aligned_tables())
def test_the_precision_recall_curve_passes_through_scikit_learns_points(table: Table) -> None:
    precision, recall, _ = sk.precision_recall_curve(*table)
    curve = metrics.precision_recall_curve(histogram_of(table))
    points = {(round(x, 12), round(y, 12)) for x, y in zip(curve.x, curve.y, strict=True)}
    # scikit-learn adds the point (recall 0, precision 1), where nothing is called positive.
    expected = zip(recall[:-1], precision[:-1], strict=True)
    assert points == {(round(x, 12), round(y, 12)) for x, y in expected}


@given(aligned_tables())
def test_a_curves_deviation_is_that_of_a_proportion(table: Table) -> None:
    curve = metrics.roc_curve(histogram_of(table))
    positives = int(table.labels.sum())
    expected = np.sqrt(curve.y * (1 - curve.y) / positives)
    np.testing.assert_allclose(curve.y_sd, expected, atol=1e-12)
    low, high = curve.band(0.95)
    np.testing.assert_allclose(high - low, 2 * 1.959964 * expected, atol=1e-6)


def test_a_long_curve_is_thinned_and_keeps_its_ends(sample: Table) -> None:
    h = ScoreHistogram.from_scores(*sample)
    curve = metrics.roc_curve(h, points=64)
    assert 32 <= len(curve.x) <= 66
    assert (curve.x[0], curve.y[0]) == (0.0, 0.0)
    assert (curve.x[-1], curve.y[-1]) == (1.0, 1.0)
    fpr, tpr, _ = sk.roc_curve(*sample)
    assert np.abs(np.interp(curve.x, fpr, tpr) - curve.y).max() < 1e-3


@settings(max_examples=40)
@given(aligned_tables(), st.floats(0.01, 1.0))
def test_the_threshold_for_a_recall_is_the_highest_that_reaches_it(
    table: Table, wanted: float
) -> None:
    edges = np.arange(33) / 32
    recalls = [(table.scores[table.labels == 1] > edge).mean() for edge in edges]
    best = max(e for e, r in zip(edges, recalls, strict=True) if r >= wanted)
    design = metrics.threshold_for_recall(histogram_of(table), wanted)
    assert design.threshold == best
    assert design.recall.value >= wanted - 1e-12


@settings(max_examples=40)
@given(aligned_tables(), st.floats(0.01, 1.0))
def test_the_threshold_for_a_precision_is_the_lowest_that_reaches_it(
    table: Table, wanted: float
) -> None:
    edges = np.arange(32) / 32
    shares = {e: table.labels[table.scores > e] for e in edges}
    reached = [e for e in edges if len(shares[e]) and shares[e].mean() >= wanted - 1e-12]
    if not reached:
        with pytest.raises(SettingInvalid, match="the best is"):
            metrics.threshold_for_precision(histogram_of(table), wanted)
        return
    design = metrics.threshold_for_precision(histogram_of(table), wanted)
    assert design.threshold == min(reached)
    assert design.precision.value >= wanted - 1e-9


@settings(max_examples=40)
@given(aligned_tables())
def test_no_edge_beats_the_threshold_for_f1(table: Table) -> None:
    called = table.scores > (np.arange(32) / 32)[:, None]
    found = np.count_nonzero(called & (table.labels == 1), axis=1)
    both = np.count_nonzero(called, axis=1) + np.count_nonzero(table.labels == 1)
    best = float((2 * found / np.maximum(both, 1)).max())
    design = metrics.threshold_for_f1(histogram_of(table))
    said = (table.scores > design.threshold).astype(int)
    assert sk.f1_score(table.labels, said, zero_division=0.0) == pytest.approx(best)
    assert design.f1.value == pytest.approx(best)


@pytest.mark.parametrize("wanted", [0.0, -0.1, 1.1, float("nan")])
def test_a_goal_must_be_a_share(wanted: float) -> None:
    h = ScoreHistogram.from_scores([0, 1], [0.1, 0.9])
    for find in (metrics.threshold_for_recall, metrics.threshold_for_precision):
        with pytest.raises(SettingInvalid):
            find(h, wanted)


def test_displays_draw_the_curve_they_hold(sample: Table) -> None:
    from matplotlib.figure import Figure

    h = ScoreHistogram.from_scores(*sample)
    left, right = Figure().subplots(1, 2)
    roc = metrics.RocCurveDisplay.from_histogram(h, ax=left)
    metrics.PrecisionRecallDisplay.from_histogram(h, ax=right)
    drawn = left.get_lines()[0].get_xydata()
    np.testing.assert_array_equal(drawn, np.column_stack([roc.curve.x, roc.curve.y]))
    assert left.get_xlabel() == "False positive rate"
    assert right.get_xlabel() == "Recall"


class AllAlike:
    """Noise that moves every count by the same amount: labels err together."""

    is_zero = False
    local_epsilon = None

    def variance(self, weights: npt.NDArray[np.float64]) -> float:
        return float(weights.sum()) ** 2

    def covariances(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        sums = weights.sum(axis=(1, 2))
        return np.outer(sums, sums)

    def reports_for(self, growth: float) -> float:
        return growth


def test_the_band_of_the_precision_recall_curve_is_that_of_a_share_of_those_called() -> None:
    """By differences of the curve itself for noise, and by the binomial law for sampling."""
    edges = np.arange(9) / 8
    counts = np.array([[90.0, 80, 60, 50, 30, 20, 10, 6], [4.0, 9, 15, 22, 30, 41, 44, 60]])
    step = 1e-4
    exact = metrics.precision_recall_curve(ScoreHistogram(edges, counts))
    noisy = metrics.precision_recall_curve(ScoreHistogram(edges, counts, AllAlike()))
    moved = metrics.precision_recall_curve(ScoreHistogram(edges, counts + step))
    # From the highest threshold down, those with something above them.
    called = np.cumsum(counts.sum(axis=0)[::-1])
    share = np.cumsum(counts[1, ::-1]) / called
    np.testing.assert_allclose(exact.y, share)
    np.testing.assert_allclose(exact.y_sd, np.sqrt(share * (1 - share) / called))
    noise = np.abs(moved.y - exact.y) / step
    np.testing.assert_allclose(noisy.y_sd**2, exact.y_sd**2 + noise**2, rtol=1e-3)


def zigzag(size: float) -> tuple[ScoreHistogram, npt.NDArray[np.float64]]:
    """Counts on a parabola in pairs of leaves, with noise that cancels in each pair; and them."""
    middle = (np.arange(16) + 0.5) / 16
    truth = np.stack([4000.0 * (1.2 - middle) ** 2, 1000.0 * (0.2 + middle) ** 2])
    apart = np.kron(np.eye(16), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    noise = DenseNoise(np.eye(32) + size**2 * apart)
    off = size * np.tile([1.0, -1.0], 8)
    cells = np.arange(0, 17, 2)
    return ScoreHistogram(np.linspace(0.0, 1.0, 17), truth + off, noise, cells=cells), truth


def test_a_curve_of_two_surveys_goes_smoothly_through_the_cells_that_were_counted() -> None:
    histogram, truth = zigzag(150.0)
    curve = metrics.roc_curve(histogram)
    above = np.append(np.cumsum(truth[:, ::-1], axis=1).T, truth.sum(axis=1)[None], axis=0)[:16]
    wanted = np.concatenate([[[0.0, 0.0]], above]) / truth.sum(axis=1)
    assert np.abs(curve.x - wanted[:, 0]).max() < 0.002
    assert np.abs(curve.y - wanted[:, 1]).max() < 0.002
    leaves = metrics.roc_curve(ScoreHistogram(histogram.edges, histogram.counts, histogram.noise))
    assert np.abs(leaves.y - wanted[:, 1]).max() > 0.015
    # Inside all cells but the end ones it has nothing of the noise of leaves.
    assert (curve.y_sd[3::2] < 0.5 * leaves.y_sd[3::2]).all()
    # What the cell around a point hides is in it: more than noise and rows alone.
    cells = histogram.by_cells()
    bare = metrics.roc_curve(ScoreHistogram(cells.edges, cells.counts, cells.noise))
    assert curve.y_sd[3] > 1.1 * max(bare.y_sd[1], bare.y_sd[2])


def test_precisions_of_two_surveys_are_drawn_through_the_cells_too() -> None:
    histogram, truth = zigzag(150.0)
    curve = metrics.precision_recall_curve(histogram)
    negatives, positives = np.cumsum(truth[:, ::-1], axis=1)
    assert np.abs(curve.y - positives / (positives + negatives)).max() < 0.01
    assert curve.thresholds.tolist() == histogram.edges[15::-1].tolist()
    # An end cell hides up to its 500 positives, of 300 that are called: no more than that.
    assert 0.01 < curve.y_sd[0] < 0.5
