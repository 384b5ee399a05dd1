"""The tally file: collects reports, stays with its owner, and is never called a result.

Version 2, little-endian:

    offset  bytes  field
    0       4      magic "FATL"
    4       1      version, 2
    5       3      zeros
    8       4      h, bytes of the header
    12      h      the header, canonical JSON: format, survey, state, reports, report_ids
                   and, where single reports may be seen, the names of the sites
    ...     8 w    counters, int64, one for each of the survey's w counters
    ...     8 v    sums of moments, int64, where the survey asks for v of them
    ...     16 n   ids of the n reports that were counted one by one, rising
    ...     8 w s  counters of the s named sites, one after the other
    end-32  32     SHA-256 of everything before it

What may be released from it, and when, is said by `KeptTally`.
"""

import hashlib
import os
import struct
from dataclasses import dataclass, replace
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fedassay.decoding import require_enough
from fedassay.errors import FileInvalid, SurveyMismatch, TallyClosed
from fedassay.files import Fields, canonical, check_format, parse_json, write_whole
from fedassay.mechanisms import Privacy
from fedassay.report_ids import REPORT_ID_BYTES, ReportIds
from fedassay.shuffler import BATCH_TAG_BYTES
from fedassay.survey import MAX_CLIENTS, Survey
from fedassay.survey_json import MAX_SURVEY_BYTES, survey_from_json
from fedassay.tally import MOST_SITES, Tally

TALLY_FORMAT = "fedassay.tally/2"
MAGIC = b"FATL"
_VERSION = 2
_START = struct.Struct("<4sB3sI")
_COUNTER_BYTES = 8
_DIGEST_BYTES = 32
_MAX_HEADER_BYTES = MAX_SURVEY_BYTES + 2**22
_COPY_AGAIN = "Copy the file again from its source."


class State(Enum):
    """What became of a tally."""

    COLLECTING = "collecting"
    """Unreleased: reports may be added, nobody but its owner has seen the sums."""
    RELEASED = "released"
    """An assessment was made of exactly these reports."""
    MERGED = "merged"
    """It is part of another tally, and only the whole may be released."""


@dataclass(frozen=True, slots=True)
class KeptTally:
    """A tally as its owner keeps it: with its survey, and what became of it.

    Guarantee: of one survey under secure or distributed privacy one set of reports is ever
    released, at or above the survey's minimum. After that nothing is added: two released sums
    that differ by a client are that client's report, without the noise of the others. Local
    reports protect themselves, so theirs may be added to and released again.
    """

    survey: Survey
    tally: Tally
    state: State = State.COLLECTING

    def __post_init__(self) -> None:
        self.tally.require(self.survey)

    @classmethod
    def empty(cls, survey: Survey) -> "KeptTally":
        """Nothing collected yet."""
        return cls(survey, Tally.zero(survey))

    @property
    def reports(self) -> int:
        """How many reports were counted in all."""
        return self.tally.clients(self.survey)

    def holding(self, tally: Tally) -> "KeptTally":
        """The same with more reports in it; raises `TallyClosed` where that may not be."""
        if tally == self.tally:
            return self
        self.require_open()
        return replace(self, tally=tally, state=State.COLLECTING)

    def without(self, part: Tally) -> "KeptTally":
        """The same as if these reports had never come; raises `TallyClosed` once it was released.

        Guarantee: what nobody has seen can be left out; what was published cannot be taken back,
        and a second sum without the report would be that report.
        """
        if self.state is not State.COLLECTING:
            raise TallyClosed(
                f"a site may withdraw before the release; this tally is {self.state.value}, and "
                "what was published cannot be taken back: a second sum without the report would "
                "show it. Leave the site out of the next survey."
            )
        return replace(self, tally=self.tally.without(part))

    def require_open(self) -> None:
        """Raise `TallyClosed` unless reports may be added."""
        if self.state is State.COLLECTING or self.survey.reports_may_be_seen:
            return
        if self.state is State.MERGED:
            raise TallyClosed(
                "this tally was merged into another, which goes on; two that overlap must not both "
                "be released. Add to the merged one."
            )
        raise TallyClosed(
            f"an assessment of {self.reports:,} reports was released from this tally, which closed "
            "it: the difference of two released sums is the data of the clients between them. "
            "Late clients answer a new survey; next time keep collecting (--collect) until all "
            "are in."
        )

    def released(self) -> "KeptTally":
        """The same, released: raises below the survey's minimum, and where it is part of another.

        What was released before is released again as it is, for other thresholds, say.
        """
        if self.state is State.MERGED and not self.survey.reports_may_be_seen:
            self.require_open()
        require_enough(self.survey, self.tally)
        return replace(self, state=State.RELEASED)

    def __add__(self, other: "KeptTally") -> "KeptTally":
        if self.survey.fingerprint != other.survey.fingerprint:
            raise SurveyMismatch(
                f"tallies merge within one survey; found {self.survey.fingerprint.hex()[:12]} and "
                f"{other.survey.fingerprint.hex()[:12]}. Merge each survey by itself."
            )
        self.require_open()
        other.require_open()
        if len(batches_in(self.survey, self.tally, other.tally)) > 1:
            raise TallyClosed(
                "a shuffled survey has one batch: two that overlap would tell the reports apart; "
                "these tallies are of two. Keep the one whose batch came first."
            )
        return KeptTally(self.survey, self.tally + other.tally)

    def to_bytes(self) -> bytes:
        """The file's content."""
        return b"".join(self._parts())

    def _parts(self) -> list[bytes]:
        sites = self.tally.sites
        seen = {"sites": list(sites)} if sites else {}
        header = canonical(
            {
                "format": TALLY_FORMAT,
                "survey": self.survey.to_json(),
                "state": self.state.value,
                "reports": list(self.tally.reports),
                "report_ids": len(self.tally.report_ids),
                **seen,
            }
        )
        parts = [
            _START.pack(MAGIC, _VERSION, bytes(3), len(header)),
            header,
            self.tally.counters.astype("<i8").tobytes(),
            self.tally.moments.astype("<i8").tobytes(),
            self.tally.report_ids.to_bytes(),
            *(counters.astype("<i8").tobytes() for counters in sites.values()),
        ]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        return [*parts, digest.digest()]

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str = "tally") -> "KeptTally":
        """Read untrusted bytes."""
        return _read(BytesIO(data), len(data), where)

    def save(self, path: Path) -> int:
        """Write the file, whole or not at all, for its owner alone; returns how many bytes."""
        return write_whole(path, *self._parts())

    @classmethod
    def load(cls, path: Path) -> "KeptTally":
        """Read a tally file; its size is checked before it is read."""
        try:
            with path.open("rb") as stream:
                return _read(stream, os.fstat(stream.fileno()).st_size, str(path))
        except OSError as error:
            raise FileInvalid(
                f"{path}: cannot be read ({error.strerror}). Check the path."
            ) from error


