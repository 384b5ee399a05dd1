"""The ledger's file: it lasts, it only grows, and changes to it are noticed."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fedassay import Survey
from fedassay.errors import (
    FedassayError,
    LedgerInvalid,
    LedgerUnwritable,
)
from fedassay.ledger import Budget, Ledger, Part, store
from tests.surveys import local_survey
from tests.tables import ROOT

THIRD = Fraction(1, 3)
WARD = Part("ward")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db")


def third(cells: int) -> Survey:
    """A survey that spends 1/3; another for each number of cells."""
    return local_survey(THIRD, cells=cells)


def spent(ledger: Ledger, data: str = "ward") -> Fraction:
    (found,) = ledger.balances(data)
    return found.spent


@pytest.mark.parametrize(
    "name",
    ["a b.db", "q?mode=memory&x#y%41.db", "Überwachung 🏥.db", os.fsdecode(b"\xff\xfe.db"), "-o"],
)
def test_a_ledger_may_have_any_name(tmp_path: Path, name: str) -> None:
    ledger = Ledger.create(tmp_path / name)
    ledger.charge(third(2), Part("quote\" '; -- \\ 🏥"))
    assert {item.name for item in tmp_path.iterdir()} == {name, f"{name}.mark"}
    assert ledger.entries()[0].number == 1


def test_a_ledger_turned_to_a_write_ahead_log_is_turned_back(ledger: Ledger) -> None:
    ledger.charge(third(2), WARD)
    connection = sqlite3.connect(ledger.path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.close()
    ledger.charge(third(3), WARD)
    assert spent(ledger) == 2 * THIRD
    connection = sqlite3.connect(ledger.path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def test_nothing_in_the_file_can_be_changed_by_sql(ledger: Ledger) -> None:
    ledger.charge(third(4), WARD)
    connection = sqlite3.connect(ledger.path)
    for statement in (
        "UPDATE entries SET head = ''",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries VALUES (1, '', '')",
        "INSERT INTO entries VALUES (7, '', '')",
        "UPDATE ledger SET id = ''",
        "DELETE FROM ledger",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()
    assert spent(ledger) == THIRD


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = replace(content, '1/3', '1/4') WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
        "UPDATE entries SET number = 9 WHERE number = 3",
        "UPDATE ledger SET id = 'ab'",
        "UPDATE entries SET content = 7 WHERE number = 1",
        "DROP TABLE entries",
        "DELETE FROM ledger",
    ],
)
def test_changes_behind_its_back_are_noticed(ledger: Ledger, statement: str) -> None:
    for cells in (2, 3, 4):
        ledger.charge(third(cells), WARD)
    connection = sqlite3.connect(ledger.path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()
    for attempt in (ledger.entries, lambda: ledger.charge(third(5), WARD)):
        with pytest.raises(LedgerInvalid):
            attempt()


def test_a_charge_is_written_so_that_it_lasts_through_a_loss_of_power(ledger: Ledger) -> None:
    """SQLite's strictest: 3 is EXTRA, which syncs the folder too after the journal is gone."""
    with store.transaction(ledger.path, writable=True) as writer:
        (synchronous,) = writer._connection.execute("PRAGMA synchronous").fetchone()
        (journal,) = writer._connection.execute("PRAGMA journal_mode").fetchone()
    assert (synchronous, journal) == (3, "delete")


def foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()


def newer_ledger(path: Path) -> None:
    Ledger.create(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda path: None, "no ledger"),
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_text("score,label\n0.5,1\n"), "not a ledger"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(5000)), "damaged"),
        (foreign_database, "another kind of database"),
        (newer_ledger, "version 3"),
    ],
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, make: object, word: str) -> None:
    path = tmp_path / "ledger.db"
    make(path)  # type: ignore[operator]  # a maker from the table above
    ledger = Ledger(path)
    for attempt in (
        ledger.entries,
        lambda: ledger.charge(third(4), WARD),
        lambda: ledger.set_budget(Budget("ward", Fraction(1))),
    ):
        with pytest.raises(LedgerInvalid, match=word):
            attempt()


def test_every_flipped_byte_is_noticed_or_harmless(ledger: Ledger) -> None:
    """A byte flipped anywhere never lowers what is spent."""
    for cells in (2, 3):
        ledger.charge(third(cells), WARD)
    whole = ledger.path.read_bytes()
    noticed = 0
    for position in range(0, len(whole), 61):
        changed = bytearray(whole)
        changed[position] ^= 0xFF
        ledger.path.write_bytes(changed)
        try:
            assert spent(ledger) == 2 * THIRD
        except (LedgerInvalid, LedgerUnwritable):
            noticed += 1
    assert noticed > 5


