"""Bytes of coins: exact by inversion, however far a fraction has to be drawn."""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from fedassay.mechanisms import UnaryEncoding
from fedassay.mechanisms.sampling import CoinBytes
from fedassay.randomness import SystemRandomness

NUMERATORS = [1, 112_287, 2**22, 4_512_108, 2**23, 2**24 - 1]


class Prepared:
    """Gives out bytes that were written down before."""

    is_secret = False

    def __init__(self, *prepared: bytes) -> None:
        self.prepared = list(prepared)

    def bytes(self, count: int) -> bytes:
        given = self.prepared.pop(0)
        assert len(given) == count
        return given


@pytest.mark.parametrize("numerator", NUMERATORS)
def test_ends_are_the_cumulated_probabilities_of_bytes(numerator: int) -> None:
    q = Fraction(numerator, 2**24)
    total = Fraction(0)
    for byte, end in enumerate(CoinBytes.of(numerator).ends):
        ones = f"{byte:b}".count("1")
        total += q**ones * (1 - q) ** (8 - ones)
        assert end == total * 2**192
    assert total + q**8 == 1


@pytest.mark.parametrize("numerator", NUMERATORS)
def test_sixteen_digits_tell_a_byte_only_where_all_that_follow_agree(numerator: int) -> None:
    coins = CoinBytes.of(numerator)
    for start, told in enumerate(coins.table.tolist()):
        first = bisect_right(coins.ends, start << 176)
        last = bisect_right(coins.ends, (start + 1 << 176) - 1)
        if told < 255:
            assert told == first == last
        else:
            assert first != last or last == 255 or start << 176 in coins.ends


@pytest.mark.parametrize("numerator", NUMERATORS)
@pytest.mark.parametrize("byte", [0, 1, 7, 128, 254])
def test_every_digit_counts_where_a_fraction_is_next_to_an_end(numerator: int, byte: int) -> None:
    coins = CoinBytes.of(numerator)
    end = coins.ends[byte]
    for fraction in (end - 1, end):
        words = fraction >> 128
        prepared = Prepared(
            (words >> 48).to_bytes(2, "little"),
            (words << 16 & 2**64 - 1).to_bytes(8, "little"),
            (fraction & 2**128 - 1).to_bytes(16, "little"),
        )
        drawn = np.zeros(1, dtype=np.uint8)
        coins.fill(drawn, prepared)
        assert drawn == [bisect_right(coins.ends, fraction)]


@pytest.mark.statistical
def test_bits_have_bias_q() -> None:
    """2e6 bits, within 6 sd of the mean: false alarms below 1e-8."""
    mechanism = UnaryEncoding(Fraction(5))
    bits = 2_000_000
    rows = mechanism.encode(np.full(2000, -1), 1000, randomness=SystemRandomness())
    ones, q = int(np.unpackbits(rows).sum()), float(mechanism.q)
    assert abs(ones - bits * q) < 6 * (bits * q * (1 - q)) ** 0.5
    twice = 2 * q
    assert abs(ones - bits * twice) > 6 * (bits * twice * (1 - twice)) ** 0.5


@pytest.mark.statistical
def test_the_clients_own_bit_is_fair() -> None:
    """40,000 reports, within 6 sd of the mean: false alarms below 1e-8."""
    hits = np.arange(40_000) % 24
    rows = UnaryEncoding(Fraction(5)).encode(hits, 24, randomness=SystemRandomness())
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    assert abs(int(bits[np.arange(len(hits)), hits].sum()) - 20_000) < 6 * 100
