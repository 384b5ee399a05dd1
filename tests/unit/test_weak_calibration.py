"""Slope, intercept, calibration in the large and O/E, against regressions of the rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay import Estimate, Grid, ScoreHistogram
from fedassay.metrics import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    oe_ratio,
)
from fedassay.metrics.log_odds import in_pieces, log_odds
from fedassay.metrics.weak_calibration import regression_gradient
from fedassay.noise import DenseNoise
from tests.oracles import rare, weak_calibration
from tests.tables import Table

FIGURES = {
    "calibration_in_the_large": calibration_in_the_large,
    "calibration_intercept": calibration_intercept,
    "calibration_slope": calibration_slope,
    "oe_ratio": oe_ratio,
}


def made_up(rows: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    odds = rng.normal(-1.0, 1.5, rows)
    labels = (rng.random(rows) < 1 / (1 + np.exp(-0.3 - 0.7 * odds))).astype(np.int64)
    return Table(labels, 1 / (1 + np.exp(-odds)))


def figures_of(table: Table, grid: Grid) -> dict[str, Estimate]:
    h = ScoreHistogram.from_scores(*table, grid=grid)
    return {name: figure(h) for name, figure in FIGURES.items()}


@pytest.mark.parametrize("rate", [None, 0.01])
def test_real_and_crowded_scores_have_the_figures_of_their_rows(
    real_table: Table, rate: float | None
) -> None:
    """On a fine grid to a hundredth of the sampling error; on any grid within the bound."""
    table = real_table if rate is None else rare(real_table, rate)
    truth = weak_calibration(table)
    for name, found in figures_of(table, Grid.fine()).items():
        assert abs(found.value - truth[name]) <= 0.01 * found.sampling_sd, name
    for grid in (Grid.uniform(256), Grid.uniform(32), Grid.warped(table.scores, 64)):
        for name, found in figures_of(table, grid).items():
            error = abs(found.value - truth[name])
            assert error <= found.binning_bound, name
            assert error <= 3.0 * found.binning_sd + 0.1 * found.sampling_sd, name


def test_the_sampling_error_is_that_of_the_regression() -> None:
    """The inverse of the information, for a model that is right, by the rows."""
    table = made_up(20_000)
    truth = weak_calibration(table)
    a, b = truth["calibration_intercept"], truth["calibration_slope"]
    x = np.log(table.scores / (1 - table.scores))
    p = 1 / (1 + np.exp(-a - b * x))
    features = np.stack([np.ones_like(x), x])
    covariance = np.linalg.inv((features * p * (1 - p)) @ features.T)
    found = figures_of(table, Grid.fine())
    assert found["calibration_intercept"].sampling_sd == pytest.approx(
        np.sqrt(covariance[0, 0]), rel=0.03
    )
    assert found["calibration_slope"].sampling_sd == pytest.approx(
        np.sqrt(covariance[1, 1]), rel=0.03
    )


def test_scores_of_exactly_0_and_1_count_as_far_from_them_as_in_log_loss() -> None:
    table = made_up(4000)
    ends = Table(table.labels, np.where(table.scores < 0.02, 0.0, table.scores))
    ends.scores[:5], ends.labels[:5] = 1.0, 1
    # Two cells that hold nothing else next to 0 and 1, narrow enough to have those log-odds.
    grid = Grid.fine().with_edges_at([2.0**-50, 1 - 2.0**-50])
    truth = weak_calibration(ends)
    for name, found in figures_of(ends, grid).items():
        assert found.value == pytest.approx(truth[name], abs=0.05 * found.sampling_sd), name
    assert log_odds(np.array([0.0, 1.0])).tolist() == pytest.approx(
        [-52 * np.log(2), 52 * np.log(2)]
    )


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.sampled_from([4, 16, 64]))
def test_wherever_scores_lie_in_their_cells_figures_stay_within_the_bound(
    seed: int, cells: int
) -> None:
    rng = np.random.default_rng(seed)
    table = made_up(400, seed)
    grid = Grid.uniform(cells)
    low = np.maximum(np.ceil(table.scores * cells) - 1, 0) / cells
    to = rng.random(len(low)) ** rng.choice([0.0, 0.1, 1.0, 10.0, 1000.0])
    moved = Table(table.labels, np.clip(low + to / cells, low + 1e-15, low + 1 / cells))
    truth = weak_calibration(moved)
    for name, found in figures_of(moved, grid).items():
        assert abs(found.value - truth[name]) <= found.binning_bound + 1e-9, name


def test_a_calibrated_score_has_0_1_0_and_1() -> None:
    edges = np.arange(513) / 512
    score = (edges[1:] + edges[:-1]) / 2
    # A third is positive: an intercept of all labels together would be -log(2).
    h = ScoreHistogram(edges, 1e6 * (1 - score) * np.stack([1 - score, score]))
    assert calibration_in_the_large(h).value == pytest.approx(0.0, abs=1e-4)
    assert calibration_intercept(h).value == pytest.approx(0.0, abs=1e-4)
    assert calibration_slope(h).value == pytest.approx(1.0, abs=1e-4)
    assert oe_ratio(h).value == pytest.approx(1.0, abs=1e-5)


def test_observed_to_expected_has_an_interval_on_the_logarithmic_scale() -> None:
    found = oe_ratio(ScoreHistogram.from_scores(*made_up(300)))
    low, high = found.interval()
    assert low * high == pytest.approx(found.value**2)
    assert np.log(high / low) == pytest.approx(
        2 * 1.959964 * np.hypot(found.sampling_sd, found.binning_sd) / found.value, rel=1e-6
    )


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]])
def test_one_class_has_no_figure_and_says_why(name: str, labels: list[int]) -> None:
    found = FIGURES[name](ScoreHistogram.from_scores(labels, [0.2, 0.5, 0.8]))
    assert not found.is_available
    assert "there must be" in str(found)


@pytest.mark.parametrize(
    ("labels", "scores"),
    [([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]), ([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.3])],
    ids=["separated", "one score"],
)
def test_a_line_that_runs_off_to_infinity_is_no_figure(
    labels: list[int], scores: list[float]
) -> None:
    h = ScoreHistogram.from_scores(labels, scores)
    for figure in (calibration_intercept, calibration_slope):
        found = figure(h)
        assert not found.is_available
        assert "runs off to infinity" in str(found)
        assert "Gather reports from more clients" in str(found)
    assert calibration_in_the_large(h).is_available


def test_buckets_that_reach_to_0_or_1_are_cut_by_halves_towards_it() -> None:
    pieced = in_pieces(ScoreHistogram(np.array([0.0, 0.25, 0.75, 1.0]), np.ones((2, 3))))
    halves = [0.0, *(2.0**-k for k in range(7, -1, -1))]
    assert pieced.cuts[0].tolist() == halves
    assert pieced.cuts[1].tolist() == [k / 8 for k in range(9)]
    assert pieced.cuts[2].tolist() == [1 - cut for cut in halves[::-1]]
    # The mean of log s - log(1 - s) over even scores, by a million of them.
    s = (np.arange(10**6) + 0.5) / 10**6 * 0.25
    widths = np.diff(pieced.cuts[0])
    assert widths @ pieced.odds[0] == pytest.approx(np.log(s / (1 - s)).mean(), abs=1e-5)


@pytest.mark.parametrize(("cells", "digit"), [(4, 0.01), (16, 0.0001)])
def test_the_error_of_coarse_cells_is_that_of_scores_anywhere_in_them(
    cells: int, digit: float
) -> None:
    """Each cell's rows are drawn with replacement from as many anywhere in it: some come again.

    Where the table's own lie stays from draw to draw, and counts once more. All may have decimals
    of which the edges are some, half a digit above the middle: the end of an interval.
    """
    counts = 40.0 * np.array([np.arange(cells, 0, -1), np.arange(1, cells + 1)])
    generator, size = np.random.default_rng(0), (1000, cells, 40 * (cells + 1))
    places = np.arange(cells)[:, None] + generator.random(size)
    drawn = np.take_along_axis(places, generator.integers(0, size[-1], size), axis=-1) / cells
    own = float((counts[1].sum() / (places / cells).sum(axis=(1, 2))).std())
    spread = float(np.hypot((counts[1].sum() / drawn.sum(axis=(1, 2))).std(), own))
    spread = float(np.hypot(spread, digit / 2.0 / 0.5 / 1.96))
    found = oe_ratio(ScoreHistogram(np.arange(cells + 1) / cells, counts))
    assert found.value == pytest.approx(1.0)
    # A standard deviation of 1,000 draws is off by 2.2 %: 0.1 is beyond four of these.
    assert found.binning_sd == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("end", [0, 1])
def test_scores_that_thin_out_towards_an_end_are_not_taken_to_lie_evenly_in_log_odds(
    end: int,
) -> None:
    """Below x lie x^3 of the rows, or above 1 - x: log-odds of the first cell have a known mean."""
    edges = np.append(np.arange(11) / 100, 1.0)
    below = 1e6 * edges**3
    counts, step = np.diff(below), 1 if end == 0 else -1
    edges = edges if end == 0 else (1.0 - edges)[::-1]
    h = ScoreHistogram(edges, np.stack([counts, counts])[:, ::step])
    pieced, place = in_pieces(h), -end
    doubt = float(pieced.doubts(pieced.odds)[place])
    x = 0.01 * ((np.arange(10**5) + 0.5) / 10**5) ** (1 / 3)
    truth = np.log(x / (1 - x)).mean() * step
    guess = float((pieced.shares[0, place] * pieced.odds[place]).sum())
    ends = pieced.likely_ends[place]
    even = 0.5 * (ends[0] + ends[-1])
    assert abs(truth - guess) * 2 * counts[0] <= 1.96 * doubt
    assert doubt < 0.5 * abs(even - guess) * 2 * counts[0]


@pytest.mark.parametrize("noise_sd", [3.0, 10.0, 30.0, 100.0])
def test_under_noise_the_power_of_a_class_next_to_an_end_is_read_as_far_as_noise_leaves_it(
    noise_sd: float,
) -> None:
    """A hundred draws of noise, against the regression of the rows; the first cell begins at 0."""
    generator = np.random.default_rng(6)
    scores = generator.beta(1.5, 8.0, 30_000)
    labels = (generator.random(len(scores)) < scores).astype(np.int64)
    truth = weak_calibration(Table(labels, scores))["calibration_slope"]
    edges = np.concatenate([0.03 * np.arange(20), [1.0]])
    counts = np.stack([np.histogram(scores[labels == each], edges)[0] for each in (0, 1)])
    noise, found = DenseNoise(noise_sd**2 * np.eye(counts.size)), []
    for _ in range(100):
        noisy = counts + generator.normal(0.0, noise_sd, counts.shape)
        found.append(calibration_slope(ScoreHistogram(edges, noisy, noise)))
    intervals = [each.interval(population=False) for each in found]
    assert sum(truth in each for each in intervals) >= 90
    errors = np.array([each.value for each in found]) - truth
    half = float(np.median([each.high - each.low for each in intervals])) / 2.0
    assert half < 2.5 * np.quantile(np.abs(errors), 0.95)


def test_of_tied_scores_an_end_is_as_doubtful_as_evenly_in_log_odds() -> None:
    """Ten values apart in a hundred cells: the first cell's may be any, however many are beside."""
    row = np.tile([0.0, 0.0, 0.0, 0.0, 900.0, 0.0, 0.0, 0.0, 0.0, 0.0], 10)
    row[:2] = 100.0, 300.0
    h = ScoreHistogram(np.arange(101) / 100, np.stack([row, row]))
    pieced = in_pieces(h)
    ends = pieced.likely_ends[0]
    guess = float((pieced.shares[0, 0] * pieced.odds[0]).sum())
    evenly = abs(0.5 * (ends[0] + ends[-1]) - guess) * 200.0
    # The next cell is three times as dense, of the four that make all of it.
    steepness = np.log(3) / np.log(4)
    # Ten or eleven of the twelve cells with rows show a tie.
    assert 0.8 < pieced.doubts(pieced.odds)[0] / (evenly * steepness) <= 1.0


