"""Parts of a table add up, in any order, to what one reader counts of all of it."""

import pickle
from dataclasses import replace
from functools import reduce
from itertools import permutations
from operator import add
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fedassay import Grid, Hierarchy
from fedassay.errors import (
    ColumnMissing,
    FileInvalid,
    LabelInvalid,
    ScoreOutOfRange,
    SettingInvalid,
)
from fedassay.group_names import GroupNames
from fedassay.mechanisms import Unit, UnitKind
from fedassay.tables import parts as table_parts_module
from fedassay.tables.columns import Columns
from fedassay.tables.parts import PartCounter, count_in_threads, table_parts
from fedassay.tables.reading import count_survey_file
from tests.surveys import flat_survey, local_pair, local_survey

SURVEY = flat_survey(Grid.uniform(4))
LABELS = np.arange(20) % 3 == 0
SCORES = np.arange(20) / 19
EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]


def by_hand(labels: np.ndarray[tuple[int], np.dtype[np.bool_]] = LABELS) -> list[list[int]]:
    """Every row asks every cell (lo, hi] whether it is its own; 0 is the first one's."""
    counts = [[0] * 4, [0] * 4]
    for label, score in zip(labels.tolist(), SCORES.tolist(), strict=True):
        (own,) = [c for c in range(4) if EDGES[c] < score <= EDGES[c + 1] or (c, score) == (0, 0.0)]
        counts[int(label)][own] += 1
    return counts


def write(path: Path, rows: slice = slice(None), *, labels: object = None, **options: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    given = LABELS[rows].astype(np.int8) if labels is None else labels
    table = pa.table({"score": SCORES[rows], "label": given})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, **options)
    return path


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_parts_module, "PART_ROWS", 6)
    monkeypatch.setattr(table_parts_module, "_WHOLE_BYTES", 0)


