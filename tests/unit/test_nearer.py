"""Of two surveys a figure is read from leaves or from cells, whichever errs less."""

import numpy as np
import pytest

from fedassay import Estimate, NotEnoughData, ScoreHistogram, metrics
from fedassay.metrics.nearer import nearer
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
