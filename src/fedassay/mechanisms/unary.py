"""Optimal unary encoding: one noisy bit for every label and cell."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fedassay.errors import ReportMalformed
from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.mechanisms.base import LevelSetting, LocalMechanism, Rows
from fedassay.mechanisms.bit_count import count_bits
from fedassay.mechanisms.law import Law
from fedassay.mechanisms.polya import check_epsilon
from fedassay.mechanisms.rational import SCALE, over, round_up, scaled_exp
from fedassay.mechanisms.sampling import COIN_BITS, CoinBytes
from fedassay.mechanisms.shuffling import Blanket
from fedassay.randomness import Randomness

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
        power = scaled_exp(self.epsilon)
        q = Fraction(SCALE, power + SCALE)
        object.__setattr__(self, "numerator", round_up(q, COIN_BITS))

    @property
    def epsilon_spent(self) -> Fraction:
        """Epsilon itself."""
        return self.epsilon

    @property
    def q(self) -> Fraction:
        """The probability in use for bits that are not the client's."""
        return Fraction(self.numerator, 2**COIN_BITS)

    @property
    def blanket(self) -> Blanket:
        """With probability 1 / (2 (1-q)) the own bit is a coin like any other, else it is 1.

        A bit that is 0 with probability (1-q) / (2 (1-q)) is a fair one.
        """
        return Blanket(1 / (2 * (1 - self.q)), self.q, says_one=False)

    def law(self) -> Law:
        """Bits are independent coins of bias 1/2 or q."""
        q = float(self.q)
        return Law(0.5 - q, q, q * (1.0 - q), 0.25 - q * (1.0 - q))

    def encode(self, hits: IntArray, size: int, *, randomness: Randomness) -> Rows:
        """Packed bits, a row for each hit in [0, size), or -1 for a client with nothing."""
        row_bytes = self.row_bytes(size)
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

    def row_bytes(self, size: int) -> int:
        """One bit for each label and cell, in whole bytes."""
        return -(-size // 8)

    def check_rows(self, rows: Rows, size: int) -> None:
        """Bits past the last cell are zero."""
        if size % 8 and (rows[:, -1] >> (size % 8)).any():
            raise ReportMalformed(
                "bits past the last cell must be zero; found some. Ask the client to send it again."
            )

    def sums(self, rows: Rows, size: int) -> IntArray:
        """How often each bit is set."""
        return count_bits(rows)[:size]

    def to_json(self) -> dict[str, Any]:
        """Epsilon, and the probability that it comes to."""
        return {
            "kind": self.kind,
            "epsilon": str(self.epsilon),
            "q": over(self.numerator, COIN_BITS),
        }

    @classmethod
    def from_json(cls, fields: Fields, setting: LevelSetting) -> "UnaryEncoding":
        """The probability in the file must be the one that follows from epsilon."""
        fields.only("kind", "epsilon", "q")
        mechanism = cls(fields.fraction("epsilon"))
        fields.must_be("q", over(mechanism.numerator, COIN_BITS))
        return mechanism
