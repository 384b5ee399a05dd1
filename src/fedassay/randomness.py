"""Where random bits come from.

Privacy rests on bits nobody can predict, so a client takes `SystemRandomness`.
`SimulatedRandomness` repeats itself by design; `client.answer` refuses it, and only
the simulation engine and tests construct one.
"""

import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Randomness(Protocol):
    """A source of uniform random bytes."""

    @property
    def is_secret(self) -> bool:
        """Whether nobody else can predict the bytes."""
        ...

    def bytes(self, count: int) -> bytes:
        """Return `count` uniform random bytes."""
        ...


@dataclass(frozen=True, slots=True)
class SystemRandomness:
    """The operating system's generator: what a client uses."""

    @property
    def is_secret(self) -> bool:
        """Always true: the operating system keeps its state to itself."""
        return True

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes from `os.urandom`."""
        return os.urandom(count)


class SimulatedRandomness:
    """A repeatable stream for simulations and tests; it protects nobody."""

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self.generator = np.random.default_rng(seed)

    @property
    def is_secret(self) -> bool:
        """Always false: whoever knows the seed knows the stream."""
        return False

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        return self.generator.bytes(count)
