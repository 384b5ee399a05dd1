"""Locally private reports of one row to a message, as devices send them."""

import numpy as np

from fedassay import Survey
from fedassay.wire import Block, encode


def made(survey: Survey, count: int, *, rows: int = 1, seed: int = 1) -> list[Block]:
    """Reports as clients make them, each on a random level."""
    generator = np.random.default_rng(seed)
    blocks = []
    for _ in range(count):
        level = int(generator.integers(survey.hierarchy.levels))
        mechanism = survey.mechanisms[level]
        size = 2 * survey.hierarchy.cells_per_level[level]
        if mechanism.kind == "grr":
            own = generator.integers(0, size, rows).astype("<u4").view(np.uint8).reshape(-1, 4)
        else:
            bits = generator.integers(0, 2, (rows, size), dtype=np.uint8)
            own = np.packbits(bits, axis=1, bitorder="little")
        blocks.append(Block(survey.fingerprint, generator.bytes(16), own, level))
    return blocks


def as_bytes(blocks: list[Block]) -> bytes:
    return b"".join(map(encode, blocks))
