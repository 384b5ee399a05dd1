"""A ledger's high-water mark, kept outside of it, so that an older copy is noticed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedassay.errors import FileInvalid, LedgerInvalid, LedgerUnwritable
from fedassay.files import Fields, read_json, write_json

MARK_FORMAT = "fedassay.ledger-mark/1"


@dataclass(frozen=True, slots=True)
class Mark:
    """Which ledger, how many entries it had, and the head of its chain then."""

    ledger: str
    entries: int
    head: str

    def to_json(self) -> dict[str, Any]:
        """The content of a mark file."""
        return {
            "format": MARK_FORMAT,
            "ledger": self.ledger,
            "entries": self.entries,
            "head": self.head,
        }

    def save(self, path: Path) -> None:
        """Replace the mark, whole or not at all."""
        try:
            write_json(path, self.to_json())
        except FileInvalid as error:
            raise LedgerUnwritable(
                f"{path}: the ledger's mark cannot be written, so nothing is answered; what was "
                "charged stays charged. Free space, or make its folder writable."
            ) from error

    @classmethod
    def load(cls, path: Path) -> "Mark | None":
        """The mark that is there, if any."""
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise LedgerInvalid(
                f"{path}: the ledger's mark cannot be read ({error.strerror}). Check the path."
            ) from error
        try:
            fields = Fields(read_json(path, MARK_FORMAT), str(path))
            fields.only("format", "ledger", "entries", "head")
            return cls(
                fields.text("ledger"), fields.integer("entries", 0, 2**53), fields.text("head")
            )
        except FileInvalid as error:
            raise LedgerInvalid(str(error)) from error


def mark_path(ledger: Path) -> Path:
    """Where the mark beside a ledger is."""
    real = ledger.resolve()
    return real.with_name(f"{real.name}.mark")
