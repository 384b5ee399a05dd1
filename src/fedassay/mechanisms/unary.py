"""Optimal unary encoding: one noisy bit for every label and cell."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedassay.examples import IntArray
from fedassay.mechanisms.base import LocalMechanism
from fedassay.mechanisms.law import Law
from fedassay.mechanisms.polya import check_epsilon
from fedassay.mechanisms.rational import exp_from_below, round_up
from fedassay.mechanisms.sampling import COIN_BITS, CoinBytes
from fedassay.randomness import Randomness

BitRows = npt.NDArray[np.uint8]

_CHUNK_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class UnaryEncoding(LocalMechanism):
    """Each bit of a one-hot vector over label x cell is sent at random (OUE, Wang et al. 2017).

    The client's own bit is 1 with probability p = 1/2, any other with q = 1/(e^epsilon + 1),
    rounded up to a multiple of 2^-24.

    Guarantee: epsilon-local differential privacy for one report, replace neighbours,
    trusting nobody. Replacing the input changes two bits, so no message becomes likelier
    by more than (p/q) ((1-q)/(1-p)) = (1-q)/q <= e^epsilon; the all-zero input of a client with
    nothing to report differs in one bit, by at most 1/(2q) <= e^epsilon.
    """

    kind: ClassVar[str] = "oue"

    epsilon: Fraction
    numerator: int = field(init=False, repr=False, compare=False)
    """q in units of 2^-24."""

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        q = 1 / (exp_from_below(self.epsilon) + 1)
        object.__setattr__(self, "numerator", round_up(q, COIN_BITS))

    @property
    def q(self) -> Fraction:
        """The probability in use for bits that are not the client's."""
        return Fraction(self.numerator, 2**COIN_BITS)

    def law(self) -> Law:
        """Bits are independent coins of bias 1/2 or q."""
        q = float(self.q)
        return Law(0.5 - q, q, q * (1.0 - q), 0.25 - q * (1.0 - q))

    def encode(self, hits: IntArray, size: int, *, randomness: Randomness) -> BitRows:
        """Packed bits, a row for each hit in [0, size), or -1 for a client with nothing."""
        row_bytes = -(-size // 8)
        coins = CoinBytes.of(self.numerator)
        rows = np.empty((len(hits), row_bytes), dtype=np.uint8)
        flat = rows.reshape(-1)
        for first in range(0, flat.size, _CHUNK_BYTES):
            coins.fill(flat[first : first + _CHUNK_BYTES], randomness)
        if size % 8:
            rows[:, -1] &= 0xFF >> (8 - size % 8)
        own = (hits >= 0).nonzero()[0]
        place = own * row_bytes + (hits[own] >> 3)
        # Any coin becomes a fair one where a fair one is added to it.
        fair = np.frombuffer(randomness.bytes(len(own)), dtype=np.uint8) & 1
        flat[place] ^= fair << (hits[own] & 7).astype(np.uint8)
        return rows

    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw the sum of all reports' bits at once; for simulation only."""
        own = generator.binomial(counts, 0.5)
        return own + generator.binomial(reports - counts, float(self.q))
