"""How often each bit is set over many packed rows, near memory speed."""

import numpy as np
import numpy.typing as npt

from fedassay.examples import IntArray

Words = npt.NDArray[np.uint64]

_LANE_BYTES = 2**16
_FEWEST_ROWS = 8


def count_bits(rows: npt.NDArray[np.uint8]) -> IntArray:
    """Sum the bits of packed rows column by column, least significant bit first.

    Neighbouring rows form a lane; lanes are added by bit-sliced full adders, and then the
    two halves of the sum, until few rows are left: unpacking happens once for each binary
    digit of the count and not for each row.
    """
    count, width = rows.shape
    in_lane = _FEWEST_ROWS
    while 2 * in_lane * width <= _LANE_BYTES:
        in_lane *= 2
    lanes = count // in_lane
    counted = lanes * in_lane
    total = np.zeros(8 * width, dtype=np.int64)
    if lanes >= 3:
        wide = np.ascontiguousarray(rows[:counted]).reshape(lanes, -1).view(np.uint64)
        digits = _add_up(wide)
        while in_lane > _FEWEST_ROWS:
            digits = _add_halves(digits)
            in_lane //= 2
        for weight, digit in enumerate(digits):
            total += _unpacked(digit.view(np.uint8).reshape(in_lane, width)) << weight
        rows = rows[counted:]
    return total + _unpacked(rows)


def _add_up(wide: Words) -> list[Words]:
    """The sum of lanes, as binary digits: the k-th result holds digits of weight 2^k."""
    counter = _Counter(wide.shape[1])
    for lane in wide:
        counter.add(lane)
    return counter.digits()


class _Counter:
    """Adds lanes; at each digit one waits for a second, and two make a full addition."""

    def __init__(self, words: int) -> None:
        self._sums: list[Words] = []
        self._waiting: list[Words | None] = []
        self._free: list[Words] = []
        self._odd, self._both = np.empty(words, np.uint64), np.empty(words, np.uint64)

    def add(self, lane: Words) -> None:
        """Count each bit of a lane, which must stay as it is until the end."""
        level = 0
        while True:
            if level == len(self._sums):
                self._sums.append(np.zeros_like(lane))
                self._waiting.append(None)
            first = self._waiting[level]
            if first is None:
                self._waiting[level] = lane
                return
            self._waiting[level] = None
            carry = self._free.pop() if self._free else np.empty_like(lane)
            self._full_add(self._sums[level], first, lane, carry)
            if level > 0:
                # Carries are ours to use again; fresh memory would cost more than adding.
                self._free += (first, lane)
            level, lane = level + 1, carry

    def _full_add(self, total: Words, first: Words, second: Words, carry: Words) -> None:
        np.bitwise_xor(first, second, out=self._odd)
        np.bitwise_and(first, second, out=carry)
        np.bitwise_and(total, self._odd, out=self._both)
        np.bitwise_or(carry, self._both, out=carry)
        np.bitwise_xor(total, self._odd, out=total)

    def digits(self) -> list[Words]:
        """The sums, with those added that still wait."""
        rest = [np.zeros_like(self._odd) if lane is None else lane for lane in self._waiting]
        return _added(self._sums, rest)


def _add_halves(digits: list[Words]) -> list[Words]:
    half = len(digits[0]) // 2
    return _added([digit[:half] for digit in digits], [digit[half:] for digit in digits])


def _added(left: list[Words], right: list[Words]) -> list[Words]:
    """The sum of two bit-sliced numbers; leading digits that are zero everywhere go."""
    carry = np.zeros_like(left[0])
    digits = []
    for a, b in zip(left, right, strict=True):
        odd = a ^ b
        digits.append(odd ^ carry)
        carry = (a & b) | (odd & carry)
    return [*digits, carry] if carry.any() else digits


def _unpacked(rows: npt.NDArray[np.uint8]) -> IntArray:
    total = np.zeros(8 * rows.shape[1], dtype=np.int64)
    for first in range(0, len(rows), 255):
        bits = np.unpackbits(rows[first : first + 255], axis=1, bitorder="little")
        total += bits.sum(axis=0, dtype=np.uint8)
    return total
