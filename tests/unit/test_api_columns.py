"""Times and patients at the door: numbers that rise, and none that is missing."""

from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from fedassay.api_columns import client_codes, groups_of, patient_codes, time_numbers
from fedassay.errors import ColumnTypeInvalid, ValueMissing


@pytest.mark.parametrize(
    "times",
    [
        [3, 1, 2],
        [0.5, -1.0, 0.0],
        np.array([3, 1, 2], np.uint8),
        ["2026-03-31", "2025-12-31", "2026-01-01"],
        [date(2026, 3, 31), date(2025, 12, 31), date(2026, 1, 1)],
        [datetime(2026, 3, 31, 1), datetime(2026, 3, 31), datetime(2026, 3, 31, 0, 30)],
    ],
)
def test_times_of_every_kind_rise_with_time(times: Any) -> None:
    assert np.argsort(time_numbers(times, None)).tolist() == [1, 2, 0]


def test_numbers_are_times_as_they_are() -> None:
    assert time_numbers([3, 1, 2], None).tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("times", [["soon", "late"], [{"at": 1}, {"at": 2}]])
def test_times_of_no_kind_are_refused_and_withheld(times: Any) -> None:
    with pytest.raises(
        ColumnTypeInvalid, match=r"\(values withheld\)\. Convert the column"
    ) as error:
        time_numbers(times, None)
    assert "soon" not in str(error.value)


@pytest.mark.parametrize("gap", [None, float("nan"), ""])
def test_a_row_without_patient_or_time_is_counted_not_guessed(gap: Any) -> None:
    with pytest.raises(ValueMissing, match=r"needs a patient; 2 of 3 are missing"):
        patient_codes(["p7", gap, gap], None)
    with pytest.raises(ValueMissing, match=r"needs a time; 1 of 2 are missing"):
        time_numbers(["2026-01-01", gap], None)


def test_a_missing_name_among_texts_is_missing_and_not_called_nan() -> None:
    names: Any = ["north", float("nan"), "south", float("nan")]
    assert client_codes(names, None)[0].tolist() == [0, 1, 2, 1]
    assert client_codes(names, None)[1] == ["north", None, "south"]
    assert groups_of(names, None).parts == ("north", "south", "(missing)", "(unknown)")
