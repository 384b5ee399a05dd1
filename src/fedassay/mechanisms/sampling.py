"""Exact random draws from integers: no floating point between a client and its noise.

Floating-point samplers leak through their rounding (Mironov 2012). Everything here
compares uniform integers with integers, after Canonne, Kamath and Steinke (2020).
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from fedassay.randomness import Randomness

COIN_BITS = 24
_REFILL_BYTES = 128
_UNSURE = 255


class Dice:
    """Uniform integers, and the distributions built from them, over one random source."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._pool = 0
        self._left = 0

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        while self._left < count:
            fresh = int.from_bytes(self._randomness.bytes(_REFILL_BYTES), "little")
            self._pool |= fresh << self._left
            self._left += 8 * _REFILL_BYTES
        drawn = self._pool & ((1 << count) - 1)
        self._pool >>= count
        self._left -= count
        return drawn

    def below(self, limit: int) -> int:
        """A uniform integer in [0, limit)."""
        width = (limit - 1).bit_length()
        while True:
            drawn = self.bits(width)
            if drawn < limit:
                return drawn

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """True with probability numerator / denominator."""
        return self.below(denominator) < numerator

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        """True with probability exp(-numerator / denominator), for a ratio in [0, 1].

        The first k at which a coin of bias ratio / k fails is odd with that probability.
        """
        k = 1
        while self.bernoulli(numerator, denominator * k):
            k += 1
        return k % 2 == 1

    def geometric_exp(self, numerator: int, denominator: int) -> int:
        """G with P[G >= g] = exp(-g * numerator / denominator)."""
        while True:
            fraction = self.below(denominator)
            if self.bernoulli_exp(fraction, denominator):
                break
        whole = 0
        while self.bernoulli_exp(1, 1):
            whole += 1
        return (fraction + denominator * whole) // numerator

    def half_geometric(self) -> int:
        """G with P[G = g] = 2^-(g + 1)."""
        count = 0
        while self.bits(1):
            count += 1
        return count

    def poisson(self, numerator: int, denominator: int) -> int:
        """Poisson with mean numerator / denominator, as a sum of parts of mean at most 1/2.

        A part proposes k with probability 2^-(k + 1) and keeps it with (2 mean)^k / k!.
        """
        parts = max(1, -(-2 * numerator // denominator))
        return sum(self._poisson_part(2 * numerator, denominator * parts) for _ in range(parts))

    def _poisson_part(self, twice: int, denominator: int) -> int:
        while True:
            k = self.half_geometric()
            if all(self.bernoulli(twice, denominator * t) for t in range(1, k + 1)):
                return k

    def single_of_poisson(self, numerator: int, denominator: int) -> bool:
        """True with probability x / (e^x - 1) = P[Poisson(x) = 1 | Poisson(x) >= 1]."""
        if numerator > denominator:
            while (count := self.poisson(numerator, denominator)) == 0:
                pass
            return count == 1
        # As `poisson`, for the count beyond the first.
        while True:
            k = self.half_geometric()
            if all(self.bernoulli(2 * numerator, denominator * (t + 1)) for t in range(1, k + 1)):
                return k == 0


@dataclass(frozen=True, slots=True, eq=False)
class CoinBytes:
    """Bytes of eight independent coins, each 1 with probability numerator / 2^24.

    Inversion: a byte is how many of `ends`, the cumulated probabilities of the bytes 0 to
    254, a uniform fraction has reached. The fraction is drawn only as far as it takes to
    tell: mostly 16 binary digits, else 64, else all 192 that the ends have.
    """

    ends: tuple[int, ...]
    """In units of 2^-192."""
    tops: npt.NDArray[np.uint64]
    """The first 64 digits of each end."""
    table: npt.NDArray[np.uint8]
    """The byte that 16 digits tell, or 255 where more are to be drawn: where an end begins
    with the same 16, and for the byte 255 itself, the rarest."""

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, numerator: int) -> "CoinBytes":
        """The bytes of coins with this bias, in units of 2^-24."""
        heads, tails = numerator, 2**COIN_BITS - numerator
        weights = [heads ** b.bit_count() * tails ** (8 - b.bit_count()) for b in range(255)]
        ends = tuple(accumulate(weights))
        tops = np.array([end >> (8 * COIN_BITS - 64) for end in ends], dtype=np.uint64)
        starts = np.arange(2**16, dtype=np.uint64)
        low = np.searchsorted(tops >> np.uint64(48), starts, side="left")
        high = np.searchsorted(tops >> np.uint64(48), starts, side="right")
        return cls(ends, tops, np.where(low == high, low, _UNSURE).astype(np.uint8))

    def fill(self, drawn: npt.NDArray[np.uint8], randomness: Randomness) -> None:
        """Draw every byte of an array."""
        digits = np.frombuffer(randomness.bytes(2 * len(drawn)), dtype=np.uint16)
        self.table.take(digits, out=drawn, mode="clip")
        unsure = (drawn == _UNSURE).nonzero()[0]
        if len(unsure):
            drawn[unsure] = self._longer(digits[unsure], randomness)

    def _longer(
        self, digits: npt.NDArray[np.uint16], randomness: Randomness
    ) -> npt.NDArray[np.intp]:
        """Draw on, from 16 digits that did not suffice."""
        more = np.frombuffer(randomness.bytes(8 * len(digits)), dtype=np.uint64)
        words = digits.astype(np.uint64) << np.uint64(48) | more >> np.uint64(16)
        drawn = np.searchsorted(self.tops, words, side="left")
        for i in np.flatnonzero(drawn != np.searchsorted(self.tops, words, side="right")):
            rest = 8 * COIN_BITS - 64
            last = int.from_bytes(randomness.bytes(rest // 8), "little")
            drawn[i] = bisect_right(self.ends, int(words[i]) << rest | last)
        return drawn
