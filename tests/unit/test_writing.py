"""A table with calibrated scores is the table it was, in its own notation, whole or not at all."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay.calibration import Calibrator
from fedassay.errors import FileInvalid
from fedassay.tables import sources
from fedassay.tables.columns import Columns
from fedassay.tables.writing import apply_file


@pytest.fixture
def none() -> Calibrator:
    """Leaves scores as they are, so that what is written is known."""
    return Calibrator.identity()


def test_decimal_commas_stay_decimal_commas(tmp_path: Path, none: Calibrator) -> None:
    source, target = tmp_path / "t.csv", tmp_path / "out.csv"
    source.write_text("id;score\n007;0,25\n008;0,5\n")
    assert apply_file(none, source, target, Columns(decimal=",")) == 2
    assert target.read_text() == "id;score;calibrated\n007;0,25;0,25\n008;0,5;0,5\n"


def test_batches_are_written_one_after_the_other(
    tmp_path: Path, none: Calibrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 2)
    source, target = tmp_path / "t.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"score": [0.25, 0.5, 0.75, 1.0, 0.0]}), source)
    heard: list[int] = []
    assert apply_file(none, source, target, Columns(), progress=heard.append) == 5
    assert heard == [2, 2, 1]
    assert pq.read_table(target)["calibrated"].to_pylist() == [0.25, 0.5, 0.75, 1.0, 0.0]
    quiet = tmp_path / "again.parquet"
    assert apply_file(none, source, quiet, Columns()) == 5
    assert quiet.read_bytes() == target.read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_without_rows_is_refused_and_leaves_nothing(
    tmp_path: Path, none: Calibrator, suffix: str
) -> None:
    source = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        source.write_text("id,score\n")
    else:
        pq.write_table(pa.table({"score": pa.array([], pa.float64())}), source)
    with pytest.raises(FileInvalid, match="has no rows"):
        apply_file(none, source, tmp_path / "out.csv", Columns())
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_a_target_that_cannot_be_written_is_told_with_its_folder(
    tmp_path: Path, none: Calibrator
) -> None:
    source = tmp_path / "t.csv"
    source.write_text("score\n0.25\n")
    target = tmp_path / "nowhere" / "out.csv"
    with pytest.raises(FileInvalid, match=r"out\.csv: cannot be written \(No such file.*Choose a"):
        apply_file(none, source, target, Columns())
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(FileInvalid, match=r"taken\.csv: cannot be written"):
        apply_file(none, source, tmp_path / "taken.csv", Columns())
    assert not list(tmp_path.glob(".*"))
