"""Tallying a file of locally private reports: gigabytes per second, peak memory.

`python -m benchmarks.reportfile FILE TASK` measures one file in its own process, prints JSON.
"""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.memory import memory_mib
from benchmarks.page import Aim, Section
from benchmarks.timing import three_digits
from fedassay.client import make_answer
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Privacy, UnaryEncoding
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import messages

_CELLS = 1024
_PIECE = 2**22
_AT_ONCE = 2**16
_ROOM_MIB = 16.0


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over a file."""

    reports: int
    size: int
    seconds: float
    growth_mib: float
    """Peak memory beyond what the process had before it opened the file."""


def measure(*, quick: bool) -> Section:
    """Write files of two sizes in blocks and one of single reports, tally all, delete them."""
    small, large = (2**16, 2**17) if quick else (2**17, 2**20)
    singles = 5_000 if quick else 100_000
    with TemporaryDirectory(prefix="fedassay-bench-") as folder:
        files = {reports: Path(folder) / f"{reports}.reports" for reports in (small, large)}
        for reports, path in files.items():
            _write(path, reports, at_once=_AT_ONCE)
        single = Path(folder) / "single.reports"
        _write(single, singles, at_once=1)
        blocks = {reports: _typical(path, "tally") for reports, path in files.items()}
        alone, reading = _typical(single, "tally"), _typical(files[large], "read")
    extra = blocks[large].growth_mib - blocks[small].growth_mib
    rows = [_row(f"tally of {n:,} reports in blocks", run) for n, run in blocks.items()]
    rows.append(_row(f"tally of {singles:,} reports, one message each", alone))
    rows.append(_row("reading the largest file, nothing else", reading))
    return Section(
        title="Tallying a report file",
        about=f"OUE reports of {2 * _CELLS:,} bits through `wire.messages` and `TallyBuilder`: "
        "headers, checksums and stray bits are checked, ids are kept so that no message counts "
        "twice. A block holds up to 4 MiB of reports under one id. Files are in the page cache; "
        "memory is the process's peak (VmHWM) beyond what it had before opening the file.",
        header=("what", "file", "GB/s", "thousand reports/s", "memory"),
        rows=rows,
        aims=[
            Aim(
                f"memory does not grow with the file; {large // small} times the blocks took "
                f"{extra:+.1f} MiB",
                extra < _ROOM_MIB,
            )
        ],
    )


def _row(name: str, run: Run) -> tuple[str, ...]:
    return (
        name,
        f"{run.size / 1e6:,.0f} MB",
        three_digits(run.size / run.seconds / 1e9),
        three_digits(run.reports / run.seconds / 1e3) if run.reports else "",
        f"{run.growth_mib:.0f} MiB",
    )


def _survey() -> Survey:
    mechanism = UnaryEncoding(Fraction(5))
    return Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(_CELLS),
        hierarchy=Hierarchy.flat(_CELLS),
        mechanisms=(mechanism,),
    )


def _write(path: Path, reports: int, *, at_once: int) -> None:
    survey, randomness = _survey(), SystemRandomness()
    places = np.random.default_rng(reports).integers(0, 2 * _CELLS, reports)
    with path.open("wb") as file:
        for first in range(0, reports, at_once):
            held = np.bincount(places[first : first + at_once], minlength=2 * _CELLS)
            answer = make_answer(survey, held.reshape(2, -1), randomness=randomness)
            file.write(answer.to_bytes())


def _typical(path: Path, task: str, runs: int = 3) -> Run:
    """The median of several processes, with the largest memory that any needed."""
    found = [_in_process(path, task) for _ in range(runs)]
    seconds = median(run.seconds for run in found)
    most = max(run.growth_mib for run in found)
    return Run(found[0].reports, found[0].size, seconds, most)


def _in_process(path: Path, task: str) -> Run:
    command = [sys.executable, "-m", "benchmarks.reportfile", str(path), task]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Run(**json.loads(printed))


def _tally(path: Path, survey: Survey) -> int:
    builder = TallyBuilder(Tally.zero(survey), survey)
    with path.open("rb") as file:
        for message in messages(file, survey):
            builder.add(message)
    return builder.tally().clients(survey)


def _read(path: Path) -> int:
    with path.open("rb") as file:
        while file.read(_PIECE):
            pass
    return 0


def _main(path: Path, task: str) -> None:
    survey = _survey()
    before = memory_mib("VmRSS")
    start = perf_counter()
    reports = _tally(path, survey) if task == "tally" else _read(path)
    seconds = perf_counter() - start
    growth = memory_mib("VmHWM") - before
    print(json.dumps(asdict(Run(reports, path.stat().st_size, seconds, growth))))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2])