def test_a_ledger_is_not_made_over_another_file(ledger: Ledger, tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("score,label\n" * 2000)
    for path in (ledger.path, table):
        before = path.read_bytes()
        with pytest.raises(LedgerInvalid, match="there is a file already"):
            Ledger.create(path)
        assert path.read_bytes() == before


def test_a_full_disk_charges_nothing_and_answers_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.charge(third(2), WARD)
    connect = sqlite3.connect

    def full(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)  # type: ignore[call-overload]  # settings by name
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", full)
    before = len(ledger.entries())

    def charge_on() -> None:
        for cells in range(3, 40):
            ledger.charge(third(cells), WARD)

    with pytest.raises(LedgerUnwritable, match="disk is full"):
        charge_on()
    monkeypatch.undo()
    charged = ledger.entries()
    assert before < len(charged) < 37
    assert [entry.number for entry in charged] == list(range(1, len(charged) + 1))
    ledger.charge(third(50), WARD)


LIMITED = """
import resource, sys
from pathlib import Path
from fedassay.errors import LedgerUnwritable
from fedassay.ledger import Ledger, Part
from tests.surveys import local_survey
ledger = Ledger(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    ledger.charge(local_survey(), Part("ward"))
except LedgerUnwritable as error:
    print("refused", error)
else:
    print("charged")
"""


@pytest.mark.parametrize("limit", [0, 20, 600, 4096, 9000, 16384])
def test_a_file_that_may_not_grow_never_loses_a_charge(ledger: Ledger, limit: int) -> None:
    for cells in range(2, 10):
        ledger.charge(third(cells), WARD)
    before = len(ledger.entries())
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(ledger.path), str(limit)],
        capture_output=True, text=True, check=True, timeout=300, cwd=ROOT,
    )  # fmt: skip
    said = done.stdout.split()[0]
    after = len(ledger.entries())
    # A refusal may come after the charge, when only the mark could not be written.
    assert after == before + 1 if said == "charged" else after in (before, before + 1)
    assert said == ("charged" if limit >= 16384 else "refused")
    ledger.charge(third(30), WARD)


def as_nobody(action: Callable[[], object]) -> None:
    """Do it in a process without root's leave to write anywhere, and pass its error on."""

    def child(sender: Connection) -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            sender.send(action())
        except FedassayError as error:
            sender.send(error)

    receiver, sender = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=child, args=(sender,))
    process.start()
    sent = receiver.recv()
    process.join(30)
    if isinstance(sent, Exception):
        raise sent


def test_a_read_only_folder_can_be_read_and_not_charged() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        ledger = Ledger.create(folder / "ledger.db")
        ledger.charge(third(2), WARD)
        for file in folder.iterdir():
            file.chmod(0o644)
        folder.chmod(0o555)
        as_nobody(lambda: spent(ledger))
        with pytest.raises(LedgerUnwritable, match="read-only"):
            as_nobody(lambda: ledger.charge(third(3), WARD).head)
        with pytest.raises(LedgerUnwritable, match="folder"):
            as_nobody(lambda: Ledger.create(folder / "new.db").path)
        folder.chmod(0o755)
        assert spent(ledger) == THIRD


def test_a_ledger_or_witness_that_may_not_be_seen_is_refused() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        hidden = folder / "hidden"
        hidden.mkdir()
        kept = Ledger.create(hidden / "ledger.db", witness=hidden / "witness.mark")
        kept.charge(third(2), WARD)
        hidden.chmod(0o000)
        as_nobody(lambda: Ledger.create(folder / "ledger.db").path)
        open_one = Ledger(folder / "ledger.db", hidden / "witness.mark")
        for ledger in (kept, open_one, Ledger(hidden / "ledger.db")):
            with pytest.raises(LedgerInvalid, match="Check the path"):
                as_nobody(ledger.entries)
            with pytest.raises(LedgerInvalid, match="Check the path"):
                as_nobody(partial(ledger.charge, third(3), WARD))
        with pytest.raises((LedgerInvalid, LedgerUnwritable)):
            as_nobody(lambda: Ledger.create(hidden / "new.db").path)
        hidden.chmod(0o755)


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnwritable, match="folder"):
        Ledger.create(tmp_path / "nowhere" / "ledger.db")
