"""Where random bits come from.

Privacy rests on bits nobody can predict, so a client takes `SystemRandomness`.
`SimulatedRandomness` repeats itself by design; `client.answer` refuses it, and only
the simulation engine and tests construct one.
"""

import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np

_STRETCH_FROM_BYTES = 2**12


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
    """The operating system's generator: what a client uses.

    Long draws are the keystream of ChaCha20 under a fresh system key for each call,
    several times faster than the system itself and as hard to predict.
    """

    @property
    def is_secret(self) -> bool:
        """Always true: the operating system keeps its state to itself."""
        return True

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes from `os.urandom`, stretched where they are many."""
        return os.urandom(count) if count < _STRETCH_FROM_BYTES else _keystream(count)


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


def _keystream(count: int) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    # A key serves once, so that its nonce may always be zero.
    fresh = Cipher(ChaCha20(os.urandom(32), nonce=bytes(16)), mode=None)
    return fresh.encryptor().update(bytes(count))
