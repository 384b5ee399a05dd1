"""Entries that nobody could have written are refused, and so is a chain forged from end to end."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fedassay.errors import FileInvalid, LedgerInvalid, LedgerUnwritable, SettingInvalid
from fedassay.ledger import Budget, Charge, Ledger, Part
from fedassay.ledger.charge import Status
from fedassay.ledger.entry import Stamp, decode, entry_json
from fedassay.ledger.high_water_mark import Mark, mark_path
from fedassay.ledger.store import is_there
from tests.surveys import local_survey

WARD = Part("ward")
EPSILON = Fraction(1, 7)
STAMP = Stamp(datetime(2026, 3, 1, tzinfo=UTC), "she", False)
CHARGE = entry_json(STAMP, Charge.of(local_survey(EPSILON), WARD, Status.CHARGED))


def test_an_entry_as_it_is_reads_back() -> None:
    stamp, charge = decode(CHARGE, "entry 1")
    assert stamp == STAMP
    assert isinstance(charge, Charge)
    assert (charge.epsilon, charge.part) == (EPSILON, WARD)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("kind", "gift", "entries are charge, budget, loss, checkpoint; found 'gift'"),
        ("time", "2026-03-01T00:00:00", "a time needs a zone"),
        ("time", "yesterday", "entry 1: "),
        ("epsilon", "-1/7", "expected a fraction such as \"1/3\"; found '-1/7'"),
        ("epsilon", "0.5", "expected a fraction"),
        ("epsilon", "1/0", "expected a fraction"),
        ("epsilon", "1" * 491, "expected a fraction"),
        ("epsilon", None, "a charge has epsilon and neighbours, or neither"),
        ("neighbours", None, "a charge has epsilon and neighbours, or neither"),
        ("neighbours", "friends", "expected one of"),
        ("delta", "1", "a charge's delta lies between 0 and 1"),
        ("delta", "0", "a charge's delta lies between 0 and 1"),
        ("survey", "ab" * 31, "64 lower-case hexadecimal digits"),
        ("survey", "AB" * 32, "64 lower-case hexadecimal digits"),
        ("unit", {"kind": "family", "max_examples": 1}, "expected one of"),
        ("status", "free", "expected one of"),
        ("data", "", "must be 1 to 200 printable characters"),
        ("data", "\x1b[31m", "must be 1 to 200 printable characters"),
        ("who", "x" * 201, "must be 1 to 200 printable characters"),
    ],
)
def test_an_entry_that_nobody_could_have_written_is_refused(
    field: str, value: object, says: str
) -> None:
    with pytest.raises(FileInvalid) as refused:
        decode({**CHARGE, field: value}, "entry 1")
    assert says in str(refused.value)


@pytest.mark.parametrize("sums", [-1, 10**9])
def test_a_budget_of_so_many_exact_sums_is_refused(sums: int) -> None:
    with pytest.raises(SettingInvalid, match=f"exact_sums must be from 0 to .*; found {sums}"):
        Budget("ward", Fraction(1), exact_sums=sums)


def test_a_clock_is_a_function() -> None:
    clock: Any = datetime(2026, 3, 1, tzinfo=UTC)
    with pytest.raises(SettingInvalid, match=r"a ledger's clock must be a function.*Leave it out"):
        Ledger(Path("ledger.db"), clock=clock)


def grown(folder: Path, charges: int) -> Ledger:
    ledger = Ledger.create(folder / "ledger.db")
    ledger.set_budget(Budget("ward", Fraction(1000)))
    for number in range(charges):
        ledger.charge(local_survey(EPSILON, cells=2 + number), WARD)
    return ledger


def first_head(ledger_id: str) -> str:
    """As docs/formats.md says."""
    return hashlib.sha256(f"fedassay.ledger/1 {ledger_id}".encode()).hexdigest()


def next_head(head: str, text: str) -> str:
    """As docs/formats.md says."""
    return hashlib.sha256(bytes.fromhex(head) + text.encode()).hexdigest()


def test_every_head_is_the_hash_of_the_ledger_and_of_all_entries_up_to_it(tmp_path: Path) -> None:
    ledger = grown(tmp_path, 3)
    snapshot = ledger.read()
    connection = sqlite3.connect(ledger.path)
    kept = connection.execute("SELECT content, head FROM entries ORDER BY number").fetchall()
    connection.close()
    head = first_head(snapshot.ledger_id)
    assert snapshot.head_at(0) == head
    for text, found in kept:
        head = next_head(head, text)
        assert found == head
    assert json.loads(mark_path(ledger.path).read_text())["head"] == snapshot.head == head


def test_a_head_is_known_by_eight_digits_and_not_by_fewer(tmp_path: Path) -> None:
    snapshot = grown(tmp_path, 3).read()
    for number in range(snapshot.size + 1):
        head = snapshot.head_at(number)
        assert snapshot.had_head(head)
        assert snapshot.had_head(head[:8])
        assert not snapshot.had_head(head[:7])
    assert not snapshot.had_head("")
    assert not snapshot.had_head(first_head("another"))


def forge(ledger: Ledger, change: Callable[[int, str], str]) -> None:
    """Rewrite entries, the chain that they make and the mark: all that is in one folder."""
    mark = json.loads(mark_path(ledger.path).read_text())
    connection = sqlite3.connect(ledger.path)
    for trigger in ("entries_stay", "entries_last", "entries_follow"):
        connection.execute(f"DROP TRIGGER {trigger}")
    head = first_head(mark["ledger"])
    for number, text in connection.execute(
        "SELECT number, content FROM entries ORDER BY number"
    ).fetchall():
        forged = change(number, text)
        head = next_head(head, forged)
        connection.execute(
            "UPDATE entries SET content = ?, head = ? WHERE number = ?", (forged, head, number)
        )
    connection.commit()
    connection.close()
    Mark(mark["ledger"], mark["entries"], head).save(mark_path(ledger.path))


def test_a_chain_forged_from_end_to_end_still_fits_itself(tmp_path: Path) -> None:
    """The twin of what follows: forging is done well enough to go unnoticed by itself."""
    ledger = grown(tmp_path, 5)
    forge(ledger, lambda _, text: text.replace('"1/7"', '"1/9"'))
    assert ledger.balances("ward")[0].spent == Fraction(5, 9)


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"kind": "gift"}', "[" * 5000])
def test_an_entry_that_is_none_is_noticed_though_the_chain_fits(tmp_path: Path, text: str) -> None:
    ledger = grown(tmp_path, 5)
    forge(ledger, lambda number, was: text if number == 3 else was)
    with pytest.raises(LedgerInvalid, match=r"ledger\.db: "):
        ledger.entries()


def test_a_forged_entry_before_a_checkpoint_is_found_by_verify(tmp_path: Path) -> None:
    ledger = grown(tmp_path, 70)
    forge(ledger, lambda number, was: was.replace('"1/7"', '"1/9"') if number == 7 else was)
    with pytest.raises(LedgerInvalid, match=r"checkpoint at entry 65 is not what the entries"):
        ledger.verify()


def test_a_checkpoint_without_the_entry_before_it_is_refused(tmp_path: Path) -> None:
    ledger = grown(tmp_path, 70)
    connection = sqlite3.connect(ledger.path)
    connection.execute("DROP TRIGGER entries_stay")
    connection.execute("DROP TRIGGER entries_last")
    connection.execute("DELETE FROM entries WHERE number = 64")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerInvalid, match="the last checkpoint does not follow"):
        ledger.charge(local_survey(EPSILON, cells=500), WARD)


def test_a_mark_that_can_be_neither_written_nor_seen_is_told(tmp_path: Path) -> None:
    mark = Mark("abc", 1, "0" * 64)
    with pytest.raises(LedgerUnwritable, match="cannot be written, so nothing is answered"):
        mark.save(tmp_path / "nowhere" / "ledger.db.mark")
    hidden = tmp_path / ("m" * 300)  # no file system takes such a name
    with pytest.raises(LedgerInvalid, match=r"mark cannot be read \(File name too long\)"):
        Mark.load(hidden)
    assert is_there(hidden)
    assert not is_there(tmp_path / "m")
