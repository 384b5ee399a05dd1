"""What a charge says of one of two surveys: the first reserves, the second uses it up."""

import hashlib
import hmac
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fedassay.errors import FileInvalid
from fedassay.examples import Examples
from fedassay.files import Fields, canonical
from fedassay.grid import Grid
from fedassay.ledger.texts import digest, rational
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo

SALT_BYTES = 32
_ROW = np.dtype([("score", "<f8"), ("label", "u1")])
_MOST_ROWS = 2**53


@dataclass(frozen=True, slots=True, repr=False)
class TableDigest:
    """A table as a ledger compares it: how many rows, and a hash of all of them in order.

    It stays in memory; what is kept is sealed with the ledger's own secret (`TableSeal`).
    """

    rows: int
    digest: bytes

    @classmethod
    def of(cls, examples: Examples) -> "TableDigest":
        """The digest of rows that are all at hand."""
        reader = TableReader()
        reader.add(examples)
        return reader.digest()


class TableReader:
    """Hashes a table that comes in parts, however it is cut."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256(b"fedassay table")

    def add(self, examples: Examples) -> None:
        """Take in the next rows."""
        rows = np.empty(len(examples), dtype=_ROW)
        rows["score"], rows["label"] = examples.scores, examples.labels
        self._hash.update(rows.tobytes())
        self.rows += len(examples)

    def digest(self) -> TableDigest:
        """What came so far."""
        return TableDigest(self.rows, self._hash.digest())


@dataclass(frozen=True, slots=True)
class TableSeal:
    """What a ledger keeps of a table: enough to notice a change, too little to test a guess.

    Guarantee: the hash is keyed by a salt that never leaves the ledger's file, not even in an
    export, so that nobody who knows all rows but one can try that one.
    """

    rows: int
    seal: str

    @classmethod
    def of(cls, table: TableDigest, salt: bytes) -> "TableSeal":
        """Seal a table's digest."""
        return cls(table.rows, hmac.new(salt, table.digest, hashlib.sha256).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCharge:
    """A charge for the first of two surveys, which pays for both."""

    total: Fraction
    """What both may spend."""
    spends: Fraction
    """What the first itself spends."""
    left: Fraction
    """What the second may spend without another charge; 0 where nothing is reserved."""
    client_fraction: Fraction
    grid: Grid
    """Of the first; the second keeps its edges, and may add some."""
    shared: str
    """SHA-256 of what both surveys have in common (`shared_digest`)."""
    table: TableSeal | None
    """Under local privacy, where each row answers one of the two: which rows there were."""

    def to_json(self) -> dict[str, Any]:
        """The field `step` of an entry."""
        table = None if self.table is None else {"rows": self.table.rows, "seal": self.table.seal}
        return {
            "kind": "first",
            "total": str(self.total),
            "spends": str(self.spends),
            "left": str(self.left),
            "client_fraction": str(self.client_fraction),
            "grid": self.grid.to_json(),
            "shared": self.shared,
            "table": table,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondCharge:
    """A charge for the second of two surveys."""

    first: str
    """The fingerprint of the first."""
    spends: Fraction
    """What the second itself spends."""
    reserved: bool
    """Whether the first one's charge has paid for it, so that this one costs nothing."""

    def to_json(self) -> dict[str, Any]:
        """The field `step` of an entry."""
        return {
            "kind": "second",
            "first": self.first,
            "spends": str(self.spends),
            "reserved": self.reserved,
        }


StepCharge = FirstCharge | SecondCharge


def step_charge(survey: Survey, *, table: TableSeal | None, issued: bool) -> StepCharge | None:
    """What a charge for a survey says of its place among two, before anything is reserved.

    Under local privacy a row answers one of the two, so that both together cost the total only
    where the rows are known to be the same (`table`), or where the surveys are handed out and
    clients see to it.
    """
    step, spends = survey.step, survey.epsilon
    if step is None or spends is None:
        return None
    if isinstance(step, SecondOfTwo):
        return SecondCharge(first=step.first.hex(), spends=spends, reserved=False)
    return FirstCharge(
        total=step.total_epsilon,
        spends=spends,
        left=_left(survey, step, spends, is_known=issued or table is not None),
        client_fraction=step.client_fraction,
        grid=survey.grid,
        shared=shared_digest(survey),
        table=table if survey.is_local else None,
    )


def _left(survey: Survey, step: FirstOfTwo, spends: Fraction, *, is_known: bool) -> Fraction:
    if not survey.is_local:
        return step.total_epsilon - spends
    return step.total_epsilon if is_known else Fraction(0)


def shared_digest(survey: Survey) -> str:
    """A hash of what the second survey must have in common with the first."""
    content = survey.to_json()
    names = ("privacy", "unit", "allow_empty", "model_digest", "colluders")
    return hashlib.sha256(canonical({name: content[name] for name in names})).hexdigest()


def step_charge_from_json(fields: Fields) -> StepCharge:
    """Read it back; anything unknown is refused."""
    kind = fields.text("kind")
    if kind == "second":
        fields.only("kind", "first", "spends", "reserved")
        return SecondCharge(
            first=digest(fields.text("first")),
            spends=rational(fields.text("spends")),
            reserved=fields.boolean("reserved"),
        )
    if kind != "first":
        raise FileInvalid(f"a charge is for the first or the second of two; found {kind[:40]!r}.")
    fields.only("kind", "total", "spends", "left", "client_fraction", "grid", "shared", "table")
    names = ("total", "spends", "left", "client_fraction")
    total, spends, left, share = (rational(fields.text(name)) for name in names)
    if max(spends, left, spends + left if share == 1 else total) > total or not 0 < share <= 1:
        raise FileInvalid("two surveys spend no more than their total; this charge says so.")
    return FirstCharge(
        total=total,
        spends=spends,
        left=left,
        client_fraction=share,
        grid=Grid.from_json(fields.inside("grid")),
        shared=digest(fields.text("shared")),
        table=None if fields.get("table") is None else _table(fields.inside("table")),
    )


def _table(fields: Fields) -> TableSeal:
    fields.only("rows", "seal")
    return TableSeal(fields.integer("rows", 0, _MOST_ROWS), digest(fields.text("seal")))
