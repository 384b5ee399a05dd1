"""Masks: ChaCha20 keystreams as 32-bit words, added modulo 2^32."""

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

WordArray = npt.NDArray[np.uint32]
WORD_BYTES = 4


class Masker:
    """Adds streams of one length; buffers are reused from one stream to the next."""

    def __init__(self, length: int) -> None:
        self._zeros = bytes(WORD_BYTES * length)
        self._buffer = bytearray(WORD_BYTES * length)
        self._words = np.frombuffer(self._buffer, dtype="<u4")

    def add(self, total: WordArray, key: bytes) -> None:
        """Add a key's stream in place."""
        self._fill(key)
        np.add(total, self._words, out=total)

    def subtract(self, total: WordArray, key: bytes) -> None:
        """Take a key's stream away in place."""
        self._fill(key)
        np.subtract(total, self._words, out=total)

    def _fill(self, key: bytes) -> None:
        # A key serves one stream of one round, so that its nonce may always be zero.
        Cipher(ChaCha20(key, nonce=bytes(16)), mode=None).encryptor().update_into(
            self._zeros, self._buffer
        )
