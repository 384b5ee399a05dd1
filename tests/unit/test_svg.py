"""Numbers go to places: frames, ticks and lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.report.svg import Frame, ticks


def test_the_ends_of_a_frame_are_its_corners() -> None:
    frame = Frame(x=(2.0, 4.0), y=(-1.0, 1.0))
    assert (frame.at_x(2.0), frame.at_x(4.0)) == (52.0, 440.0 - 14.0)
    assert (frame.at_y(-1.0), frame.at_y(1.0)) == (380.0 - 46.0, 12.0)


def test_a_line_leaves_a_gap_where_a_number_is_missing_and_stays_inside() -> None:
    path = Frame().path([0.0, 0.5, 0.6, 1.0], [0.0, np.nan, 2.0, 0.5])
    assert path.count("M") == 2
    assert "M278.4 12" not in path  # 0.6 lies at 276.4
    assert "M276.4 12L" in path


def test_a_band_without_known_ends_is_empty() -> None:
    assert Frame().band_path([0.1], [-np.inf], [np.inf]) == ""


@given(st.floats(-1e3, 1e3), st.floats(1e-6, 1e3))
def test_ticks_are_a_few_round_numbers_inside(low: float, room: float) -> None:
    marks = ticks(low, low + room)
    assert 1 <= len(marks) <= 6
    assert all(low - 1e-5 * room <= mark <= low + room * (1 + 1e-5) for mark in marks)


@pytest.mark.parametrize(
    ("ends", "marks"),
    [((0.0, 0.01), [0.0, 0.002, 0.004, 0.006, 0.008, 0.01]), ((-0.05, 0.22), [0.0, 0.1, 0.2])],
)
def test_ticks_of_known_frames(ends: tuple[float, float], marks: list[float]) -> None:
    assert ticks(*ends) == marks
