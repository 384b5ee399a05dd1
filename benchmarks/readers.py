"""The same files by our reader and by others: pyarrow alone, DuckDB, polars.

`python -m benchmarks.readers TASK FILE` runs one reader in its own process and prints JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.memory import memory_mib
from benchmarks.page import Section
from benchmarks.rows import scored_rows
from benchmarks.timing import three_digits
from fedassay import Exact, Grid, Hierarchy, Privacy, Survey
from fedassay.tables.parts import count_in_threads
from fedassay.tables.reading import Columns, count_survey_file
from fedassay.tables.sql import counts_query

_CELLS = 1024
_RUNS = 1
_ROWS_PER_CELL = "label, CAST(CEIL(score * 1024) AS INTEGER) AS cell"


def survey() -> Survey:
    """A survey of cells of equal width, which every reader can count in its own way."""
    return Survey(
        privacy=Privacy.SECURE,
        grid=Grid.uniform(_CELLS),
        hierarchy=Hierarchy.flat(_CELLS),
        mechanisms=(Exact(),),
    )


def measure(*, quick: bool) -> Section:
    """Write one table as Parquet and as CSV, and read both by every reader."""
    rows = {"parquet": 10**5 if quick else 10**7, "csv": 10**5 if quick else 3 * 10**6}
    body: list[tuple[str, ...]] = []
    with TemporaryDirectory(prefix="fedassay-bench-") as folder:
        for kind, count in rows.items():
            path = Path(folder) / f"t.{kind}"
            _write(path, count)
            for task in _TASKS:
                found = [_in_process(task, path) for _ in range(1 if quick else _RUNS)]
                if any(each["rows"] != count for each in found):
                    raise SystemExit(f"{task} did not count all of {count} rows")
                processor, clock = (
                    median(each[name] for each in found)
                    for name in ("processor_seconds", "seconds")
                )
                body.append(
                    (
                        f"{kind}: {task}",
                        three_digits(count / processor / 1e6),
                        three_digits(count / clock / 1e6),
                        f"{max(each['growth_mib'] for each in found):.0f} MiB",
                    )
                )
    sizes = ", ".join(f"{name} {_size_mb(name)} MB" for name in ("pyarrow", "duckdb", "polars"))
    return Section(
        title="Readers",
        about=f"{rows['parquet']:,} rows of Parquet and {rows['csv']:,} of CSV (float64 score, "
        f"int8 label) counted per label and cell, {_CELLS:,} cells of equal width, on two "
        "threads at most. By arithmetic: a reader's own expression for cells of equal width, "
        "which no other survey has, and with no check of scores and labels. Processor seconds "
        f"are what to compare where a machine is shared. On disk: {sizes}.",
        header=("what", "million rows per processor second", "million rows/s", "memory"),
        rows=body,
    )


def _write(path: Path, rows: int) -> None:
    labels, scores = scored_rows(rows, generator=np.random.default_rng(rows))
    table = pa.table({"score": scores, "label": labels})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=2**20)


def _in_process(task: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.readers", task, str(path)]
    environment = os.environ | {"POLARS_MAX_THREADS": "2"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = json.loads(printed.stdout)
    return found


def _size_mb(name: str) -> int:
    listed = [*(files(name) or []), *(files("polars-runtime-32") or [] if name == "polars" else [])]
    return round(sum(each.size or 0 for each in listed) / 1e6)


def _ours(path: Path) -> int:
    return int(count_survey_file(path, Columns(), survey()).sum())


def _in_threads(path: Path) -> int:
    return int(count_in_threads(path, Columns(), survey()).sum())


def _decoded(path: Path) -> int:
    """What pyarrow takes to read the columns, and nothing else."""
    if path.suffix == ".csv":
        with pyarrow.csv.open_csv(path) as reader:
            return sum(batch.num_rows for batch in reader)
    return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(2**18))


def _duckdb(path: Path, query: str) -> int:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.execute(f"CREATE VIEW t AS SELECT * FROM '{path}'")  # noqa: S608
        return sum(row[-1] for row in connection.execute(query).fetchall())


def _duckdb_query(path: Path) -> int:
    return _duckdb(path, counts_query(survey(), "duckdb", table="t"))


def _duckdb_arithmetic(path: Path) -> int:
    return _duckdb(path, f"SELECT {_ROWS_PER_CELL}, COUNT(*) FROM t GROUP BY ALL")  # noqa: S608


def _polars_arithmetic(path: Path) -> int:
    import polars as pl

    rows = pl.scan_csv(path) if path.suffix == ".csv" else pl.scan_parquet(path)
    cell = (pl.col("score") * _CELLS).ceil().cast(pl.Int32).alias("cell")
    counted = rows.select("label", cell).group_by("label", "cell").len()
    return int(counted.collect(engine="streaming")["len"].sum())


_TASKS: dict[str, Callable[[Path], int]] = {
    "fedassay": _ours,
    "fedassay, row groups in threads": _in_threads,
    "pyarrow, decoding alone": _decoded,
    "DuckDB, the query of `fedassay sql`": _duckdb_query,
    "DuckDB, by arithmetic": _duckdb_arithmetic,
    "polars, by arithmetic": _polars_arithmetic,
}


def _main(task: str, path: Path) -> None:
    for module in ("duckdb", "polars"):
        if module in task.lower():
            __import__(module)
    pa.set_cpu_count(2)
    before, cpu, start = memory_mib("VmRSS"), os.times(), perf_counter()
    rows = _TASKS[task](path)
    seconds, after = perf_counter() - start, os.times()
    taken = after.user + after.system - cpu.user - cpu.system
    found = {
        "rows": rows,
        "seconds": seconds,
        "processor_seconds": max(taken, 0.01),
        "growth_mib": memory_mib("VmHWM") - before,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]))
