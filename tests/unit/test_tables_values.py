"""Columns of every type that a table may have mean what they say, or are refused by their type."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay import Grid
from fedassay.errors import (
    ColumnTypeInvalid,
    FedassayError,
    FileInvalid,
    LabelInvalid,
    ScoreOutOfRange,
    SettingInvalid,
    ValueMissing,
)
from fedassay.tables import sources
from fedassay.tables.columns import Columns
from fedassay.tables.reading import count_file, read_clients, read_reference

SCORES = [0.1, 0.9, 0.4, 0.6]
DECIMALS = [Decimal(text) for text in ("0.1", "0.9", "0.4", "0.6")]


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ([False, True, False, True], None),
        ([Decimal(0), Decimal(1), Decimal(0), Decimal(1)], None),
        ([False, True, False, True], "TRUE"),
        ([1, 2, 1, 2], "2"),
        ([1, 2, 1, 2], "2.0"),
        ([1.0, 2.0, 1.0, 2.0], "2"),
        ([Decimal("1.5"), Decimal("2.5"), Decimal("1.5"), Decimal("2.5")], "2.5"),
        (["no", "yes", "no", "yes"], "yes"),
    ],
    ids=["bool", "decimal", "TRUE", "2", "2.0", "float", "2.5", "yes"],
)
def test_a_positive_is_what_somebody_typed_whatever_the_columns_type(
    tmp_path: Path, labels: list[object], positive: str | None
) -> None:
    path = table(tmp_path / "t.parquet", score=DECIMALS, label=labels)
    read = read_clients(path, Columns(positive=positive)).examples
    assert read.labels.tolist() == [0, 1, 0, 1]
    assert read.scores.tolist() == SCORES


def test_decimals_fall_into_the_cells_of_the_numbers_that_they_are(tmp_path: Path) -> None:
    tenths = [Decimal(tenth) / 10 for tenth in range(1, 11)]
    path = table(tmp_path / "t.parquet", score=tenths, label=[1] * 10)
    grid = Grid.uniform(10)
    assert count_file(path, Columns(), grid).tolist() == [[0] * 10, [1] * 10]


def test_a_label_of_nan_is_missing_and_no_third_value(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", score=SCORES, label=[1.0, 2.0, np.nan, 1.0])
    with pytest.raises(ValueMissing):
        read_clients(path, Columns(positive="2"))


@pytest.mark.parametrize(
    ("labels", "positive", "error", "said"),
    [
        ([1, 2, 1, 2], "yes", SettingInvalid, r"labels are numbers, and 'yes' is none.*--positive"),
        ([[1], [2], [1], [2]], "1", ColumnTypeInvalid, "must hold text, numbers or booleans"),
        ([datetime.date(2020, 1, 1)] * 4, "1", ColumnTypeInvalid, "must hold text, numbers"),
        ([b"1", b"0", b"1", b"0"], "1", ColumnTypeInvalid, "must hold text, numbers"),
        ([1, 2, 3, 1], "1", LabelInvalid, "must hold two values"),
        ([[1], [2], [1], [2]], None, ColumnTypeInvalid, "must hold numbers or booleans"),
        ([None] * 4, None, ValueMissing, "label"),
    ],
    ids=["text for numbers", "lists", "dates", "bytes", "three", "lists as numbers", "nulls"],
)
def test_labels_that_cannot_be_are_refused_by_type_and_without_a_value(
    tmp_path: Path,
    labels: list[object],
    positive: str | None,
    error: type[FedassayError],
    said: str,
) -> None:
    path = table(tmp_path / "t.parquet", score=SCORES, label=labels)
    with pytest.raises(error, match=said):
        read_clients(path, Columns(positive=positive))


@pytest.mark.parametrize(
    ("third", "error"), [(0.4, None), (1.5, ScoreOutOfRange), (None, ValueMissing)]
)
def test_a_reference_of_scores_alone_is_checked_in_every_batch(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    third: float | None,
    error: type[FedassayError] | None,
) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 2)
    path = table(tmp_path / "t.parquet", score=[0.1, 0.9, third, 0.6])
    if error is None:
        assert read_reference(path, Columns()).tolist() == SCORES  # type: ignore[union-attr]  # the survey has one
        return
    with pytest.raises(error, match=r"t\.parquet") as refused:
        read_reference(path, Columns())
    assert "1.5" not in str(refused.value)


def test_a_file_of_tabs_needs_no_option(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("score\tlabel\n0.1\t0\n0.9\t1\n")
    assert count_file(path, Columns(), Grid.uniform(2)).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"separator": ""}, "a separator is one character, such as ; or tab; found ''"),
        ({"separator": ", "}, "a separator is one character"),
        ({"separator": '"'}, "a separator is one character"),
        ({"separator": "·"}, "a separator is one character"),
        ({"decimal": "\n"}, "a decimal mark is one character"),
        ({"decimal": "7"}, "neither a letter, a digit nor the separator; found '7'"),
        ({"decimal": "e"}, "neither a letter, a digit nor the separator"),
        ({"decimal": ",", "separator": ","}, "Such files have --separator ';' --decimal ,"),
        ({"scale": 0.0}, "a scale must be a positive number; found 0. Percentages have 100"),
        ({"scale": -100.0}, "found -100"),
        ({"scale": float("inf")}, "found inf"),
        ({"scale": float("nan")}, "found nan"),
    ],
)
def test_a_notation_that_no_file_can_have_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingInvalid) as refused:
        Columns(**settings)
    assert said in str(refused.value)


def test_a_file_whose_columns_are_values_is_refused_without_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("0.137,1\n0.9,0\n")
    with pytest.raises(FedassayError, match="withheld") as refused:
        read_clients(path, Columns())
    assert "0.137" not in str(refused.value)
    assert not isinstance(refused.value, FileInvalid)
