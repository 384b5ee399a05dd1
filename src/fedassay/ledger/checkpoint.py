"""What a ledger came to at a checkpoint, so that a charge need not read every entry.

The state is cut into 256 buckets, each with a SHA-256; the hash of all these hashes is the
content of a checkpoint entry in the chain. A charge checks the chain from the last checkpoint
on, and the buckets that it needs against that entry.

Guarantee: a decision rests only on what the mark's head binds. The head fixes the entries
since the checkpoint and, through the checkpoint's own content, every bucket; whoever changed
a bucket, a recent entry or the checkpoint would have to find a collision of SHA-256. Older
entries are not read for a decision, so a change to them is noticed by `Ledger.verify` and by
whatever reads them all, not by a charge.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedassay.errors import FileInvalid, LedgerInvalid
from fedassay.files import Fields, canonical
from fedassay.ledger.budget import Tab, in_force, limited_by, reserved_by
from fedassay.ledger.charge import Charge
from fedassay.ledger.entry import Budget, Content

BUCKETS = 256
EVERY = 64
"""After so many entries comes a checkpoint."""
_HASH_BYTES = 32
_EMPTY = hashlib.sha256(b"").digest()
NOTHING = _EMPTY * BUCKETS
"""The hashes of a state without anything in it."""
ANY_DATA = ""
"""Stands for the budgets of all data without their own; no data id is empty."""


@dataclass(slots=True)
class Bucket:
    """A 256th of the state: charges by kind and budgets per data id, and surveys answered."""

    charges: dict[str, Counter[Charge]]
    budgets: dict[str, list[Budget]]
    answered: set[str]
    limited: set[str]
    """In the bucket of `ANY_DATA`: all data ids that have a limit of their own."""
    reserved: dict[str, Charge]
    """By key, charges for first surveys whose second has not been answered."""

    @classmethod
    def empty(cls) -> "Bucket":
        """Nothing yet."""
        return cls({}, {}, set(), set(), {})

    def to_text(self) -> str:
        """One text per content."""
        # Where there are none the text is that of ledgers from before there were any.
        reserved = {key: charge.to_json() for key, charge in self.reserved.items()}
        return canonical(
            {
                **({"reserved": reserved} if reserved else {}),
                "charges": {
                    data: sorted(
                        ([canonical(kind.to_json()).decode(), times] for kind, times in of.items())
                    )
                    for data, of in self.charges.items()
                },
                "budgets": {
                    data: [budget.to_json() for budget in of] for data, of in self.budgets.items()
                },
                "answered": sorted(self.answered),
                "limited": sorted(self.limited),
            }
        ).decode()

    @classmethod
    def from_text(cls, text: str) -> "Bucket":
        """Read back what `to_text` wrote; the caller has checked its hash."""
        if not text:
            return cls.empty()
        content = json.loads(text)
        return cls(
            {
                data: Counter(
                    {Charge.from_json(_fields(json.loads(kind))): times for kind, times in of}
                )
                for data, of in content["charges"].items()
            },
            {
                data: [Budget.from_json(_fields(budget)) for budget in of]
                for data, of in content["budgets"].items()
            },
            set(content["answered"]),
            set(content["limited"]),
            {
                key: Charge.from_json(_fields(charge))
                for key, charge in content.get("reserved", {}).items()
            },
        )


class State:
    """The buckets of one ledger's file, each checked against its hash when it is first used."""

    def __init__(self, connection: sqlite3.Connection, hashes: bytes, where: str) -> None:
        self._connection = connection
        self._hashes = hashes
        self._where = where
        self._buckets: dict[int, Bucket] = {}

    def tab(self, data: str, keys: Sequence[str], since: Sequence[Content]) -> Tab:
        """What is known of one data id and these keys, with the entries since the checkpoint."""
        home, shared = self._bucket(_place(data)), self._bucket(_place(ANY_DATA))
        charges = Counter(home.charges.get(data, {}))
        own = list(home.budgets.get(data, []))
        general = list(shared.budgets.get(ANY_DATA, []))
        answered = {key for key in keys if key in self._bucket(_place(key)).answered}
        reserved: dict[str, Charge] = {}
        for key in keys:
            reserved |= {k: v for k, v in self._bucket(_place(key)).reserved.items() if k == key}
        limited = set(shared.limited)
        changed: dict[str, list[Budget]] = {}
        for content in since:
            if isinstance(content, Charge) and content.part.data == data:
                charges[content.kind] += 1
                answered |= set(keys) & set(content.answers)
                reserved = reserved_by([content], reserved)
            elif isinstance(content, Budget) and content.data is None:
                general.append(content)
            elif isinstance(content, Budget) and content.data is not None:
                changed.setdefault(content.data, []).append(content)
        own += changed.get(data, [])
        for name, later in changed.items():
            before = self._bucket(_place(name)).budgets.get(name, [])
            limited = limited - {name} | limited_by([*before, *later])
        return Tab(
            data,
            charges,
            in_force(own, general),
            frozenset(answered),
            frozenset(limited),
            reserved,
        )

    def add(self, contents: Iterable[Content]) -> None:
        """Take entries into the state, in their order."""
        for content in contents:
            if isinstance(content, Charge):
                home = self._bucket(_place(content.part.data))
                home.charges.setdefault(content.part.data, Counter())[content.kind] += 1
                for key in content.answers:
                    self._bucket(_place(key)).answered.add(key)
                if content.reservation_key is not None:
                    bucket = self._bucket(_place(content.reservation_key))
                    bucket.reserved = reserved_by([content], bucket.reserved)
            elif isinstance(content, Budget):
                data = ANY_DATA if content.data is None else content.data
                budgets = self._bucket(_place(data)).budgets
                # The latest for the same window holds; the chain keeps the others.
                kept = [old for old in budgets.get(data, []) if old.window != content.window]
                budgets[data] = [*kept, content]
                limited = self._bucket(_place(ANY_DATA)).limited
                limited.discard(data)
                limited |= limited_by(budgets[data])

    def save(self) -> bytes:
        """Write the buckets that were used; returns the hashes of all."""
        hashes = bytearray(self._hashes)
        for place, bucket in self._buckets.items():
            text = bucket.to_text()
            self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (place, text))
            hashes[place * _HASH_BYTES : (place + 1) * _HASH_BYTES] = _hash(text)
        self._hashes = bytes(hashes)
        return self._hashes

    def _bucket(self, place: int) -> Bucket:
        if place not in self._buckets:
            row = self._connection.execute(
                "SELECT content FROM state WHERE bucket = ?", (place,)
            ).fetchone()
            text = row[0] if row is not None and isinstance(row[0], str) else ""
            wanted = self._hashes[place * _HASH_BYTES : (place + 1) * _HASH_BYTES]
            if _hash(text) != wanted:
                raise LedgerInvalid(
                    f"{self._where}: what the ledger came to at its last checkpoint was changed "
                    "from outside. Check and rebuild it from the entries: fedassay ledger verify "
                    "FILE --rebuild"
                )
            self._buckets[place] = Bucket.from_text(text)
        return self._buckets[place]


def root(hashes: bytes) -> str:
    """What a checkpoint entry says of a state."""
    return hashlib.sha256(hashes).hexdigest()


def rebuilt(contents: Iterable[Content]) -> Mapping[int, str]:
    """The text of every bucket that these entries fill, computed from nothing."""
    memory = sqlite3.connect(":memory:")
    try:
        memory.execute("CREATE TABLE state (bucket INTEGER PRIMARY KEY, content TEXT NOT NULL)")
        state = State(memory, NOTHING, "the entries")
        state.add(contents)
        state.save()
        return dict(memory.execute("SELECT bucket, content FROM state"))
    finally:
        memory.close()


def hashes_of(buckets: Mapping[int, str]) -> bytes:
    """The hashes of all buckets, of those without content too."""
    return b"".join(_hash(buckets.get(place, "")) for place in range(BUCKETS))


def _place(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _fields(content: dict[str, Any]) -> Fields:
    if not isinstance(content, dict):
        raise FileInvalid("the ledger's state holds something else than objects.")
    return Fields(content, "the ledger's state")
