"""A ledger killed at any moment never under-counts, and opens again.

A child process is stopped before and after each of its system calls in turn (ptrace), which
includes every write, sync, rename and unlink of SQLite and of the marks, and killed there
with SIGKILL. What it announced as having left must be charged. In CI a part of the stops,
with FEDASSAY_VERIFY=1 all of them: more than 500 kills.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from fedassay import Examples, SystemRandomness
from fedassay.client import OPEN_POLICY, answer
from fedassay.engines.report_files import write_answer
from fedassay.errors import FedassayError, LedgerRolledBack, SurveyRepeated
from fedassay.ledger import Budget, Checkpoint, Ledger, LedgerAccount, Part
from fedassay.ledger.high_water_mark import Mark, mark_path
from fedassay.ledger.steps import TableDigest
from tests.kills import Announce, Work, can_trace, killed_after, killed_at_call, moments
from tests.surveys import local_pair, local_survey

FULL = os.environ.get("FEDASSAY_VERIFY") == "1"
STEP = 1 if FULL else 11
TIMED = 150 if FULL else 15
EPSILON = Fraction(1, 7)
WARD = Part("ward")
NEXT = local_survey(EPSILON, cells=9)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


class Folder:
    """A ledger with some charges and a witness, restored after each kill."""

    def __init__(self, path: Path, charges: int = 2) -> None:
        self.path = path
        self.before = charges
        self.ledger = Ledger.create(path / "ledger.db", witness=path / "witness.mark")
        self.ledger.set_budget(Budget("ward", Fraction(50)))
        for number in range(charges):
            self.ledger.charge(local_survey(EPSILON, cells=30 + number), WARD)
        self._kept = {item: item.read_bytes() for item in path.iterdir()}

    def restore(self) -> None:
        for item in self.path.iterdir():
            item.unlink()
        for item, content in self._kept.items():
            item.write_bytes(content)

    def charged(self) -> int:
        """How often the ledger says it was charged since; it must open for that."""
        (balance,) = self.ledger.balances("ward")
        count = balance.spent / EPSILON - self.before
        assert count.denominator == 1
        return int(count)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def kill_everywhere(folder: Folder, work: Work, step: int = STEP) -> Iterator[int]:
    """Kill at stop after stop until the work is done; each time, how often it announced."""
    if can_trace():
        stop, alive = 1, True
        while alive:
            folder.restore()
            alive, left = killed_at_call(work, stop)
            yield left
            stop += step
    for seconds in moments(TIMED, 0.08):
        folder.restore()
        yield killed_after(work, seconds)


def undercounts(folder: Folder, work: Work) -> list[str]:
    """What is wrong after each kill; also, the ledger must go on from there."""
    wrong, kills = [], 0
    for left in kill_everywhere(folder, work):
        kills += 1
        try:
            charged = folder.charged()
            if charged < left:
                wrong.append(f"kill {kills}: {left} left, {charged} charged")
            folder.ledger.charge(local_survey(EPSILON, cells=20), WARD)
            if folder.charged() != charged + 1:
                wrong.append(f"kill {kills}: the next charge is lost")
        except FedassayError as error:
            wrong.append(f"kill {kills}: {type(error).__name__}: {error}")
    assert kills > (250 if FULL else 25)
    return wrong


def test_a_kill_at_any_system_call_never_loses_a_charge(folder: Folder) -> None:
    def work(announce: Announce) -> None:
        folder.ledger.charge(NEXT, WARD)
        announce()

    assert undercounts(folder, work) == []


def test_a_kill_at_any_system_call_of_a_checkpoint_never_loses_a_charge(tmp_path: Path) -> None:
    """The 64th entry brings a checkpoint with it, in the same transaction."""
    folder = Folder(tmp_path, charges=62)

    def work(announce: Announce) -> None:
        folder.ledger.charge(NEXT, WARD)
        announce()

    assert undercounts(folder, work) == []
    folder.restore()
    folder.ledger.charge(NEXT, WARD)
    assert isinstance(folder.ledger.verify().entries[-1].content, Checkpoint)


def test_a_kill_at_any_system_call_of_an_answer_never_loses_a_charge(folder: Folder) -> None:
    """The whole path of a client, up to the report in its outbox."""
    rows = Examples([0, 1, 1], [0.1, 0.4, 0.9])
    account = LedgerAccount(folder.ledger, WARD)
    report = folder.path / "report.fa"

    def work(announce: Announce) -> None:
        sent = answer(
            NEXT, rows, randomness=SystemRandomness(), policy=OPEN_POLICY, account=account
        )
        write_answer(sent, report)
        announce()

    assert undercounts(folder, work) == []


def test_a_kill_between_two_steps_loses_no_charge_and_pays_nothing_twice(folder: Folder) -> None:
    """Before the first leaves both are charged; whatever dies then, the second costs nothing more
    and is used once.
    """
    first, second = local_pair(EPSILON, cells=8)
    table = TableDigest.of(Examples([0, 1], [0.2, 0.7]))

    def work(announce: Announce) -> None:
        for survey in (first, second):
            folder.ledger.charge(survey, WARD, table=table)
            announce()

    seen = set()
    for left in kill_everywhere(folder, work, 3 * STEP):
        charged = folder.charged()
        assert charged == 1 or (charged, left) == (0, 0)
        for survey in (first, second):
            with suppress(SurveyRepeated):
                folder.ledger.charge(survey, WARD, table=table)
        assert folder.charged() == 1
        with pytest.raises(SurveyRepeated):
            folder.ledger.charge(second, WARD, table=table)
        folder.ledger.verify()
        seen.add(left)
    assert seen == {0, 1, 2}


def test_a_client_that_charges_after_answering_is_caught(folder: Folder) -> None:
    def work(announce: Announce) -> None:
        announce()
        folder.ledger.charge(NEXT, WARD)

    wrong = undercounts(folder, work)
    assert any("1 left, 0 charged" in line for line in wrong)


def test_a_mark_written_before_its_entry_is_caught(folder: Folder) -> None:
    """The mark must not run ahead: a ledger killed in between would not open again."""

    def work(announce: Announce) -> None:
        now = folder.ledger.read().mark
        Mark(now.ledger, now.entries + 1, "ab" * 32).save(mark_path(folder.ledger.path))
        folder.ledger.charge(NEXT, WARD)
        announce()

    wrong = undercounts(folder, work)
    assert any(LedgerRolledBack.__name__ in line for line in wrong)


def test_a_kill_at_any_system_call_of_its_creation_leaves_a_ledger_or_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"

    def work(announce: Announce) -> None:
        Ledger.create(path)
        announce()

    alive, stop = True, 1
    while alive:
        for item in tmp_path.iterdir():
            item.unlink()
        alive, left = killed_at_call(work, stop)
        stop += STEP
        if not path.exists() or path.stat().st_size == 0 or not opens(path):
            assert not left
            Ledger.create(path)
        Ledger(path).charge(NEXT, WARD)
        assert len(Ledger(path).entries()) == 1


def opens(path: Path) -> bool:
    try:
        return len(Ledger(path).entries()) == 0
    except FedassayError:
        return False
