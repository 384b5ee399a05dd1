"""What every engine must do: the same rows give the same tally, however they are held."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from examples.four_hospitals.hospitals import open_hospital
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay import (
    Examples,
    Grid,
    Hierarchy,
    Survey,
    SurveyRequest,
    SystemRandomness,
    Tally,
)
from fedassay.client import OPEN_POLICY, answer_counts
from fedassay.engines.base import Engine
from fedassay.engines.flower.federate import OverFlower
from fedassay.engines.flower.settings import RunSettings
from fedassay.engines.in_process import InProcess
from fedassay.engines.report_files import ReportFiles, answer_file, read_messages, write_answer
from fedassay.examples import ScoredClients
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import AtOnce, EachClient, clients
from fedassay.tables.reading import Columns, read_clients
from fedassay.wire import Message
from tests.flowergrid import CONFIG, InProcessGrid
from tests.surveys import cohort_of, flat_survey, small_survey
from tests.tables import BUNDLED, Table, tables

SURVEYS = {
    "tree": small_survey(16),
    "ragged tree": small_survey(11, fanout=3),
    "two cells": flat_survey(Grid.given_classifier(0.3)),
    "default": design_survey(SurveyRequest()).survey,
}
surveys = pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS.keys())


def reports_in(folder: Path, survey: Survey, scored: ScoredClients) -> Engine:
    """Every client writes its report file; none is read before all are there."""
    folder.mkdir()
    for number, examples in enumerate(clients(scored)):
        answered = answer_counts(
            survey, survey.grid.count(examples), randomness=SYSTEM, policy=OPEN_POLICY
        )
        write_answer(answered, folder / f"{number}.fa")
    return ReportFiles([folder])


def over_flower(folder: Path, survey: Survey, scored: ScoredClients) -> Engine:
    """Every client is a site with a folder of its own."""
    sites = {
        number: open_hospital(
            folder / str(number), examples, pinned=False, smallest_cohort=1, colluders=0
        ).config
        for number, examples in enumerate(clients(scored))
    }
    return OverFlower(InProcessGrid(sites), replace(RunSettings.from_config(CONFIG), survey=survey))


SYSTEM = SystemRandomness()
ENGINES: dict[str, Callable[[Path, Survey, ScoredClients], Engine]] = {
    "at once": lambda _, __, scored: AtOnce(scored, SimulatedRandomness(1)),
    "each client": lambda _, __, scored: EachClient(scored, SimulatedRandomness(2)),
    "in process": lambda _, __, scored: InProcess(scored, SYSTEM),
    "report files": reports_in,
    "flower": over_flower,
}
engines = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES.keys())


@engines
@surveys
def test_every_engine_gives_the_counters_of_the_rows(
    make: Callable[[Path, Survey, ScoredClients], Engine],
    survey: Survey,
    sample: Table,
    tmp_path: Path,
) -> None:
    table = Table(sample.labels[:3000], sample.scores[:3000])
    owners = np.repeat([0, 1, 2, 3], [100, 1900, 1, 999]).tolist()
    scored = cohort_of(Examples(*table), owners)
    tally = make(tmp_path / "engine", survey, scored).tally(survey)
    assert tally.counters.tolist() == counters_by_hand(survey, table)
    assert tally.reports == (4,) * survey.hierarchy.levels


def whole(survey: Survey, scored: ScoredClients) -> Tally:
    return AtOnce(scored, SimulatedRandomness(1)).tally(survey)


def one_by_one(survey: Survey, scored: ScoredClients) -> Tally:
    return EachClient(scored, SimulatedRandomness(2)).tally(survey)


def securely(survey: Survey, scored: ScoredClients) -> Tally:
    return InProcess(scored, SYSTEM).tally(survey)


@surveys
@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_split_of_rows_into_clients_gives_the_same_counters(
    survey: Survey, table: Table, data: st.DataObject
) -> None:
    examples = Examples(*table)
    rows = len(examples)
    clients = data.draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows))
    split = cohort_of(examples, clients)
    expected = counters_by_hand(survey, table)
    for cohort in (split, cohort_of(examples)):
        # Two clients are the fewest that hide each other, and few are enough to tell.
        hidden = (securely,) if 2 <= cohort.clients <= 6 else ()
        for engine in (whole, one_by_one, *hidden):
            tally = engine(survey, cohort)
            assert tally.counters.tolist() == expected
            assert tally.reports == (cohort.clients,) * survey.hierarchy.levels
            assert tally.clients(survey) == cohort.clients
    assert len(one_by_one(survey, split).report_ids) == len(set(clients))


def counters_by_hand(survey: Survey, table: Table) -> list[int]:
    cells = np.maximum(np.searchsorted(survey.grid.edges, table.scores) - 1, 0)
    counters: list[int] = []
    for level in range(survey.hierarchy.levels):
        assert isinstance(survey.hierarchy, Hierarchy)
        block = int(np.prod(survey.hierarchy.fanouts[level + 1 :]))
        width = -(-survey.grid.cells // block)
        for label in (0, 1):
            places = cells[table.labels == label] // block
            counters += np.bincount(places, minlength=width).tolist()
    return counters


@surveys
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_give_the_counters_of_the_simulation(
    survey: Survey, kind: str, sample: Table, tmp_path: Path
) -> None:
    labels, scores = sample.labels[:30_000], sample.scores[:30_000]
    reports: list[Message] = []
    for site, rows in enumerate(np.array_split(np.arange(30_000), [100, 20_000])):
        table = pa.table({"y": labels[rows], "s": scores[rows]})
        path = tmp_path / f"{site}.{kind}"
        if kind == "csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pq.write_table(table, path)
        answer = answer_file(
            survey,
            path,
            Columns("s", "y"),
            randomness=SystemRandomness(),
            policy=OPEN_POLICY,
        )
        write_answer(answer, tmp_path / f"{site}.fa")
        received = list(read_messages(tmp_path / f"{site}.fa", survey))
        assert len(received) == 1
        reports += received
    simulated = whole(survey, cohort_of(Examples(labels, scores)))
    assert Tally.of(survey, reports).counters.tolist() == simulated.counters.tolist()
    sites = np.repeat([0, 1, 2], [100, 19_900, 10_000]).tolist()
    hidden = securely(survey, cohort_of(Examples(labels, scores), sites))
    assert hidden.counters.tolist() == simulated.counters.tolist()
    assert hidden.reports == (3,) * survey.hierarchy.levels


def test_all_engines_agree_on_real_clients() -> None:
    cohort = read_clients(BUNDLED, Columns("score", "label", "carrier"))
    survey = SURVEYS["default"]
    fast, real = whole(survey, cohort), one_by_one(survey, cohort)
    assert cohort.clients == 16
    assert fast.counters.tolist() == real.counters.tolist()
    assert fast.reports == real.reports == (16,) * survey.hierarchy.levels
    assert securely(survey, cohort) == fast
