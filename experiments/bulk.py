"""A hundred million rows by every way there is to count them. Writes `bulk.md`.

`python -m experiments.bulk` needs Java, 2 GB of disk and some minutes; `--quick` is a hundredth.
"""

import os
import signal
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.growth import exponent
from benchmarks.timing import three_digits
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from sklearn.metrics import roc_auc_score

from experiments.data import SHARED, load
from experiments.page import markdown_table, say
from experiments.processes import cpu_seconds, spark_workers
from fedassay import Grid, Hierarchy, Survey
from fedassay.engines import spark
from fedassay.examples import IntArray
from fedassay.mechanisms import Exact, Privacy
from fedassay.tables.columns import Columns
from fedassay.tables.parts import PartCounter, count_in_threads, table_parts
from fedassay.tables.reading import count_survey_file
from fedassay.tables.sql import counts_query

_CELLS = 1024
_FILES = 10
_GROUP_ROWS = 2**20
_SCHEMA = pa.schema([("score", pa.float64()), ("label", pa.int8())])
_JITTER = 1e-4
_MOST_FOR_PEERS = 10**6
_MOST_IN_FRAMES = 10**7
Counts = IntArray | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One way over one number of rows."""

    way: str
    rows: int
    seconds: float
    processor_seconds: float
    counts: Counts
    """None for peers, which make another figure of the rows."""


def measured(way: str, rows: int, task: Callable[[], Counts]) -> Measured:
    """Run once; times of all processes that took part."""
    say(f"{way}, {rows:,} rows")
    cpu, start = cpu_seconds(), time.perf_counter()
    counts = task()
    seconds, taken = time.perf_counter() - start, cpu_seconds() - cpu
    say(f"  took {seconds:.2f} s, {taken:.2f} of processors")
    return Measured(way, rows, seconds, taken, counts)


def write_files(folder: Path, rows: int, data: Path) -> None:
    """Real scored rows again and again, each time moved a little, in files of equal size."""
    tables = load(data)
    scores = np.concatenate([table.examples.scores for table in tables])
    labels = np.concatenate([table.examples.labels for table in tables]).astype(np.int8)
    draw = np.random.default_rng(20261116)
    folder.mkdir()
    for number in range(_FILES):
        with pq.ParquetWriter(folder / f"{number}.parquet", _SCHEMA) as writer:
            for start in range(0, rows // _FILES, _GROUP_ROWS):
                size = min(_GROUP_ROWS, rows // _FILES - start)
                own = draw.integers(0, len(scores), size)
                moved = np.clip(scores[own] + _JITTER * draw.standard_normal(size), 0.0, 1.0)
                writer.write_table(pa.table([moved, labels[own]], schema=_SCHEMA))


def kill_once() -> tuple[threading.Thread, list[int]]:
    """Kill every Python worker of Spark once, when a job has counted a part and not all."""
    killed: list[int] = []
    tracker = spark.spark_session().sparkContext.statusTracker()

    def watch() -> None:
        for _ in range(60_000):
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            if any(each is not None and each.numCompletedTasks > 0 for each in stages):
                killed.extend(spark_workers())
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread, killed


def by_duckdb(survey: Survey, files: list[Path]) -> IntArray:
    """The counts of the query that `fedassay sql` prints, on two threads."""
    listed = ", ".join(f"'{path}'" for path in files)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.execute(f"CREATE VIEW scored AS SELECT * FROM read_parquet([{listed}])")  # noqa: S608
        found = connection.execute(counts_query(survey, "duckdb", table="scored")).fetchall()
    counts = np.zeros((2, survey.grid.cells), dtype=np.int64)
    for label, cell, n in found:
        counts[label, cell] = n
    return counts


def total(counted: Iterable[IntArray]) -> IntArray:
    """The sum of several files' counts."""
    return reduce(add, counted)


def ways(survey: Survey, files: list[Path]) -> dict[str, Callable[[], Counts]]:
    """Every way to count these files, by name."""
    columns = Columns()
    counter, parts = PartCounter.of(survey, columns), table_parts(files)
    session = spark.spark_session()
    frame = session.read.parquet(*map(str, files))
    return {
        "the plain reader, one file after another": lambda: total(
            count_survey_file(path, columns, survey) for path in files
        ),
        "the plain reader, row groups in threads": lambda: total(
            count_in_threads(path, columns, survey) for path in files
        ),
        "parts, one after another": lambda: counter.total(map(counter, parts)),
        "Spark, files": lambda: spark.count_spark(survey, [*files], columns),
        "Spark, a frame": lambda: spark.count_spark(survey, frame, columns),
        "DuckDB, the query of `fedassay sql`": lambda: by_duckdb(survey, files),
    }


