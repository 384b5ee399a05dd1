"""What a ledger holds: charges, budgets and accepted losses, each chained to the one before."""

import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from fedassay.checks import require_fraction, require_member, require_type
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields, canonical
from fedassay.ledger.charge import STAMP_FIELDS, Charge, window_from_json
from fedassay.ledger.texts import check_text, digest, one_of, rational
from fedassay.ledger.window import EVER, Window
from fedassay.mechanisms import UnitKind

MAX_EXACT_SUMS = 10_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a ledger was written to, and by whom or for whom."""

    time: datetime
    who: str
    clock_went_back: bool = False
    """Whether the time is before that of an earlier entry."""

    def __post_init__(self) -> None:
        check_text(self.who, "who asked")


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent on data; the latest for the same data and window holds."""

    data: str | None
    """A data id, or None for every id that has no budget of its own."""
    epsilon: Fraction | None
    """The most that one unit may spend; None for no limit."""
    window: Window = EVER
    """The data it is for; a window other than all time goes with `split_windows`."""
    _: KW_ONLY
    unit: UnitKind = UnitKind.EXAMPLE
    delta: Fraction | None = None
    """With a delta, charges compose by the optimal theorem instead of adding up."""
    split_windows: bool = False
    """Whether disjoint windows are declared to hold disjoint examples."""
    split_groups: bool = False
    """Whether differently named groups are declared to hold disjoint clients."""
    exact_sums: int = 0
    """How many exact sums may be answered on the same data, which no epsilon covers."""

    def __post_init__(self) -> None:
        if self.data is not None:
            check_text(self.data, "a data id")
        if self.epsilon is not None:
            require_fraction(self.epsilon, "a budget's epsilon")
            if self.epsilon < 0:
                raise SettingInvalid(
                    f"a budget is not negative; found {self.epsilon}. Use 0 to spend nothing."
                )
        require_type(self.window, Window, "a budget's window", 'Use Window.parse("FROM..TO").')
        require_member(self.unit, UnitKind, "a budget's unit", door="fedassay ledger budget")
        if self.delta is not None:
            require_fraction(self.delta, "delta")
        for name in ("split_windows", "split_groups"):
            require_type(getattr(self, name), bool, f"a budget's {name}", "Pass True or False.")
        require_type(self.exact_sums, int, "a budget's exact_sums", "Pass how many, such as 1.")
        if not 0 <= self.exact_sums <= MAX_EXACT_SUMS:
            raise SettingInvalid(
                f"exact_sums must be from 0 to {MAX_EXACT_SUMS}; found {self.exact_sums}."
            )
        if self.delta is not None and not 0 < self.delta < 1:
            raise SettingInvalid(
                f"delta lies between 0 and 1; found {float(self.delta):g}. Take one far below "
                "1 over the number of clients."
            )
        if self.split_windows and self.unit is not UnitKind.EXAMPLE:
            raise SettingInvalid(
                f"a {self.unit.value} may have examples in every window, so windows do not split a "
                f"budget per {self.unit.value}; found both. Use unit example, or leave windows "
                "together."
            )
        if not self.window.is_ever and not self.split_windows:
            raise SettingInvalid(
                "a budget for one window needs windows declared disjoint; found a window alone. "
                "Declare it: split_windows=True (--split windows)."
            )

    def to_json(self) -> dict[str, Any]:
        """The content of an entry."""
        return {
            "kind": "budget",
            "data": self.data,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "window": None if self.window.is_ever else str(self.window),
            "unit": self.unit.value,
            "delta": None if self.delta is None else str(self.delta),
            "split_windows": self.split_windows,
            "split_groups": self.split_groups,
            "exact_sums": self.exact_sums,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> "Budget":
        """Read it back; anything unknown is refused."""
        fields.only(
            "kind", "data", "epsilon", "window", "unit", "delta", "split_windows",
            "split_groups", "exact_sums", *STAMP_FIELDS,
        )  # fmt: skip
        data, epsilon, delta = fields.get("data"), fields.get("epsilon"), fields.get("delta")
        return cls(
            data=None if data is None else fields.text("data"),
            epsilon=None if epsilon is None else rational(fields.text("epsilon")),
            window=window_from_json(fields),
            unit=one_of(UnitKind, fields.text("unit")),
            delta=None if delta is None else rational(fields.text("delta")),
            split_windows=fields.boolean("split_windows"),
            split_groups=fields.boolean("split_groups"),
            exact_sums=fields.integer("exact_sums", 0, MAX_EXACT_SUMS),
        )


@dataclass(frozen=True, slots=True)
class Loss:
    """Somebody accepted a ledger that had lost entries: what it says is a lower bound."""

    known_entries: int
    known_head: str | None

    def to_json(self) -> dict[str, Any]:
        """The content of an entry."""
        return {
            "kind": "loss",
            "known_entries": self.known_entries,
            "known_head": self.known_head,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> "Loss":
        """Read it back; anything unknown is refused."""
        fields.only("kind", "known_entries", "known_head", *STAMP_FIELDS)
        head = fields.get("known_head")
        return cls(
            fields.integer("known_entries", 0, 2**53),
            None if head is None else digest(fields.text("known_head")),
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What all entries before it came to, as one hash (`checkpoint.State`)."""

    state: str
    latest: datetime | None
    """The latest time of any entry before it."""

    def to_json(self) -> dict[str, Any]:
        """The content of an entry."""
        latest = None if self.latest is None else self.latest.astimezone(UTC).isoformat()
        return {"kind": "checkpoint", "state": self.state, "latest": latest}

    @classmethod
    def from_json(cls, fields: Fields) -> "Checkpoint":
        """Read it back; anything unknown is refused."""
        fields.only("kind", "state", "latest", *STAMP_FIELDS)
        latest = fields.get("latest")
        return cls(
            digest(fields.text("state")),
            None if latest is None else datetime.fromisoformat(fields.text("latest")),
        )


Content = Charge | Budget | Loss | Checkpoint
_KINDS: Mapping[str, type[Charge | Budget | Loss | Checkpoint]] = {
    "charge": Charge,
    "budget": Budget,
    "loss": Loss,
    "checkpoint": Checkpoint,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger: its number, stamp and content, and the hash of all up to it."""

    number: int
    stamp: Stamp
    content: Content
    head: str

    def to_json(self) -> dict[str, Any]:
        """The line as it is exported."""
        return {**entry_json(self.stamp, self.content), "number": self.number, "head": self.head}


def entry_json(stamp: Stamp, content: Content) -> dict[str, Any]:
    """What is kept and hashed."""
    return {
        **content.to_json(),
        "time": stamp.time.astimezone(UTC).isoformat(),
        "who": stamp.who,
        "clock_went_back": stamp.clock_went_back,
    }


def encode(stamp: Stamp, content: Content) -> str:
    """One text per entry."""
    return canonical(entry_json(stamp, content)).decode()


def decode(content: object, where: str) -> tuple[Stamp, Content]:
    """Rebuild an entry from untrusted JSON."""
    fields = Fields(content, where)
    kind = fields.text("kind")
    if kind not in _KINDS:
        raise FileInvalid(f"{where}: entries are {', '.join(_KINDS)}; found {kind[:40]!r}.")
    try:
        time = datetime.fromisoformat(fields.text("time"))
        if time.utcoffset() is None:
            raise FileInvalid(f"{where}: a time needs a zone.")
        stamp = Stamp(time, fields.text("who"), fields.boolean("clock_went_back"))
        return stamp, _KINDS[kind].from_json(fields)
    except (SettingInvalid, ValueError) as error:
        raise FileInvalid(f"{where}: {error}") from error


def next_head(head: str, text: str) -> str:
    """The hash of a chain that had this head and gets this entry."""
    return hashlib.sha256(bytes.fromhex(head) + text.encode()).hexdigest()


def first_head(ledger_id: str) -> str:
    """The head of an empty chain, different for each ledger."""
    return hashlib.sha256(f"fedassay.ledger/1 {ledger_id}".encode()).hexdigest()


def seen_at(stamp: Stamp, latest: datetime | None) -> Stamp:
    """The stamp, marked when its clock is behind an earlier entry's."""
    return replace(stamp, clock_went_back=latest is not None and stamp.time < latest)
