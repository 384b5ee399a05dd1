"""Reports, and their bytes.

A message, little-endian, version 1:

    offset  bytes  field
    0       4      magic "FASR"
    4       1      version, 1
    5       1      encoding: 0 dense, 1 sparse, 2 bits, 3 values
    6       1      level, or 255 for all levels
    7       1      zero
    8       32     survey fingerprint
    40      16     report id, random
    56      4      n, the number of items in the body
    60      ...    the body, by encoding:
                   0: n int32 counters
                   1: n pairs (uint32 index, int32 counter), indices rising
                   2: n reports of ceil(d/8) bytes: d bits, least significant first, then zeros
                   3: n reports of 4 bytes: a value below d, or d where nothing may be said
    end-4   4      CRC-32 of everything before it

Counters, bits and values run over levels from the coarsest, within a level over negatives
then positives, within a label over cells; d is twice the level's cells. Encodings 0 and 1
hold one client's counters, 2 and 3 a block of locally private reports. A report file is one
message after the other.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from fedassay.errors import ReportForeign, ReportMalformed, ReportTooLarge
from fedassay.examples import IntArray
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.bit_count import count_bits
from fedassay.survey import EveryLevel, OneLevel, Survey

REPORT_ID_BYTES = 16
MAX_BLOCK_BYTES = 2**22
_HEADER = struct.Struct("<4sBBBB32s16sI")
_MAGIC = b"FASR"
_VERSION = 1
_DENSE, _SPARSE, _BITS, _VALUES = range(4)
_ALL_LEVELS = 255
_CRC_BYTES = 4
_ASK_AGAIN = "Ask the client to send it again."


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One client's counters under a random id."""

    fingerprint: bytes
    report_id: bytes
    counters: IntArray
    level: int | None = None
    """The one level that the counters are of, or None for all levels."""

    @property
    def reports(self) -> int:
        """How many reports this message holds."""
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and encode(self) == encode(other)

    __hash__ = None  # type: ignore[assignment]  # holds an array


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Locally private reports on one level, as packed bits or as values, under one id."""

    fingerprint: bytes
    report_id: bytes
    rows: npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    level: int

    @property
    def reports(self) -> int:
        """How many reports this message holds."""
        return len(self.rows)

    def sums(self, size: int) -> IntArray:
        """Bits or values added up over the block's reports."""
        if self.rows.dtype == np.uint8:
            return count_bits(self.rows.view(np.uint8))[:size]
        return np.bincount(self.rows, minlength=size)[:size]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and encode(self) == encode(other)

    __hash__ = None  # type: ignore[assignment]  # holds an array


Message = Report | Block


def encode(message: Message) -> bytes:
    """Turn a message into bytes."""
    encoding, items, body = (
        _block_body(message) if isinstance(message, Block) else _counter_body(message)
    )
    level = _ALL_LEVELS if message.level is None else message.level
    header = _HEADER.pack(
        _MAGIC, _VERSION, encoding, level, 0, message.fingerprint, message.report_id, items
    )
    framed = header + body
    return framed + zlib.crc32(framed).to_bytes(_CRC_BYTES, "little")


def decode(data: bytes, survey: Survey) -> Message:
    """Read untrusted bytes as one message; sizes are checked before allocation."""
    if len(data) < _HEADER.size + _CRC_BYTES:
        raise ReportMalformed(
            f"a report has at least {_HEADER.size + _CRC_BYTES} bytes; found {len(data)}: "
            f"it was cut short. {_ASK_AGAIN}"
        )
    header = data[: _HEADER.size]
    return _decode(header, data[_HEADER.size :], _message_bytes(header, survey), survey)


def messages(stream: BinaryIO, survey: Survey) -> Iterator[Message]:
    """Read messages one after the other, in memory that does not grow with their number."""
    while header := stream.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise ReportMalformed(f"a report was cut short inside its header. {_ASK_AGAIN}")
        length = _message_bytes(header, survey)
        yield _decode(header, stream.read(length - _HEADER.size), length, survey)


def _decode(header: bytes, rest: bytes, length: int, survey: Survey) -> Message:
    """Read what follows a header that was checked and declares this length."""
    if len(header) + len(rest) != length:
        raise ReportMalformed(
            f"a report must be as long as its header says; it is not, so it was cut or "
            f"extended. {_ASK_AGAIN}"
        )
    body = memoryview(rest)[:-_CRC_BYTES]
    if zlib.crc32(body, zlib.crc32(header)) != int.from_bytes(rest[-_CRC_BYTES:], "little"):
        raise ReportMalformed(f"the checksum must match; it does not. {_ASK_AGAIN}")
    _, _, encoding, level, _, fingerprint, report_id, items = _HEADER.unpack(header)
    if encoding in (_BITS, _VALUES):
        return Block(fingerprint, report_id, _block_rows(body, items, level, survey), level)
    counters = _counters(body, encoding, items, _expected_width(level, survey))
    return Report(fingerprint, report_id, counters, None if level == _ALL_LEVELS else level)


