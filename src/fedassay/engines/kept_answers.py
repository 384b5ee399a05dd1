"""Answers that a client gave, kept beside its ledger: the same question has the same answer.

A new answer to the same survey would be a second report, with fresh noise and spent again. So
what was sent once is sent again, to the last byte, and whoever counts reports counts it once.
"""

import hashlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from fedassay.errors import FileInvalid, WireError
from fedassay.files import canonical, write_whole
from fedassay.ledger import Part
from fedassay.survey import Survey
from fedassay.wire import messages


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """A folder with one report file for each survey and part of the data, for its owner alone."""

    folder: Path

    @classmethod
    def beside(cls, ledger: Path) -> "KeptAnswers":
        """The folder that belongs to a ledger: its name with `.answers`."""
        return cls(ledger.with_name(f"{ledger.name}.answers"))

    def path(self, fingerprint: bytes, part: Part) -> Path:
        """Where the answer to a survey from this part of the data is kept."""
        named = {
            "survey": fingerprint.hex(),
            "data": part.data,
            "window": None if part.window.is_ever else str(part.window),
            "group": part.group,
        }
        return self.folder / f"{hashlib.sha256(canonical(named)).hexdigest()[:32]}.fa"

    def find(self, survey: Survey, part: Part) -> bytes | None:
        """The answer that was given, or None; one that was damaged raises `FileInvalid`."""
        return self.find_by(survey.fingerprint, part, (survey,))

    def find_by(self, fingerprint: bytes, part: Part, surveys: tuple[Survey, ...]) -> bytes | None:
        """The same of a question that has several surveys."""
        path = self.path(fingerprint, part)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FileInvalid(
                f"{path}: cannot be read ({error.strerror}). Check its folder."
            ) from error
        try:
            whole = sum(1 for _ in messages(BytesIO(content), *surveys)) > 0
        except WireError:
            whole = False
        if not whole:
            raise FileInvalid(
                f"{path}: the answer that was kept is damaged. Restore it, or answer anew, which "
                "spends again: --again"
            )
        return content

    def keep(self, survey: Survey, part: Part, content: bytes) -> None:
        """Keep an answer; one that was given anew takes the place of the earlier."""
        self.keep_by(survey.fingerprint, part, content)

    def keep_by(self, fingerprint: bytes, part: Part, content: bytes) -> None:
        """The same of a question that has several surveys."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise FileInvalid(
                f"{self.folder}: cannot be made ({error.strerror}). Make the ledger's folder "
                "writable."
            ) from error
        write_whole(self.path(fingerprint, part), content)
