"""Errors of the default survey, in one step and in two, against the paper preset's."""

import time
from argparse import ArgumentParser
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.accuracy_page import Errors, accuracy_page
from experiments.crowded import crowded_table, quantile_thresholds, real_names
from experiments.kept import keep, place, run_all, seed_of
from experiments.resampled import SortedRows, exact_metrics
from experiments.trials import DISTRIBUTED, LOCAL, Reader, Setting, chosen, designs
from fedassay.errors import SettingInvalid

TRIALS = 100
SETTINGS = (DISTRIBUTED[1], LOCAL[2], LOCAL[0])
PAGE = Path(__file__).with_suffix(".md")
_CHUNK = 20


class Job(NamedTuple):
    """Some trials of one table in one setting, with every design."""

    table: str
    setting: Setting
    chunk: int

    @property
    def path(self) -> Path:
        """Where they are kept."""
        return place("accuracy", self.table, self.setting.name, f"{self.chunk:03d}")


@lru_cache(maxsize=2)
def _rows(table: str) -> tuple[SortedRows, dict[str, float]]:
    examples = crowded_table(table).examples
    read_at = quantile_thresholds(examples)
    return SortedRows.of(examples), {k: t for k, t in read_at.items() if k.startswith("q")}


@lru_cache(maxsize=2)
def _readers(table: str, setting: Setting) -> dict[str, Reader]:
    rows, read_at = _rows(table)
    asked = tuple(read_at.values())
    return {
        name: Reader.of(design, rows, asked, len(rows))
        for name, design in designs(setting, len(rows), asked).items()
    }


def measure(job: Job) -> float:
    """Run the trials of a job and keep their errors: design x trial x metric."""
    began = time.monotonic()
    rows, read_at = _rows(job.table)
    counts = rows.counts()
    exact = exact_metrics(rows, counts, read_at)
    readers = _readers(job.table, job.setting)
    errors = np.full((len(readers), _CHUNK, len(exact)), np.nan)
    for trial, (which, (name, reader)) in product(range(_CHUNK), enumerate(readers.items())):
        seed = seed_of("accuracy", job.table, job.setting.name, name, job.chunk, trial)
        try:
            found = reader.estimates(counts, read_at, np.random.default_rng(seed))
        except SettingInvalid:  # the first survey found nothing but noise
            continue
        errors[which, trial] = [abs(found[metric].value - exact[metric]) for metric in exact]
    size = np.array([len(rows), counts[1].sum()])
    names, metrics = np.array(list(readers)), np.array(list(exact))
    values = np.array(list(exact.values()))
    default = np.array(chosen(job.setting, len(rows), tuple(read_at.values())))
    keep(
        job.path,
        designs=names,
        default=default,
        metrics=metrics,
        errors=errors,
        size=size,
        values=values,
    )
    return time.monotonic() - began


def gathered(table: str, setting: Setting, trials: int) -> Errors | None:
    """All errors that are there of a table in a setting."""
    paths = [Job(table, setting, chunk).path for chunk in range(-(-trials // _CHUNK))]
    parts = [np.load(path) for path in paths if path.exists()]
    if not parts:
        return None
    head = parts[0]
    rows, positives = map(int, head["size"])
    return Errors(
        table=table,
        setting=setting,
        rows=rows,
        positives=positives,
        exact=dict(zip(map(str, head["metrics"]), map(float, head["values"]), strict=True)),
        designs=tuple(map(str, head["designs"])),
        default=str(head["default"]),
        errors=np.concatenate([part["errors"] for part in parts], axis=1)[:, :trials],
    )


def main() -> None:
    """Measure, and write the page."""
    parser = ArgumentParser(prog="python -m experiments.accuracy", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"default: {TRIALS}")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing later")
    parser.add_argument("--page", type=Path, help=f"default: {PAGE.name} beside the script")
    arguments = parser.parse_args()
    chunks = range(-(-arguments.trials // _CHUNK))
    wanted = [Job(t, s, chunk) for chunk in chunks for s in SETTINGS for t in real_names()]
    todo = [job for job in wanted if not job.path.exists()]
    run_all(todo, measure, processes=arguments.processes, minutes=arguments.minutes)
    found = [gathered(t, s, arguments.trials) for s in SETTINGS for t in real_names()]
    text = accuracy_page([each for each in found if each is not None])
    (arguments.page or PAGE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
