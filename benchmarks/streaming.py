"""Streaming a Parquet file larger than memory should hold: rows per second, peak memory.

`python -m benchmarks.streaming FILE` measures one file in its own process and prints JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.memory import memory_mib
from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import three_digits
from fedassay.grid import Grid
from fedassay.tables.reading import Columns, count_file

_GROUP_ROWS = 2**20
_BYTES_PER_ROW = 10
_ROOM_MIB = 64.0


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over a file."""

    rows: int
    seconds: float
    growth_mib: float
    """Peak memory beyond what the process had before it opened the file."""

    @property
    def rows_per_second(self) -> float:
        """Rows over seconds."""
        return self.rows / self.seconds


def measure(*, quick: bool) -> Section:
    """Write files of two sizes, stream both, and delete them."""
    small, large = (500_000, 5_000_000) if quick else (10_000_000, 100_000_000)
    with TemporaryDirectory(prefix="fedassay-bench-") as folder:
        _require_room(Path(folder), small + large)
        files = {rows: Path(folder) / f"{rows}.parquet" for rows in (small, large)}
        for rows, path in files.items():
            _write(path, rows)
        size = files[large].stat().st_size
        counted = {rows: _typical(path, "count") for rows, path in files.items()}
        ceiling = _typical(files[large], "read")
        default = _typical(files[large], "read-default")
    table = [_row(f"`count_file`, {rows:,} rows", run, ceiling) for rows, run in counted.items()]
    table.append(_row(f"pyarrow decoding {large:,} rows, no counting", ceiling, ceiling))
    table.append(_row("the same with pyarrow's default buffers", default, ceiling))
    extra = counted[large].growth_mib - counted[small].growth_mib
    return Section(
        title="Streaming a Parquet file",
        about=f"`engines.tables.count_file` checks and counts every row of a {size / 1e6:,.0f} MB "
        f"file (float64 score, int8 label, row groups of 2^20 rows, pyarrow's default encoding, "
        f"in the page cache) on a grid of {Grid.fine().cells:,} cells. Decoding alone is the "
        "ceiling. Memory is the process's peak (VmHWM) beyond what it had before opening the file.",
        header=("what", "million rows/s", "of the ceiling", "memory"),
        rows=table,
        aims=[
            Aim(
                f"memory does not grow with rows; ten times the rows took {extra:+.0f} MiB",
                extra < _ROOM_MIB,
            )
        ],
    )


def _row(name: str, run: Run, ceiling: Run) -> tuple[str, ...]:
    return (
        name,
        three_digits(run.rows_per_second / 1e6),
        f"{run.rows_per_second / ceiling.rows_per_second:.0%}",
        f"{run.growth_mib:.0f} MiB",
    )


def _require_room(folder: Path, rows: int) -> None:
    needed = 2 * rows * _BYTES_PER_ROW
    if disk_usage(folder).free < needed:
        raise SystemExit(
            f"{folder}: the benchmark needs {needed / 1e9:.1f} GB of free disk; found "
            f"{disk_usage(folder).free / 1e9:.1f} GB. Set TMPDIR, or use --quick."
        )


def _write(path: Path, rows: int) -> None:
    generator = np.random.default_rng(rows)
    schema = pa.schema([("score", pa.float64()), ("label", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, _GROUP_ROWS):
            labels, scores = scored_rows(min(_GROUP_ROWS, rows - start), generator=generator)
            writer.write_table(pa.table({"score": scores, "label": labels}, schema=schema))


def _typical(path: Path, task: str, runs: int = 3) -> Run:
    """The median of several processes, with the largest memory that any needed."""
    found = [_in_process(path, task) for _ in range(runs)]
    seconds = median(run.seconds for run in found)
    return Run(found[0].rows, seconds, max(run.growth_mib for run in found))


def _in_process(path: Path, task: str) -> Run:
    command = [sys.executable, "-m", "benchmarks.streaming", str(path), task]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Run(**json.loads(printed))


def _count(path: Path) -> int:
    return int(count_file(path, Columns("score", "label"), Grid.fine()).sum())


def _read(path: Path) -> int:
    return _decode(pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20))


def _read_default(path: Path) -> int:
    return _decode(pq.ParquetFile(path))


def _decode(file: pq.ParquetFile) -> int:
    with file:
        return sum(batch.num_rows for batch in file.iter_batches(batch_size=2**18))


def _main(path: Path, task: str) -> None:
    tasks: dict[str, Callable[[Path], int]] = {
        "count": _count,
        "read": _read,
        "read-default": _read_default,
    }
    before = memory_mib("VmRSS")
    start = perf_counter()
    rows = tasks[task](path)
    seconds = perf_counter() - start
    growth = memory_mib("VmHWM") - before
    print(json.dumps({"rows": rows, "seconds": seconds, "growth_mib": growth}))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2])
