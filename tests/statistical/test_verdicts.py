"""The verdicts of the page of coverage, on trials whose truth is known.

False-alarm rate: a page of 200 cells with right intervals names one too low with a
probability below 0.01 by Bonferroni's rule, and one too wide likewise; here the size is fixed
by the seed. The twins: intervals half as wide hold 67 % and are named in 400 trials with a
probability above 1 - 1e-9, as are those twice as wide (2 is 7 standard errors above 1.5).
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from experiments.coverage_page import coverage_page
from experiments.verdicts import ANSWERED, NOT_ENOUGH, TOO_COARSE, Trials, all_cells

TRIALS = 400
CELLS = 200


def trials(
    factor: float, *, bias: float = 0.0, outcome: float = ANSWERED, bound: float = 0.0
) -> Trials:
    """Normal errors of 0.01 about a bias, and intervals `factor` times as wide as right."""
    generator = np.random.default_rng(8)
    names = tuple(f"metric{i}@0.5" for i in range(CELLS // 2))
    rows, population = 0.7, 0.71
    value = rows + bias + 0.01 * generator.normal(size=(TRIALS, len(names)))
    half = factor * 1.96 * 0.01
    columns: dict[str, npt.NDArray[np.float64]] = {
        "outcome": np.full_like(value, outcome),
        "value": value,
        "rows_low": value - half,
        "rows_high": value + half,
        "population_low": value + 0.01 - half,
        "population_high": value + 0.01 + half,
        "bound": np.full_like(value, bound),
        "rows": np.full_like(value, rows),
        "population": np.full_like(value, population),
    }
    values = np.stack([columns[name] for name in Trials.COLUMNS], axis=-1)
    return Trials("a table", "a setting", names, values)


def test_intervals_that_are_right_are_neither_too_low_nor_too_wide() -> None:
    cells = all_cells([trials(1.0)])
    assert len(cells) == CELLS
    assert not any(cell.is_low(CELLS) or cell.is_wide(CELLS) for cell in cells)
    assert np.mean([cell.share for cell in cells]) == pytest.approx(0.95, abs=0.01)
    assert np.mean([cell.width for cell in cells]) == pytest.approx(1.0, abs=0.02)


def test_intervals_half_as_wide_are_too_low() -> None:
    assert all(cell.is_low(CELLS) for cell in all_cells([trials(0.5)]))


def test_intervals_twice_as_wide_are_too_wide() -> None:
    assert all(cell.is_wide(CELLS) for cell in all_cells([trials(2.2)]))
    assert not any(cell.is_low(CELLS) for cell in all_cells([trials(2.2)]))


def test_what_a_cell_hides_widens_nobody_elses_oracle_than_that_of_a_threshold_inside_it() -> None:
    """Spikes, of which q50 was not asked: an oracle of that grid is as wide as the cell says."""
    found = trials(2.2, bound=0.03)
    assert all(cell.is_wide(CELLS) for cell in all_cells([found]))
    inside = replace(
        found, table="spikes", names=tuple(name.replace("0.5", "q50") for name in found.names)
    )
    assert not any(cell.is_wide(CELLS) for cell in all_cells([inside]))
    wider = replace(inside, values=trials(2.2, bound=0.005).values)
    assert all(cell.is_wide(CELLS) for cell in all_cells([wider]))


def test_a_bias_that_the_interval_does_not_know_is_too_low() -> None:
    assert all(cell.is_low(CELLS) for cell in all_cells([trials(1.0, bias=0.03)]))


@pytest.mark.parametrize("outcome", [NOT_ENOUGH, TOO_COARSE])
def test_outcomes_without_a_value_are_counted_apart(outcome: float) -> None:
    cells = all_cells([trials(0.5, outcome=outcome)])
    assert not any(cell.is_low(CELLS) or cell.is_wide(CELLS) or cell.answers for cell in cells)
    silent = [(cell.not_enough, cell.too_coarse) for cell in cells]
    assert set(silent) == {(TRIALS, 0) if outcome == NOT_ENOUGH else (0, TRIALS)}


def test_the_page_says_how_many_are_too_low() -> None:
    assert "200 of 200 cells are too low, 0 too wide" in coverage_page([trials(0.5)])
    assert "0 of 200 cells are too low, 0 too wide" in coverage_page([trials(1.0)])
    assert "Not measured" not in coverage_page([trials(1.0)])
    assert "present sources" not in coverage_page([trials(1.0)])
    assert "measured: spikes local 1. All" in coverage_page([trials(1.0)], newer=["spikes local 1"])
    page = coverage_page([trials(1.0)], missing=["spikes local 1"])
    assert "Not measured in this run, for want of time: spikes local 1." in page


def test_intervals_that_cells_make_wide_are_too_wide_and_said_to_be_hidden() -> None:
    hidden, plain = all_cells([trials(2.2, bound=0.03)]), all_cells([trials(2.2, bound=0.01)])
    assert all(cell.is_wide(CELLS) for cell in hidden + plain)
    assert all(cell.is_hidden for cell in hidden)
    assert not any(cell.is_hidden for cell in plain)
    row = f"| a setting | {CELLS} | {CELLS} | 0 | 0 | 0 |"
    assert row in coverage_page([trials(2.2, bound=0.03)])


def test_a_width_that_the_mean_error_needs_is_too_wide_and_said_to_be_needed() -> None:
    """Errors of 0.04 +- 0.01: most intervals of 1.5 times the oracle's around them would miss."""
    needed, plain = all_cells([trials(2.5, bias=0.04)]), all_cells([trials(2.5)])
    assert all(cell.is_wide(CELLS) and cell.is_needed(CELLS) for cell in needed)
    assert not any(cell.is_needed(CELLS) for cell in plain)
    row = f"| a setting | {CELLS} | 0 | {CELLS} | 0 | 0 |"
    assert row in coverage_page([trials(2.5, bias=0.04)])
