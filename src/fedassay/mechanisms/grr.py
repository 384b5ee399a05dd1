"""Generalised randomised response: the true value, or any other."""

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import ReportMalformed, SettingInvalid
from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.mechanisms.base import LevelSetting, LocalMechanism, Rows
from fedassay.mechanisms.law import Law
from fedassay.mechanisms.polya import check_epsilon
from fedassay.mechanisms.rational import SCALE, over, round_down, scaled_exp
from fedassay.mechanisms.shuffling import Blanket
from fedassay.randomness import Randomness

_BITS = 64
_VALUE_BYTES = 4


@dataclass(frozen=True, slots=True)
class RandomizedResponse(LocalMechanism):
    """A client sends its own value with probability p, else one of the others uniformly (GRR).

    Values are label x cell, and with `nothing` one more for clients without an example.
    p = e^epsilon / (e^epsilon + values - 1), rounded down to a multiple of 2^-64.

    Guarantee: epsilon-local differential privacy for one report, replace neighbours,
    trusting nobody: any value is sent with probability p or (1-p)/(values-1), and their
    ratio is at most e^epsilon.
    """

    kind: ClassVar[str] = "grr"

    epsilon: Fraction
    cells: int
    nothing: bool = False
    numerator: int = field(init=False, repr=False, compare=False)
    """p in units of 2^-64."""

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        require_whole(self.cells, "a level's cells", 1)
        require_type(self.nothing, bool, "whether there is a message for nothing")
        power = scaled_exp(self.epsilon)
        p = Fraction(power, power + SCALE * (self.values - 1))
        object.__setattr__(self, "numerator", round_down(p, _BITS))

    @property
    def epsilon_spent(self) -> Fraction:
        """Epsilon itself."""
        return self.epsilon

    @property
    def values(self) -> int:
        """How many different messages there are."""
        return 2 * self.cells + self.nothing

    @property
    def p(self) -> Fraction:
        """The probability in use for the client's own value."""
        return Fraction(self.numerator, 2**_BITS)

    @property
    def q(self) -> Fraction:
        """The probability in use for each other value."""
        return (1 - self.p) / (self.values - 1)

    @property
    def blanket(self) -> Blanket:
        """With probability `values` q any value is sent, each as often, whatever the input."""
        # The same as `values` q, in one division: planners ask for it thousands of times.
        share = Fraction(self.values * (2**_BITS - self.numerator), (self.values - 1) << _BITS)
        return Blanket(share, Fraction(1, self.values), says_one=True)

    def law(self) -> Law:
        """Each value is a coin of bias p or q, and exactly one of them shows heads."""
        p, q = float(self.p), float(self.q)
        return Law(p - q, q, q * (1.0 - q), p * (1.0 - p) - q * (1.0 - q), sums_to_reports=True)

    def encode(self, hits: IntArray, size: int, *, randomness: Randomness) -> Rows:
        """One value for each hit in [0, size), or -1 for a client with nothing."""
        if len(hits) == 1:
            return _one_row(self._one(int(hits[0]), size, randomness))
        if len(hits) and hits.min() < 0:
            self._require_nothing()
        own = np.where(hits < 0, size, hits)
        words = np.frombuffer(randomness.bytes(8 * len(hits)), dtype=np.uint64)
        others = uniform_below(self.values - 1, len(hits), randomness)
        # The others skip the client's own value.
        others += others >= own
        return value_rows(np.where(words < self.numerator, own, others))

    def _one(self, hit: int, size: int, randomness: Randomness) -> int:
        """What `encode` draws for a single client, from the same bytes: arrays cost it ten times.

        The other value is drawn whether or not it is sent, so that time tells nothing.
        """
        if hit < 0:
            self._require_nothing()
            hit = size
        word = int.from_bytes(randomness.bytes(8), sys.byteorder)
        other = _one_below(self.values - 1, randomness)
        other += other >= hit
        return hit if word < self.numerator else other

    def _require_nothing(self) -> None:
        if not self.nothing:
            raise SettingInvalid(
                "this survey has no message for a client without examples. "
                "Start one that allows empty clients."
            )

    def cohort(self, counts: IntArray, *, reports: int, generator: np.random.Generator) -> IntArray:
        """Draw how often each value is sent, at once; for simulation only.

        Sending one's own value with probability p - q and else any value uniformly is the
        same.
        """
        keep = float(self.p - self.q)
        kept = generator.binomial(counts, keep)
        # Clients without an example have a value of their own, and keep to it as often.
        silent = generator.binomial(reports - counts.sum(), keep)
        moved = reports - kept.sum() - silent
        spread = generator.multinomial(moved, np.full(self.values, 1 / self.values))
        return kept + spread[: counts.size].reshape(counts.shape)

    def row_bytes(self, size: int) -> int:
        """One value of 4 bytes."""
        return _VALUE_BYTES

    def check_rows(self, rows: Rows, size: int) -> None:
        """Values lie below the number of different messages."""
        values = values_of(rows)
        if len(values) and values.max() >= self.values:
            raise ReportMalformed(
                f"values on this level lie below {self.values}; found a larger one. "
                "Ask the client to send it again."
            )

    def sums(self, rows: Rows, size: int) -> IntArray:
        """How often each value was sent; that of clients with nothing is not counted."""
        return np.bincount(values_of(rows), minlength=size)[:size]

    def to_json(self) -> dict[str, Any]:
        """Epsilon, and the probability that it comes to."""
        return {"kind": self.kind, "epsilon": str(self.epsilon), "p": over(self.numerator, _BITS)}

    @classmethod
    def from_json(cls, fields: Fields, setting: LevelSetting) -> "RandomizedResponse":
        """The probability in the file must be the one that follows from epsilon and cells."""
        fields.only("kind", "epsilon", "p")
        mechanism = cls(fields.fraction("epsilon"), setting.cells, setting.allow_empty)
        fields.must_be("p", over(mechanism.numerator, _BITS))
        return mechanism


def value_rows(values: IntArray) -> Rows:
    """Values as they travel: 4 bytes each, the least significant first."""
    return values.astype("<u4").view(np.uint8).reshape(-1, _VALUE_BYTES)


def _one_row(value: int) -> Rows:
    """One value as it travels."""
    return np.frombuffer(bytearray(value.to_bytes(_VALUE_BYTES, "little")), np.uint8)[None]


def values_of(rows: Rows) -> IntArray:
    """The values that rows hold."""
    return np.ascontiguousarray(rows).view("<u4").ravel().astype(np.int64)


def uniform_below(limit: int, count: int, randomness: Randomness) -> IntArray:
    """Uniform integers in [0, limit), by rejection."""
    ceiling = np.uint64(2**64 // limit * limit - 1)
    words = np.frombuffer(randomness.bytes(8 * count), dtype=np.uint64).copy()
    while (high := np.flatnonzero(words > ceiling)).size:
        words[high] = np.frombuffer(randomness.bytes(8 * len(high)), dtype=np.uint64)
    return (words % np.uint64(limit)).astype(np.int64)


def _one_below(limit: int, randomness: Randomness) -> int:
    """One uniform integer in [0, limit), from the same bytes."""
    ceiling = 2**64 // limit * limit - 1
    while (word := int.from_bytes(randomness.bytes(8), sys.byteorder)) > ceiling:
        pass
    return word % limit
