"""Which level a client reports on: drawn without looking at its data."""

import hashlib
from fractions import Fraction
from itertools import accumulate
from math import lcm

import numpy as np

from fedassay.examples import IntArray
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness
from fedassay.survey import OneLevel, Survey

_WORD_BITS = 32


def levels_of_reports(survey: Survey, count: int, randomness: Randomness) -> IntArray:
    """The level that each report is on, drawn without looking at the data.

    With c_k the fractions of the levels up to k added up, a report is on the first level
    whose floor(c_k 2^32) is above a uniform whole number of 32 bits: each level is drawn
    within 2^-32 of its fraction. Whole numbers only, as in any other language.
    """
    if not isinstance(survey.level_policy, OneLevel):
        return np.zeros(count, dtype=np.int64)
    ends = np.array(level_ends(survey.level_policy)[:-1], dtype=np.int64)
    words = np.frombuffer(randomness.bytes(4 * count), dtype="<u4")
    return np.searchsorted(ends, words, side="right")


def level_ends(policy: OneLevel) -> list[int]:
    """floor(c_k 2^32) for each level, c_k being its fraction and those before it, added up.

    >>> level_ends(OneLevel((Fraction(1, 3), Fraction(2, 3))))
    [1431655765, 4294967296]
    """
    return [
        (c.numerator << _WORD_BITS) // c.denominator for c in accumulate(policy.client_fractions)
    ]


def hashed_level(survey: Survey, client_id: str) -> int:
    """The level that a public hash of the survey and the client's id points to.

    The first 8 bytes of SHA-256 of the fingerprint and the id's UTF-8, over 2^64, lie in
    the level's part of [0, 1), the levels' fractions being laid end to end.
    """
    if not isinstance(survey.level_policy, OneLevel):
        return 0
    digest = hashlib.sha256(survey.fingerprint + client_id.encode()).digest()
    return _level_at(survey.level_policy, Fraction(int.from_bytes(digest[:8], "big"), 2**64))


def choose_level(policy: OneLevel, dice: Dice) -> int:
    """Draw the level that a client reports on, without looking at its data."""
    common = lcm(*(share.denominator for share in policy.client_fractions))
    return _level_at(policy, Fraction(dice.below(common), common))


def _level_at(policy: OneLevel, mark: Fraction) -> int:
    """The level whose share of [0, 1) holds the mark."""
    level = 0
    while mark >= policy.client_fractions[level]:
        mark -= policy.client_fractions[level]
        level += 1
    return level
