"""The tally file of a question about classes: the tallies of all parts, kept and closed together.

Version 1, little-endian:

    offset  bytes  field
    0       4      magic "FACT"
    4       1      version, 1
    5       3      zeros
    8       4      h, bytes of the header
    12      h      the header, canonical JSON: format, survey, and the bytes of each part's tally
    ...     ...    the parts' tally files, one after the other
    end-32  32     SHA-256 of everything before it
"""

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.one_vs_rest import units_heard
from fedassay.classes.rows import MOST_CLASSES
from fedassay.classes.survey_file import class_survey_from_json, class_survey_json
from fedassay.errors import FileInvalid
from fedassay.files import Fields, canonical, check_format, parse_json, read_bytes, write_whole
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.tally_file import KeptTally, State
from fedassay.wire import Message

CLASS_TALLY_FORMAT = "fedassay.class-tally/1"
MAGIC = b"FACT"
_VERSION = 1
_START = struct.Struct("<4sB3sI")
_DIGEST_BYTES = 32
_MOST_BYTES = 2**31
_COPY_AGAIN = "Copy the file again from its source."


@dataclass(frozen=True, slots=True)
class KeptClassTally:
    """The parts' tallies as their owner keeps them.

    Guarantee: that of `KeptTally` for every part; all are released at once, or none.
    """

    survey: ClassSurvey
    parts: tuple[KeptTally, ...]

    @classmethod
    def empty(cls, survey: ClassSurvey) -> "KeptClassTally":
        """Nothing collected yet."""
        return cls(survey, tuple(KeptTally.empty(part.survey) for part in survey.parts))

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The parts' sums."""
        return tuple(each.tally for each in self.parts)

    @property
    def reports(self) -> int:
        """How many units were heard: each in all parts, or each in one."""
        return units_heard(self.survey, self.tallies)

    @property
    def state(self) -> State:
        """What became of it: the parts go together."""
        return self.parts[0].state

    @property
    def reports_may_be_seen(self) -> bool:
        """Whether single reports protect themselves, so that more may be added later."""
        return self.parts[0].survey.reports_may_be_seen

    def holding(self, tallies: tuple[Tally, ...]) -> "KeptClassTally":
        """The same with more reports in it; raises `TallyClosed` where that may not be."""
        return self._each(lambda kept, tally: kept.holding(tally), tallies)

    def released(self) -> "KeptClassTally":
        """The same, released: raises below the minimum of any part."""
        return self._each(lambda kept, _: kept.released(), self.tallies)

    def _each(
        self, change: Callable[[KeptTally, Tally], KeptTally], tallies: tuple[Tally, ...]
    ) -> "KeptClassTally":
        parts = (change(kept, tally) for kept, tally in zip(self.parts, tallies, strict=True))
        return KeptClassTally(self.survey, tuple(parts))

    def save(self, path: Path) -> int:
        """Write the file, whole or not at all, for its owner alone; returns how many bytes."""
        parts = [each.to_bytes() for each in self.parts]
        header = canonical(
            {
                "format": CLASS_TALLY_FORMAT,
                "survey": class_survey_json(self.survey),
                "bytes": [len(part) for part in parts],
            }
        )
        content = b"".join([_START.pack(MAGIC, _VERSION, bytes(3), len(header)), header, *parts])
        return write_whole(path, content + hashlib.sha256(content).digest())

    @classmethod
    def load(cls, path: Path) -> "KeptClassTally":
        """Read untrusted bytes; the checksum is held against them before anything is built."""
        data = read_bytes(path, most=_MOST_BYTES)
        if not data.startswith(MAGIC) or len(data) < _START.size + _DIGEST_BYTES:
            raise FileInvalid(
                f"{path}: a tally of a survey of classes begins with {MAGIC.decode()}; this one "
                "does not. Pass a file that fedassay tally made."
            )
        if hashlib.sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
            raise FileInvalid(f"{path}: the checksum must match; it does not. {_COPY_AGAIN}")
        _, version, zeros, size = _START.unpack_from(data)
        if version != _VERSION or any(zeros):
            raise FileInvalid(
                f"{path}: this fedassay reads version {_VERSION} of such tallies; found {version}. "
                "Use the fedassay version that wrote the file."
            )
        return _parts(data[_START.size :], size, str(path))


def _parts(data: bytes, size: int, where: str) -> KeptClassTally:
    header = parse_json(data[:size], where)
    fields = Fields(check_format(header, CLASS_TALLY_FORMAT, where), where)
    fields.only("format", "survey", "bytes")
    survey = class_survey_from_json(fields.get("survey"), where=where)
    sizes = fields.integers("bytes", MOST_CLASSES + 3)
    if len(sizes) != len(survey.parts) or min(sizes) < 0 or size + sum(sizes) + 32 != len(data):
        raise FileInvalid(f"{where}: the parts' bytes fit the file; these do not. {_COPY_AGAIN}")
    parts, start = [], size
    for part, length in zip(survey.parts, sizes, strict=True):
        kept = KeptTally.from_bytes(data[start : start + length], where=where)
        if kept.survey.fingerprint != part.survey.fingerprint:
            raise FileInvalid(f"{where}: a part's tally is of another survey. {_COPY_AGAIN}")
        parts.append(kept)
        start += length
    if len({kept.state for kept in parts}) > 1:
        raise FileInvalid(f"{where}: all parts are released, or none; here some. {_COPY_AGAIN}")
    return KeptClassTally(survey, tuple(parts))


def is_class_tally(path: Path) -> bool:
    """Whether a file begins as such tallies do."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class ClassTallyBuilder:
    """Adds reports of all parts, in place; a refused report changes nothing."""

    def __init__(self, survey: ClassSurvey, tallies: tuple[Tally, ...]) -> None:
        self.survey = survey
        builders = (
            TallyBuilder(tally, part.survey)
            for part, tally in zip(survey.parts, tallies, strict=True)
        )
        self._builders = {each.survey.fingerprint: each for each in builders}

    @property
    def surveys(self) -> tuple[Survey, ...]:
        """The parts' surveys."""
        return tuple(part.survey for part in self.survey.parts)

    @property
    def reports(self) -> int:
        """How many units were heard so far."""
        return units_heard(self.survey, self.tallies())

    def add(self, report: Message, *, name: str | None = None) -> None:
        """Count one message in the part that it answers, or raise and count nothing."""
        self._builders[report.fingerprint].add(report, name=name)

    def tallies(self) -> tuple[Tally, ...]:
        """The sums of all parts so far."""
        return tuple(each.tally() for each in self._builders.values())
