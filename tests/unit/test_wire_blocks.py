"""Blocks of locally private reports: their bytes, their files, and what is done to hostile ones."""

import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Survey, Tally
from fedassay.client import Answer, make_answer
from fedassay.engines.report_files import read_messages, report_files, write_answer
from fedassay.errors import (
    FedassayError,
    ReportDuplicate,
    ReportForeign,
    ReportMalformed,
    ReportTooLarge,
    WireError,
)
from fedassay.mechanisms.grr import value_rows, values_of
from fedassay.randomness import SimulatedRandomness
from fedassay.survey_json import survey_from_json
from fedassay.tally import TallyBuilder
from fedassay.wire import Block, Message, decode, encode, largest_message, local_mechanism, messages
from tests.surveys import REPORT_ID, local_survey

MAX_BLOCK_BYTES = 2**22

# 2 x 3 and 2 x 9 bits: neither fills its bytes.
SURVEY = local_survey(cells=9, fanouts=(3, 3), kinds="grr oue", allow_empty=True)
VALUES, BITS = 0, 1
HEADER = 60


def block(level: int, rows: list[int] | list[list[int]], *, report_id: bytes = REPORT_ID) -> Block:
    if level == VALUES:
        return Block(
            SURVEY.fingerprint, report_id, value_rows(np.array(rows, dtype=np.int64)), level
        )
    packed = np.array(rows, dtype=np.uint8).reshape(-1, 3)
    return Block(SURVEY.fingerprint, report_id, packed, level)


def by_hand(
    body: bytes,
    items: int,
    *,
    encoding: int,
    level: int,
    fingerprint: bytes = SURVEY.fingerprint,
    report_id: bytes = REPORT_ID,
) -> bytes:
    """A message laid out as documented, with a checksum that fits."""
    content = b"FASR\x02" + bytes([encoding, level, 0]) + fingerprint + report_id
    content += struct.pack("<I", items) + body
    return content + struct.pack("<I", zlib.crc32(content))


@given(st.lists(st.integers(0, 6), max_size=30))
def test_decoding_undoes_encoding_of_values(values: list[int]) -> None:
    sent = block(VALUES, values)
    received = decode(encode(sent), SURVEY)
    assert received == sent
    assert isinstance(received, Block)
    assert values_of(received.rows).tolist() == values
    assert local_mechanism(SURVEY, VALUES).sums(received.rows, 6).tolist() == [
        values.count(value) for value in range(6)
    ]


@given(st.lists(st.integers(0, 2**18 - 1), max_size=30))
def test_decoding_undoes_encoding_of_bits(rows: list[int]) -> None:
    sent = block(BITS, [list(row.to_bytes(3, "little")) for row in rows])
    received = decode(encode(sent), SURVEY)
    assert received == sent
    assert isinstance(received, Block)
    sums = local_mechanism(SURVEY, BITS).sums(received.rows, 18)
    assert sums.tolist() == [sum(row >> bit & 1 for row in rows) for bit in range(18)]


def test_bytes_are_laid_out_as_documented() -> None:
    body = b"\x01\x02\x03\xff\xff\x00"
    assert encode(block(BITS, [[1, 2, 3], [255, 255, 0]])) == by_hand(
        body, 2, encoding=2, level=BITS
    )
    assert encode(block(VALUES, [5, 6])) == by_hand(
        struct.pack("<II", 5, 6), 2, encoding=2, level=VALUES
    )


