"""The ledger's SQLite file: append-only, hash-chained, one writer at a time."""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from fedassay.errors import FileInvalid, LedgerInvalid, LedgerUnwritable
from fedassay.ledger.budget import Tab
from fedassay.ledger.checkpoint import EVERY, NOTHING, State, hashes_of, rebuilt, root
from fedassay.ledger.entry import (
    Checkpoint,
    Content,
    Entry,
    Stamp,
    decode,
    encode,
    first_head,
    next_head,
    seen_at,
)
from fedassay.ledger.high_water_mark import Mark
from fedassay.ledger.snapshot import Snapshot
from fedassay.ledger.steps import SALT_BYTES, TableDigest, TableSeal

LEDGER_FORMAT = "fedassay.ledger/2"
APPLICATION_ID = 0x46414C47  # "FALG"
VERSION = 2
BUSY_SECONDS = 30.0
_MAGIC = b"SQLite format 3\x00"
_REFUSE = "BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END"
_SCHEMA = (
    "CREATE TABLE ledger (format TEXT NOT NULL, id TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE checkpoint (number INTEGER NOT NULL, hashes BLOB NOT NULL)",
    "CREATE TABLE state (bucket INTEGER PRIMARY KEY, content TEXT NOT NULL)",
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
    """One transaction on a ledger's file: what its last entries are, and what is added.

    Opening checks the chain from the last checkpoint on; `snapshot` checks all of it.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, writable: bool = False
    ) -> None:
        self._is_writable = writable
        self._connection = connection
        self._path = path
        self.ledger_id = self._identity()
        self._first, self._hashes, self._latest = 0, NOTHING, None
        head = first_head(self.ledger_id)
        if (row := self._checkpoint_row()) is not None:
            self._first, self._hashes = row
            head, self._latest = self._checked_checkpoint()
        self._heads = {self._first: head}
        self._since = list(self._chain(self._first, head))
        self._heads |= {entry.number: entry.head for entry in self._since}

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self._first + len(self._since)

    @property
    def head(self) -> str:
        """The hash of the whole chain."""
        return self._heads[self.size]

    @property
    def mark(self) -> Mark:
        """Id, size and head, as a mark keeps them."""
        return Mark(self.ledger_id, self.size, self.head)

    def head_at(self, number: int) -> str:
        """The hash of the chain up to an entry; before the checkpoint, all of it is checked."""
        return self._heads[number] if number in self._heads else self.snapshot().head_at(number)

    def tab(self, data: str, *keys: str) -> Tab:
        """What is known of one data id, and which of these keys were charged or reserved."""
        state = State(self._connection, self._hashes, str(self._path))
        return state.tab(data, keys, [entry.content for entry in self._since])

    def seal(self, table: TableDigest | None) -> TableSeal | None:
        """A table's digest under the ledger's secret, which is made when it is first needed."""
        return None if table is None else TableSeal.of(table, self._salt())

    def snapshot(self) -> Snapshot:
        """Everything in the file, with its whole chain checked."""
        return Snapshot(self.ledger_id, list(self._chain(0, first_head(self.ledger_id))))

    def append(self, stamp: Stamp, content: Content) -> Entry:
        """Add one entry; it lasts when the transaction ends well."""
        entry = self._added(stamp, content)
        if len(self._since) >= EVERY:
            state = State(self._connection, self._hashes, str(self._path))
            state.add(each.content for each in self._since)
            self._hashes = state.save()
            self._latest = self._latest_time()
            reached = self._added(entry.stamp, Checkpoint(root(self._hashes), self._latest))
            self._connection.execute("DELETE FROM checkpoint")
            self._connection.execute(
                "INSERT INTO checkpoint VALUES (?, ?)", (reached.number, self._hashes)
            )
            self._first, self._since = reached.number, []
        return entry

    def verify(self, *, rebuild: bool) -> Snapshot:
        """Check every entry, and the state against them; with `rebuild`, write it anew."""
        snapshot = self.snapshot()
        if self._first == 0:
            return snapshot
        buckets = rebuilt(entry.content for entry in snapshot.entries[: self._first - 1])
        hashes = hashes_of(buckets)
        said = snapshot.entries[self._first - 1].content
        if not isinstance(said, Checkpoint) or said.state != root(hashes):
            raise LedgerInvalid(
                f"{self._path}: the checkpoint at entry {self._first} is not what the entries "
                "before it come to. Restore the newest true copy."
            )
        stored = dict(self._connection.execute("SELECT bucket, content FROM state"))
        if rebuild:
            self._connection.execute("DELETE FROM state")
            self._connection.executemany("INSERT INTO state VALUES (?, ?)", buckets.items())
        elif hashes_of(stored) != hashes:
            raise LedgerInvalid(
                f"{self._path}: the entries are whole, but what they come to was changed from "
                "outside. Rebuild it from them: fedassay ledger verify FILE --rebuild"
            )
        return snapshot

    def _added(self, stamp: Stamp, content: Content) -> Entry:
        text = encode(seen_at(stamp, self._latest_time()), content)
        stamp, content = decode(json.loads(text), "a new entry")
        entry = Entry(self.size + 1, stamp, content, next_head(self.head, text))
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?)", (entry.number, text, entry.head)
        )
        self._since.append(entry)
        self._heads[entry.number] = entry.head
        return entry

    def _salt(self) -> bytes:
        execute = self._connection.execute
        if not execute("SELECT 1 FROM sqlite_master WHERE name = 'secret'").fetchone():
            salt = secrets.token_bytes(SALT_BYTES)
            # A reader's is forgotten: nothing can have been sealed with another one.
            if not self._is_writable:
                return salt
            execute("CREATE TABLE secret (salt BLOB NOT NULL)")
            execute("INSERT INTO secret VALUES (?)", (salt,))
        rows = execute("SELECT salt FROM secret").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], bytes) or len(rows[0][0]) != SALT_BYTES:
            raise LedgerInvalid(f"{self._path}: {_BROKEN}")
        secret: bytes = rows[0][0]
        return secret

    def _latest_time(self) -> datetime | None:
        times = [entry.stamp.time for entry in self._since]
        return max([*times, *([] if self._latest is None else [self._latest])], default=None)

    def _identity(self) -> str:
        """The ledger's id, if the file is a ledger of this version."""
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
        rows = self._connection.execute("SELECT format, id FROM ledger").fetchall()
        if len(rows) != 1 or rows[0][0] != LEDGER_FORMAT or not isinstance(rows[0][1], str):
            raise LedgerInvalid(f"{self._path}: {_BROKEN}")
        identity: str = rows[0][1]
        return identity

    def _checkpoint_row(self) -> tuple[int, bytes] | None:
        rows = self._connection.execute("SELECT number, hashes FROM checkpoint").fetchall()
        if not rows:
            return None
        number, hashes = rows[0]
        if len(rows) > 1 or not isinstance(number, int) or not isinstance(hashes, bytes):
            raise LedgerInvalid(f"{self._path}: {_BROKEN}")
        return number, hashes

    def _checked_checkpoint(self) -> tuple[str, datetime | None]:
        """The head and latest time at the checkpoint, if its entry says what the hashes say."""
        # One before, for its head: the checkpoint's own hash then binds its content.
        rows = self._connection.execute(
            "SELECT content, head FROM entries WHERE number IN (?, ?) ORDER BY number",
            (self._first - 1, self._first),
        ).fetchall()
        if len(rows) == 2:
            (_, before), (text, head) = rows
            try:
                follows = next_head(before, text) == head
                content = decode(json.loads(text), "checkpoint")[1]
            except (FileInvalid, ValueError, TypeError, AttributeError, RecursionError):
                follows = False
            if follows and isinstance(content, Checkpoint) and content.state == root(self._hashes):
                return head, content.latest
        raise LedgerInvalid(
            f"{self._path}: the last checkpoint does not follow from the ledger: it was changed "
            "from outside. Restore the newest true copy."
        )

    def _chain(self, number: int, head: str) -> Iterator[Entry]:
        """The entries after a number, each checked to follow from the one before it."""
        rows = self._connection.execute(
            "SELECT number, content, head FROM entries WHERE number > ? ORDER BY number", (number,)
        )
        for expected, (written, text, claimed) in enumerate(rows, start=number + 1):
            head = next_head(head, text if isinstance(text, str) else "")
            if written != expected or claimed != head:
                raise LedgerInvalid(
                    f"{self._path}: entry {expected} does not follow from the one before it: the "
                    "ledger was changed from outside. Restore the newest true copy."
                )
            try:
                yield Entry(written, *decode(json.loads(text), f"entry {written}"), head)
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
        yield Store(connection, path, writable=writable)
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
