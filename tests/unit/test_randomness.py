"""The system's randomness: as many bytes as asked, never the same twice, short or stretched."""

import pytest

from fedassay.randomness import SystemRandomness

LENGTHS = [0, 1, 4095, 4096, 4097, 2**20 + 3]


@pytest.mark.parametrize("count", LENGTHS)
def test_as_many_bytes_as_asked(count: int) -> None:
    assert len(SystemRandomness().bytes(count)) == count


@pytest.mark.parametrize("count", [4095, 4096, 2**20])
def test_no_two_draws_share_a_stream(count: int) -> None:
    """False alarms: at most 2^-200."""
    first, second = (SystemRandomness().bytes(count) for _ in range(2))
    assert first[:32] != second[:32]
    assert first[-32:] != second[-32:]


@pytest.mark.statistical
def test_stretched_bits_are_fair() -> None:
    """8 million bits within 7 sd of half: false alarms below 1e-11."""
    drawn = SystemRandomness().bytes(1_000_000)
    ones = int.from_bytes(drawn, "little").bit_count()
    assert abs(ones - 4_000_000) < 7 * 1415
