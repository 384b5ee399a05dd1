"""Options that tie `answer` and `survey new` to a ledger."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fedassay.errors import SettingInvalid
from fedassay.ledger import EVER, Charge, Ledger, Part, Question, Receipt, Status, Window
from fedassay.ledger.budget import show
from fedassay.ledger.high_water_mark import mark_path
from fedassay.ledger.ledger import NOBODY
from fedassay.ledger.steps import FirstCharge, SecondCharge, TableDigest
from fedassay.survey import Survey

LedgerOption = Annotated[
    Path | None, typer.Option("--ledger", metavar="FILE", help="Ledger to charge first.")
]
DataOption = Annotated[
    str | None, typer.Option("--data-id", metavar="ID", help="Name of the data in the ledger.")
]
WindowOption = Annotated[
    str | None,
    typer.Option("--window", metavar="FROM..TO", help="Time window of the data, TO not included."),
]
GroupOption = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="Group of clients (default: all).")
]
WhoOption = Annotated[
    str, typer.Option("--who", metavar="NAME", help="Who asks; kept in the ledger.")
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Charge a survey once more that was charged before.")
]
WitnessOption = Annotated[
    Path | None,
    typer.Option("--witness", metavar="FILE", help="Second mark of the ledger, kept elsewhere."),
]


@dataclass(slots=True)
class ReceiptKeeper:
    """An account that remembers its receipt, to be shown."""

    ledger: Ledger
    part: Part
    who: str
    again: bool
    status: Status = Status.CHARGED
    receipt: Receipt | None = None
    table: TableDigest | None = None

    def of_table(self, table: TableDigest) -> "ReceiptKeeper":
        """Charge for an answer from these rows."""
        self.table = table
        return self

    def charge(self, survey: Survey | Question) -> Receipt:
        """Charge the survey, or raise `SurveyRefused`."""
        self.receipt = self.ledger.charge(
            survey,
            self.part,
            who=self.who,
            again=self.again,
            status=self.status,
            table=self.table,
        )
        return self.receipt

    def receipt_text(self) -> str:
        """What was charged and what is left."""
        if self.receipt is None or not isinstance(self.receipt.entry.content, Charge):
            return "Nothing was charged."
        charge = self.receipt.entry.content
        what = "an exact sum" if charge.epsilon is None else f"epsilon {show(charge.epsilon)}"
        if charge.delta is not None:
            what += f" at delta {float(charge.delta):g}"
        lines = [f"Charged {what} to {self.part}{step_words(charge)}."]
        lines += [
            f"Spent {show(balance.spent)} of {show(balance.budget.epsilon)} per "
            f"{balance.budget.unit.value}, left {show(balance.left)} "
            f"({balance.neighbours.value} neighbours)."
            for balance in self.receipt.balances
            if balance.budget.epsilon is not None
        ]
        if self.receipt.overlapping:
            lines.append(f"Earlier charges on some of the same data: {self.receipt.overlapping}.")
        number = self.receipt.entry.number
        lines.append(f"Ledger entry {number:,}; keep its head elsewhere:\n{self.receipt.head}")
        return "\n".join(lines)


def step_words(charge: Charge) -> str:
    """What a charge for one of two surveys covers, in words."""
    match charge.step:
        case None:
            return ""
        case FirstCharge() as step:
            if not step.left:
                return ": the first of two surveys, with nothing reserved for the second"
            if step.client_fraction < 1:
                return (
                    ": each row answers one of two surveys, this one or the second, for which "
                    f"{show(step.left)} is reserved"
                )
            return (
                f": the first of two surveys spends {show(step.spends)}, and at most "
                f"{show(step.left)} is reserved for the second, {show(step.total)} in all"
            )
        case SecondCharge() as step:
            paid = "was paid with the first" if step.reserved else "was not paid with a first"
            return f": the second of two surveys spends {show(step.spends)}, which {paid}"


def receipt_keeper(
    ledger: Path | None,
    data: str | None,
    *,
    window: str | None,
    group: str | None,
    who: str,
    again: bool,
    witness: Path | None,
) -> ReceiptKeeper | None:
    """The account that the options name, if any."""
    if ledger is None:
        named = {"--data-id": data, "--window": window, "--group": group, "--witness": witness}
        if again or any(value is not None for value in named.values()):
            given = "--again" if again else next(name for name, v in named.items() if v is not None)
            raise SettingInvalid(f"{given} goes with a ledger; found none. Add --ledger FILE.")
        return None
    if data is None:
        raise SettingInvalid("a ledger needs to know which data; found no id. Add --data-id ID.")
    part = Part(data, EVER if window is None else Window.parse(window), group)
    return ReceiptKeeper(Ledger(ledger, witness), part, who, again)


def files_of(account: ReceiptKeeper | None) -> list[Path]:
    """The ledger's files, which no output may replace."""
    if account is None:
        return []
    ledger = account.ledger
    witness = [] if ledger.witness is None else [ledger.witness]
    return [ledger.path, mark_path(ledger.path), *witness]


__all__ = [
    "NOBODY",
    "AgainOption",
    "DataOption",
    "GroupOption",
    "LedgerOption",
    "ReceiptKeeper",
    "WhoOption",
    "WindowOption",
    "WitnessOption",
    "files_of",
    "receipt_keeper",
]
