"""An account: a ledger, and which data a client answers from."""

from dataclasses import dataclass

from fedassay.ledger.entry import Part
from fedassay.ledger.ledger import NOBODY, Ledger, Receipt
from fedassay.survey import Survey


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

    def charge(self, survey: Survey) -> Receipt:
        """Charge the survey, or raise `SurveyRefused`."""
        return self.ledger.charge(survey, self.part, who=self.who, again=self.again)
