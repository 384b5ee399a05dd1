"""Surveys drawn again and again: rows that stay, noise that hides all, and who is told."""

from fractions import Fraction

import numpy as np
import pytest

from fedassay import DecodeOptions, Grid, ScoreHistogram
from fedassay.calibration import ece
from fedassay.cut_levels import CutLevels
from fedassay.hierarchy import Hierarchy
from fedassay.planning.grouped import grouped_cells
from fedassay.planning.monte_carlo import MonteCarlo, expected_ece, forecast_ece
from tests.surveys import flat_survey, shared_pair

MOST_CUT = 2**9

MODEL = ScoreHistogram(np.arange(5) / 4, np.array([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]]))
EXACT = MonteCarlo(flat_survey(Grid.uniform(4)), MODEL, 20, DecodeOptions())


def test_rows_that_are_kept_are_the_models_own() -> None:
    generator = np.random.default_rng(0)
    drawn = EXACT.draw(generator, population=False)
    assert drawn.counts.tolist() == MODEL.counts.tolist()
    others = [EXACT.draw(generator).counts for _ in range(5)]
    assert all(each.sum() == 20 for each in others)
    assert any(not np.array_equal(each, MODEL.counts) for each in others)


def test_where_noise_hides_most_draws_there_is_no_forecast() -> None:
    loud = MonteCarlo(shared_pair(Fraction(1, 1000))[0], MODEL, 20, DecodeOptions())
    found = forecast_ece(loud, generator=np.random.default_rng(0), draws=4)
    assert not found.is_available
    assert found.error_quantile() == float("inf")


def test_what_cells_hide_of_calibration_error_is_what_the_scores_own_cells_hide() -> None:
    """Exact sums of four cells: the histogram that is read is the model itself."""
    found = forecast_ece(EXACT, generator=np.random.default_rng(0), draws=20)
    own = ece(MODEL)
    assert own.binning_sd > 0.0
    assert found.binning_sd == pytest.approx(own.binning_sd)
    assert found.binning_bound == pytest.approx(own.binning_bound)
    assert found.half_width == pytest.approx(1.96 * found.sampling_sd + own.binning_sd)


def test_every_fit_is_told() -> None:
    told: list[int] = []
    expected_ece(EXACT, generator=np.random.default_rng(0), fits=1, progress=told.append)
    assert told == [1]


@pytest.mark.parametrize(("parts", "levels"), [(2, CutLevels), (MOST_CUT, Hierarchy)])
def test_more_cuts_than_can_be_solved_for_are_asked_flat(parts: int, levels: type) -> None:
    grid, found = grouped_cells(Grid.uniform(4), CutLevels(4, (((0, 2), (0, 1)),)), parts)
    assert isinstance(found, levels)
    assert found.leaves == 4 * parts
    assert grid.cells == 4
