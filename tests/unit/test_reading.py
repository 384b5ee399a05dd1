"""Tables read in batches mean what they mean when read at once."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay import Grid, Hierarchy, SystemRandomness, Unit
from fedassay.errors import FileInvalid, LabelInvalid, SettingInvalid
from fedassay.group_names import GroupNames
from fedassay.mechanisms import Keep, UnitKind
from fedassay.tables import sources
from fedassay.tables.groups import GroupColumn
from fedassay.tables.reading import (
    Columns,
    count_file,
    count_patients_file,
    read_both,
    read_clients,
    survey_batches,
)
from tests.surveys import flat_survey, small_survey

COLUMNS = Columns()


def table(path: Path, labels: list[int], scores: list[float] | None = None) -> Path:
    given = np.linspace(0.05, 0.95, len(labels)) if scores is None else scores
    pq.write_table(pa.table({"score": given, "label": labels}), path)
    return path


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 4)


@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize(
    "labels",
    [[0, 1, 1, 1, -1, 1, 1, 1], [-1, 1, 1, 1, 1, 1, 1, 1, 1, 0], [1] * 12 + [0] + [1] * 12 + [-1]],
)
def test_one_coding_holds_for_the_whole_file_not_for_each_batch(
    tmp_path: Path, labels: list[int]
) -> None:
    """Else 0 in one batch and -1 in another would both be negatives, or one of them a mistake."""
    path = table(tmp_path / "t.parquet", labels)
    for read in (read_clients, lambda p, c: count_file(p, c, Grid.uniform(4))):
        with pytest.raises(LabelInvalid, match="one coding"):
            read(path, COLUMNS)


@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize("negative", [0, -1])
def test_batches_count_what_rows_count(tmp_path: Path, negative: int) -> None:
    labels = [1, 1, 1, 1, negative, 1, negative, negative, 1, 1, negative]
    path = table(tmp_path / "t.parquet", labels)
    scores = np.linspace(0.05, 0.95, 11)
    # (0, 1/4], (1/4, 1/2], ... by hand: 0.05 .14 .23 | .32 .41 .5 | .59 .68 | .77 .86 .95
    expected = [[0, 1, 2, 1], [3, 2, 0, 2]]
    assert np.array_equal(
        np.round(scores, 2), [0.05, 0.14, 0.23, 0.32, 0.41, 0.5, 0.59, 0.68, 0.77, 0.86, 0.95]
    )
    assert count_file(path, COLUMNS, Grid.uniform(4)).tolist() == expected


def test_clients_are_told_apart_by_name_whatever_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 2)
    names = ["a", "b", "a", "c", "b", "a"]
    content = {"score": [0.1] * 6, "label": [0, 1, 0, 1, 0, 1], "who": names}
    pq.write_table(pa.table(content), tmp_path / "t.parquet")
    clients = read_clients(tmp_path / "t.parquet", Columns(client="who"))
    assert clients.clients == 3
    assert clients.client_of_row is not None
    codes = clients.client_of_row.tolist()
    assert [codes[i] == codes[0] for i in range(6)] == [name == "a" for name in names]
    assert len(set(codes)) == 3


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("score,label,score\n0.1,1,0.9\n")
    with pytest.raises(FileInvalid, match="2 times"):
        read_clients(tmp_path / "t.csv", COLUMNS)


READ_WITHOUT_PANDAS = """
import sys
from pathlib import Path
import fedassay
from fedassay import Grid
from fedassay.tables.reading import Columns, count_file, read_clients

if sys.argv[2] == "plant":
    import pandas
path = Path(sys.argv[1])
read_clients(path, Columns(client="site"))
read_clients(path, Columns(label="word", positive="yes"))
count_file(path, Columns(), Grid.uniform(4))
try:
    read_clients(path, Columns(score="gaps"))
except fedassay.errors.ValueMissing:
    print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_are_read_without_pandas_though_it_is_installed(suffix: str, tmp_path: Path) -> None:
    """pyarrow imports it for some conversions: 0.4 s and 40 MB for nothing, at every site."""
    path = tmp_path / f"t{suffix}"
    columns = {
        "score": [0.1, 0.2, 0.9],
        "label": [0, 0, 1],
        "site": ["a", "b", "a"],
        "word": ["no", "no", "yes"],
        "gaps": [0.1, None, 0.9],
    }
    if suffix == ".csv":
        rows = [
            ",".join("" if value is None else str(value) for value in row)
            for row in zip(*columns.values(), strict=True)
        ]
        path.write_text("\n".join([",".join(columns), *rows]) + "\n")
    else:
        pq.write_table(pa.table(columns), path)

    def imports_pandas(plant: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", READ_WITHOUT_PANDAS, path, plant],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout.strip()

    assert imports_pandas("") == "False"
    assert imports_pandas("plant") == "True"


def test_two_models_are_read_from_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"label": [0, 1], "one": [0.1, 0.2], "two": [0.3, 0.4]}), path)
    first, second = read_both(path, Columns("one", models=("a", "b"), second="two"))
    assert (first.examples.scores.tolist(), second.scores.tolist()) == ([0.1, 0.2], [0.3, 0.4])
    with pytest.raises(SettingInvalid, match=r"in two columns; found one\. Name both"):
        read_both(path, Columns("one"))


def test_a_survey_without_groups_reads_rows_as_they_are(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", [0, 1, 1])
    (rows,) = survey_batches(path, COLUMNS, small_survey(), None)
    assert rows.groups is None
    assert rows.labels.tolist() == [0, 1, 1]


@pytest.mark.usefixtures("_small_batches")
def test_a_patients_latest_row_is_counted_in_its_group(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "label,score,sex,who,at\n"
        "0,0.1,F,p1,1\n1,0.9,F,p1,2\n1,0.1,M,p2,9\n0,0.9,M,p2,3\n0,0.9,,p3,1\n0,0.1,X,p4,1\n"
    )
    unit = Unit(UnitKind.PATIENT, 1, Keep.LATEST)
    groups = GroupNames("sex", ("F", "M"))
    survey = replace(
        flat_survey(Grid.uniform(2)), hierarchy=Hierarchy.flat(8), unit=unit, groups=groups
    )
    columns = Columns(patient="who", time="at")
    counts, kept = count_patients_file(path, columns, survey, randomness=SystemRandomness())
    # Label x (F, M, missing, unknown) x cell; of p1 the second row, of p2 the first.
    assert counts.reshape(2, 4, 2).tolist() == [
        [[0, 0], [0, 0], [0, 1], [1, 0]],
        [[0, 1], [1, 0], [0, 0], [0, 0]],
    ]
    assert kept == 4


@pytest.mark.parametrize(
    ("values", "codes"),
    [(pa.nulls(3), [1, 1, 1]), (pa.chunked_array([["F"], [None, "F"]]), [0, 1, 0])],
)
def test_groups_of_a_column_that_is_empty_or_in_pieces(values: Any, codes: list[int]) -> None:
    column = GroupColumn("sex")
    column.add(pa.table({"sex": values}))
    assert column.codes(GroupNames("sex", ("F",))).tolist() == codes
