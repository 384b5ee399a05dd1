"""Tables that cannot be read as meant are refused in one line without their values."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.program import Run, check_refused, write_csv
from tests.tables import BUNDLED

BAD_TABLES = {
    "NaN": ("0.2,0\nnan,1", "ValueMissing"),
    "infinite": ("0.2,0\ninf,1", "ScoreOutOfRange"),
    "negative": ("0.2,0\n-0.7312345,1", "ScoreOutOfRange"),
    "above one": ("0.2,0\n1.7312345,1", "ScoreOutOfRange"),
    "missing score": ("0.2,0\n,1", "ValueMissing"),
    "odd label": ("0.2,0\n0.3,7312345", "LabelInvalid"),
    "mixed labels": ("0.2,0\n0.3,-1\n0.4,1", "LabelInvalid"),
    "missing label": ("0.2,0\n0.7312345,", "ValueMissing"),
    "text score": ("0.2,0\n0.7312345x,1", "ColumnTypeInvalid"),
    "text label": ("0.2,no\n0.7312345,yes", "ColumnTypeInvalid"),
    "ragged": ("0.2,0\n0.7312345,1,5", "FileInvalid"),
}


bad_tables = pytest.mark.parametrize(("rows", "error"), BAD_TABLES.values(), ids=BAD_TABLES.keys())


@bad_tables
def test_simulate_refuses_a_bad_table(run: Run, tmp_path: Path, rows: str, error: str) -> None:
    check_refused(run("simulate", write_csv(tmp_path / "bad.csv", rows)), error)


@bad_tables
def test_answer_refuses_a_bad_table_and_writes_nothing(
    run: Run, tmp_path: Path, survey_file: Path, rows: str, error: str
) -> None:
    path = write_csv(tmp_path / "bad.csv", rows)
    check_refused(
        run(
            "answer",
            survey_file,
            path,
            "--exact-sums",
            "--smallest-cell",
            0,
            "-o",
            tmp_path / "r.fa",
        ),
        error,
    )
    assert not (tmp_path / "r.fa").exists()


def test_a_missing_column_is_answered_with_the_closest(run: Run, scores_csv: Path) -> None:
    check_refused(run("simulate", scores_csv, "--score", "scroe"), "ColumnMissing", '"score"')
    check_refused(run("simulate", scores_csv, "--client", "zzz"), "ColumnMissing", "score, label")


def test_a_table_without_a_header_keeps_its_values(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bare.csv", "0.7312345,1\n0.5,0", header="")
    check_refused(run("simulate", path), "ColumnMissing", "column names")


def test_a_repeated_column_is_refused(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "twice.csv", "0.1,0.7312345,1", header="score,score,label")
    check_refused(run("simulate", path), "FileInvalid", "2 times")
    twice = pa.table([[0.1], [0.2], [1]], names=["score", "score", "label"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    check_refused(run("simulate", tmp_path / "twice.parquet"), "FileInvalid", "2 times")


@pytest.mark.parametrize("clients", [[[1], [2]], [b"\xff", b"a"]], ids=["list", "bytes"])
def test_a_client_column_that_names_nobody_is_refused(
    run: Run, tmp_path: Path, clients: list[object]
) -> None:
    table = pa.table({"score": [0.1, 0.9], "label": [0, 1], "site": clients})
    pq.write_table(table, tmp_path / "t.parquet")
    check_refused(run("simulate", tmp_path / "t.parquet", "--client", "site"), "ColumnTypeInvalid")


def test_a_file_that_is_no_table_is_refused(run: Run, tmp_path: Path, scores_csv: Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_bytes(scores_csv.read_bytes())
    check_refused(run("simulate", text), "FileInvalid")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(BUNDLED.read_bytes()[:-500])
    check_refused(run("simulate", cut), "FileInvalid")
    empty = tmp_path / "empty.csv"
    empty.touch()
    check_refused(run("simulate", empty), "FileInvalid")
    check_refused(run("simulate", tmp_path / "none.csv"), "FileInvalid")
    check_refused(run("simulate", tmp_path / "scores.xlsx"), "FileInvalid", ".csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    check_refused(run("simulate", folder), "FileInvalid")


def test_a_damaged_parquet_file_is_refused_or_read_but_never_a_traceback(
    run: Run, tmp_path: Path
) -> None:
    content = bytearray(BUNDLED.read_bytes())
    generator = np.random.default_rng(3)
    for trial in range(5):
        broken = content.copy()
        start = int(generator.integers(4, len(content) - 2000))
        broken[start : start + 1000] = generator.bytes(1000)
        path = tmp_path / f"{trial}.parquet"
        path.write_bytes(bytes(broken))
        result = run("simulate", path)
        assert result.code in (0, 2)
        assert result.code == 0 or len(result.err.strip().splitlines()) == 1
