"""The ledger's SQLite file: append-only, hash-chained, one writer at a time."""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fedassay.errors import FileInvalid, LedgerInvalid, LedgerUnwritable
from fedassay.ledger.entry import (
    Content,
    Entry,
    Stamp,
    decode,
    encode,
    first_head,
    next_head,
    seen_at,
)
from fedassay.ledger.snapshot import Snapshot

LEDGER_FORMAT = "fedassay.ledger/1"
APPLICATION_ID = 0x46414C47  # "FALG"
VERSION = 1
BUSY_SECONDS = 30.0
_MAGIC = b"SQLite format 3\x00"
_REFUSE = "BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END"
_SCHEMA = (
    "CREATE TABLE ledger (format TEXT NOT NULL, id TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, head TEXT NOT NULL)",
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries WHEN NEW.number IS NOT "
    "(SELECT coalesce(max(number), 0) + 1 FROM entries) "
    "BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END",
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries " + _REFUSE,
    "CREATE TRIGGER entries_last BEFORE DELETE ON entries " + _REFUSE,
    "CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger " + _REFUSE,
    "CREATE TRIGGER ledger_lasts BEFORE DELETE ON ledger " + _REFUSE,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)


class Store:
    """One transaction on a ledger's file: what was found, and what is added."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self.found = self._read()

    def append(self, stamp: Stamp, content: Content) -> Entry:
        """Add one entry; it lasts when the transaction ends well."""
        entries = self.found.entries
        latest = max((entry.stamp.time for entry in entries), default=None)
        text = encode(seen_at(stamp, latest), content)
        stamp, content = decode(json.loads(text), "a new entry")
        entry = Entry(len(entries) + 1, stamp, content, next_head(self.found.head, text))
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?)", (entry.number, text, entry.head)
        )
        self.found = Snapshot(self.found.ledger_id, [*entries, entry])
        return entry

    def _read(self) -> Snapshot:
        """Everything in the file, with its chain checked."""
        application = self._one("PRAGMA application_id")
        version = self._one("PRAGMA user_version")
        if application != APPLICATION_ID:
            raise LedgerInvalid(
                f"{self._path}: not a ledger, but another kind of database. Pass the right file, "
                "or make a ledger: fedassay ledger new FILE"
            )
        if version != VERSION:
            raise LedgerInvalid(
                f"{self._path}: a ledger of version {version}; this fedassay reads version "
                f"{VERSION}. Use the fedassay version that wrote it."
            )
        found = self._connection.execute("SELECT format, id FROM ledger").fetchall()
        if len(found) != 1 or found[0][0] != LEDGER_FORMAT or not isinstance(found[0][1], str):
            raise LedgerInvalid(f"{self._path}: {_BROKEN}")
        ledger_id = found[0][1]
        return Snapshot(ledger_id, list(self._chain(first_head(ledger_id))))

    def _chain(self, head: str) -> Iterator[Entry]:
        rows = self._connection.execute("SELECT number, content, head FROM entries ORDER BY number")
        for expected, (number, text, claimed) in enumerate(rows, start=1):
            head = next_head(head, text if isinstance(text, str) else "")
            if number != expected or claimed != head:
                raise LedgerInvalid(
                    f"{self._path}: entry {expected} does not follow from the one before it: the "
                    "ledger was changed from outside. Restore the newest true copy."
                )
            try:
                yield Entry(number, *decode(json.loads(text), f"entry {number}"), head)
            except (FileInvalid, ValueError, RecursionError) as error:
                raise LedgerInvalid(f"{self._path}: {error}") from error

    def _one(self, query: str) -> object:
        (value,) = self._connection.execute(query).fetchone()
        return value


_BROKEN = "damaged, or not a ledger. Restore the newest copy; nothing is answered without it."


def is_there(path: Path) -> bool:
    """Whether there is a file, or something that hides it."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def create(path: Path) -> None:
    """Make an empty ledger, whole or not at all."""
    taken = LedgerInvalid(f"{path}: there is a file already. Choose another name.")
    # An empty file is what a creation that was cut short leaves.
    if is_there(path) and _start(path) not in (b"", _MAGIC):
        raise taken
    with _errors(path), _connected(path, mode="rwc") as connection:
        connection.execute("BEGIN EXCLUSIVE")
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise taken
        for statement in _SCHEMA:
            connection.execute(statement)
        identity = (LEDGER_FORMAT, secrets.token_hex(16))
        connection.execute("INSERT INTO ledger VALUES (?, ?)", identity)
        connection.execute("COMMIT")


@contextmanager
def transaction(path: Path, *, writable: bool) -> Iterator[Store]:
    """The ledger's file, locked against other writers if writable; committed at the end.

    Readers too open it for writing where they may: a process that was killed may have left
    something to roll back.
    """
    _check_kind(path)
    with _errors(path), _connected(path, mode="rw") as connection:
        connection.execute("BEGIN IMMEDIATE" if writable else "BEGIN")
        yield Store(connection, path)
        connection.execute("COMMIT")


@contextmanager
def locked_tip(path: Path) -> Iterator[tuple[str, int, str]]:
    """The ledger's id, number of entries and head, unchecked, while nobody can add to it."""
    with _errors(path), _connected(path, mode="rw") as connection:
        connection.execute("BEGIN IMMEDIATE")
        (ledger_id,) = connection.execute("SELECT id FROM ledger").fetchone()
        last = connection.execute("SELECT number, head FROM entries ORDER BY number DESC LIMIT 1")
        number, head = last.fetchone() or (0, first_head(ledger_id))
        yield ledger_id, number, head


@contextmanager
def _connected(path: Path, *, mode: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
    )
    try:
        # A reader keeps writers from ending until it has seen the marks; with a write-ahead log,
        # to which somebody may have turned the file, it would not.
        connection.execute("PRAGMA journal_mode = DELETE")
        # EXTRA: not only the entry but also its commit lasts through a loss of power.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection
    finally:
        # What is not committed is rolled back.
        connection.close()


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """SQLite's errors in our words."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, error) from error
    except UnicodeDecodeError as error:
        # SQLite quotes damaged names in its message.
        raise LedgerInvalid(f"{path}: {_BROKEN}") from error


def _translated(path: Path, error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    unwritable: dict[int, str] = {
        sqlite3.SQLITE_FULL: "the disk is full. Free space",
        sqlite3.SQLITE_READONLY: "it is read-only. Make the file and its folder writable",
        sqlite3.SQLITE_PERM: "access is denied. Make the file and its folder writable",
        sqlite3.SQLITE_IOERR: "the disk failed, or is full. Check it",
        sqlite3.SQLITE_BUSY: f"another process has held it for {BUSY_SECONDS:g} s. End that one",
        sqlite3.SQLITE_LOCKED: "another process holds it. End that one",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Check that its folder exists and that "
        "you may write there",
    }
    if code in unwritable:
        return LedgerUnwritable(f"{path}: nothing is answered: {unwritable[code]}, and try again.")
    return LedgerInvalid(f"{path}: {_BROKEN}")


def _check_kind(path: Path) -> None:
    start = _start(path)
    if start != _MAGIC:
        raise LedgerInvalid(
            f"{path}: not a ledger{', the file is empty' if not start else ''}. Pass the right "
            "file, or make a ledger: fedassay ledger new FILE"
        )


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC))
    except FileNotFoundError as error:
        raise LedgerInvalid(
            f"{path}: there is no ledger. Check the path, or make one: fedassay ledger new FILE"
        ) from error
    except OSError as error:
        raise LedgerInvalid(
            f"{path}: cannot be read ({error.strerror}). Check the path."
        ) from error
