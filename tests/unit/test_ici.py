"""The calibration index and its kin, against least squares of the rows, and near nil."""

from collections.abc import Callable

import numpy as np
import pytest

from fedassay import Estimate, Grid, NotEnoughData, ScoreHistogram
from fedassay.metrics import e50, e90, emax, ici
from fedassay.metrics.calibration_curve import calibration_curve, fit_gaps, hats, place_nodes
from fedassay.metrics.gap_law import GapFigure, spread_normals
from fedassay.metrics.log_odds import in_pieces
from fedassay.metrics.multiples import Multiple
from fedassay.noise import DenseNoise
from tests.oracles import calibration_gaps, half_and_half_quantiles, rare
from tests.tables import Table
from tests.unit.test_delta_method import UnitNoise

FIGURES: dict[str, Callable[[ScoreHistogram], Estimate]] = {
    "ici": ici,
    "e50": e50,
    "e90": e90,
    "emax": emax,
}
SHARES = (np.arange(8) + 0.5) / 8


def of_rows(table: Table) -> dict[str, float]:
    gaps = calibration_gaps(table, half_and_half_quantiles(table.scores, SHARES))
    # A quantile of rows is a row's, as there are many.
    return {
        "ici": float(gaps.mean()),
        "e50": float(np.median(gaps)),
        "e90": float(np.quantile(gaps, 0.9)),
        "emax": float(gaps.max()),
    }


@pytest.mark.parametrize("rate", [None, 0.01])
def test_real_and_crowded_scores_have_the_figures_of_their_rows(
    real_table: Table, rate: float | None
) -> None:
    table = real_table if rate is None else rare(real_table, rate)
    truth = of_rows(table)
    fine = ScoreHistogram.from_scores(*table)
    for name, figure in FIGURES.items():
        assert abs(figure(fine).value - truth[name]) <= 0.05 * figure(fine).sampling_sd, name
    coarse = ScoreHistogram.from_scores(*table, grid=Grid.warped(table.scores, 200))
    for name, figure in FIGURES.items():
        found = figure(coarse)
        assert abs(found.value - truth[name]) <= found.binning_bound + 1e-9, name
        assert truth[name] in found.interval(), name


def test_nodes_lie_where_half_the_rows_and_half_of_what_they_tell_are() -> None:
    rng = np.random.default_rng(2)
    scores = np.sort(rng.beta(0.3, 6.0, 3000))
    nodes = place_nodes(scores, np.ones(3000))
    assert nodes == pytest.approx(half_and_half_quantiles(scores, SHARES))
    # Crowded scores: by rows alone nodes would lie below the median, here three lie far above it.
    assert (nodes > 5 * np.median(scores)).sum() >= 3


def test_gaps_at_nodes_are_numpys_least_squares() -> None:
    rng = np.random.default_rng(5)
    scores = np.sort(rng.random(500))
    labels = (rng.random(500) < scores**2).astype(np.int64)
    nodes = place_nodes(scores, np.ones(500))
    gaps = fit_gaps(hats(scores, nodes), scores, np.stack([1.0 - labels, 1.0 * labels]))
    assert gaps is not None
    expected = calibration_gaps(Table(labels, scores), nodes)
    assert np.abs(gaps @ hats(scores, nodes)) == pytest.approx(expected, abs=1e-9)


def test_a_calibrated_score_has_no_gap_whatever_its_distribution() -> None:
    edges = np.sort(np.concatenate([[0.0, 1.0], np.random.default_rng(0).beta(0.2, 3, 400)]))
    middle = (edges[1:] + edges[:-1]) / 2
    sizes = 1e9 * np.diff(edges) * (1 + np.sin(40 * middle) / 2)
    h = ScoreHistogram(edges, sizes * np.stack([1 - middle, middle]), smooth=False)
    for name, figure in FIGURES.items():
        assert figure(h).value == pytest.approx(0.0, abs=1e-9), name


def test_where_all_gaps_may_be_noise_the_interval_begins_at_0() -> None:
    rng = np.random.default_rng(11)
    scores = rng.random(3000)
    h = ScoreHistogram.from_scores((rng.random(3000) < scores).astype(int), scores)
    for name, figure in FIGURES.items():
        found = figure(h)
        assert found.value > 0.0, name
        assert found.interval().low == 0.0, name
        assert found.interval().high > found.value, name


def test_where_gaps_are_clear_the_interval_is_that_of_their_spread() -> None:
    """All scores too high by a tenth: the index is the mean gap, whose error is a mean's."""
    rng = np.random.default_rng(12)
    scores = rng.uniform(0.2, 0.9, 50_000)
    labels = (rng.random(50_000) < scores - 0.1).astype(int)
    found = ici(ScoreHistogram.from_scores(labels, scores))
    sd = np.std(labels - scores) / np.sqrt(50_000)
    assert found.value == pytest.approx(0.1, abs=4 * sd)
    low, high = found.interval()
    assert high - low == pytest.approx(2 * 1.96 * sd, rel=0.15)
    assert found.sampling_sd == pytest.approx(sd, rel=0.15)


def test_what_noise_alone_would_make_of_a_calibrated_score_is_taken_off() -> None:
    rng = np.random.default_rng(13)
    edges = np.arange(51) / 50
    middle = (edges[1:] + edges[:-1]) / 2
    calibrated = 400.0 * np.stack([1 - middle, middle])

    class Noise(UnitNoise):
        def variance(self, weights: np.ndarray) -> float:
            return 40.0**2 * super().variance(weights)

    values = []
    for _ in range(40):
        counts = calibrated + rng.normal(0.0, 40.0, calibrated.shape)
        values.append(ici(ScoreHistogram(edges.copy(), counts, Noise())).value)
    plain = ici(ScoreHistogram(edges.copy(), counts)).value
    assert np.median(values) < 0.5 * plain
    assert min(values) == 0.0