@pytest.mark.usefixtures("_small_parts")
def test_row_groups_are_parts_and_every_row_is_in_one(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", row_group_size=3)
    parts = table_parts([path])
    assert [part.row_groups for part in parts] == [(0, 1), (2, 3), (4, 5), (6,)]
    assert [part.number for part in parts] == [0, 1, 2, 3]
    counter = PartCounter.of(SURVEY, Columns())
    assert counter.total(map(counter, parts)).tolist() == by_hand()


def test_a_folder_is_one_table_of_any_files(tmp_path: Path) -> None:
    write(tmp_path / "day=1" / "a.parquet", slice(0, 9))
    write(tmp_path / "day=2" / "b.csv", slice(9, 10))
    last = write(tmp_path / "elsewhere.parquet", slice(10, 20))
    for name in ("_SUCCESS", ".a.parquet.crc"):
        (tmp_path / "day=1" / name).write_text("")
    parts = table_parts([tmp_path / "day=1", str(tmp_path / "day=2"), last])
    assert [part.path.name for part in parts] == ["a.parquet", "b.csv", "elsewhere.parquet"]
    counter = PartCounter.of(SURVEY, Columns())
    for order in permutations(map(counter, parts)):
        assert reduce(add, order).checked(Columns()).tolist() == by_hand()


def test_a_counter_and_what_it_counts_travel_to_workers(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", slice(0, 9))
    write(tmp_path / "b.parquet", slice(9, 20), labels=np.full(11, 2))
    counter = pickle.loads(pickle.dumps(PartCounter.of(SURVEY, Columns())))  # noqa: S301  # our own bytes
    good, bad = (pickle.loads(pickle.dumps(counter(p))) for p in table_parts([tmp_path]))  # noqa: S301  # our own bytes
    assert good.counts.sum() == 9
    with pytest.raises(LabelInvalid, match="is none of these"):
        (bad + good).checked(Columns())


@pytest.mark.parametrize(("second", "ok"), [(0, False), (-1, True)])
def test_one_coding_of_labels_holds_over_all_parts(tmp_path: Path, second: int, ok: bool) -> None:
    """0 in one part and -1 in another: one of them is a mistake."""
    write(tmp_path / "a.parquet", labels=np.where(LABELS, 1, -1))
    write(tmp_path / "b.parquet", labels=np.where(LABELS, 1, second))
    counter = PartCounter.of(SURVEY, Columns())
    counted = [counter(part) for part in table_parts([tmp_path])]
    if ok:
        assert counter.total(counted).tolist() == (2 * np.array(by_hand())).tolist()
    else:
        with pytest.raises(LabelInvalid, match="one coding"):
            counter.total(counted)


def test_a_third_label_in_another_part_is_refused_and_a_positive_may_be_in_one(
    tmp_path: Path,
) -> None:
    columns = Columns(positive="yes")
    counter = PartCounter.of(SURVEY, columns)
    write(tmp_path / "a.parquet", labels=np.where(LABELS, "no", "no"))
    write(tmp_path / "b.parquet", labels=np.where(LABELS, "yes", "no"))
    counted = [counter(part) for part in table_parts([tmp_path])]
    no, yes = np.array(by_hand())
    assert counter.total(counted).tolist() == [(no + no + yes).tolist(), yes.tolist()]
    write(tmp_path / "c.parquet", labels=np.where(LABELS, "maybe", "no"))
    with pytest.raises(LabelInvalid, match="found more"):
        counter.total([counter(part) for part in table_parts([tmp_path])])
    neither = Columns(positive="ja")
    with pytest.raises(LabelInvalid, match="is neither"):
        PartCounter.of(SURVEY, neither).total(
            PartCounter.of(SURVEY, neither)(part) for part in table_parts([tmp_path / "b.parquet"])
        )


def test_of_several_troubles_the_first_part_is_told_whatever_the_order(tmp_path: Path) -> None:
    pq.write_table(pa.table({"score": [1.5], "label": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"risk": [0.5], "label": [1]}), tmp_path / "b.parquet")
    write(tmp_path / "c.parquet")
    counter = PartCounter.of(SURVEY, Columns())
    for order in permutations(map(counter, table_parts([tmp_path]))):
        with pytest.raises(ScoreOutOfRange, match=r"a\.parquet: .*values withheld"):
            counter.total(order)
    with pytest.raises(ColumnMissing, match=r"b\.parquet"):
        counter.total(map(counter, table_parts([tmp_path / "b.parquet"])))


def test_what_is_no_table_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileInvalid, match="holds no table"):
        table_parts([tmp_path / "empty"])
    (tmp_path / "notes.txt").write_text("no table")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(FileInvalid, match="Rename or convert"):
            table_parts([path])
    with pytest.raises(FileInvalid, match="cannot be read"):
        table_parts([tmp_path / "none.parquet"])


def test_groups_are_counted_part_by_part(tmp_path: Path) -> None:
    groups = GroupNames("ward", ("a", "b"))
    grouped = replace(SURVEY, hierarchy=Hierarchy.flat(16), groups=groups)
    for name in ("a", "b"):
        rows = pa.table({"score": [0.1, 0.9], "label": [0, 1], "ward": [name, None]})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    counter = PartCounter.of(grouped, Columns())
    counts = counter.total(map(counter, table_parts([tmp_path])))
    assert counts[0].tolist() == [1, 0, 0, 0, 1, *[0] * 11]
    assert counts[1].tolist() == [*[0] * 11, 2, 0, 0, 0, 0]


def test_surveys_that_need_all_rows_at_once_are_refused() -> None:
    patients = replace(local_survey(cells=4), unit=Unit(UnitKind.PATIENT, 3))
    for survey in (patients, local_pair()[0]):
        with pytest.raises(SettingInvalid, match="all rows of a table at once"):
            PartCounter.of(survey, Columns(patient="id"))


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_count_what_one_reader_counts_and_tell_what_it_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(table_parts_module, "_THREAD_ROWS", 6)
    monkeypatch.setattr(table_parts_module, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(table_parts_module, "cpu_count", lambda: workers)
    told: list[int] = []
    path = write(tmp_path / "t.parquet", row_group_size=3)
    counts = count_in_threads(path, Columns(), SURVEY, progress=told.append)
    assert counts.tolist() == by_hand()
    assert sum(told) == len(SCORES)
    bad = tmp_path / "bad.parquet"
    scores = np.where(np.arange(20) == 13, 1.5, SCORES)
    pq.write_table(pa.table({"score": scores, "label": LABELS}), bad, row_group_size=3)
    with pytest.raises(ScoreOutOfRange, match=r"bad\.parquet: scores must lie in") as alone:
        count_survey_file(bad, Columns(), SURVEY)
    with pytest.raises(ScoreOutOfRange) as together:
        count_in_threads(bad, Columns(), SURVEY)
    assert str(together.value) == str(alone.value)
    mixed = write(tmp_path / "mixed.parquet", labels=[0] * 10 + [-1] * 10, row_group_size=3)
    with pytest.raises(LabelInvalid, match="one coding"):
        count_in_threads(mixed, Columns(), SURVEY)
    with pytest.raises(FileInvalid, match="this is a folder"):
        count_in_threads(tmp_path, Columns(), SURVEY)
