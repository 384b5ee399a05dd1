"""How often each bit is set over many packed rows, at memory speed."""

import numpy as np
import numpy.typing as npt

from fedassay.examples import IntArray

_LANE_BYTES = 2**17


def count_bits(rows: npt.NDArray[np.uint8]) -> IntArray:
    """Sum the bits of packed rows column by column, least significant bit first.

    Neighbouring rows form one wide word; wide words are added by bit-sliced full adders,
    so that unpacking happens once for each binary digit of the count and not for each row.
    """
    count, width = rows.shape
    # Whole words of 64 bits, whatever the width.
    per_lane = max(8, _LANE_BYTES // max(width, 1) // 8 * 8)
    lanes = count // per_lane
    total = np.zeros(8 * width, dtype=np.int64)
    if lanes >= 3:
        wide = np.ascontiguousarray(rows[: lanes * per_lane]).reshape(lanes, -1).view(np.uint64)
        for weight, plane in enumerate(_add_up(wide)):
            total += _unpacked(plane.view(np.uint8).reshape(per_lane, width)) << weight
        rows = rows[lanes * per_lane :]
    return total + _unpacked(rows)


def _add_up(wide: npt.NDArray[np.uint64]) -> list[npt.NDArray[np.uint64]]:
    """Bit planes of the sum of wide words: plane k holds the digit of weight 2^k."""
    planes: list[npt.NDArray[np.uint64]] = []
    waiting: list[npt.NDArray[np.uint64] | None] = []
    scratch = np.empty_like(wide[0])
    for word in wide:
        _feed(planes, waiting, 0, word, scratch)
    for level, rest in enumerate(waiting):
        if rest is not None:
            _ripple(planes, level, rest)
    return planes


def _feed(
    planes: list[npt.NDArray[np.uint64]],
    waiting: list[npt.NDArray[np.uint64] | None],
    level: int,
    word: npt.NDArray[np.uint64],
    scratch: npt.NDArray[np.uint64],
) -> None:
    """Give a digit of weight 2^level to the counter; two of them make a full addition."""
    while True:
        if level == len(planes):
            planes.append(np.zeros_like(word))
            waiting.append(None)
        first = waiting[level]
        if first is None:
            waiting[level] = word
            return
        waiting[level] = None
        # Full adder: carry = (a & b) | (c & (a ^ b)), sum = a ^ b ^ c.
        plane = planes[level]
        np.bitwise_xor(first, word, out=scratch)
        carry = np.bitwise_and(first, word)
        spill = np.bitwise_and(plane, scratch)
        np.bitwise_or(carry, spill, out=carry)
        np.bitwise_xor(plane, scratch, out=plane)
        level, word = level + 1, carry


def _ripple(planes: list[npt.NDArray[np.uint64]], level: int, word: npt.NDArray[np.uint64]) -> None:
    """Add one digit of weight 2^level with half adders."""
    while word.any():
        if level == len(planes):
            planes.append(np.zeros_like(word))
        carry = planes[level] & word
        planes[level] ^= word
        level, word = level + 1, carry


def _unpacked(rows: npt.NDArray[np.uint8]) -> IntArray:
    total = np.zeros(8 * rows.shape[1], dtype=np.int64)
    for first in range(0, len(rows), 255):
        bits = np.unpackbits(rows[first : first + 255], axis=1, bitorder="little")
        total += bits.sum(axis=0, dtype=np.uint8)
    return total