def test_under_noise_there_are_fewer_nodes_and_at_last_no_figure() -> None:
    edges = np.arange(11) / 10

    def curve(size: float) -> object:
        return calibration_curve(ScoreHistogram(edges.copy(), np.full((2, 10), size), UnitNoise()))

    many, few = curve(100.0), curve(1.5)
    assert len(many.nodes) == 8  # type: ignore[attr-defined]  # there is a curve
    assert 1 <= len(few.nodes) < 8  # type: ignore[attr-defined]  # there is a curve
    drowned = ici(ScoreHistogram(edges.copy(), np.full((2, 10), 1.0), UnitNoise()))
    assert not drowned.is_available
    assert "clear of the privacy noise" in str(drowned)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_one_class_has_no_calibration_curve(name: str, labels: list[int]) -> None:
    assert not FIGURES[name](ScoreHistogram.from_scores(labels, [0.2, 0.7])).is_available


def test_the_points_that_stand_for_chance_are_the_same_every_time_and_normal() -> None:
    points = spread_normals(9)
    assert points is spread_normals(9)
    assert points.mean(axis=0) == pytest.approx(np.zeros(9), abs=1e-12)
    assert np.cov(points.T, bias=True) == pytest.approx(np.eye(9), abs=1e-9)
    for column in points.T:
        assert (np.abs(column) < 1.959964).mean() == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    "features",
    [
        [[0.0, 0.0], [0.0, 1.0]],  # a node that no score touches
        [[1.0, 0.5], [1.0, 0.5]],  # two that no score tells apart
    ],
)
def test_nodes_that_nothing_tells_apart_have_no_fit(features: list[list[float]]) -> None:
    scores, counts = np.array([0.2, 0.6]), np.array([[6.0, 5.0], [4.0, 5.0]])
    assert fit_gaps(np.array(features), scores, counts) is None


@pytest.mark.parametrize(
    "figure", [GapFigure(0.7, sampling_sd=0.1), Multiple(0.7, sampling_sd=0.1)]
)
def test_figures_without_a_law_of_their_own_have_normal_intervals(figure: Estimate) -> None:
    assert figure.interval() == pytest.approx((0.7 - 0.1959964, 0.7 + 0.1959964))
    assert figure.interval(population=False) == pytest.approx((0.7, 0.7), abs=1e-13)


def test_log_odds_of_buckets_within_0_and_1_reach_to_their_edges() -> None:
    inside = in_pieces(ScoreHistogram(np.array([0.2, 0.5, 0.8]), np.ones((2, 2))))
    assert inside.likely_ends[[0, -1], [0, -1]] == pytest.approx([np.log(0.25), np.log(4.0)])


@pytest.mark.parametrize("seed", range(3))
def test_scores_that_crowd_in_the_last_cell_are_in_the_interval(seed: int) -> None:
    """0.9 % positives around 0.004; the last cell reaches from 0.002 to 1."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(60_000) < 0.009).astype(np.int64)
    odds = 1.1 * generator.normal(size=60_000) + 3.6 * labels
    table = Table(labels, np.minimum(1e-4 * np.exp(odds), 1.0))
    edges = np.array([0.0, 3e-5, 6e-5, 1e-4, 2e-4, 4e-4, 1e-3, 2e-3, 1.0])
    counts = np.stack([np.histogram(table.scores[labels == each], edges)[0] for each in (0, 1)])
    noisy = counts + 5.0 * generator.normal(size=counts.shape)
    found = ici(ScoreHistogram(edges, noisy, DenseNoise(25.0 * np.eye(16))))
    assert of_rows(table)["ici"] in found.interval(population=False)


def test_quantiles_of_a_curve_that_noise_has_flattened_are_not_told() -> None:
    edges, share = np.arange(41) / 40, np.linspace(0.02, 0.9, 40)
    counts = 500.0 * np.stack([1.0 - share, share])
    loud = ScoreHistogram(edges, counts, DenseNoise(300.0**2 * np.eye(80)))
    curve = calibration_curve(loud)
    assert not isinstance(curve, NotEnoughData)
    assert 1 < curve.asked < 8
    for figure in (e50, e90, emax):
        found = figure(loud)
        assert isinstance(found, NotEnoughData)
        assert "bends less than that of the rows" in str(found)
    assert ici(loud).is_available == (curve.asked >= 4)


@pytest.mark.parametrize("name", ["e50", "e90"])
def test_a_quantile_lies_inside_its_interval_and_not_at_an_end(name: str) -> None:
    """Exact counts of twelve tables in 300 cells; rows' figures by least squares of the rows.

    Ends that were those of a quantile of 48 groups began or ended at the value itself, in every
    table, and held the rows' figure in half of them.
    """
    held = 0
    for seed in range(12):
        generator = np.random.default_rng(seed)
        scores = generator.beta(1.5, 3.0, 20_000)
        labels = (generator.random(len(scores)) < 0.03 + 0.8 * scores).astype(int)
        histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(300))
        found = FIGURES[name](histogram)
        low, high = found.interval(population=False)
        assert low < found.value < high
        held += low <= of_rows(Table(labels, scores))[name] <= high
    assert held >= 10
