"""The privacy ledger: what was spent on which data, charged before anything leaves."""

from fedassay.ledger.account import LedgerAccount
from fedassay.ledger.budget import Balance
from fedassay.ledger.charge import Charge, Part, Question, Status
from fedassay.ledger.entry import Budget, Checkpoint, Entry, Loss
from fedassay.ledger.ledger import Ledger, Receipt
from fedassay.ledger.snapshot import Snapshot
from fedassay.ledger.steps import TableDigest
from fedassay.ledger.window import EVER, Window

__all__ = [
    "EVER",
    "Balance",
    "Budget",
    "Charge",
    "Checkpoint",
    "Entry",
    "Ledger",
    "LedgerAccount",
    "Loss",
    "Part",
    "Question",
    "Receipt",
    "Snapshot",
    "Status",
    "TableDigest",
    "Window",
]
