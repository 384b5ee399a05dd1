"""Locally private reports that come one to a message, read many at once.

A device sends one message of one row (`wire`), and a collector has millions of them, one after
the other in a file. What such messages have in common is checked for all of them together; a
message that is anything else (a block of rows, a damaged one, one to another survey) is read by
`wire` itself, so that there is one place that says what is wrong with it.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from io import BufferedIOBase, BytesIO

import numpy as np
import numpy.typing as npt

from fedassay.errors import ReportMalformed
from fedassay.examples import IntArray
from fedassay.mechanisms.base import Rows
from fedassay.survey import Survey
from fedassay.wire import (
    CRC_BYTES,
    HEADER,
    MAGIC,
    ROWS,
    VERSION,
    Message,
    local_mechanism,
    message_bytes,
    messages,
    row_bytes,
)

CHUNK_BYTES = 2**24
_FEWEST = 64
_AT_ONCE = 2**12
_LEVEL_AT = 6
# As wire.HEADER, in words that compare at once.
_WORDS = np.dtype([("start", "<u8"), ("survey", "<u8", (4,)), ("id", "S16"), ("items", "<u4")])
_LEVEL_SHIFT, _LEVEL_MASK = np.uint64(8 * _LEVEL_AT), np.uint64(0xFF << 8 * _LEVEL_AT)
_SOUND = 0x2144DF1C
"""The CRC-32 of any message with its own CRC-32 behind it."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleReports:
    """Reports of one row each, checked, in the order in which they came."""

    ids: npt.NDArray[np.bytes_]
    level_of: IntArray
    rows: Mapping[int, Rows]
    """The rows on each level, in order."""

    def __len__(self) -> int:
        return len(self.ids)


def single_reports(
    stream: BufferedIOBase, survey: Survey, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[SingleReports | Message, int]]:
    """Read a stream of messages to a locally private survey, in memory of a few chunks.

    Yields single reports in bulk and every other message by itself, with how many bytes they
    took; raises as `wire.messages` does, after everything before the bad one.
    """
    lengths = [
        HEADER.size + row_bytes(survey, level) + CRC_BYTES
        for level in range(survey.hierarchy.levels)
    ]
    data, at, reach = memoryview(b""), 0, chunk_bytes
    # Memory that was touched before costs nothing to touch again; a small file touches little.
    buffer = np.empty(max(lengths) + max([chunk_bytes, *lengths]), dtype=np.uint8).data
    while True:
        if len(data) - at < max(lengths):
            data, at = _more(stream, data[at:], buffer), 0
        if at == len(data):
            return
        found = _bulk(data, _starts(data, at, lengths, reach), survey)
        if found is not None:
            singles, length = found
            yield singles, length
            at, reach = at + length, 2 * reach
            continue
        # Not a single report, or a bad one: near such only few are tried at once.
        reach = _FEWEST
        length = HEADER.size
        if len(data) - at >= HEADER.size:
            length = message_bytes(bytes(data[at : at + HEADER.size]), survey)
        if len(data) - at < length:
            data = memoryview(bytes(data[at:]) + stream.read(length - len(data) + at))
            at = 0
        yield next(messages(BytesIO(data[at : at + length]), survey)), length
        at += length


def _more(stream: BufferedIOBase, left: memoryview, buffer: memoryview) -> memoryview:
    """What is left of the last chunk and the next one, in one buffer; none if nothing follows."""
    end = len(left)
    buffer[:end] = bytes(left)
    while end < len(buffer) and (found := stream.readinto(buffer[end:])):
        end += found
    return buffer[:end]