def test_where_there_is_no_figure_nothing_moves_it() -> None:
    one_class = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 2.0], [0.0, 0.0]]))
    for slope in (False, True):
        assert regression_gradient(one_class, slope=slope).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_one_filled_bucket_has_no_slope() -> None:
    """Where its rows lie in it decides, and nothing says where."""
    h = ScoreHistogram(np.arange(5) / 4, np.array([[0, 300.0, 0, 0], [0, 100.0, 0, 0]]))
    assert not calibration_slope(h).is_available
    assert not calibration_intercept(h).is_available


def test_positives_that_came_out_clear_by_noise_may_be_far_fewer() -> None:
    """Just above the bar of four deviations a quarter of them is possible; far above it is not."""
    noise_sds = []
    for positives in (17.0, 400.0):
        counts = np.array([[600.0, 200.0], [0.4 * positives, 0.6 * positives]])
        noisy = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, DenseNoise(8.0 * np.eye(4)))
        noise_sds.append(calibration_in_the_large(noisy).noise_sd)
    assert noise_sds[0] == pytest.approx(np.log(4.0) / 1.96, rel=0.01)
    assert noise_sds[1] < 0.03


def test_in_the_large_tells_nothing_where_noise_may_have_put_all_that_holds_it() -> None:
    """All positives at 1, and 35 in the noise of the other cells: without them nothing is wrong."""
    edges = np.array([0.0, 0.2, 0.5, 1.0 - 1e-12, 1.0])
    counts = np.array([[800.0, 300, 50, 4], [20.0, 10, 5, 100]])
    answers = [
        calibration_in_the_large(ScoreHistogram(edges, counts, DenseNoise(sd**2 * np.eye(8))))
        for sd in (5.0, 10.0)
    ]
    assert [each.is_available for each in answers] == [True, False]
    assert "contradict the scores" in str(answers[1])
