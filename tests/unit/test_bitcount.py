"""Counting bits in packed rows: what unpacking and summing would give."""

import numpy as np
import pytest

from fedassay.bitcount import count_bits


@pytest.mark.parametrize("width", [1, 13, 256, 70_000])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 23, 24, 25, 256, 1023])
def test_counts_are_those_of_unpacked_bits(width: int, count: int) -> None:
    if width * count > 5_000_000:
        count = 5_000_000 // width
    rows = np.random.default_rng(width + count).integers(0, 256, (count, width), dtype=np.uint8)
    unpacked = np.unpackbits(rows, axis=1, bitorder="little")
    assert np.array_equal(count_bits(rows), unpacked.sum(axis=0, dtype=np.int64))


@pytest.mark.parametrize("byte", [0, 1, 255])
def test_counts_of_many_equal_rows_carry_into_every_digit(byte: int) -> None:
    rows = np.full((300_001, 3), byte, dtype=np.uint8)
    expected = np.unpackbits(np.array([byte] * 3, dtype=np.uint8), bitorder="little")
    assert np.array_equal(count_bits(rows), 300_001 * expected.astype(np.int64))


def test_rows_stay_as_they_are() -> None:
    rows = np.random.default_rng(4).integers(0, 256, (5000, 64), dtype=np.uint8)
    rows.flags.writeable = False
    before = rows.copy()
    count_bits(rows)
    assert np.array_equal(rows, before)
