"""Spark counts what brute force counts: files, frames, tables and its SQL; a killed worker too.

So do the two lines for Dask and for Ray.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fedassay
from fedassay import Examples, Survey, SystemRandomness
from fedassay.client import ClientPolicy
from fedassay.engines import spark
from fedassay.errors import (
    ColumnMissing,
    FileInvalid,
    LabelInvalid,
    ScoreOutOfRange,
    SettingInvalid,
)
from fedassay.mechanisms import Unit, UnitKind
from fedassay.tables import parts
from fedassay.tables.columns import Columns
from fedassay.tables.sql import counts_query
from tests.blocks import read_blocks
from tests.contract.test_engines import counters_by_hand
from tests.program import Run, check_refused
from tests.surveys import flat_survey, local_pair, local_survey, small_survey
from tests.tables import ROOT, Table
from tests.unit.test_sql import GRIDS, by_brute_force, rows_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Counts = dict[tuple[int, int], int]
POLICY = ClientPolicy(exact_sums=True, smallest_cell=0)
ODD = [None, float("nan"), -0.0001, 1.0001, float("inf")]


@pytest.fixture(scope="module")
def session() -> "Iterator[SparkSession]":
    """The session that fedassay makes where there is none, in a Java that starts quickly."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (Debian: default-jre-headless)")
    pytest.importorskip("pyspark", reason="PySpark comes with the group test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        made = spark.spark_session()
        made.conf.set("spark.sql.shuffle.partitions", "2")
        yield made
        made.stop()


def by_place(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Counts:
    return {(label, cell): int(n) for (label, cell), n in np.ndenumerate(counts)}


def write(path: Path, examples: Examples, kind: str = "int") -> Path:
    labels: object = examples.labels
    if kind == "text":
        labels = np.where(examples.labels, "it's", "no")
    elif kind != "int":
        labels = examples.labels.astype(kind)
    pq.write_table(pa.table({"a score": examples.scores, "label": labels}), path)
    return path


@pytest.mark.parametrize("name", GRIDS)
def test_sql_frames_tables_and_files_count_as_brute_force_does(
    session: "SparkSession", tmp_path: Path, name: str
) -> None:
    """Scores on every edge and beside it, and labels of a type for each grid."""
    grid = GRIDS[name]
    survey, examples = flat_survey(grid), rows_on(grid)
    kind = dict(zip(GRIDS, ("int", "bool", "float64", "text"), strict=True))[name]
    path = write(tmp_path / "t.parquet", examples, kind)
    columns = Columns("a score", positive="it's" if kind == "text" else None)
    frame = session.read.parquet(str(path))
    frame.createOrReplaceTempView("scored")
    query = counts_query(
        survey, "spark", table="scored", score="a score", positive=columns.positive
    )
    expected = by_brute_force(grid, examples)
    found = session.sql(query).collect()
    assert [row[:2] for row in found] == sorted(expected)
    assert {(label, cell): n for label, cell, n in found} == expected
    others = ("scored", path.as_uri(), [str(path)]) if name == "uneven" else ()
    for data in (frame, path, *others):
        assert by_place(spark.count_spark(survey, data, columns)) == expected


def test_a_frame_does_not_say_whose_rows_it_counts(session: "SparkSession") -> None:
    survey = replace(local_survey(cells=4), unit=Unit(UnitKind.PATIENT, 3))
    frame = session.createDataFrame([(0.25, 0, "p1"), (0.75, 1, "p1")], ["score", "label", "id"])
    with pytest.raises(SettingInvalid, match="counts do not say whose rows they are"):
        spark.count_spark(survey, frame, Columns(patient="id"))


@pytest.mark.parametrize("more", [{}, {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"}])
def test_without_java_one_line_says_what_to_install(tmp_path: Path, more: dict[str, str]) -> None:
    pytest.importorskip("pyspark", reason="PySpark comes with the group test")
    small_survey().save(tmp_path / "survey.json")
    (tmp_path / "rows.csv").write_text("score,label\n0.25,0\n0.75,1\n")
    done = subprocess.run(
        [sys.executable, "-m", "fedassay", "answer", "survey.json", "rows.csv", "-o", "a.fa",
         "--engine", "spark", "--exact-sums", "--smallest-cell", "0"],
        capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
        env=os.environ | {"JAVA_HOME": str(tmp_path / "nowhere")} | more,
    )  # fmt: skip
    assert done.returncode == 2
    assert "EngineFailed: Spark must be able to start Java" in done.stderr
    assert "default-jre-headless" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "a.fa").exists()


def test_workers_on_this_machine_are_of_the_python_that_asks(session: "SparkSession") -> None:
    """Whatever python3 comes first on the path: an environment need not be activated."""
    (found,) = session.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert Path(found).resolve() == Path(sys.executable).resolve()
    assert Path(found).parent == Path(sys.executable).parent


def test_rows_that_fit_nowhere_are_refused_or_counted_apart(
    session: "SparkSession", tmp_path: Path
) -> None:
    survey, path = flat_survey(GRIDS["uniform"]), tmp_path / "odd.parquet"
    labels = [*["1"] * len(ODD), None, "2", "0"]
    scores = [*ODD, 0.5, 0.5, 0.5]
    pq.write_table(pa.table({"score": scores, "label": labels, "row": range(len(labels))}), path)
    frame = session.read.parquet(str(path))
    frame.createOrReplaceTempView("odd")
    rows = session.sql(counts_query(survey, "spark", table="odd")).collect()
    found = {(label, cell): n for label, cell, n in rows}
    assert found[1, -1] == len(ODD)
    assert (found[-1, 3], found[0, 3]) == (2, 1)
    assert sum(found.values()) == len(ODD) + 3
    for row, label in enumerate(labels):
        one = frame.where(f"row = {row}")
        if label == "0":
            assert spark.count_spark(survey, one, Columns())[0, 3] == 1
            continue
        refusal = ScoreOutOfRange if label == "1" else LabelInvalid
        with pytest.raises(refusal, match=r"or none|or are missing.*values withheld"):
            spark.count_spark(survey, one, Columns())


def test_what_no_count_can_answer_is_refused_before_spark_counts(
    session: "SparkSession", tmp_path: Path
) -> None:
    survey, path = flat_survey(GRIDS["uniform"]), tmp_path / "t.parquet"
    pq.write_table(pa.table({"risk": [0.5], "label": [1]}), path)
    frame = session.read.parquet(str(path))
    with pytest.raises(ColumnMissing, match="The table has: risk, label"):
        spark.count_spark(survey, frame, Columns())
    with pytest.raises(ColumnMissing, match=r"t\.parquet: there is no column"):
        spark.count_spark(survey, path, Columns())
    for data in (frame, path):
        with pytest.raises(SettingInvalid, match="table"):
            spark.count_spark(local_pair()[0], data, Columns("risk"))
    for name in ("no_such_table", "no such table", "file:///no/such/folder"):
        with pytest.raises(FileInvalid, match="neither a file"):
            spark.count_spark(survey, name, Columns())
    with pytest.raises(FileInvalid, match="cannot be read"):
        spark.count_spark(survey, "no/such.parquet", Columns())


def test_every_table_is_a_client_and_their_rows_give_the_counters_of_the_rows(
    session: "SparkSession", sample: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract of engines, with a folder, a file in parts by row groups, and a frame."""
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    monkeypatch.setattr(parts, "_WHOLE_BYTES", 0)
    table = Table(sample.labels[:3000], sample.scores[:3000])
    (tmp_path / "folder").mkdir()
    pieces = {"folder/a.csv": slice(100), "folder/b.parquet": slice(100, 200)}
    pieces |= {"c.parquet": slice(200, 2500), "d.parquet": slice(2500, 3000)}
    for name, rows in pieces.items():
        content = pa.table({"label": table.labels[rows], "score": table.scores[rows]})
        if name.endswith(".csv"):
            pyarrow.csv.write_csv(content, tmp_path / name)
        else:
            pq.write_table(content, tmp_path / name, row_group_size=400)
    frame = session.read.parquet(str(tmp_path / "d.parquet"))
    tables: list[spark.SparkData] = [tmp_path / "folder", str(tmp_path / "c.parquet"), frame]
    survey = small_survey(16)
    engine = spark.SparkTables(tables, Columns(), SystemRandomness())
    tally = engine.tally(survey)
    assert tally.counters.tolist() == counters_by_hand(survey, table)
    assert tally.reports == (3,) * survey.hierarchy.levels


PARTS = 24


@pytest.fixture(scope="module")
def many_parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Examples]:
    """A folder of equal files that takes two workers a second at least; and one file's rows."""
    folder = tmp_path_factory.mktemp("many")
    draw = np.random.default_rng(5)
    examples = Examples(draw.integers(0, 2, 200_000), draw.random(200_000).round(4))
    first = folder / "0.csv"
    pyarrow.csv.write_csv(pa.table({"score": examples.scores, "label": examples.labels}), first)
    for number in range(1, PARTS):
        (folder / f"{number}.csv").hardlink_to(first)
    return folder, examples


def parent_and_words(process: Path) -> tuple[int, str]:
    try:
        parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        return parent, (process / "cmdline").read_text()
    except OSError:  # it has ended
        return 0, ""


def spark_workers() -> list[int]:
    """Python workers of this process's Spark: children of a daemon whose Java we started."""
    found = {int(each.name): parent_and_words(each) for each in Path("/proc").glob("[0-9]*")}
    ours = {os.getpid()}
    for _ in range(4):
        ours |= {pid for pid, (parent, _) in found.items() if parent in ours}
    daemons = {pid for pid in ours if "pyspark.daemon" in found.get(pid, (0, ""))[1]}
    return [pid for pid in daemons if found[pid][0] in daemons]


def kill_workers(session: "SparkSession", in_the_middle: Callable[[], bool]) -> int:
    """Kill all Python workers until Spark has lost a task; how often that took."""
    times = 0
    for _ in range(6000):
        if in_the_middle():
            stages = session.sparkContext.statusTracker().getActiveStageIds()
            told = [session.sparkContext.statusTracker().getStageInfo(each) for each in stages]
            if any(each is not None and each.numFailedTasks for each in told):
                return times
            for worker in spark_workers():
                os.kill(worker, signal.SIGKILL)
            times += 1
        time.sleep(0.02)
    raise AssertionError("Spark has lost no task")


def has_begun(session: "SparkSession") -> bool:
    """Whether a job has counted some parts and not all."""
    tracker = session.sparkContext.statusTracker()
    told = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    return any(each is not None and 0 < each.numCompletedTasks < PARTS - 4 for each in told)


def test_workers_killed_in_the_middle_change_nothing(
    session: "SparkSession", many_parts: tuple[Path, Examples]
) -> None:
    folder, examples = many_parts
    survey = flat_survey(GRIDS["uniform"])
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill_workers, session, lambda: has_begun(session))
        counts = spark.count_spark(survey, folder, Columns())
        assert killed.result() > 0
    one = np.histogram2d(
        examples.labels, -examples.scores, bins=[[-0.5, 0.5, 1.5], -survey.grid.edges[::-1]]
    )[0][:, ::-1]
    assert counts.tolist() == (PARTS * one).tolist()


@pytest.mark.usefixtures("session")
def test_the_program_answers_with_spark_as_without(
    run: Run, tmp_path: Path, sample: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey, folder = tmp_path / "survey.json", tmp_path / "scored"
    folder.mkdir()
    whole = pa.table({"score": sample.scores[:2000], "label": sample.labels[:2000]})
    pq.write_table(whole, tmp_path / "whole.parquet")
    for name, rows in (("a", whole.slice(0, 700)), ("b", whole.slice(700))):
        pq.write_table(rows, folder / f"{name}.parquet")
    made = run("survey", "new", "--examples", 2000, "--minimum-reports", 2, "-o", survey)
    assert made.code == 0, made.err
    exact = ("--exact-sums", "--json")
    by_spark = run("answer", survey, folder, "--engine", "spark", *exact, "-o", tmp_path / "s.fa")
    plainly = run("answer", survey, tmp_path / "whole.parquet", *exact, "-o", tmp_path / "p.fa")
    for answered in (by_spark, plainly):
        assert json.loads(answered.out)["rows"] == 2000, answered.err
    in_python = fedassay.answer(
        survey, "label", "score", data=str(folder), engine="spark", policy=POLICY
    )
    (tmp_path / "q.fa").write_bytes(in_python.to_bytes())
    files = [tmp_path / f"{name}.fa" for name in "spq"]
    assert run("tally", survey, *files, "-o", tmp_path / "all.json").code == 0
    counters = json.loads((tmp_path / "all.json").read_text())["counters"]
    assert sum(counters) == 3 * 2000
    assert all(count % 3 == 0 for count in counters)


def test_spark_that_gives_up_charges_and_answers_nothing(
    session: "SparkSession", run: Run, tmp_path: Path, many_parts: tuple[Path, Examples]
) -> None:
    """Noise and ledger come after the sum: a job that is cancelled, or lost, spends nothing."""
    survey, ledger = tmp_path / "survey.json", tmp_path / "ledger.db"
    site = ("--privacy", "site", "--epsilon", 1, "--clients", 4, "--height", 3)
    assert run("survey", "new", *site, "-o", survey).code == 0
    run("ledger", "new", ledger)
    run("ledger", "budget", ledger, "--data-id", "w", "--epsilon", 2)
    unspent = run("ledger", "show", ledger, "--json").out
    told = ("--engine", "spark", "-o", tmp_path / "a.fa", "--ledger", ledger, "--data-id", "w")
    context = session.sparkContext

    def cancel() -> None:
        for _ in range(6000):
            if has_begun(session):
                context.cancelAllJobs()
                return
            time.sleep(0.02)
        raise AssertionError("no job has begun")

    with ThreadPoolExecutor(1) as pool:
        cancelled = pool.submit(cancel)
        refused = run("answer", survey, many_parts[0], *told)
        cancelled.result()
    check_refused(refused, "EngineFailed: Spark gave up", "Nothing was charged")
    assert not (tmp_path / "a.fa").exists()
    assert run("ledger", "show", ledger, "--json").out == unspent
    answered = run("answer", survey, many_parts[0] / "0.csv", *told)
    assert answered.code == 0, answered.err
    assert (tmp_path / "a.fa").exists()
    assert run("ledger", "show", ledger, "--json").out != unspent


@pytest.mark.usefixtures("session")
@pytest.mark.filterwarnings("ignore::FutureWarning:dask")
def test_the_page_runs_with_spark_and_with_dask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "bulk"}
    printed, page = StringIO(), ROOT / "docs" / "bulk.md"
    for block in read_blocks(page):
        if block.language == "python":
            with redirect_stdout(printed):
                exec(compile(block.text, str(page), "exec"), names)  # noqa: S102  # our own page
    shown = [block.text for block in read_blocks(page) if block.language == "output"]
    assert printed.getvalue() == "".join(shown)
    risk = np.arange(1, 1001) / 1000
    survey = names["survey"]
    assert isinstance(survey, Survey)
    for label, found in enumerate(np.asarray(names["counts"])):
        rows = risk[(risk * 7 % 1 < risk) == bool(label)]
        cells = np.searchsorted(survey.grid.edges, rows) - 1
        assert found.tolist() == (3 * np.bincount(cells, minlength=len(found))).tolist()


WITH_RAY = """
import json, ray
from fedassay.tables.columns import Columns
from fedassay.tables.parts import PartCounter, table_parts
from tests.surveys import flat_survey
from tests.unit.test_sql import GRIDS

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _temp_dir=FOLDER)
survey, parts = flat_survey(GRIDS["uneven"]), table_parts([DATA])
counter = PartCounter.of(survey, Columns("a score"))
TWO_LINES
print(json.dumps(counts.tolist()))
"""


def test_rays_two_lines_count_as_brute_force_does(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray comes with the extra flower")
    (lines,) = [
        block.text
        for block in read_blocks(ROOT / "docs" / "bulk.md")
        if block.language == "text" and "ray.remote" in block.text
    ]
    assert len(lines.splitlines()) == 2
    grid, folder = GRIDS["uneven"], tmp_path / "scored"
    folder.mkdir()
    examples = rows_on(grid)
    for part in range(3):
        write(folder / f"{part}.parquet", examples.rows(slice(part, None, 3)))
    script = WITH_RAY.replace("TWO_LINES", lines).replace("DATA", repr(str(folder)))
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="ray", dir="/tmp") as place:
        done = subprocess.run(
            [sys.executable, "-c", script.replace("FOLDER", repr(place))],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
                "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
                "RAY_USAGE_STATS_ENABLED": "0",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.array(json.loads(done.stdout.splitlines()[-1]))
    assert by_place(found) == by_brute_force(grid, examples)
