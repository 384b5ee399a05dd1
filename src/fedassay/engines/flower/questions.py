"""Questions that were asked and not charged: counted, because each answer tells a little.

Whether a ledger would still let a survey pass is one bit of what is left of its budget, and a
server that asks and never goes on pays nothing for it. So a site gives few such bits away.
"""

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedassay.errors import FileInvalid, SurveyRefused
from fedassay.files import Fields, read_json, write_json

QUESTIONS_FORMAT = "fedassay.questions/1"
QUESTIONS_FILE = "questions.json"
MOST_UNCHARGED = 20
_MOST_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Questions:
    """A site's count of questions that reached its ledger and were not charged."""

    path: Path

    @property
    def uncharged(self) -> int:
        """How many there were since the count was last set to zero."""
        if not self.path.exists():
            return 0
        fields = Fields(read_json(self.path, QUESTIONS_FORMAT, most=_MOST_BYTES), str(self.path))
        fields.only("format", "uncharged")
        return fields.integer("uncharged", 0, MOST_UNCHARGED)

    def ask(self) -> None:
        """Count one more before the ledger is looked at, or raise `SurveyRefused`."""
        self._change(_one_more)

    def charged(self) -> None:
        """Take one back: what was asked has been paid for."""
        self._change(lambda count: max(count - 1, 0))

    def forget(self) -> None:
        """Begin anew, as the site's operator decides."""
        self._change(lambda _: 0)

    def _change(self, change: Callable[[int], int]) -> None:
        """Replace the count under a lock, on the disk before anything else happens."""
        lock = self.path.with_suffix(".lock")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise FileInvalid(
                f"{lock}: cannot be written ({error.strerror}); a site that cannot count "
                "questions answers none. Make its folder writable."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            count = change(self.uncharged)
            write_json(self.path, {"format": QUESTIONS_FORMAT, "uncharged": count})
        finally:
            os.close(handle)


def _one_more(count: int) -> int:
    if count >= MOST_UNCHARGED:
        raise SurveyRefused(
            f"a site looks into its ledger for at most {MOST_UNCHARGED} questions that are then "
            "not charged, because each tells something of what is left; so many were asked. Find "
            "out who asked, then: fedassay federation questions FOLDER --reset"
        )
    return count + 1
