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
import numpy.typing as npt
import pytest
from scipy import stats

from fedassay import Grid, Hierarchy, Survey
from fedassay.files import canonical
from fedassay.hierarchy import Interleaved
from fedassay.level_draw import hashed_level
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.grr import values_of
from fedassay.wire import Block, messages
from tests.laws import chi_square
from tests.node import SCRIPTS, run_node
from tests.vectors.surveys import LOCAL, local

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-8
IntArray = npt.NDArray[np.int64]


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


FLAT = {
    "oue at 1": local("oue", Fraction(1), Grid.uniform(6)),
    "oue at 5": local("oue", Fraction(5), Grid.uniform(6)),
    "grr at 1": local("grr", Fraction(1), Grid.uniform(6)),
    "grr at 5, empty clients": local("grr", Fraction(5), Grid.uniform(6), allow_empty=True),
    "oue at 1, empty clients": local("oue", Fraction(1), Grid.uniform(6), allow_empty=True),
}
ROWS = 60_000
PLACES = {
    "spread": np.random.default_rng(8).integers(0, 10, ROWS),
    "alike": np.full(ROWS, 8),
}
"""Label x cell of every row; some cells are left empty."""


def rows_at(places: IntArray) -> list[tuple[int, float]]:
    """Examples in the middle of six even cells."""
    return [(int(place >= 6), (int(place) % 6 + 0.5) / 6) for place in places]


EXAMPLES = rows_at(PLACES["spread"])


def follows_the_law(survey: Survey, blocks: list[Block], places: IntArray) -> bool:
    """Sums over 60,000 reports have the law of sums of two binomials, of bias p and q.

    False alarm: 1e-8 over all 12 counters, and 1e-8 over the bits of nobody's cells together,
    or over all values.
    """
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse)
    rows = np.concatenate([block.rows for block in blocks])
    sums = mechanism.sums(rows, 12)
    truth = np.bincount(places, minlength=12)
    p = 0.5 if isinstance(mechanism, UnaryEncoding) else float(mechanism.p)
    q = float(mechanism.q)
    tails = [
        tail_of_two(int(total), (int(hits), p), (ROWS - int(hits), q))
        for total, hits in zip(sums, truth, strict=True)
    ]
    if isinstance(mechanism, UnaryEncoding):
        nobodys = sums[truth == 0]
        whole = tail_of_two(int(nobodys.sum()), (0, p), (nobodys.size * ROWS, q))
    else:
        whole = values_tail(values_of(rows), mechanism, truth)
    return len(rows) == ROWS and min(tails) > FALSE_ALARM / 12 and whole > FALSE_ALARM


def tail_of_two(total: int, own: tuple[int, float], other: tuple[int, float]) -> float:
    """How likely a sum of two binomials is so far from its mean, on both sides.

    Normal, as hundreds of coins at least show heads and hundreds tails.
    """
    mean = own[0] * own[1] + other[0] * other[1]
    variance = sum(n * share * (1 - share) for n, share in (own, other))
    return float(2 * stats.norm.sf(abs(total - mean) / variance**0.5))


def values_tail(values: IntArray, mechanism: RandomizedResponse, truth: IntArray) -> float:
    """Chi-square of all values against the exact mixture that the rows call for."""
    p, q = float(mechanism.p), float(mechanism.q)
    shares = q + (p - q) * np.append(truth, [0] * (mechanism.values - truth.size)) / ROWS

    def pmf(k: IntArray) -> npt.NDArray[np.float64]:
        inside = (k >= 0) & (k < mechanism.values)
        return np.where(inside, shares[np.where(inside, k, 0)], 0.0)

    return chi_square(values, pmf)


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


LEVELS = local(
    "oue grr oue",
    Fraction(5),
    Grid.cubic(7),
    Interleaved(7, 3),
    level_policy=OneLevel((Fraction(1, 7), Fraction(2, 7), Fraction(4, 7))),
)


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


def early_tail(values: IntArray) -> float:
    """How likely so many, or so few, ones are in the first half."""
    law = stats.hypergeom(len(values), int(values.sum()), len(values) // 2)
    early = int(values[: len(values) // 2].sum())
    return float(2 * min(law.cdf(early), law.sf(early - 1)))


def test_node_keeps_a_client_on_the_level_of_its_id(tmp_path: Path) -> None:
    survey = LOCAL["tree of two levels, grr then oue, by hash"]
    (blocks,) = reports_of(tmp_path, Job(survey, EXAMPLES[:5], 200))
    ids = [f"client {i}" for i in range(200)]
    assert [block.level for block in blocks] == [hashed_level(survey, each) for each in ids]


def test_node_sends_one_report_where_a_client_is_the_unit(tmp_path: Path) -> None:
    (blocks,) = reports_of(tmp_path, Job(LOCAL["a client is the unit"], EXAMPLES[:50], 20))
    assert [block.reports for block in blocks] == [1] * 20
