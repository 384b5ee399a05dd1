"""A client in another language draws by the same laws.

Node draws from its own randomness, so every run sees other reports. Each check states its false
alarm, 1e-8 or little more, and has a twin: a planted bug that it must catch.
"""

import json
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from fedassay import Grid, Hierarchy, Survey
from fedassay.files import canonical
from fedassay.level_draw import hashed_level
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.grr import values_of
from fedassay.wire import Block, messages
from tests.client_laws import (
    EXAMPLES,
    FALSE_ALARM,
    FLAT,
    LEVELS,
    PLACES,
    ROWS,
    early_tail,
    follows_the_law,
    rows_at,
)
from tests.node import SCRIPTS, run_node
from tests.vectors.surveys import LOCAL, local

pytestmark = pytest.mark.statistical


class Job(NamedTuple):
    """Many clients that hold the same examples and answer the same survey."""

    survey: Survey
    examples: list[tuple[int, float]]
    clients: int = 1
    planted: str = "none"


def reports_of(folder: Path, *jobs: Job) -> list[list[Block]]:
    """What node's clients send, for each job; one process for all."""
    listed = [
        {
            "survey": canonical(job.survey.to_json()).decode(),
            "examples": job.examples,
            "clients": job.clients,
            "planted": job.planted,
            "output": str(folder / f"{i}.fa"),
        }
        for i, job in enumerate(jobs)
    ]
    (folder / "jobs.json").write_text(json.dumps(listed))
    done = run_node(SCRIPTS / "answers.mjs", folder / "jobs.json")
    assert done.returncode == 0, done.stderr
    answers = []
    for i, job in enumerate(jobs):
        read = messages(BytesIO((folder / f"{i}.fa").read_bytes()), job.survey)
        answers.append([message for message in read if isinstance(message, Block)])
    return answers


def test_nodes_sums_follow_the_laws_of_the_mechanisms(tmp_path: Path) -> None:
    """5 surveys and 2 tables of 60,000 rows, 2e-8 each: false alarms below 1e-6 in all."""
    cases = [(name, table) for name in FLAT for table in PLACES]
    jobs = [Job(FLAT[name], rows_at(PLACES[table])) for name, table in cases]
    for (name, table), blocks in zip(cases, reports_of(tmp_path, *jobs), strict=True):
        assert follows_the_law(FLAT[name], blocks, PLACES[table]), (name, table)


def test_planted_bugs_break_the_laws(tmp_path: Path) -> None:
    """The twins: probabilities off by a quarter, and an own bit that is no fair coin.

    The faintest, q of epsilon 5, is off by 16 standard deviations where 6 are an alarm.
    """
    bugs = [(name, "biased coins") for name in FLAT] + [("oue at 1", "no own bit")]
    jobs = [Job(FLAT[name], rows_at(PLACES["alike"]), 1, planted) for name, planted in bugs]
    for bug, blocks in zip(bugs, reports_of(tmp_path, *jobs), strict=True):
        assert not follows_the_law(FLAT[bug[0]], blocks, PLACES["alike"]), bug


@pytest.mark.parametrize("name", ["oue at 1, empty clients", "grr at 5, empty clients"])
def test_a_client_with_nothing_sends_one_report_like_any_other(name: str, tmp_path: Path) -> None:
    """2,000 empty clients; binomial tails of each of 12 counters: false alarm 1e-8."""
    survey, count = FLAT[name], 2000
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse)
    (blocks,) = reports_of(tmp_path, Job(survey, [], count))
    assert [block.reports for block in blocks] == [1] * count
    q = float(mechanism.q)
    sums = mechanism.sums(np.concatenate([block.rows for block in blocks]), 12)
    assert all(stats.binomtest(int(s), count, q).pvalue > FALSE_ALARM / 12 for s in sums)


def test_nodes_reports_spread_over_levels_by_their_fractions(tmp_path: Path) -> None:
    """60,000 reports on 3 levels, chi-square at a false alarm of 1e-8; the twin draws evenly."""
    jobs = [Job(LEVELS, EXAMPLES), Job(LEVELS, EXAMPLES, 1, "even levels")]
    honest, even = (
        stats.chisquare(
            [sum(block.reports for block in blocks if block.level == k) for k in range(3)],
            [ROWS / 7, 2 * ROWS / 7, 4 * ROWS / 7],
        ).pvalue
        for blocks in reports_of(tmp_path, *jobs)
    )
    assert honest > FALSE_ALARM > even


def test_the_order_of_nodes_reports_does_not_tell_the_table(tmp_path: Path) -> None:
    """2,000 rows, sorted by label; hypergeometric at 1e-8; the twin sends them as they stand."""
    survey = local("grr", Fraction(5), Grid.uniform(1), Hierarchy(1, (1,)))
    rows = [(label, 0.5) for label in (0, 1) for _ in range(1000)]
    jobs = [Job(survey, rows), Job(survey, rows, 1, "sorted reports")]
    honest, planted = (
        values_of(np.concatenate([block.rows for block in blocks]))
        for blocks in reports_of(tmp_path, *jobs)
    )
    assert early_tail(honest) > FALSE_ALARM > early_tail(planted)


def test_node_keeps_a_client_on_the_level_of_its_id(tmp_path: Path) -> None:
    survey = LOCAL["tree of two levels, grr then oue, by hash"]
    (blocks,) = reports_of(tmp_path, Job(survey, EXAMPLES[:5], 200))
    ids = [f"client {i}" for i in range(200)]
    assert [block.level for block in blocks] == [hashed_level(survey, each) for each in ids]


def test_node_sends_one_report_where_a_client_is_the_unit(tmp_path: Path) -> None:
    (blocks,) = reports_of(tmp_path, Job(LOCAL["a client is the unit"], EXAMPLES[:50], 20))
    assert [block.reports for block in blocks] == [1] * 20
