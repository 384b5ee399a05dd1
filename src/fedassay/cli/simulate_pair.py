"""`fedassay simulate --score a=COL --score b=COL`: what would a federation tell apart?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fedassay.cli.classes import SIMULATION_FORMAT
from fedassay.cli.columns import TableOptions
from fedassay.cli.console import plain, progress
from fedassay.cli.outputs import Voice
from fedassay.cli.simulate_output import PAGE, make_folder
from fedassay.errors import SettingInvalid
from fedassay.files import write_json
from fedassay.paired.assessment import PairedAssessment
from fedassay.planning.pair_search import design_pair
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.report.pair_page import write_pair_report
from fedassay.simulation.pairs import PairedClients, assess_pair, exact_pair
from fedassay.simulation.simulate import check_sites, counted_rows
from fedassay.tables.reading import read_both
from fedassay.tables.sources import row_count


@dataclass(frozen=True, slots=True)
class PairRun:
    """How often the federation is run, and how; and where results go."""

    trials: int
    seed: int | None
    each_client: bool
    started: float
    reference: Path | None
    voice: Voice
    out_dir: Path | None


def simulate_two(
    file: Path,
    tables: TableOptions,
    asked: SurveyRequest,
    run: PairRun,
    *,
    of_one_model: Mapping[str, object],
) -> None:
    """Run a federation over rows that two models scored, and say what differs."""
    for option, value in of_one_model.items():
        if value:
            raise SettingInvalid(
                f"{option} goes with the scores of one model; found two. Leave it out, or name "
                "one column (--score COL)."
            )
    with progress("reading rows", row_count(file)) as advance:
        first, second = read_both(file, tables.for_table(file), progress=advance)
    clients = PairedClients(first, second)
    names = tuple(tables.models)
    held = counted_rows(first, asked.unit, is_local=asked.privacy.is_local)
    request = replace(asked, clients=first.clients, examples=held)
    check_sites(request.privacy, first)
    exact, exact_differences = exact_pair(clients, (names[0], names[1]), asked.thresholds)
    design = design_pair(request, (names[0], names[1]), references=tables.references(run.reference))
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
        "format": SIMULATION_FORMAT,
        "rows": len(second),
        "clients": first.clients,
        "models": dict(tables.models),
        "guarantee": last.guarantee.sentence(),
        "exact": exact,
        "exact_differences": exact_differences,
        "trials": results,
        "seconds": perf_counter() - run.started,
    }
    if run.out_dir is not None:
        _save(run.out_dir, content, last)
    run.voice.result(content)
    _say(run.voice, last, exact_differences)
    if run.out_dir is not None:
        run.voice.say(f"\nWrote {plain(run.out_dir)}/: assessment.json, simulation.json, {PAGE}")
        run.voice.say(f"To look at: {plain(run.out_dir / PAGE)}")


def _say(voice: Voice, assessment: PairedAssessment, exact: Mapping[str, float | None]) -> None:
    voice.say(str(assessment))
    shown = [f"{name} {value:+.4f}" for name, value in exact.items() if value is not None]
    voice.say(f"\nExact differences of these rows: {', '.join(shown)}.")


def _save(folder: Path, content: dict[str, Any], assessment: PairedAssessment) -> None:
    make_folder(folder)
    write_json(folder / "simulation.json", content)
    assessment.save(folder / "assessment.json")
    write_pair_report(assessment, folder / PAGE)