def largest_message(survey: Survey) -> int:
    """The most bytes that one message to this survey can have."""
    body = MAX_BLOCK_BYTES if survey.is_local else 4 * survey.hierarchy.width
    return _HEADER.size + body + _CRC_BYTES


def row_bytes(survey: Survey, level: int) -> int:
    """Bytes of one locally private report on a level."""
    if isinstance(survey.mechanisms[level], RandomizedResponse):
        return 4
    return -(-2 * survey.hierarchy.cells_per_level[level] // 8)


def _message_bytes(header: bytes, survey: Survey) -> int:
    """The length that a header declares, if everything it says can be true."""
    magic, version, encoding, level, zero, fingerprint, _, items = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise ReportMalformed(
            "a report begins with FASR; this file does not. Pass report files only."
        )
    if version != _VERSION:
        raise ReportMalformed(
            f"this fedassay reads report version {_VERSION}; found {version}. Update fedassay."
        )
    if fingerprint != survey.fingerprint:
        raise ReportForeign(
            f"this tally is for survey {survey.fingerprint.hex()[:12]}; the report answers "
            f"{fingerprint.hex()[:12]}. Tally it with its own survey file."
        )
    if zero != 0 or encoding not in _encodings(level, survey):
        raise ReportMalformed(
            f"a header field holds a value that this survey does not ask for. {_ASK_AGAIN}"
        )
    per_item = {_DENSE: 4, _SPARSE: 8}.get(encoding) or row_bytes(survey, level)
    length: int = _HEADER.size + items * per_item + _CRC_BYTES
    if length > largest_message(survey):
        raise ReportTooLarge(
            f"a message to this survey has at most {largest_message(survey)} bytes; this one "
            f"declares {length}. It is another file, or an attack."
        )
    return length


def _encodings(level: int, survey: Survey) -> tuple[int, ...]:
    """The encodings that reports on this level may have."""
    if isinstance(survey.levels, EveryLevel) and not survey.is_local:
        return (_DENSE, _SPARSE) if level == _ALL_LEVELS else ()
    if level >= survey.hierarchy.levels:
        return ()
    mechanism = survey.mechanisms[level]
    if isinstance(mechanism, UnaryEncoding):
        return (_BITS,)
    if isinstance(mechanism, RandomizedResponse):
        return (_VALUES,)
    return (_DENSE, _SPARSE)


def _counter_body(report: Report) -> tuple[int, int, bytes]:
    filled = np.flatnonzero(report.counters != 0)
    if 2 * len(filled) < len(report.counters):
        pairs = np.empty((len(filled), 2), dtype="<i4")
        pairs[:, 0] = filled
        pairs[:, 1] = report.counters[filled]
        return _SPARSE, len(filled), pairs.tobytes()
    return _DENSE, len(report.counters), report.counters.astype("<i4").tobytes()


def _block_body(block: Block) -> tuple[int, int, bytes]:
    if block.rows.dtype == np.uint8:
        return _BITS, len(block.rows), block.rows.tobytes()
    return _VALUES, len(block.rows), block.rows.astype("<u4").tobytes()


def _expected_width(level: int, survey: Survey) -> int:
    """How many counters a report on this level has."""
    if isinstance(survey.levels, OneLevel):
        return 2 * survey.hierarchy.cells_per_level[level]
    return survey.hierarchy.width


def _block_rows(
    body: memoryview, items: int, level: int, survey: Survey
) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint32]:
    size = 2 * survey.hierarchy.cells_per_level[level]
    mechanism = survey.mechanisms[level]
    if isinstance(mechanism, RandomizedResponse):
        values = np.frombuffer(body, "<u4", items).astype(np.uint32)
        if len(values) and values.max() >= mechanism.values:
            raise ReportMalformed(
                f"values on this level lie below {mechanism.values}; found a larger one. "
                f"{_ASK_AGAIN}"
            )
        return values
    width = row_bytes(survey, level)
    rows = np.frombuffer(body, np.uint8, items * width).reshape(items, width)
    if size % 8 and (rows[:, -1] >> (size % 8)).any():
        raise ReportMalformed(f"bits past the last cell must be zero; found some. {_ASK_AGAIN}")
    return rows


def _counters(body: memoryview, encoding: int, items: int, width: int) -> IntArray:
    if encoding == _DENSE:
        if items != width:
            raise ReportMalformed(
                f"this survey has {width} counters; the report has {items}. {_ASK_AGAIN}"
            )
        return np.frombuffer(body, "<i4", items).astype(np.int64)
    pairs = np.frombuffer(body, "<i4", 2 * items).reshape(items, 2)
    index, values = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    if items and (index[0] < 0 or index[-1] >= width or not (np.diff(index) > 0).all()):
        raise ReportMalformed(
            f"counter positions must rise and stay below {width}; they do not. {_ASK_AGAIN}"
        )
    counters = np.zeros(width, dtype=np.int64)
    counters[index] = values
    return counters
