"""Results that are kept: a run that was stopped goes on, a run after a change starts anew."""

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from experiments.data import ROOT

_RESULTS = ROOT / "experiments" / "results"
_SCRIPTS = ("crowded", "odd_tables", "resampled", "trials")

Job = TypeVar("Job")


@lru_cache(maxsize=1)
def folder() -> Path:
    """The results of these very sources."""
    digest = hashlib.sha256()
    scripts = [ROOT / "experiments" / f"{name}.py" for name in _SCRIPTS]
    for path in sorted((ROOT / "src" / "fedassay").rglob("*.py")) + scripts:
        digest.update(path.read_bytes())
    return _RESULTS / digest.hexdigest()[:12]


def place(*words: str) -> Path:
    """Where the results of that name are kept."""
    return folder() / ("_".join(words).replace(" ", "_").replace("/", "-") + ".npz")


def keep(path: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays at once, so that what is there is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part.npz")
    np.savez_compressed(partial, allow_pickle=False, **arrays)
    partial.rename(path)


def seed_of(*words: object) -> list[int]:
    """A seed for each name, so that trials do not depend on the order in which they run."""
    digest = hashlib.sha256("/".join(map(str, words)).encode()).digest()
    return [int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")]


def run_all(
    todo: Sequence[Job], measure: Callable[[Job], float], *, processes: int, minutes: float
) -> None:
    """Measure every job, and start none once the time is up."""
    began, seconds, done = time.monotonic(), 0.0, 0
    waiting, running = list(todo), set[Future[float]]()
    with ProcessPoolExecutor(processes) as pool:
        while waiting or running:
            late = time.monotonic() - began > 60.0 * minutes
            while waiting and len(running) < processes and not late:
                running.add(pool.submit(measure, waiting.pop(0)))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                seconds += future.result()
                done += 1
            left = seconds / done * len(waiting) / processes
            message = f"{done} of {len(todo)} parts, {left / 60:.0f} min left"
            print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
