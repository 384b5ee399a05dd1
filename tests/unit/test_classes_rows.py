"""Rows of many classes are checked once, and refused in one sentence that withholds values."""

from collections.abc import Callable

import numpy as np
import pytest

from fedassay.classes.rows import ClassRows, chosen_columns, names_of_columns
from fedassay.errors import (
    ColumnMissing,
    ColumnTypeInvalid,
    FedassayError,
    LabelInvalid,
    NoRows,
    ScoreOutOfRange,
    SettingInvalid,
    ValueMissing,
)

EVEN = np.full((2, 3), 1 / 3)
SECRET = 0.123456


def matrix(*first: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([first, [0.2, 0.3, 0.5]])


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (ScoreOutOfRange, "sum up to 1, within 0.001", lambda: matrix(SECRET, 0.3, 0.3)),
        (ScoreOutOfRange, "must lie in .0, 1.", lambda: matrix(-SECRET, 0.623456, 0.5)),
        (ValueMissing, "1 of 2 rows lack some", lambda: matrix(np.nan, 0.5, 0.5)),
        (SettingInvalid, "one column for each of 3 classes", lambda: np.full((2, 4), 0.25)),
        (ColumnTypeInvalid, "must be numbers", lambda: [["a", "b", "c"], ["a", "b", "c"]]),
    ],
)
def test_probabilities_that_are_none_are_refused_without_their_values(
    error: type[FedassayError], words: str, make: Callable[[], object]
) -> None:
    with pytest.raises(error, match=words) as caught:
        ClassRows([0, 1], make(), [0, 1, 2])  # type: ignore[arg-type]  # what a user may pass
    assert "0.12" not in str(caught.value)


def test_sums_within_the_tolerance_are_taken_as_they_are() -> None:
    rows = ClassRows([0, 1], matrix(0.3333, 0.3333, 0.3333 + 9e-4), [0, 1, 2])
    assert rows.scores[0, 0] == 0.3333
    with pytest.raises(ScoreOutOfRange):
        ClassRows([0, 1], matrix(0.3333, 0.3333, 0.3333 + 12e-4), [0, 1, 2])


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        ([0, 7], LabelInvalid, "among the 3 classes 0, 1, 2; 1 of 2 are not"),
        ([0.0, np.nan], ValueMissing, "1 of 2 are missing"),
        ([None, "1"], ValueMissing, "1 of 2 are missing"),
        ([0, 1, 2], LabelInvalid, "3 labels and 2 rows"),
        ([[0, 1]], LabelInvalid, "one column"),
    ],
)
def test_labels_outside_the_classes_are_refused(
    labels: list[object], error: type[FedassayError], words: str
) -> None:
    with pytest.raises(error, match=words):
        ClassRows(labels, EVEN, [0, 1, 2])  # type: ignore[arg-type]  # what a user may pass


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], "found one class.*--score"),
        (["a", "b"], "found two, which one score describes.*--score"),
        (["a", "b", "a"], "different names; 1 of 3"),
        (range(1001), "from 3 to 1,000 classes; found 1,001"),
    ],
)
def test_numbers_of_classes_that_make_no_sense_are_refused(names: list[str], words: str) -> None:
    with pytest.raises(SettingInvalid, match=words):
        ClassRows([names[0]], np.full((1, len(names)), 1 / len(names)), names)


def test_no_rows_are_refused() -> None:
    with pytest.raises(NoRows):
        ClassRows(np.zeros(0), np.zeros((0, 3)), [0, 1, 2])


def test_a_class_is_called_alike_as_number_and_as_text() -> None:
    for labels in ([2, 0], [2.0, 0.0], ["2", "0"], np.array([2, 0], dtype=object)):
        assert ClassRows(labels, EVEN, ["0", "1", "2"]).labels.tolist() == [2, 0]


def test_classes_are_the_suffixes_of_their_columns() -> None:
    assert names_of_columns(["p1", "p10", "p11"]) == ("1", "10", "11")
    assert names_of_columns(["prob_cat", "prob_car", "prob_c"]) == ("cat", "car", "c")
    assert chosen_columns("p_*", ["y", "p_ab", "p_ac"])[1] == ("ab", "ac")
    assert chosen_columns("p1, p2,p0", ["p0", "p1", "p2"]) == (["p1", "p2", "p0"], ("1", "2", "0"))


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(ColumnMissing, match="called like 'q\\*'; there are: p0, y"):
        chosen_columns("q*", ["p0", "y"])
    with pytest.raises(ColumnMissing, match="no column 'p9'"):
        chosen_columns("p0,p9", ["p0", "y"])
    with pytest.raises(SettingInvalid, match="one star"):
        chosen_columns("*p*", ["p0", "y"])