def batches_in(survey: Survey, *tallies: Tally) -> set[bytes]:
    """Which batches of shuffled reports are in tallies; none where reports are not shuffled."""
    if survey.privacy is not Privacy.SHUFFLED:
        return set()
    firsts = (next(iter(tally.report_ids), b"") for tally in tallies)
    return {first[:BATCH_TAG_BYTES] for first in firsts if first}


def is_tally_file(path: Path) -> bool:
    """Whether a file begins as tally files do."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def file_digest(path: Path) -> str:
    """The checksum that a tally file ends with, in hexadecimal; it tells it from all others."""
    try:
        with path.open("rb") as stream:
            stream.seek(-_DIGEST_BYTES, os.SEEK_END)
            return stream.read().hex()
    except OSError as error:
        raise FileInvalid(f"{path}: cannot be read ({error.strerror}). Check the path.") from error


def _read(stream: BinaryIO, size: int, where: str) -> KeptTally:
    start = stream.read(_START.size)
    if len(start) < _START.size or not start.startswith(MAGIC):
        raise FileInvalid(
            f"{where}: a tally file begins with {MAGIC.decode()}; this one does not. Pass a file "
            "that fedassay tally made."
        )
    _, version, zeros, header_bytes = _START.unpack(start)
    if version != _VERSION or any(zeros):
        raise FileInvalid(
            f"{where}: this fedassay reads tally version {_VERSION}; found {version}. Use the "
            "fedassay version that wrote the file."
        )
    if header_bytes > min(_MAX_HEADER_BYTES, size):
        raise FileInvalid(
            f"{where}: the header has at most {_MAX_HEADER_BYTES:,} bytes and fits the file; found "
            f"{header_bytes:,}. {_COPY_AGAIN}"
        )
    header = stream.read(header_bytes)
    fields = Fields(check_format(parse_json(header, where), TALLY_FORMAT, where), where)
    seen = ["sites"] if fields.has("sites") else []
    fields.only("format", "survey", "state", "reports", "report_ids", *seen)
    survey = survey_from_json(fields.get("survey"), where=where)
    ids = fields.integer("report_ids", 0, MAX_CLIENTS)
    width, words = survey.hierarchy.width, survey.hierarchy.width + survey.moment_words
    names = fields.texts("sites", MOST_SITES) if seen else []
    sums_bytes, ids_bytes = _COUNTER_BYTES * words, REPORT_ID_BYTES * ids
    sites_bytes = _COUNTER_BYTES * width * len(names)
    body_bytes = sums_bytes + ids_bytes + sites_bytes + _DIGEST_BYTES
    wanted = len(start) + len(header) + body_bytes
    if size != wanted:
        raise FileInvalid(
            f"{where}: by its header it has {wanted:,} bytes; found {size:,}: it was cut or "
            f"extended. {_COPY_AGAIN}"
        )
    body = memoryview(stream.read(body_bytes))
    if len(body) != body_bytes:
        raise FileInvalid(f"{where}: was cut while it was read. {_COPY_AGAIN}")
    digest = hashlib.sha256(start + header)
    digest.update(body[:-_DIGEST_BYTES])
    if digest.digest() != body[-_DIGEST_BYTES:]:
        raise FileInvalid(f"{where}: the checksum must match; it does not. {_COPY_AGAIN}")
    try:
        report_ids = ReportIds.from_bytes(body[sums_bytes : sums_bytes + ids_bytes])
    except ValueError as error:
        raise FileInvalid(f"{where}: {error}. {_COPY_AGAIN}") from error
    sums = np.frombuffer(body, "<i8", words).astype(np.int64)
    own = np.frombuffer(body, "<i8", width * len(names), sums_bytes + ids_bytes)
    tally = Tally.checked(
        survey,
        reports=fields.integers("reports", survey.hierarchy.levels),
        counters=sums[:width].copy(),
        moments=sums[width:].copy(),
        report_ids=report_ids,
        sites=dict(zip(names, own.astype(np.int64).reshape(len(names), width), strict=True)),
        where=where,
    )
    return KeptTally(survey, tally, fields.one_of(State, "state"))
