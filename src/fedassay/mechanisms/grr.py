"""Generalised randomised response: the true value, or any other."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedassay.errors import SettingInvalid
from fedassay.examples import IntArray
from fedassay.mechanisms.base import LocalMechanism
from fedassay.mechanisms.law import Law
from fedassay.mechanisms.polya import check_epsilon
from fedassay.mechanisms.rational import exp_from_below, round_down
from fedassay.randomness import Randomness

ValueRows = npt.NDArray[np.uint32]

_BITS = 64


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
        if self.cells < 1:
            raise SettingInvalid(f"a level has at least one cell; found {self.cells}.")
        power = exp_from_below(self.epsilon)
        object.__setattr__(self, "numerator", round_down(power / (power + self.values - 1), _BITS))

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

    def law(self) -> Law:
        """Each value is a coin of bias p or q, and exactly one of them shows heads."""
        p, q = float(self.p), float(self.q)
        return Law(p - q, q, q * (1.0 - q), p * (1.0 - p) - q * (1.0 - q), sums_to_reports=True)

    def encode(self, hits: IntArray, size: int, *, randomness: Randomness) -> ValueRows:
        """One value for each hit in [0, size), or -1 for a client with nothing."""
        if not self.nothing and len(hits) and hits.min() < 0:
            raise SettingInvalid(
                "this survey has no message for a client without examples. "
                "Start one that allows empty clients."
            )
        own = np.where(hits < 0, size, hits)
        words = np.frombuffer(randomness.bytes(8 * len(hits)), dtype=np.uint64)
        others = uniform_below(self.values - 1, len(hits), randomness)
        # The others skip the client's own value.
        others += others >= own
        return np.where(words < self.numerator, own, others).astype(np.uint32)

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


def uniform_below(limit: int, count: int, randomness: Randomness) -> IntArray:
    """Uniform integers in [0, limit), by rejection."""
    ceiling = np.uint64(2**64 // limit * limit - 1)
    words = np.frombuffer(randomness.bytes(8 * count), dtype=np.uint64).copy()
    while (high := np.flatnonzero(words > ceiling)).size:
        words[high] = np.frombuffer(randomness.bytes(8 * len(high)), dtype=np.uint64)
    return (words % np.uint64(limit)).astype(np.int64)
