"""The C client draws by the same laws, from the system's randomness: every run sees other reports.

Each check states its false alarm, 1e-8 or little more, and has a twin: a planted bug that it must
catch.
"""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedassay import Grid, Hierarchy, Survey
from fedassay.files import canonical
from fedassay.level_draw import hashed_level
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.grr import values_of
from fedassay.wire import Block, messages
from tests.cc import asked
from tests.client_laws import (
    FALSE_ALARM,
    FLAT,
    LEVELS,
    PLACES,
    ROWS,
    IntArray,
    early_tail,
    follows_the_law,
)
from tests.vectors.surveys import FIVE, LOCAL, local

pytestmark = pytest.mark.statistical


def blocks_of(
    folder: Path, survey: Survey, rows: IntArray, *, clients: int = 1, planted: str = "none"
) -> list[Block]:
    """What C's clients send that hold so many rows at each place of an even grid."""
    text = canonical(survey.to_json()).decode()
    given = ("laws", folder / "reports.fa", clients, *rows.tolist())
    said = asked(("survey", text), ("planted", planted), given)
    assert said[2] == ""
    read = messages(BytesIO((folder / "reports.fa").read_bytes()), survey)
    return [message for message in read if isinstance(message, Block)]


def counted(table: str) -> IntArray:
    return np.bincount(PLACES[table], minlength=12)


@pytest.mark.parametrize("name", sorted(FLAT))
@pytest.mark.parametrize("table", sorted(PLACES))
def test_cs_sums_follow_the_laws_of_the_mechanisms(name: str, table: str, tmp_path: Path) -> None:
    """5 surveys and 2 tables of 60,000 rows, 2e-8 each: false alarms below 1e-6 in all."""
    blocks = blocks_of(tmp_path, FLAT[name], counted(table))
    assert follows_the_law(FLAT[name], blocks, PLACES[table])


@pytest.mark.parametrize("name", sorted(FLAT))
def test_biased_coins_break_the_laws(name: str, tmp_path: Path) -> None:
    """The twins: probabilities off by a quarter."""
    blocks = blocks_of(tmp_path, FLAT[name], counted("alike"), planted="biased coins")
    assert not follows_the_law(FLAT[name], blocks, PLACES["alike"])


@pytest.mark.parametrize("name", ["oue at 1, empty clients", "grr at 5, empty clients"])
def test_a_device_with_nothing_sends_one_report_like_any_other(name: str, tmp_path: Path) -> None:
    """2,000 empty devices; binomial tails of each of 12 counters: false alarm 1e-8."""
    survey, count = FLAT[name], 2000
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse)
    blocks = blocks_of(tmp_path, survey, np.zeros(12, dtype=np.int64), clients=count)
    assert [block.reports for block in blocks] == [1] * count
    sums = mechanism.sums(np.concatenate([block.rows for block in blocks]), 12)
    q = float(mechanism.q)
    assert all(stats.binomtest(int(s), count, q).pvalue > FALSE_ALARM / 12 for s in sums)
    # Nobody sends the same report again.
    assert len({block.report_id for block in blocks}) == count


def test_cs_reports_spread_over_levels_by_their_fractions(tmp_path: Path) -> None:
    """60,000 reports on 3 levels, chi-square at a false alarm of 1e-8; the twin draws evenly."""
    rows = np.array([ROWS, *[0] * 13])
    honest, even = (
        stats.chisquare(
            [sum(block.reports for block in blocks if block.level == k) for k in range(3)],
            [ROWS / 7, 2 * ROWS / 7, 4 * ROWS / 7],
        ).pvalue
        for blocks in (
            blocks_of(tmp_path, LEVELS, rows, planted=planted)
            for planted in ("none", "even levels")
        )
    )
    assert honest > FALSE_ALARM > even


def test_the_order_of_cs_reports_does_not_tell_the_table(tmp_path: Path) -> None:
    """2,000 rows, sorted by label; hypergeometric at 1e-8; the twin is the sorted table itself."""
    survey = local("grr", FIVE, Grid.uniform(1), Hierarchy(1, (1,)))
    blocks = blocks_of(tmp_path, survey, np.array([1000, 1000]))
    sent = values_of(np.concatenate([block.rows for block in blocks]))
    assert early_tail(sent) > FALSE_ALARM > early_tail(np.sort(sent))


def test_c_keeps_a_client_on_the_level_of_its_id(tmp_path: Path) -> None:
    survey = LOCAL["tree of two levels, grr then oue, by hash"]
    blocks = blocks_of(tmp_path, survey, np.array([5, *[0] * 13]), clients=200)
    assert [block.level for block in blocks] == [
        hashed_level(survey, f"client {i}") for i in range(200)
    ]


def test_c_sends_one_report_of_any_row_where_a_client_is_the_unit(tmp_path: Path) -> None:
    """2,000 clients, one positive among five rows each; binomial tails at 1e-8, and a twin."""
    survey = LOCAL["a client is the unit"]
    blocks = blocks_of(tmp_path, survey, np.array([4, 0, 0, 0, 0, 1]), clients=2000)
    assert [block.reports for block in blocks] == [1] * 2000
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, UnaryEncoding)
    sums = mechanism.sums(np.concatenate([block.rows for block in blocks]), 6)
    chance = 0.2 * 0.5 + 0.8 * float(mechanism.q)
    assert stats.binomtest(int(sums[5]), 2000, chance).pvalue > FALSE_ALARM
    # The twin: the first row of each client.
    assert stats.binomtest(int(sums[1]), 2000, chance).pvalue < FALSE_ALARM
