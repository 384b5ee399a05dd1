"""`fedassay simulate --score a=COL --score b=COL`: what would a federation tell apart?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fedassay.cli.columns import TableOptions
from fedassay.cli.console import plain, progress
from fedassay.cli.outputs import Voice
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import write_json
from fedassay.paired.assessment import PairedAssessment
from fedassay.planning.pair_search import design_pair
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.pairs import PairedClients, assess_pair, exact_pair
from fedassay.simulation.simulate import check_sites, counted_rows
from fedassay.tables.reading import read_both
from fedassay.tables.sources import row_count

PAIRED_SIMULATION_FORMAT = "fedassay.paired-simulation/1"


@dataclass(frozen=True, slots=True)
class PairRun:
    """How often the federation is run, and how."""

    trials: int
    seed: int | None
    each_client: bool
    started: float


def refuse_with_pair(given: Mapping[str, object]) -> None:
    """Raise where an option was given that goes with one model's scores only."""
    for option, value in given.items():
        if value:
            raise SettingInvalid(
                f"{option} goes with the scores of one model; found two. Leave it out, or name "
                "one column (--score COL)."
            )


def simulate_two(
    file: Path,
    tables: TableOptions,
    asked: SurveyRequest,
    run: PairRun,
    *,
    reference: Path | None,
    places: tuple[Voice, Path | None],
) -> None:
    """Run a federation over rows that two models scored, and say what differs."""
    voice, out_dir = places
    with progress("reading rows", row_count(file)) as advance:
        first, second = read_both(file, tables.for_table(file), progress=advance)
    clients = PairedClients(first, second)
    names = tuple(tables.models)
    held = counted_rows(first, asked.unit, is_local=asked.privacy.is_local)
    request = replace(asked, clients=first.clients, examples=held)
    check_sites(request.privacy, first)
    exact, exact_differences = exact_pair(clients, (names[0], names[1]), asked.thresholds)
    design = design_pair(request, (names[0], names[1]), references=tables.references(reference))
    results: list[dict[str, Any]] = []
    with progress("trials", run.trials) as advance:
        for sequence in np.random.SeedSequence(run.seed).spawn(run.trials):
            last = assess_pair(
                design,
                clients,
                thresholds=asked.thresholds,
                randomness=SimulatedRandomness(sequence),
                each_client=run.each_client,
            )
            results.append(last.figures_json())
            advance(1)
    content: dict[str, Any] = {
        "format": PAIRED_SIMULATION_FORMAT,
        "rows": len(second),
        "clients": first.clients,
        "models": dict(tables.models),
        "guarantee": last.guarantee.sentence(),
        "exact": exact,
        "exact_differences": exact_differences,
        "trials": results,
        "seconds": perf_counter() - run.started,
    }
    if out_dir is not None:
        _save(out_dir, content, last)
    voice.result(content)
    _say(voice, last, exact_differences)
    if out_dir is not None:
        voice.say(f"\nWrote {plain(out_dir)}/: assessment.json, simulation.json")


def _say(voice: Voice, assessment: PairedAssessment, exact: Mapping[str, float | None]) -> None:
    voice.say(str(assessment))
    shown = [f"{name} {value:+.4f}" for name, value in exact.items() if value is not None]
    voice.say(f"\nExact differences of these rows: {', '.join(shown)}.")


def _save(folder: Path, content: dict[str, Any], assessment: PairedAssessment) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileInvalid(
            f"{folder}: cannot be made ({error.strerror}). Choose a folder you may write to."
        ) from error
    write_json(folder / "simulation.json", content)
    assessment.save(folder / "assessment.json")
