"""How often 95 % intervals hold the rows' value and the population's, and how wide they are.

Trials are kept in experiments/results, by the digest of the package's sources: a run that was
stopped goes on where it was, and a run after a change starts anew.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.coverage_page import coverage_page
from experiments.crowded import (
    SITES,
    asked_thresholds,
    crowded_table,
    is_small,
    quantile_thresholds,
    table_names,
)
from experiments.kept import keep, place, run_all, seed_of
from experiments.odd_tables import odd_names
from experiments.resampled import SortedRows, exact_metrics
from experiments.trials import SETTINGS, Reader, Setting, small_settings
from experiments.verdicts import ANSWERED, NOT_ENOUGH, TOO_COARSE, Trials
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.examples import FloatArray
from fedassay.planning.search import SurveyDesign, design_survey

TRIALS = 400
_CHUNK = 25


class Job(NamedTuple):
    """Some trials of one table in one setting."""

    table: str
    setting: Setting
    chunk: int

    @property
    def path(self) -> Path:
        """Where they are kept."""
        return place(self.table, self.setting.name, f"{self.chunk:03d}")


def settings_of(table: str) -> tuple[Setting, ...]:
    """The settings that a table is tried in."""
    return small_settings(SITES) if is_small(table) else SETTINGS


@lru_cache(maxsize=2)
def table_rows(table: str) -> tuple[SortedRows, dict[str, float], dict[str, float]]:
    """A table, the thresholds that it is read at, and its own metrics."""
    examples = crowded_table(table).examples
    rows, read_at = SortedRows.of(examples), quantile_thresholds(examples)
    return rows, read_at, exact_metrics(rows, rows.counts(), read_at)


@lru_cache(maxsize=2)
def table_reader(table: str, setting: Setting) -> Reader:
    """What asks a table as the planner chooses."""
    rows, read_at, _ = table_rows(table)
    asked = asked_thresholds(table, read_at)
    design = _design(setting, len(rows), asked)
    return Reader(design, rows, asked, setting.sites or len(rows))


@cache
def _design(setting: Setting, rows: int, asked: tuple[float, ...]) -> SurveyDesign:
    return design_survey(setting.request(rows, asked))


def measure(job: Job) -> float:
    """Run the trials of a job and keep them; returns how long they took."""
    began = time.monotonic()
    rows, read_at, population = table_rows(job.table)
    reader = table_reader(job.table, job.setting)
    names = list(population)
    found = np.full((_CHUNK, len(names), len(Trials.COLUMNS)), np.nan)
    for trial in range(_CHUNK):
        seed = seed_of(job.table, job.setting.name, job.chunk, trial)
        generator = np.random.default_rng(seed)
        counts = rows.drawn(generator)
        truth = exact_metrics(rows, counts, read_at)
        try:
            estimates = reader.estimates(counts, names, read_at, generator)
        except SettingInvalid:  # the first survey found nothing but noise
            estimates = {}
        for metric, name in enumerate(names):
            found[trial, metric] = _columns(estimates.get(name), truth[name], population[name])
    keep(job.path, names=np.array(names), trials=found)
    return time.monotonic() - began


def _columns(estimate: Estimate | None, truth: float, population: float) -> FloatArray:
    if estimate is None or not estimate.is_available:
        coarse = type(estimate).__name__ == "TooCoarse"
        rest = [np.nan] * 6
        return np.array([TOO_COARSE if coarse else NOT_ENOUGH, *rest, truth, population])
    ends = [*estimate.interval(population=False), *estimate.interval()]
    bound = estimate.binning_bound
    return np.array([ANSWERED, estimate.value, *ends, bound, truth, population])


def jobs(arguments: Namespace) -> Iterator[Job]:
    """Chunk by chunk, so that all tables are equally far at any time."""
    for chunk in range(-(-arguments.trials // _CHUNK)):
        for table in _chosen(arguments.tables, odd_names() if arguments.odd else table_names()):
            for setting in settings_of(table):
                if not arguments.settings or setting.name in arguments.settings:
                    yield Job(table, setting, chunk)


def gathered(
    table: str, setting: Setting, trials: int, earlier: str | None = None
) -> Trials | None:
    """All trials that are there of a table in a setting, at most so many."""
    jobs = [Job(table, setting, chunk) for chunk in range(-(-trials // _CHUNK))]
    paths = [_kept(job, earlier) for job in jobs]
    parts = [np.load(path) for path in paths if path is not None]
    if not parts:
        return None
    names = tuple(map(str, parts[0]["names"]))
    found = np.concatenate([part["trials"] for part in parts])[:trials]
    return Trials(table, setting.name, names, found)


def _kept(job: Job, earlier: str | None) -> Path | None:
    """Where a part is: of these sources, or else of an earlier state of them, by its digest."""
    places = (
        [job.path] if earlier is None else [job.path, job.path.parents[1] / earlier / job.path.name]
    )
    return next((path for path in places if path.exists()), None)


def _chosen(given: list[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    unknown = set(given or ()) - set(known)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    return tuple(given or known)


def main() -> None:
    """Measure, and write the page."""
    parser = ArgumentParser(prog="python -m experiments.coverage", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"default: {TRIALS}")
    parser.add_argument("--odd", action="store_true", help="tables that nothing was made for")
    parser.add_argument("--tables", nargs="+", help="default: all")
    parser.add_argument("--settings", nargs="+", help="such as 'distributed 1'; default: all")
    parser.add_argument("--metrics", nargs="+", help="only these on the page; default: all")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing later")
    parser.add_argument("--earlier", help="digest of a state whose parts stand for missing ones")
    parser.add_argument("--page", type=Path, help="write the page there instead of printing it")
    arguments = parser.parse_args()
    wanted = list(jobs(arguments))
    todo = [job for job in wanted if _kept(job, arguments.earlier) is None]
    run_all(todo, measure, processes=arguments.processes, minutes=arguments.minutes)
    pairs = dict.fromkeys((job.table, job.setting) for job in wanted)
    found = [
        gathered(table, setting, arguments.trials, arguments.earlier) for table, setting in pairs
    ]
    missing = [
        f"{table} {setting.name}"
        for (table, setting), each in zip(pairs, found, strict=True)
        if each is None
    ]
    older = {
        f"{job.table} {job.setting.name}"
        for job in wanted
        if not job.path.exists() and _kept(job, arguments.earlier) is not None
    }
    newer = [name for table, setting in pairs if (name := f"{table} {setting.name}") not in older]
    text = coverage_page(
        [each for each in found if each is not None],
        arguments.metrics,
        missing,
        newer if older else None,
        odd=arguments.odd,
    )
    if arguments.page:
        arguments.page.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
