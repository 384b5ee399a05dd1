"""Of two surveys a figure is read from leaves or from cells, whichever errs less."""

from collections.abc import Callable

import numpy as np
import pytest

from fedassay import Estimate, NotEnoughData, ScoreHistogram, metrics
from fedassay.doubts import Doubts
from fedassay.metrics.nearer import beyond_cells, nearer
from fedassay.noise import DenseNoise

NO_ANSWER = NotEnoughData(reason="too few")


def two_leaves(cells: bool = True) -> ScoreHistogram:
    counted = np.array([0, 2]) if cells else None
    return ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.ones((2, 2)), cells=counted)


def reading(value: float, noise_sd: float, binning_sd: float) -> Estimate:
    return Estimate(
        value=value, noise_sd=noise_sd, sampling_sd=0.0, binning_bound=1.0, binning_sd=binning_sd
    )


@pytest.mark.parametrize(
    ("by_leaf", "by_cell", "taken"),
    [
        (reading(1.0, 3.0, 0.0), reading(2.0, 0.0, 4.0), 1.0),
        (reading(1.0, 3.0, 4.0), reading(2.0, 4.5, 0.5), 2.0),  # 5 and 4.53
        (NO_ANSWER, reading(2.0, 9.0, 9.0), 2.0),
        (reading(1.0, 9.0, 9.0), NO_ANSWER, 1.0),
    ],
)
def test_the_reading_with_less_noise_and_binning_together_is_taken(
    by_leaf: Estimate, by_cell: Estimate, taken: float
) -> None:
    found = nearer(two_leaves(), lambda read: by_leaf if read.buckets == 2 else by_cell)
    assert found.value == taken


def test_without_an_answer_from_either_there_is_none() -> None:
    assert isinstance(nearer(two_leaves(), lambda _: NO_ANSWER), NotEnoughData)


def test_one_survey_has_one_reading() -> None:
    assert nearer(two_leaves(cells=False), lambda read: reading(read.buckets, 0.0, 0.0)).value == 2


def test_noise_of_leaves_where_hardly_any_row_is_does_not_reach_the_slope() -> None:
    """Leaves in fours, whose noise of 400 cancels in each cell; the slope itself is 1."""
    edges = 1.0 / (1.0 + np.exp(-np.linspace(-6.0, 6.0, 33)))
    edges[[0, -1]] = 0.0, 1.0
    middle = np.linspace(-6.0, 6.0, 65)[1::2]
    rows = 4000.0 * np.exp(-(middle**2) / 4.0)
    truth = np.stack([rows / (1.0 + np.exp(middle)), rows / (1.0 + np.exp(-middle))])
    off = 400.0 * np.tile([1.0, -1.0, 1.0, -1.0], 8)
    noise = DenseNoise(0.01 * np.eye(64) + 160_000.0 * np.kron(np.eye(16), np.eye(4) - 0.25))
    noisy = ScoreHistogram(edges, truth + off, noise, cells=np.arange(0, 33, 4))
    for figure in (metrics.calibration_slope, metrics.log_loss):
        found = figure(noisy)
        leaves = figure(ScoreHistogram(edges, truth + off, noise))
        exact = figure(ScoreHistogram(edges, truth)).value
        by_leaves = np.hypot(leaves.noise_sd, leaves.binning_sd)
        assert np.hypot(found.noise_sd, found.binning_sd) < by_leaves
        assert abs(found.value - exact) < 3.0 * np.hypot(found.noise_sd, found.binning_sd)


def test_observed_over_expected_is_read_from_cells_where_leaves_are_noisier() -> None:
    """Two rows of leaves, 3,000 rows off each way; no cell is."""
    edges, off = np.arange(17) / 16, 3000.0 * np.tile([1.0, 1.0, -1.0, -1.0], 4)
    truth = np.full((2, 16), 2000.0)
    noise = DenseNoise(1.0 * np.eye(32) + 9e6 * np.kron(np.eye(8), np.eye(4) - 0.25))
    noisy = ScoreHistogram(edges, truth + off, noise, cells=np.arange(0, 17, 4))
    assert metrics.oe_ratio(noisy).value == pytest.approx(1.0, abs=0.02)
    leaves = metrics.oe_ratio(ScoreHistogram(edges.copy(), truth + off, noise))
    assert abs(leaves.value - 1.0) > 0.1


def smoothed(doubts: Doubts | None) -> ScoreHistogram:
    """Two leaves, one cell."""
    noise, cells = DenseNoise(np.eye(4), is_smoothed=True), np.array([0, 2])
    return ScoreHistogram(np.arange(3) / 2, np.ones((2, 2)), noise, cells=cells, doubts=doubts)


@pytest.mark.parametrize(
    ("cliffs", "hidden", "expected"),
    [(None, 5.0, 5.0), (1.0, 5.0, 5.0), (1.0, 0.5, 1.0), (0.5, 5.0, 4.196), (0.04, 5.0, 1.0)],
)
def test_smoothed_counts_err_by_what_cells_hide_as_far_as_cliffs_are_likely(
    cliffs: float | None, hidden: float, expected: float
) -> None:
    """Binning of 1 by leaf; one in two, an error needs 1.645 deviations where 1.96 are usual."""
    by_leaf, by_cell = reading(1.0, 3.0, 1.0), reading(2.0, 9.0, hidden)

    def figure(read: ScoreHistogram) -> Estimate:
        return by_leaf if read.buckets == 2 else by_cell

    doubts = None if cliffs is None else Doubts(cliffs, 1.0, np.zeros(2))
    found = beyond_cells(smoothed(doubts), figure)
    assert (found.value, found.noise_sd) == (1.0, 3.0)
    assert found.binning_sd == pytest.approx(expected, abs=1e-3)
    # What was not smoothed is read from its cells, or its leaves, and knows what they hide.
    assert beyond_cells(two_leaves(), figure) == by_leaf


def cliff(*, smoothed: bool) -> ScoreHistogram:
    """Negatives end in the second of four cells, and a smooth curve drew them out over it."""
    negatives = np.concatenate([np.full(8, 1000.0), np.linspace(1000.0, 0.0, 8), np.zeros(16)])
    positives = np.concatenate([np.full(16, 30.0), np.full(16, 90.0)])
    noise = DenseNoise(4.0 * np.eye(64), is_smoothed=smoothed)
    cells = np.arange(0, 33, 8) if smoothed else None
    return ScoreHistogram(np.arange(33) / 32, np.stack([negatives, positives]), noise, cells=cells)


@pytest.mark.parametrize(
    "figure", [metrics.ks, metrics.average_precision, lambda read: metrics.gain(read, 0.2)]
)
def test_what_falls_off_a_cliff_inside_a_cell_is_in_the_interval(
    figure: Callable[[ScoreHistogram], Estimate],
) -> None:
    """All negatives of the second cell may lie at its start: the figure of that is held."""
    sharp = cliff(smoothed=False).counts.copy()
    sharp[0, 8:16] = [sharp[0, 8:16].sum() - 7.0, *[1.0] * 7]
    truth = figure(ScoreHistogram(np.arange(33) / 32, sharp)).value
    held = figure(cliff(smoothed=True)).interval(population=False)
    missed = figure(cliff(smoothed=False)).interval(population=False)
    assert held.low <= truth <= held.high
    assert not missed.low <= truth <= missed.high