def peers(files: list[Path]) -> dict[str, Callable[[], Counts]]:
    """What others make of the rows: one area under a curve."""
    frame = spark.spark_session().read.parquet(*map(str, files))

    def by_mllib() -> None:
        judge = BinaryClassificationEvaluator(rawPredictionCol="score", labelCol="label")
        judge.evaluate(frame.selectExpr("score", "double(label) AS label"))

    def by_sklearn() -> None:
        table = pa.concat_tables([pq.read_table(path) for path in files]).combine_chunks()
        roc_auc_score(
            np.from_dlpack(table["label"].chunk(0)), np.from_dlpack(table["score"].chunk(0))
        )

    return {
        "peer: MLlib's BinaryClassificationEvaluator, ROC AUC": by_mllib,
        "peer: scikit-learn's roc_auc_score": by_sklearn,
    }


def study(folder: Path, sizes: tuple[int, ...], data: Path) -> tuple[list[Measured], list[int]]:
    """Every way over every size, and the workers that were killed in the last."""
    grid = Grid.uniform(_CELLS)
    survey = Survey(
        privacy=Privacy.SECURE,
        grid=grid,
        hierarchy=Hierarchy.flat(_CELLS),
        mechanisms=(Exact(),),
    )
    found: list[Measured] = []
    killed: list[int] = []
    spark.spark_session().sparkContext.parallelize(range(2), 2).map(abs).collect()
    for rows in sizes:
        say(f"writing {rows:,} rows")
        write_files(folder / str(rows), rows, data)
        files = sorted((folder / str(rows)).iterdir())
        for way, task in ways(survey, files).items():
            if rows <= _MOST_IN_FRAMES or "frame" not in way:
                found.append(measured(way, rows, task))
        if rows <= _MOST_FOR_PEERS:
            found += [measured(way, rows, task) for way, task in peers(files).items()]
        if rows < sizes[-1]:
            continue
        thread, killed = kill_once()
        way = "Spark, files, workers killed"
        found.append(measured(way, rows, ways(survey, files)["Spark, files"]))
        thread.join()
    return found, killed


def page(found: list[Measured], killed: list[int], *, disk: float, load: float) -> str:
    """The page, with the rules that held."""
    sizes = sorted({each.rows for each in found})
    for rows in sizes:
        counted = [each.counts for each in found if each.rows == rows and each.counts is not None]
        if not all(np.array_equal(each, counted[0]) and each.sum() == rows for each in counted):
            raise SystemExit(f"the ways differ over {rows:,} rows")
    body = []
    for way in dict.fromkeys(each.way for each in found):
        own = {each.rows: each for each in found if each.way == way}
        row = [way]
        for rows in sizes:
            each = own.get(rows)
            row.append("" if each is None else f"{each.seconds:.1f} ({each.processor_seconds:.1f})")
        last = own[max(own)]
        row.append(three_digits(last.rows / last.processor_seconds / 1e6))
        powers = {
            rows: each.processor_seconds for rows, each in own.items() if each.processor_seconds > 0
        }
        row.append(f"{exponent(powers):.2f}" if len(powers) > 1 else "")
        body.append(row)
    header = [
        "way",
        *(f"{rows:,} rows" for rows in sizes),
        "million rows per processor second",
        "exponent",
    ]
    return f"""# Many rows by every way there is to count them

Seconds by the clock, and in brackets seconds of processors over all processes, for one run of
each way on {os.cpu_count()} cores. The machine was shared (load average {load:.1f} at the end): the
brackets are what to compare, the clock says only what a busy machine gave. Rows are those of the
shared tables again and again, scores moved by {_JITTER:g} at random, in {_FILES} Parquet files
({disk:.1f} GB the largest); {_CELLS:,} cells. Exponents are of processor seconds over rows: below 1
where starting costs most. Spark's session was there before.

All ways counted the same, to the last row, at every size. In the last row of Spark {len(killed)}
Python workers were killed in the middle; their parts were counted again.

{markdown_table(header, body)}

Made by `python -m experiments.bulk`. Peers make one figure, and hold or sort all rows: they are
run on {_MOST_FOR_PEERS:,} alone.
"""


def main() -> None:
    """Measure and write the page; --quick only prints a small one."""
    parser = ArgumentParser(prog="python -m experiments.bulk", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, printed only")
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of scored tables")
    parser.add_argument("--sizes", type=int, nargs="*", default=(), help="other numbers of rows")
    arguments: Any = parser.parse_args()
    quick: bool = arguments.quick
    sizes = (10**4, 10**5, 10**6) if quick else (10**6, 10**7, 10**8)
    sizes = tuple(arguments.sizes) or sizes
    with TemporaryDirectory(prefix="fedassay-bulk-") as folder:
        found, killed = study(Path(folder), sizes, arguments.data)
        largest = (Path(folder) / str(sizes[-1])).iterdir()
        disk = sum(path.stat().st_size for path in largest) / 1e9
    text = page(found, killed, disk=disk, load=os.getloadavg()[0])
    print(text)
    if not quick:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
