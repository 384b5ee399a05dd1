"""Contests as jobs whose outcomes are kept, so that a run that was stopped goes on."""

import hashlib
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.crowded import crowded_table
from experiments.kept import keep, place
from experiments.peers.contests import CONTESTS, Outcome, run_contest
from experiments.resampled import SortedRows


class Job(NamedTuple):
    """One contest on one table."""

    table: str
    contest: int
    trials: int

    @property
    def path(self) -> Path:
        """Where its outcomes are kept."""
        return place("peers", _sources(), self.table, f"{self.contest}", f"{self.trials}")


@lru_cache(maxsize=1)
def _sources() -> str:
    """What these scripts are: outcomes of others are not taken for theirs."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in ("page", "__main__"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


@lru_cache(maxsize=1)
def _rows(table: str) -> SortedRows:
    return SortedRows.of(crowded_table(table).examples)


def measure(job: Job) -> float:
    """Run a contest and keep its outcomes; the seconds that it took."""
    began = time.monotonic()
    found = run_contest(CONTESTS[job.contest], _rows(job.table), job.trials)
    keep(
        job.path,
        entrants=np.array([each.entrant for each in found]),
        settings=np.array([each.setting for each in found]),
        area=np.array([each.area for each in found]),
        curve=np.array([each.curve for each in found]),
    )
    return time.monotonic() - began


def outcomes(job: Job) -> list[Outcome]:
    """What a job left, or nothing."""
    if not job.path.exists():
        return []
    held = np.load(job.path)
    return [
        Outcome(str(entrant), str(setting), area, curve)
        for entrant, setting, area, curve in zip(
            held["entrants"], held["settings"], held["area"], held["curve"], strict=True
        )
    ]
