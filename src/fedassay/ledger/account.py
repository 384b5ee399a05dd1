"""An account: a ledger, and which data a client answers from."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from fedassay.checks import require_type
from fedassay.ledger.charge import Part, Question
from fedassay.ledger.ledger import NOBODY, Ledger, Receipt
from fedassay.ledger.steps import TableDigest
from fedassay.survey import Survey


@runtime_checkable
class TableAccount(Protocol):
    """An account that can tell whether two surveys are answered from the same rows."""

    @property
    def part(self) -> Part:
        """Which data it is charged for."""
        ...

    def charge(self, survey: Survey) -> object:
        """Record the survey's cost for good, or raise `SurveyRefused`."""
        ...

    def of_table(self, table: TableDigest) -> "TableAccount":
        """The account for an answer from these rows."""
        ...


@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """What `client.answer` charges before it draws any noise.

    Guarantee: an answer that left was charged; a crash can lose an answer, never a charge.
    """

    ledger: Ledger
    part: Part
    who: str = NOBODY
    again: bool = False
    """Whether a survey that was charged before may be answered, and charged, once more."""
    table: TableDigest | None = None
    """The rows that are answered from, where each answers one of two surveys."""

    def __post_init__(self) -> None:
        require_type(self.ledger, Ledger, "an account's ledger", "Open one with Ledger(path).")
        require_type(self.part, Part, "an account's part", 'Write Part("ward-3").')
        require_type(self.again, bool, "whether to answer again", "Pass True or False.")

    def charge(self, survey: Survey | Question) -> Receipt:
        """Charge the survey, or raise `SurveyRefused`."""
        return self.ledger.charge(
            survey, self.part, who=self.who, again=self.again, table=self.table
        )

    def of_table(self, table: TableDigest) -> "LedgerAccount":
        """The same account, for an answer from these rows."""
        return replace(self, table=table)
