"""Reports, and their bytes.

A message, little-endian, version 2:

    offset  bytes  field
    0       4      magic "FASR"
    4       1      version, 2
    5       1      encoding: 0 counters, 2 rows, 3 rows that a shuffler sorted
    6       1      level, or 255 for all levels
    7       1      zero
    8       32     survey fingerprint
    40      16     report id, random
    56      4      n, the number of items in the body
    60      ...    the body, by encoding:
                   0: n int32 counters, after them the words of moments where the survey
                      asks for them
                   2: n locally private reports, each a row of as many bytes as the level's
                      mechanism has them: for oue ceil(d/8), d bits, least significant first,
                      then zeros; for grr 4, a value below d, or d where nothing may be said
                   3: the same, of many clients, in the order of their bytes
    end-4   4      CRC-32 of everything before it

Counters, bits and values run over levels from the coarsest, within a level over negatives
then positives, within a label over cells; d is twice the level's cells. Encoding 0 holds one
client's counters, 2 a block of locally private reports. A report file is one message after
the other. Every counter is written, zero or not: were zeros left out, the size of a report
would tell how many cells its client fills.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from fedassay.errors import (
    ReportForeign,
    ReportMalformed,
    ReportTooLarge,
    SettingInvalid,
    SurveyMismatch,
)
from fedassay.examples import IntArray
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import LocalMechanism, Privacy
from fedassay.mechanisms.base import Rows
from fedassay.report_ids import REPORT_ID_BYTES
from fedassay.survey import Survey

MAX_BLOCK_BYTES = 2**22
HEADER = struct.Struct("<4sBBBB32s16sI")
MAGIC = b"FASR"
VERSION = 2
_COUNTERS, ROWS, _MIXED = 0, 2, 3
_ALL_LEVELS = 255
CRC_BYTES = 4
_FINGERPRINT_BYTES = 32
_ASK_AGAIN = "Ask the client to send it again."


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One client's counters under a random id."""

    fingerprint: bytes
    report_id: bytes
    counters: IntArray
    level: int | None = None
    """The one level that the counters are of, or None for all levels."""
    moments: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Moments of this site's metrics, where the survey asks for them."""

    def __post_init__(self) -> None:
        _check(self, self.counters, kinds="i", dimensions=1)
        _check(self, self.moments, kinds="i", dimensions=1)

    @property
    def reports(self) -> int:
        """How many reports this message holds."""
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and encode(self) == encode(other)

    __hash__ = None  # type: ignore[assignment]  # holds an array


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Locally private reports on one level, one row of bytes each, under one id."""

    fingerprint: bytes
    report_id: bytes
    rows: Rows
    level: int
    mixed: bool = False
    """Whether a shuffler sorted the reports of many clients."""

    def __post_init__(self) -> None:
        _check(self, self.rows, kinds="u", dimensions=2)

    @property
    def reports(self) -> int:
        """How many reports this message holds."""
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and encode(self) == encode(other)

    __hash__ = None  # type: ignore[assignment]  # holds an array


Message = Report | Block


def _check(message: Any, body: object, *, kinds: str, dimensions: int) -> None:
    """A message is made by a client or read from bytes; nothing else passes for one."""
    fits = (
        isinstance(message.fingerprint, bytes)
        and len(message.fingerprint) == _FINGERPRINT_BYTES
        and isinstance(message.report_id, bytes)
        and len(message.report_id) == REPORT_ID_BYTES
        and isinstance(body, np.ndarray)
        and body.ndim == dimensions
        and body.dtype.kind in kinds
        and (message.level is None or message.level in range(_ALL_LEVELS))
    )
    if not fits:
        raise SettingInvalid(
            f"a {type(message).__name__.lower()} holds a fingerprint of {_FINGERPRINT_BYTES} "
            f"bytes, an id of {REPORT_ID_BYTES} bytes and whole numbers in an array; found "
            "something else. Make it with fedassay.answer."
        )


def encode(message: Message) -> bytes:
    """Turn a message into bytes."""
    if isinstance(message, Block):
        encoding = _MIXED if message.mixed else ROWS
        items, body = len(message.rows), message.rows.tobytes()
    else:
        words = np.concatenate([message.counters, message.moments])
        encoding, items, body = _COUNTERS, len(words), words.astype("<i4").tobytes()
    level = _ALL_LEVELS if message.level is None else message.level
    header = HEADER.pack(
        MAGIC, VERSION, encoding, level, 0, message.fingerprint, message.report_id, items
    )
    framed = header + body
    return framed + zlib.crc32(framed).to_bytes(CRC_BYTES, "little")


def decode(data: bytes, survey: Survey) -> Message:
    """Read untrusted bytes as one message; sizes are checked before allocation."""
    if len(data) < HEADER.size + CRC_BYTES:
        raise ReportMalformed(
            f"a report has at least {HEADER.size + CRC_BYTES} bytes; found {len(data)}: "
            f"it was cut short. {_ASK_AGAIN}"
        )
    header = data[: HEADER.size]
    return _decode(header, data[HEADER.size :], message_bytes(header, survey), survey)


def messages(stream: BinaryIO, *surveys: Survey) -> Iterator[Message]:
    """Read messages one after the other, in memory that does not grow with their number.

    Each answers one of the surveys: the one whose fingerprint it carries.
    """
    by_fingerprint = {survey.fingerprint: survey for survey in surveys}
    while header := stream.read(HEADER.size):
        if len(header) < HEADER.size:
            raise ReportMalformed(f"a report was cut short inside its header. {_ASK_AGAIN}")
        fingerprint = HEADER.unpack(header)[5]
        # A stranger's message is refused by whichever survey reads it.
        survey = by_fingerprint.get(fingerprint, surveys[0])
        length = message_bytes(header, survey)
        yield _decode(header, stream.read(length - HEADER.size), length, survey)


def _decode(header: bytes, rest: bytes, length: int, survey: Survey) -> Message:
    """Read what follows a header that was checked and declares this length."""
    if len(header) + len(rest) != length:
        raise ReportMalformed(
            f"a report must be as long as its header says; it is not, so it was cut or "
            f"extended. {_ASK_AGAIN}"
        )
    body = memoryview(rest)[:-CRC_BYTES]
    if zlib.crc32(body, zlib.crc32(header)) != int.from_bytes(rest[-CRC_BYTES:], "little"):
        raise ReportMalformed(f"the checksum must match; it does not. {_ASK_AGAIN}")
    _, _, encoding, level, _, fingerprint, report_id, items = HEADER.unpack(header)
    if encoding in (ROWS, _MIXED):
        rows, mixed = _block_rows(body, items, level, survey), encoding == _MIXED
        if mixed and not _rise(rows):
            raise ReportMalformed(
                "a batch's reports are sorted; these are not, so that their order may tell whose "
                "each is. Make the batch with fedassay shuffle."
            )
        return Block(fingerprint, report_id, rows, level, mixed)
    width = _expected_width(level, survey)
    words = _counters(body, items, width + survey.moment_words)
    only = None if level == _ALL_LEVELS else level
    return Report(fingerprint, report_id, words[:width], only, words[width:])


def largest_message(survey: Survey) -> int:
    """The most bytes that one message to this survey can have."""
    body = (
        MAX_BLOCK_BYTES if survey.is_local else 4 * (survey.hierarchy.width + survey.moment_words)
    )
    return HEADER.size + body + CRC_BYTES


def row_bytes(survey: Survey, level: int) -> int:
    """Bytes of one locally private report on a level."""
    return local_mechanism(survey, level).row_bytes(2 * survey.hierarchy.cells_per_level[level])


def local_mechanism(survey: Survey, level: int) -> LocalMechanism:
    """The mechanism of a level whose reports protect themselves."""
    mechanism = survey.mechanisms[level]
    if isinstance(mechanism, LocalMechanism):
        return mechanism
    raise SurveyMismatch("this survey's reports hold counters; found rows of local privacy.")


def message_bytes(header: bytes, survey: Survey) -> int:
    """The length that a header declares, if everything it says can be true."""
    magic, version, encoding, level, zero, fingerprint, _, items = HEADER.unpack(header)
    if magic != MAGIC:
        raise ReportMalformed(
            "a report begins with FASR; this file does not. Pass report files only."
        )
    if version != VERSION:
        raise ReportMalformed(
            f"this fedassay reads report version {VERSION}; found {version}. Update fedassay."
        )
    if fingerprint != survey.fingerprint:
        raise ReportForeign(
            f"this tally is for survey {survey.fingerprint.hex()[:12]}; the report answers "
            f"{fingerprint.hex()[:12]}. Tally it with its own survey file."
        )
    for name, value, wanted in (
        ("reserved byte", zero, (0,)),
        ("level", level, _levels(survey)),
        ("encoding", encoding, _encodings(survey)),
    ):
        if value not in wanted:
            raise ReportMalformed(
                f"the header's {name} is {' or '.join(map(str, wanted))} in this survey; found "
                f"{value}. {_ASK_AGAIN}"
            )
    per_item = 4 if encoding == _COUNTERS else row_bytes(survey, level)
    length: int = HEADER.size + items * per_item + CRC_BYTES
    if length > largest_message(survey):
        raise ReportTooLarge(
            f"a message to this survey has at most {largest_message(survey)} bytes; this one "
            f"declares {length}. It is another file, or an attack."
        )
    return length


def _encodings(survey: Survey) -> Sequence[int]:
    """The encodings that a header may name."""
    if survey.privacy is Privacy.SHUFFLED:
        return (ROWS, _MIXED)
    return (ROWS if survey.is_local else _COUNTERS,)


def _rise(rows: Rows) -> bool:
    keys = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel()
    return bool((keys[1:] >= keys[:-1]).all())


def _levels(survey: Survey) -> Sequence[int]:
    """The levels that a header may name."""
    if isinstance(survey.level_policy, EveryLevel) and not survey.is_local:
        return (_ALL_LEVELS,)
    return range(survey.hierarchy.levels)


def _expected_width(level: int, survey: Survey) -> int:
    """How many counters a report on this level has."""
    if isinstance(survey.level_policy, OneLevel):
        return 2 * survey.hierarchy.cells_per_level[level]
    return survey.hierarchy.width


def _block_rows(body: memoryview, items: int, level: int, survey: Survey) -> Rows:
    width = row_bytes(survey, level)
    rows = np.frombuffer(body, np.uint8, items * width).reshape(items, width)
    local_mechanism(survey, level).check_rows(rows, 2 * survey.hierarchy.cells_per_level[level])
    return rows


def _counters(body: memoryview, items: int, width: int) -> IntArray:
    if items != width:
        raise ReportMalformed(
            f"this survey has {width} counters; the report has {items}. {_ASK_AGAIN}"
        )
    return np.frombuffer(body, "<i4", items).astype(np.int64)
