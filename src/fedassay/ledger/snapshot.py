"""A ledger as it was at one moment, checked."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedassay.ledger.budget import Balance, Tab, tab_of
from fedassay.ledger.charge import Charge, Part
from fedassay.ledger.entry import Budget, Entry, Loss, first_head
from fedassay.ledger.high_water_mark import Mark


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All entries of a ledger, and what follows from them."""

    ledger_id: str
    entries: Sequence[Entry]

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self.entries)

    @property
    def head(self) -> str:
        """The hash of the whole chain."""
        return self.head_at(len(self.entries))

    def head_at(self, number: int) -> str:
        """The hash of the chain up to an entry."""
        return self.entries[number - 1].head if number else first_head(self.ledger_id)

    @property
    def mark(self) -> Mark:
        """Id, size and head, as a mark keeps them."""
        return Mark(self.ledger_id, len(self.entries), self.head)

    @property
    def losses(self) -> int:
        """How often lost entries were accepted: what is spent is then a lower bound."""
        return sum(isinstance(entry.content, Loss) for entry in self.entries)

    def had_head(self, head: str) -> bool:
        """Whether a head, or at least 8 digits of it, is that of some entry."""
        heads = (self.head_at(number) for number in range(len(self.entries) + 1))
        return len(head) >= 8 and any(known.startswith(head) for known in heads)

    def data_ids(self) -> list[str]:
        """All data that were charged or have a budget of their own."""
        names = set()
        for entry in self.entries:
            if isinstance(entry.content, Charge):
                names.add(entry.content.part.data)
            elif isinstance(entry.content, Budget) and entry.content.data is not None:
                names.add(entry.content.data)
        return sorted(names)

    def balances(self, data: str | None = None, part: Part | None = None) -> list[Balance]:
        """What is spent and left per data id and budget, anywhere or at one part's points."""
        names = self.data_ids() if data is None else [data]
        return [balance for name in names for balance in self.tab(name).balances(part)]

    def reserved(self, data: str | None = None) -> list[Charge]:
        """Charges for first surveys whose second has not been answered."""
        names = self.data_ids() if data is None else [data]
        return [charge for name in names for charge in self.tab(name).reserved.values()]

    def tab(self, data: str) -> Tab:
        """All that a decision about one data id needs."""
        return tab_of(self.entries, data)
