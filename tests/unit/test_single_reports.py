"""Single reports read in bulk are what the loop over messages reads, whatever stands in between."""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedassay import Survey, Tally
from fedassay.engines.bulk_tally import BulkBuilder, blocks_of
from fedassay.engines.single_reports import SingleReports, _sound, single_reports
from fedassay.errors import FedassayError
from fedassay.tally import TallyBuilder
from fedassay.wire import Message, encode, messages
from tests.singles import as_bytes, made
from tests.surveys import local_survey

SURVEYS = {
    "values": local_survey(cells=9, kinds="grr", allow_empty=True),
    "bits": local_survey(cells=9, kinds="oue"),
    # Levels whose messages have different lengths, and two with the same.
    "levels": local_survey(cells=27, fanouts=(3, 3, 3), kinds="grr oue oue"),
    "values on two levels": local_survey(cells=9, fanouts=(3, 3), kinds="grr grr"),
}
surveys = pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS.keys())


def by_loop(data: bytes, survey: Survey) -> tuple[list[bytes], str]:
    """Every message that the loop reads, and how it ends."""
    read: list[bytes] = []
    try:
        read.extend(encode(message) for message in messages(BytesIO(data), survey))
    except FedassayError as error:
        return read, f"{type(error).__name__}: {error}"
    return read, ""


def in_bulk(data: bytes, survey: Survey, *, chunk_bytes: int = 2**25) -> tuple[list[bytes], str]:
    """The same, by what is read in bulk; its lengths must add up to what was read."""
    read: list[bytes] = []
    try:
        for found, length in single_reports(BytesIO(data), survey, chunk_bytes=chunk_bytes):
            blocks: list[Message] = [found] if not isinstance(found, SingleReports) else []
            if isinstance(found, SingleReports):
                blocks.extend(blocks_of(found, survey.fingerprint))
                assert len(found) == len(blocks)
            assert length == sum(len(encode(block)) for block in blocks)
            read.extend(map(encode, blocks))
    except FedassayError as error:
        return read, f"{type(error).__name__}: {error}"
    return read, ""


@surveys
@pytest.mark.parametrize("chunk_bytes", [1, 500, 2**20])
def test_bulk_reads_what_the_loop_reads_in_its_order(survey: Survey, chunk_bytes: int) -> None:
    data = as_bytes(made(survey, 200))
    assert in_bulk(data, survey, chunk_bytes=chunk_bytes) == by_loop(data, survey)


@surveys
def test_single_reports_are_really_read_in_bulk(survey: Survey) -> None:
    data = as_bytes(made(survey, 1500))
    ((found, length),) = single_reports(BytesIO(data), survey)
    assert isinstance(found, SingleReports)
    assert (len(found), length) == (1500, len(data))


@surveys
def test_a_report_that_is_kept_is_not_written_over_by_the_next(survey: Survey) -> None:
    data = as_bytes(made(survey, 40))
    # A chunk that holds one or two messages, so that one buffer is filled many times.
    found = [each for each, _ in single_reports(BytesIO(data), survey, chunk_bytes=1)]
    kept = [
        encode(block)
        for each in found
        if isinstance(each, SingleReports)
        for block in blocks_of(each, survey.fingerprint)
    ]
    assert len(found) > 10
    assert b"".join(kept) == data


@surveys
def test_blocks_between_single_reports_are_read_too(survey: Survey) -> None:
    singles, blocks = made(survey, 300), made(survey, 20, rows=3, seed=2)
    mixed = [*singles[:150], *blocks[:10], *singles[150:], *blocks[10:], *made(survey, 1, rows=0)]
    data = as_bytes(mixed)
    assert in_bulk(data, survey) == by_loop(data, survey)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@surveys
def test_every_single_bit_flip_ends_where_the_loop_ends(survey: Survey) -> None:
    """Every third bit of one message among seven; ids are covered by the checksum alone."""
    data = as_bytes(made(survey, 7))
    start = sum(len(encode(block)) for block in made(survey, 7)[:3])
    length = len(encode(made(survey, 7)[3]))
    for bit in range(8 * start, 8 * (start + length), 3):
        damaged = flipped(data, bit)
        read, why = in_bulk(damaged, survey)
        assert why
        assert (read, why) == by_loop(damaged, survey)


@surveys
@settings(max_examples=20)
@given(
    harm=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.integers(0, 200),
)
def test_damage_of_any_kind_ends_where_the_loop_ends(
    survey: Survey, harm: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(as_bytes(made(survey, 40)))
    for place, value in harm:
        data[place % len(data)] = value
    content = bytes(data[: len(data) - cut])
    assert in_bulk(content, survey) == by_loop(content, survey)


def rechecked(message: bytes) -> bytes:
    return message[:-4] + struct.pack("<I", zlib.crc32(message[:-4]))


def too_large(message: bytes) -> bytes:
    return rechecked(message[:-8] + b"\xff" * 4 + message[-4:])


def foreign(message: bytes) -> bytes:
    return rechecked(message[:39] + bytes([message[39] ^ 1]) + message[40:])


def reserved(message: bytes) -> bytes:
    return rechecked(message[:7] + b"\1" + message[8:])


def two_of_one(message: bytes) -> bytes:
    return rechecked(message[:56] + b"\2" + message[57:])


@pytest.mark.parametrize("forge", [too_large, foreign, reserved, two_of_one])
@pytest.mark.parametrize("place", [0, 70, 149])
def test_a_forged_report_with_a_right_checksum_is_refused_where_it_stands(
    forge: Callable[[bytes], bytes], place: int
) -> None:
    survey = SURVEYS["values"]
    sent = [encode(block) for block in made(survey, 150)]
    sent[place] = forge(sent[place])
    read, why = in_bulk(b"".join(sent), survey)
    assert read == sent[:place]
    assert (read, why) == by_loop(b"".join(sent), survey)


@pytest.mark.parametrize("count", [1, 2, 4095, 4096, 4097, 9000])
def test_one_checksum_over_many_messages_sees_each_of_them(count: int) -> None:
    generator = np.random.default_rng(count)
    bodies = generator.integers(0, 256, (count, 20), dtype=np.uint8)
    sums = [zlib.crc32(body.tobytes()) for body in bodies]
    whole = np.hstack([bodies, np.array(sums, "<u4").view(np.uint8).reshape(-1, 4)])
    assert _sound(whole) == count
    for place in {0, count // 2, count - 1}:
        damaged = whole.copy()
        damaged[place, int(generator.integers(24))] ^= 1 << int(generator.integers(8))
        assert _sound(damaged) == place
    # The same damage twice does not cancel, as it would in a plain sum of messages.
    if count > 1:
        damaged = whole.copy()
        damaged[[0, count - 1], 5] ^= 8
        assert _sound(damaged) == 0


@surveys
def test_bulk_tallies_what_the_loop_tallies(survey: Survey) -> None:
    sent = made(survey, 400)
    bulk, loop = (kind(Tally.zero(survey), survey) for kind in (BulkBuilder, TallyBuilder))
    assert isinstance(bulk, BulkBuilder)
    for found, _ in single_reports(BytesIO(as_bytes(sent)), survey, chunk_bytes=5000):
        assert isinstance(found, SingleReports)
        bulk.add_singles(found)
    for block in sent:
        loop.add(block)
    assert bulk.tally() == loop.tally()
