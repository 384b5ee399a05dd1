"""The ledger: what was spent on which data, charged before anything leaves."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from fedassay.checks import require_type, shown
from fedassay.errors import LedgerInvalid, LedgerRolledBack, SettingInvalid
from fedassay.ledger import composition, store
from fedassay.ledger.budget import NO_LIMIT, Balance, Tab, decide, repeats
from fedassay.ledger.charge import Charge, Part, Question, Status
from fedassay.ledger.entry import Budget, Entry, Loss, Stamp
from fedassay.ledger.high_water_mark import Mark, mark_path
from fedassay.ledger.reservation import priced
from fedassay.ledger.snapshot import Snapshot
from fedassay.ledger.steps import TableDigest
from fedassay.survey import Survey

NOBODY = "not said"


def system_clock() -> datetime:
    """The time now, in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge that lasts, and what is left after it."""

    entry: Entry
    balances: tuple[Balance, ...]
    overlapping: int
    """How many earlier charges cover some of the same data."""

    @property
    def head(self) -> str:
        """The hash of the ledger up to this charge; keep it elsewhere to notice a rollback."""
        return self.entry.head


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger's file, its mark beside it, and a witness elsewhere if there is one.

    Guarantee: when `charge` returns, the charge is on the disk; several processes may charge at
    once and never pass a budget together. Every charge checks both marks, the hash chain since
    the last checkpoint, and what it needs of the state at it (`checkpoint`); reading checks all.
    """

    path: Path
    witness: Path | None = None
    clock: Callable[[], datetime] = system_clock

    def __post_init__(self) -> None:
        for path in (self.path, self.witness):
            if path is not None:
                require_type(path, Path, "a ledger's path", "Write pathlib.Path(...) around it.")
        if not callable(self.clock):
            raise SettingInvalid(
                f"a ledger's clock must be a function; found {shown(self.clock)}. Leave it out."
            )

    @classmethod
    def create(cls, path: Path, *, witness: Path | None = None) -> "Ledger":
        """Make an empty ledger where none is, and none was."""
        ledger = cls(path, witness)
        for place in ledger._marks():
            if (mark := Mark.load(place)) is not None and mark.entries > 0:
                raise LedgerRolledBack(
                    f"{path}: a ledger with {mark.entries} entries was here, as {place} says. "
                    "Restore it, or choose another name."
                )
            if mark is not None and not store.is_there(path):
                # Of a ledger that was removed before its first entry.
                with suppress(OSError):
                    place.unlink()
        store.create(path)
        ledger._set_marks()
        return ledger

    def charge(
        self,
        survey: Survey | Question,
        part: Part,
        *,
        who: str = NOBODY,
        again: bool = False,
        status: Status = Status.CHARGED,
        table: TableDigest | None = None,
    ) -> Receipt:
        """Charge a survey to a part of the data, or raise `SurveyRefused`.

        With `again`, a survey that was charged before is charged once more instead of refused.
        The first of two surveys is charged what both spend (`reservation`); under local
        privacy the `table` tells that the second is answered from the same rows.
        """
        with self._writing() as writer:
            charge, before = _asked(writer, survey, part, status, table)
            if again and repeats(before, charge):
                charge = replace(charge, status=Status.AGAIN)
            decide(before, charge, again=again)
            entry = writer.append(Stamp(self.clock(), who), charge)
            balances = tuple(writer.tab(part.data).balances(part))
        self._set_marks()
        overlapping = sum(times for old, times in before.charges.items() if part.overlaps(old.part))
        return Receipt(entry, balances, overlapping)

    def would_refuse(
        self,
        survey: Survey | Question,
        part: Part,
        *,
        again: bool = False,
        table: TableDigest | None = None,
    ) -> None:
        """Raise now what charging this survey would raise; nothing is recorded."""
        with store.transaction(self.path, writable=False) as reader:
            self._check(reader)
            charge, before = _asked(reader, survey, part, Status.CHARGED, table)
            decide(before, charge, again=again)

    def budgets(self, data: str) -> tuple[Budget, ...]:
        """The budgets in force for a data id."""
        with store.transaction(self.path, writable=False) as reader:
            self._check(reader)
            return reader.tab(data).budgets or (NO_LIMIT,)

    def verify(self, *, rebuild: bool = False) -> Snapshot:
        """Check every entry, both marks, and what the entries come to; all of the file is read.

        A charge checks the entries since the last checkpoint and what it needs of the state at
        it; this checks the rest. With `rebuild` the state is written anew from the entries.
        """
        with store.transaction(self.path, writable=rebuild) as writer:
            self._check(writer)
            return writer.verify(rebuild=rebuild)

    def set_budget(self, budget: Budget, *, who: str = NOBODY) -> Entry:
        """Set, change or (with epsilon None) lift a budget; the old one stays on record."""
        if budget.delta is not None:
            composition.require()
        return self._append(budget, who)

    def read(self) -> Snapshot:
        """All that is in it, checked; needs no right to write."""
        with store.transaction(self.path, writable=False) as reader:
            snapshot = reader.snapshot()
            self._check(reader)
        return snapshot

    def entries(self) -> Sequence[Entry]:
        """All entries, in order."""
        return self.read().entries

    def balances(self, data: str | None = None) -> list[Balance]:
        """What is spent and left, per data id and budget."""
        return self.read().balances(data)

    def accept_loss(self, *, who: str) -> Entry | None:
        """Go on with a ledger that lost entries; that it did stays on record.

        What it says was spent is then only a lower bound: lower its budgets accordingly.
        """
        with store.transaction(self.path, writable=True) as writer:
            known = [mark for mark in map(Mark.load, self._marks()) if mark is not None]
            worst = max(known, key=lambda mark: mark.entries, default=None)
            try:
                self._check(writer)
            except LedgerRolledBack:
                loss = Loss(
                    0 if worst is None else worst.entries, None if worst is None else worst.head
                )
                entry = writer.append(Stamp(self.clock(), who), loss)
            else:
                return None
        self._set_marks()
        return entry

    def _append(self, content: Budget, who: str) -> Entry:
        with self._writing() as writer:
            entry = writer.append(Stamp(self.clock(), who), content)
        self._set_marks()
        return entry

    @contextmanager
    def _writing(self) -> Iterator[store.Store]:
        with store.transaction(self.path, writable=True) as writer:
            self._check(writer)
            if Mark.load(mark_path(self.path)) is None:
                # Killed right after its creation; from the first entry on there is a mark.
                writer.mark.save(mark_path(self.path))
            yield writer

    def _marks(self) -> list[Path]:
        return [mark_path(self.path)] + ([] if self.witness is None else [self.witness])

    def _set_marks(self) -> None:
        """Bring the marks up to date, under the lock, so that they never go back."""
        with store.locked_tip(self.path) as tip:
            for place in self._marks():
                Mark(*tip).save(place)

    def _check(self, stored: store.Store) -> None:
        """Raise unless the file holds all that its marks have seen."""
        beside, *elsewhere = [(place, Mark.load(place)) for place in self._marks()]
        if beside[1] is None and stored.size:
            raise LedgerRolledBack(
                f"{beside[0]}: the ledger's mark is missing, so nobody can tell whether the "
                "ledger is an older copy. Restore the mark, or accept the ledger as it is: "
                "fedassay ledger accept FILE"
            )
        for place, mark in [beside, *elsewhere]:
            if mark is not None:
                self._check_mark(stored, place, mark)

    def _check_mark(self, stored: store.Store, place: Path, mark: Mark) -> None:
        if mark.ledger != stored.ledger_id:
            raise LedgerInvalid(
                f"{place}: this mark is of another ledger than {self.path}. Pass the ones that "
                "belong together."
            )
        if mark.entries > stored.size or stored.head_at(mark.entries) != mark.head:
            raise LedgerRolledBack(
                f"{self.path}: this is an older copy: it has {stored.size} entries, and "
                f"{place} has seen {mark.entries}, or others. Restore the newest copy; if there "
                "is none, accept the loss: fedassay ledger accept FILE"
            )


def _asked(
    stored: store.Store,
    survey: Survey | Question,
    part: Part,
    status: Status,
    table: TableDigest | None,
) -> tuple[Charge, Tab]:
    """The charge for a survey, priced by what was charged before, and what was."""
    seal = stored.seal(table)
    charge = Charge.of(survey, part, status, seal)
    before = stored.tab(part.data, *charge.keys)
    if isinstance(survey, Question):
        return charge, before
    return priced(before, charge, survey, table=seal), before
