"""A report, and its bytes.

Layout of version 1, little-endian:

    offset  bytes  field
    0       4      magic "FASR"
    4       1      version, 1
    5       1      encoding: 0 dense, 1 sparse
    6       1      level, or 255 for all levels
    7       1      zero
    8       32     survey fingerprint
    40      16     report id, random
    56      4      n, the number of items in the body
    60      4n/8n  dense: n int32 counters; sparse: n pairs (uint32 index, int32 counter),
                   indices rising
    end-4   4      CRC-32 of everything before it

Counters run over levels from the coarsest, within a level over negatives then
positives, within a label over cells. The encoder takes the shorter encoding.
"""

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from fedassay.errors import ReportForeign, ReportMalformed, ReportTooLarge
from fedassay.examples import IntArray
from fedassay.survey import EveryLevel, OneLevel, Survey

REPORT_ID_BYTES = 16
_HEADER = struct.Struct("<4sBBBB32s16sI")
_MAGIC = b"FASR"
_VERSION = 1
_DENSE, _SPARSE = 0, 1
_ALL_LEVELS = 255
_CRC_BYTES = 4
_ASK_AGAIN = "Ask the client to send it again."


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """All that ever leaves a client: counters under a random id."""

    fingerprint: bytes
    report_id: bytes
    counters: IntArray
    level: int | None = None
    """The one level that the counters are of, or None for all levels."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Report)
            and self.fingerprint == other.fingerprint
            and self.report_id == other.report_id
            and self.level == other.level
            and np.array_equal(self.counters, other.counters)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array


def largest_report(survey: Survey) -> int:
    """The most bytes that a report of this survey can have."""
    return _HEADER.size + 4 * survey.hierarchy.width + _CRC_BYTES


def encode(report: Report) -> bytes:
    """Turn a report into bytes."""
    # Nearly all counters are 0: numpy skips runs of False, not runs of 0.
    filled = np.flatnonzero(report.counters != 0)
    if 2 * len(filled) < len(report.counters):
        encoding, items = _SPARSE, len(filled)
        pairs = np.empty((items, 2), dtype="<i4")
        pairs[:, 0] = filled
        pairs[:, 1] = report.counters[filled]
        body = pairs.tobytes()
    else:
        encoding, items = _DENSE, len(report.counters)
        body = report.counters.astype("<i4").tobytes()
    level = _ALL_LEVELS if report.level is None else report.level
    header = _HEADER.pack(
        _MAGIC, _VERSION, encoding, level, 0, report.fingerprint, report.report_id, items
    )
    message = header + body
    return message + zlib.crc32(message).to_bytes(_CRC_BYTES, "little")


def decode(message: bytes, survey: Survey) -> Report:
    """Read untrusted bytes as a report to this survey; sizes are checked before allocation."""
    limit = largest_report(survey)
    if len(message) > limit:
        raise ReportTooLarge(
            f"reports to this survey are at most {limit} bytes; found {len(message)}. "
            "This is another file, or an attack."
        )
    if len(message) < _HEADER.size + _CRC_BYTES:
        raise ReportMalformed(
            f"a report has at least {_HEADER.size + _CRC_BYTES} bytes; found {len(message)}: "
            f"it was cut short. {_ASK_AGAIN}"
        )
    magic, version, encoding, level, zero, fingerprint, report_id, items = _HEADER.unpack_from(
        message
    )
    if magic != _MAGIC:
        raise ReportMalformed(
            "a report begins with FASR; this file does not. Pass report files only."
        )
    if version != _VERSION:
        raise ReportMalformed(
            f"this fedassay reads report version {_VERSION}; found {version}. Update fedassay."
        )
    if encoding not in (_DENSE, _SPARSE) or zero != 0:
        raise ReportMalformed(f"a header field holds an unknown value. {_ASK_AGAIN}")
    if len(message) != _HEADER.size + items * (8 if encoding == _SPARSE else 4) + _CRC_BYTES:
        raise ReportMalformed(
            f"the body must be as long as its header says; it is not, so it was cut or "
            f"extended. {_ASK_AGAIN}"
        )
    if zlib.crc32(message[:-_CRC_BYTES]) != int.from_bytes(message[-_CRC_BYTES:], "little"):
        raise ReportMalformed(f"the checksum must match; it does not. {_ASK_AGAIN}")
    if fingerprint != survey.fingerprint:
        raise ReportForeign(
            f"this tally is for survey {survey.fingerprint.hex()[:12]}; the report answers "
            f"{fingerprint.hex()[:12]}. Tally it with its own survey file."
        )
    width = _expected_width(level, survey)
    counters = _counters(message, encoding, items, width)
    return Report(fingerprint, report_id, counters, None if level == _ALL_LEVELS else level)


def _expected_width(level: int, survey: Survey) -> int:
    """How many counters a report on this level has, if the survey asks for such reports."""
    hierarchy = survey.hierarchy
    if isinstance(survey.levels, EveryLevel) and level == _ALL_LEVELS:
        return hierarchy.width
    if isinstance(survey.levels, OneLevel) and level < hierarchy.levels:
        return 2 * hierarchy.cells_per_level[level]
    raise ReportMalformed(f"this survey does not ask for reports on level {level}. {_ASK_AGAIN}")


def _counters(message: bytes, encoding: int, items: int, width: int) -> IntArray:
    if encoding == _DENSE:
        if items != width:
            raise ReportMalformed(
                f"this survey has {width} counters; the report has {items}. {_ASK_AGAIN}"
            )
        return np.frombuffer(message, "<i4", items, _HEADER.size).astype(np.int64)
    pairs = np.frombuffer(message, "<i4", 2 * items, _HEADER.size).reshape(items, 2)
    index, values = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    if items and (index[0] < 0 or index[-1] >= width or not (np.diff(index) > 0).all()):
        raise ReportMalformed(
            f"counter positions must rise and stay below {width}; they do not. {_ASK_AGAIN}"
        )
    counters = np.zeros(width, dtype=np.int64)
    counters[index] = values
    return counters
