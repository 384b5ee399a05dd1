import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Report
from fedassay.client import Answer
from fedassay.engines.report_files import read_messages, write_answer
from fedassay.errors import (
    FileInvalid,
    ReportForeign,
    ReportMalformed,
    ReportTooLarge,
    WireError,
)
from fedassay.wire import decode, encode, largest_message
from tests.surveys import REPORT_ID, report_of, small_survey

SURVEY = small_survey(4)
WIDTH = SURVEY.hierarchy.width
NEARLY_EMPTY = report_of(SURVEY, [0, 3, 0, 0, 0, 1])
FULL = report_of(SURVEY, list(range(1, WIDTH + 1)))
both = pytest.mark.parametrize("report", [NEARLY_EMPTY, FULL], ids=["nearly empty", "full"])


def message(
    body: bytes,
    items: int,
    *,
    encoding: int = 0,
    fingerprint: bytes = SURVEY.fingerprint,
    head: bytes = b"FASR\x02",
    zero: int = 0,
) -> bytes:
    """A report laid out by hand, with a checksum that fits."""
    content = head + bytes([encoding, 255, zero]) + fingerprint + REPORT_ID
    content += struct.pack("<I", items) + body
    return content + struct.pack("<I", zlib.crc32(content))


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.just(0), min_size=WIDTH, max_size=WIDTH))
def test_decoding_undoes_encoding(counters: list[int]) -> None:
    report = Report(SURVEY.fingerprint, REPORT_ID, np.array(counters))
    assert decode(encode(report), SURVEY) == report
    assert len(encode(report)) <= largest_message(SURVEY)


def test_negative_counters_are_laid_out_as_documented() -> None:
    """Noise goes both ways: -3 is as much a counter as 3."""
    counters = [0, -3, 0, 0, 0, 1] + [0] * (WIDTH - 6)
    report = report_of(SURVEY, counters)
    body = struct.pack(f"<{WIDTH}i", *counters)
    assert encode(report) == message(body, WIDTH, encoding=0)
    read = decode(encode(report), SURVEY)
    assert isinstance(read, Report)
    assert read.counters.tolist() == counters


def test_bytes_are_laid_out_as_documented() -> None:
    body = struct.pack(f"<{WIDTH}i", *range(1, WIDTH + 1))
    assert encode(FULL) == message(body, WIDTH)
    body = struct.pack(f"<{WIDTH}i", 0, 3, 0, 0, 0, 1, *[0] * (WIDTH - 6))
    assert encode(NEARLY_EMPTY) == message(body, WIDTH)


def test_every_report_to_a_survey_has_one_size() -> None:
    counts: list[list[int]] = [[], [1], [5] * (WIDTH // 2), [1] * WIDTH, [-(2**31)] * WIDTH]
    assert {len(encode(report_of(SURVEY, counters))) for counters in counts} == {64 + 4 * WIDTH}


@both
def test_every_single_bit_flip_is_refused(report: Report) -> None:
    original = encode(report)
    for position in range(8 * len(original)):
        flipped = bytearray(original)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(WireError):
            decode(bytes(flipped), SURVEY)


@both
def test_every_truncation_and_extension_is_refused(report: Report) -> None:
    original = encode(report)
    for length in range(len(original)):
        with pytest.raises(WireError):
            decode(original[:length], SURVEY)
    with pytest.raises(WireError):
        decode(original + b"\0", SURVEY)


def test_more_bytes_than_a_report_can_have_are_refused() -> None:
    with pytest.raises(WireError):
        decode(bytes(largest_message(SURVEY) + 1), SURVEY)
    with pytest.raises(ReportTooLarge):
        decode(message(bytes(4 * WIDTH + 4), WIDTH + 1), SURVEY)


@pytest.mark.parametrize("start", [b"", message(b"", 2**31)[:-4]], ids=["zeros", "declared"])
def test_an_oversized_file_is_refused_before_it_is_read(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "report.fa"
    with path.open("wb") as stream:
        stream.write(start)
        stream.truncate(2**33)
    tracemalloc.start()
    with pytest.raises(ReportTooLarge if start else ReportMalformed):
        list(read_messages(path, SURVEY))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("items", [1, WIDTH, 2**16, 2**31, 2**32 - 1])
def test_a_declared_size_that_lies_is_refused(items: int) -> None:
    with pytest.raises(ReportMalformed if items <= WIDTH else ReportTooLarge):
        decode(message(b"", items), SURVEY)


@pytest.mark.parametrize(
    "forged",
    [
        message(bytes(4), 1),
        message(b"", 0),
        message(bytes(4 * WIDTH), WIDTH, encoding=1),
        message(bytes(4 * WIDTH), WIDTH, encoding=2),
        message(bytes(4 * WIDTH), WIDTH, head=b"FASR\x01"),
        message(bytes(4 * WIDTH), WIDTH, head=b"PAR1\x02"),
        message(bytes(4 * WIDTH), WIDTH, zero=1),
        message(bytes(4 * WIDTH), WIDTH, zero=255),
    ],
    ids=[
        "short", "empty", "unknown encoding", "rows", "version 1", "other magic", "reserved 1",
        "reserved 255",
    ],
)  # fmt: skip
def test_a_forged_report_with_a_right_checksum_is_malformed(forged: bytes) -> None:
    with pytest.raises(ReportMalformed):
        decode(forged, SURVEY)


@pytest.mark.parametrize("level", [0, 1, 2, 254])
def test_a_report_names_a_level_where_there_is_one_and_none_otherwise(level: int) -> None:
    """This survey's reports are on all levels: 255. A report on one of them is no report to it."""
    good = message(b"", 0, encoding=1)
    content = good[:6] + bytes([level]) + good[7:-4]
    with pytest.raises(ReportMalformed, match="level is 255"):
        decode(content + struct.pack("<I", zlib.crc32(content)), SURVEY)


def test_a_report_to_another_survey_is_foreign() -> None:
    with pytest.raises(ReportForeign):
        decode(encode(report_of(small_survey(4, minimum_reports=9))), SURVEY)
    with pytest.raises(ReportForeign):
        decode(message(b"", 0, fingerprint=bytes(32)), SURVEY)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_wire_error(noise: bytes) -> None:
    with pytest.raises(WireError):
        decode(noise, SURVEY)


def test_files_carry_reports_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "r.fa"
    assert write_answer(Answer((FULL, NEARLY_EMPTY)), path) == path.stat().st_size
    assert list(read_messages(path, SURVEY)) == [FULL, NEARLY_EMPTY]


def test_an_empty_file_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "r.fa"
    path.write_bytes(b"")
    with pytest.raises(ReportMalformed, match="empty"):
        list(read_messages(path, SURVEY))


def test_unreadable_and_unwritable_files_are_one_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "r.fa"):
        with pytest.raises(FileInvalid):
            write_answer(Answer((FULL,)), path)
        with pytest.raises(FileInvalid):
            list(read_messages(path, SURVEY))
