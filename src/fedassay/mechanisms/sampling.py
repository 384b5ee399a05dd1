"""Exact random draws from integers: no floating point between a client and its noise.

Floating-point samplers leak through their rounding (Mironov 2012). Everything here
compares uniform integers with integers, after Canonne, Kamath and Steinke (2020).
"""

from fedassay.randomness import Randomness

_REFILL_BYTES = 128


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
