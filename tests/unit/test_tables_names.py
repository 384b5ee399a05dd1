"""Columns that nobody named are found by content, over the whole file and whatever their type."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay.errors import ColumnMissing
from fedassay.tables import sources
from fedassay.tables.columns import LABEL, SCORE, Columns
from fedassay.tables.names import choose_columns, listed


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three batches: a beginning that could mislead, and an end that cannot."""
    monkeypatch.setattr(sources, "BATCH_ROWS", 4)
    rows = 12
    content = {
        "risk": [0.1, 0.9, 0.4, 0.6] * 3,
        "outcome": pa.array(["died", "left"] * 6).dictionary_encode(),
        "weight": [0.5, 0.6, 0.7, 0.8] * 2 + [70.0, 80.0, 90.0, 60.0],
        "ward": pa.array(["a", "b", "c", "d"] * 3).dictionary_encode(),
        "visits": [[1], [0], [1], [0]] * 3,
        "empty": pa.nulls(rows),
        "late": pa.array([None] * 8 + [0.1, 0.2, 7.0, 0.4]),
    }
    pq.write_table(pa.table(content), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_the_only_columns_that_can_be_meant_are_taken(path: Path) -> None:
    choice = choose_columns(path, Columns(), unnamed={SCORE, LABEL})
    assert (choice.columns.score, choice.columns.label) == ("risk", "outcome")
    assert 'scores from column "risk" and labels from column "outcome"' in choice.note


def test_where_two_could_be_meant_both_are_told(path: Path) -> None:
    with pytest.raises(ColumnMissing, match=r"these could be it: risk, weight, late\. It has"):
        choose_columns(path, Columns(scale=100.0), unnamed={SCORE, LABEL})


def test_where_none_could_be_meant_that_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.5, 2.5, 3.5], "b": ["x", "y", "z"]}), tmp_path / "t.parquet")
    with pytest.raises(ColumnMissing, match=r"none looks like it\. It has: a, b"):
        choose_columns(tmp_path / "t.parquet", Columns(), unnamed={SCORE})
    kept = choose_columns(tmp_path / "t.parquet", Columns(), unnamed={SCORE}, optional={SCORE})
    assert (kept.columns, kept.note) == (Columns(), "")


@pytest.mark.parametrize("value", ["0.25", "1e-5", "2020-01-31", "true", "x;0.25", "-inf"])
def test_names_that_are_values_stay_with_their_owner(value: str) -> None:
    said = listed(["score", value])
    assert said == "2 columns (names withheld: some look like values)"


def test_long_names_are_cut_and_many_are_not_all_listed() -> None:
    assert listed(["a" * 41]) == "a" * 37 + "..."
    assert listed(["a" * 40]) == "a" * 40
    assert listed(["a"] * 21) == ", ".join(["a"] * 20) + ", ..."