FORGED = {
    "wrong length": by_hand(bytes(5), 2, encoding=2, level=BITS),
    "more than declared": by_hand(bytes(9), 2, encoding=2, level=BITS),
    "bit past the end": by_hand(b"\0\0\x04", 1, encoding=2, level=BITS),
    "last bit past the end": by_hand(bytes(3) + b"\0\0\x80", 2, encoding=2, level=BITS),
    "no such level": by_hand(bytes(3), 1, encoding=2, level=2),
    "level 254": by_hand(bytes(3), 1, encoding=2, level=254),
    "all levels": by_hand(bytes(3), 1, encoding=2, level=255),
    "impossible value": by_hand(struct.pack("<I", 7), 1, encoding=2, level=VALUES),
    "huge value": by_hand(struct.pack("<II", 0, 2**32 - 1), 2, encoding=2, level=VALUES),
    "bits where values belong": by_hand(b"\0", 1, encoding=2, level=VALUES),
    "values where bits belong": by_hand(bytes(4), 1, encoding=2, level=BITS),
    "counters": by_hand(bytes(4 * 18), 18, encoding=0, level=BITS),
    "pairs": by_hand(b"", 0, encoding=1, level=BITS),
    "unknown encoding": by_hand(bytes(3), 1, encoding=3, level=BITS),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_forged_block_with_a_right_checksum_is_malformed(forged: bytes) -> None:
    with pytest.raises(ReportMalformed):
        decode(forged, SURVEY)


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_hostile_block_changes_nothing_but_the_count_of_rejected_ones(forged: bytes) -> None:
    good = encode(block(VALUES, [1, 2]))
    tally, rejected = counted(good + forged)
    assert tally == counted(good)[0]
    assert len(rejected) == 1


def test_nothing_has_its_own_value_only_where_the_survey_allows_it() -> None:
    strict = local_survey(cells=3, kinds="grr")
    body = struct.pack("<I", 6)
    with pytest.raises(ReportMalformed):
        decode(by_hand(body, 1, encoding=2, level=0, fingerprint=strict.fingerprint), strict)
    assert decode(by_hand(body, 1, encoding=2, level=VALUES), SURVEY).reports == 1


def test_a_block_to_another_survey_is_foreign() -> None:
    with pytest.raises(ReportForeign):
        decode(by_hand(bytes(3), 1, encoding=2, level=BITS, fingerprint=bytes(32)), SURVEY)


@pytest.mark.parametrize("level", [VALUES, BITS])
def test_every_bit_flip_and_every_truncation_is_refused(level: int) -> None:
    sent = block(VALUES, [1, 6]) if level == VALUES else block(BITS, [[1, 2, 3]])
    original = encode(sent)
    for position in range(8 * len(original)):
        flipped = bytearray(original)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(WireError):
            decode(bytes(flipped), SURVEY)
    for length in range(len(original)):
        with pytest.raises(WireError):
            decode(original[:length], SURVEY)


@pytest.mark.parametrize(("level", "row"), [(VALUES, 4), (BITS, 3)])
def test_a_declared_size_beyond_the_limit_is_refused_before_it_is_read(
    level: int, row: int
) -> None:
    for items in (MAX_BLOCK_BYTES // row + 1, 2**31, 2**32 - 1):
        header = by_hand(b"", items, encoding=2, level=level)[:-4]
        stream = Endless(header)
        tracemalloc.start()
        with pytest.raises(ReportTooLarge):
            list(messages(stream, SURVEY))  # type: ignore[arg-type]  # reads is all it needs
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**20
        assert stream.given == HEADER


class Endless:
    """A header, and then as many zeros as anyone asks for."""

    def __init__(self, header: bytes) -> None:
        self._header = header
        self.given = 0

    def read(self, count: int) -> bytes:
        self.given += count
        part, self._header = self._header[:count], self._header[count:]
        return part.ljust(count, b"\0")


def counted(content: bytes) -> tuple[Tally, list[FedassayError]]:
    """What `tally` does with one file: count what is whole, say what is not."""
    builder, rejected = TallyBuilder(Tally.zero(SURVEY), SURVEY), []
    try:
        for message in messages(BytesIO(content), SURVEY):
            try:
                builder.add(message)
            except FedassayError as error:
                rejected.append(error)
    except FedassayError as error:
        rejected.append(error)
    return builder.tally(), rejected


def test_a_file_that_was_cut_counts_up_to_the_cut() -> None:
    parts = [
        encode(block(VALUES, [0, 1, 6], report_id=b"a" * 16)),
        encode(block(BITS, [[7, 0, 0], [1, 0, 2]], report_id=b"b" * 16)),
    ]
    whole = b"".join(parts)
    for length in range(len(whole) + 1):
        tally, rejected = counted(whole[:length])
        complete = (length >= len(parts[0])) + (length >= len(whole))
        assert tally.reports == [(0, 0), (3, 0), (3, 2)][complete]
        assert len(tally.report_ids) == complete
        at_an_end = length in (0, len(parts[0]), len(whole))
        assert len(rejected) == (0 if at_an_end else 1)


def test_a_repeated_block_counts_once() -> None:
    first = encode(block(VALUES, [0, 1], report_id=b"a" * 16))
    forged = encode(block(BITS, [[1, 0, 0]], report_id=b"a" * 16))
    other = encode(block(VALUES, [0, 1], report_id=b"b" * 16))
    tally, rejected = counted(first + first + forged + other)
    assert [type(error) for error in rejected] == [ReportDuplicate] * 2
    assert tally.reports == (4, 0)


def test_blocks_add_up_level_by_level() -> None:
    tally, rejected = counted(
        encode(block(VALUES, [5, 6, 5], report_id=b"a" * 16))
        + encode(block(BITS, [[0b101, 0, 2]], report_id=b"b" * 16))
    )
    assert not rejected
    assert tally.reports == (3, 1)
    assert tally.clients(SURVEY) == 4
    # The value for nothing has no counter; bit 17 is the last of 2 x 9.
    assert tally.counters.tolist() == [0, 0, 0, 0, 0, 2, 1, 0, 1, *[0] * 14, 1]


def test_a_stream_is_read_in_memory_that_does_not_grow() -> None:
    survey = local_survey(cells=4096, kinds="oue")
    rows = np.zeros((256, 1024), dtype=np.uint8)

    def long_stream(blocks: int) -> Iterator[bytes]:
        for index in range(blocks):
            yield encode(Block(survey.fingerprint, index.to_bytes(16, "little"), rows, 0))

    peaks = []
    for blocks in (8, 64):
        stream = Chained(long_stream(blocks))
        builder = TallyBuilder(Tally.zero(survey), survey)
        tracemalloc.start()
        for message in messages(stream, survey):  # type: ignore[arg-type]  # a stream that tests its reader
            builder.add(message)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert builder.tally().reports == (256 * blocks,)
    assert peaks[1] < peaks[0] + 2**17


class Chained:
    """Parts that are made when they are read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = b""

    def read(self, count: int) -> bytes:
        while len(self._rest) < count:
            part = next(self._parts, None)
            if part is None:
                break
            self._rest += part
        found, self._rest = self._rest[:count], self._rest[count:]
        return found


def test_a_large_answer_is_cut_into_blocks_within_the_limit() -> None:
    survey = local_survey(cells=2**15, kinds="oue")
    counts = np.zeros((2, 2**15), dtype=np.int64)
    counts[1, 7] = 1200
    answer = make_answer(survey, counts, randomness=SimulatedRandomness(1))
    assert sum(message.reports for message in answer.messages) == 1200
    assert len(answer.messages) == 3
    for message in answer.messages:
        assert len(encode(message)) <= largest_message(survey)
    assert Tally.of(survey, messages(BytesIO(answer.to_bytes()), survey)).reports == (1200,)


def test_a_folder_is_searched_and_other_files_in_it_are_named(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox" / "monday"
    inbox.mkdir(parents=True)
    write_answer(Answer((block(VALUES, [1, 2], report_id=b"a" * 16),)), inbox / "a.fa")
    write_answer(Answer((block(VALUES, [3], report_id=b"b" * 16),)), tmp_path / "inbox" / "b.fa")
    (inbox / "notes.txt").write_text("not a report, though long enough to have a header" * 3)
    (inbox / ".empty").write_bytes(b"")
    found = report_files([tmp_path / "inbox", tmp_path / "missing.fa"])
    assert [path.name for path in found] == ["b.fa", ".empty", "a.fa", "notes.txt", "missing.fa"]
    builder = TallyBuilder(Tally.zero(SURVEY), SURVEY)
    bad = []
    for path in found:
        try:
            for message in read_messages(path, SURVEY):
                builder.add(message)
        except FedassayError:
            bad.append(path.name)
    assert builder.tally().reports == (3, 0)
    assert bad == [".empty", "notes.txt", "missing.fa"]


@given(st.binary(max_size=120), st.sampled_from(["oue", "grr"]))
def test_any_bytes_are_messages_or_a_wire_error(noise: bytes, kind: str) -> None:
    survey = local_survey(kinds=kind)
    header = b"FASR\x02" + bytes([2 + (kind == "grr"), 0, 0]) + survey.fingerprint
    found: list[Message] = []
    try:
        found.extend(messages(BytesIO(header + noise), survey))
    except WireError:
        assert not found


def test_surveys_with_other_oracles_or_epsilons_have_other_fingerprints() -> None:
    surveys: list[Survey] = [
        local_survey(kinds="oue"),
        local_survey(kinds="grr"),
        local_survey(Fraction(2)),
        local_survey(allow_empty=True),
    ]
    assert len({survey.fingerprint for survey in surveys}) == 4
    for survey in surveys:
        assert survey_from_json(survey.to_json()) == survey
