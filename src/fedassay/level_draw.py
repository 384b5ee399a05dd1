"""Which level a client reports on: drawn without looking at its data."""

import hashlib
from fractions import Fraction
from math import lcm

import numpy as np

from fedassay.examples import IntArray
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness
from fedassay.survey import OneLevel, Survey


def levels_of_reports(survey: Survey, count: int, randomness: Randomness) -> IntArray:
    """The level that each report is on, drawn without looking at the data."""
    if not isinstance(survey.level_policy, OneLevel):
        return np.zeros(count, dtype=np.int64)
    ends = (
        np.cumsum([float(share) for share in survey.level_policy.client_fractions])[:-1] * 2.0**32
    )
    words = np.frombuffer(randomness.bytes(4 * count), dtype=np.uint32)
    return np.searchsorted(ends, words, side="right")


def hashed_level(survey: Survey, client_id: str) -> int:
    """The level that a public hash of the survey and the client's id points to."""
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
