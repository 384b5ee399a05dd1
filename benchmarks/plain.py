"""The plain tool where it once lost time: other processes beside it, and very many rows."""

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from benchmarks.memory import memory_mib
from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import shown, three_digits
from fedassay import ScoreHistogram, simulate
from fedassay.calibration.auto import fit_auto

_CORES = 2
_ALONE, _TOGETHER = "`fit_auto`, BLAS on one thread", "`fit_auto`, BLAS on two threads"
_SIMULATE = "`simulate`, distributed, with the exact values of all rows"
_MOST_FOR_THREADS = 2.0


def measure(*, quick: bool) -> Section:
    """Every task in a process of its own; calibration beside as many others as there are cores."""
    rows = 1_000_000 if quick else 10_000_000
    with _busy():
        found = {
            name: _child(name, 100_000, threads) for name, threads in ((_ALONE, 1), (_TOGETHER, 2))
        }
    found[_SIMULATE] = _child(_SIMULATE, rows, 1)
    ratio = found[_TOGETHER]["seconds"] / found[_ALONE]["seconds"]
    return Section(
        title="Beside other processes, and on many rows",
        about=f"`fit_auto` from the histogram of 100,000 rows, best of five, while {_CORES} other "
        f"processes take both cores; `simulate` of {rows:,} rows, each a client, one run in which "
        "noise, metrics, intervals and the exact values of the rows are computed.",
        header=("what", "time", "processor's time", "memory"),
        rows=[
            (
                name,
                shown(each["seconds"]),
                shown(each["processor_seconds"]),
                f"{each['growth_mib']:,.0f} MiB",
            )
            for name, each in found.items()
        ],
        aims=[
            Aim(
                f"BLAS with two threads at most {_MOST_FOR_THREADS:.0f} times as long as with one, "
                f"whoever else runs; measured {three_digits(ratio)} times",
                ratio < _MOST_FOR_THREADS,
            )
        ],
    )


@contextmanager
def _busy() -> Iterator[None]:
    others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(_CORES)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.terminate()


def _spin() -> None:
    while True:
        pass


def _child(task: str, rows: int, threads: int) -> Mapping[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.plain", task, str(rows)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
        check=True,
        capture_output=True,
        text=True,
    )
    found: Mapping[str, float] = json.loads(done.stdout)
    return found


def _best(runs: int, task: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and the processor's, each the least of several runs."""
    clock, processor = [], []
    for _ in range(runs):
        before, start = os.times(), perf_counter()
        task()
        clock.append(perf_counter() - start)
        after = os.times()
        processor.append(after.user + after.system - before.user - before.system)
    return min(clock), max(min(processor), 0.01)


def _main(task: str, rows: int) -> None:
    labels, scores = scored_rows(rows, generator=np.random.default_rng(31))
    before = memory_mib("VmRSS")
    if task == _SIMULATE:
        best = _best(1, lambda: simulate(labels, scores, privacy="distributed", epsilon=1, seed=1))
    else:
        histogram = ScoreHistogram.from_scores(labels, scores)
        fit_auto(histogram)
        best = _best(5, lambda: fit_auto(histogram))
    growth = memory_mib("VmHWM") - before
    print(json.dumps({"seconds": best[0], "processor_seconds": best[1], "growth_mib": growth}))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