def _starts(data: memoryview, at: int, lengths: list[int], reach: int) -> IntArray:
    """Where single reports begin, if all that follow are; at most `reach` of them."""
    last = len(data)
    if len(set(lengths)) == 1:
        count = min(reach, (last - at) // lengths[0])
        return np.arange(at, at + count * lengths[0], lengths[0])
    starts: list[int] = []
    while len(starts) < reach and at + _LEVEL_AT < last and data[at + _LEVEL_AT] < len(lengths):
        length = lengths[data[at + _LEVEL_AT]]
        if at + length > last:
            break
        starts.append(at)
        at += length
    return np.array(starts, dtype=np.int64)


def _bulk(data: memoryview, starts: IntArray, survey: Survey) -> tuple[SingleReports, int] | None:
    """The single reports at these places, up to the first that is not a sound one."""
    heads = _at(data, starts, HEADER.size).view(_WORDS)[:, 0]
    level_of = ((heads["start"] & _LEVEL_MASK) >> _LEVEL_SHIFT).astype(np.int64)
    count = _first_false(_are_headers(heads, level_of, survey))
    whole = {}
    for level in range(survey.hierarchy.levels):
        places = np.flatnonzero(level_of[:count] == level)
        length = HEADER.size + row_bytes(survey, level) + CRC_BYTES
        whole[level] = _at(data, starts[places], length)
        sound = _sound(whole[level])
        if sound < len(places):
            count = int(places[sound])
    if not count:
        return None
    level_of = level_of[:count]
    rows = {}
    for level, on_level in enumerate(np.bincount(level_of).tolist()):
        # A copy, since the buffer is filled again.
        rows[level] = whole[level][:on_level, HEADER.size : -CRC_BYTES].copy()
        try:
            size = 2 * survey.hierarchy.cells_per_level[level]
            local_mechanism(survey, level).check_rows(rows[level], size)
        except ReportMalformed:
            return None
    length = int(starts[count - 1] - starts[0]) + whole[int(level_of[-1])].shape[1]
    return SingleReports(heads["id"][:count].copy(), level_of, rows), length


def _are_headers(
    heads: npt.NDArray[np.void], level_of: IntArray, survey: Survey
) -> npt.NDArray[np.bool_]:
    """Which headers are those of one locally private report to this survey."""
    wanted = HEADER.pack(MAGIC, VERSION, ROWS, 0, 0, survey.fingerprint, bytes(16), 1)
    expected = np.frombuffer(wanted, _WORDS)[0]
    fits: npt.NDArray[np.bool_] = level_of < survey.hierarchy.levels
    fits &= (heads["start"] & ~_LEVEL_MASK) == expected["start"]
    fits &= heads["items"] == expected["items"]
    for word in range(expected["survey"].size):
        fits &= heads["survey"][:, word] == expected["survey"][word]
    return fits


def _at(data: memoryview, starts: IntArray, length: int) -> Rows:
    """The bytes from each of these places on; not copied where the places are evenly spaced."""
    steps = np.diff(starts)
    if not len(starts):
        return np.empty((0, length), dtype=np.uint8)
    if (steps == steps[:1]).all():
        step = int(steps[0]) if len(steps) else length
        shape, strides = (len(starts), length), (step, 1)
        return np.ndarray(shape, np.uint8, data, int(starts[0]), strides)
    anywhere = np.ndarray((len(data) - length + 1,), f"V{length}", data, 0, (1,))
    return anywhere[starts].view(np.uint8).reshape(-1, length)


def _sound(whole: Rows) -> int:
    """How many messages of equal length come before the first whose checksum does not match.

    One CRC-32 runs over many messages: sound ones take it from a known value to the next. A
    damaged one always shows; two that undo each other, once in 2^32.
    """
    length = whole.shape[1]
    for first in range(0, len(whole), _AT_ONCE):
        block = np.ascontiguousarray(whole[first : first + _AT_ONCE])
        if zlib.crc32(block.data) != _checksums(length)[len(block)]:
            checks = [zlib.crc32(message.tobytes()) == _SOUND for message in block]
            return first + checks.index(False)
    return len(whole)


@cache
def _checksums(length: int) -> list[int]:
    """The CRC-32 over 0, 1, 2, ... sound messages of this length, whatever they hold.

    CRC-32 is linear: from a value c a sound message leads to where it leads from 0, plus what
    as many zero bytes make of the difference between c and 0.
    """
    zeros = bytes(length)
    known = [0]
    for _ in range(_AT_ONCE):
        known.append(_SOUND ^ zlib.crc32(zeros, known[-1]) ^ zlib.crc32(zeros))
    return known


def _first_false(values: npt.NDArray[np.bool_]) -> int:
    return len(values) if values.all() else int(values.argmin())
