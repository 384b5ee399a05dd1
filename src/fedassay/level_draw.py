"""Which level a client reports on, and which of two surveys: drawn without looking at its data."""

import hashlib
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from math import lcm

import numpy as np
import numpy.typing as npt

from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.examples import Examples, IntArray
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo

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


def answers_step(survey: Survey, name: str) -> bool:
    """Whether whoever has this name answers this one of two locally private surveys.

    The first 8 bytes of SHA-256 of the first survey's fingerprint, "step" and the name's
    UTF-8, over 2^64, lie below the first one's share of the clients, or at or above one minus
    the second one's. Where all answer both, and where there is one survey, everybody does.

    Guarantee: the shares add up to at most 1 (`two_steps.check_pair`, and the ledger), so that
    nobody answers both; the draw depends on names alone.
    """
    return bool(_of_step(survey, "", [name])[0])


def rows_of_step(survey: Survey, client_id: str, rows: range) -> npt.NDArray[np.bool_]:
    """Which of a client's rows, by number, answer this one of two surveys.

    A row's name is the client's id, a colon and the row's number; where the unit is a client
    all of its rows go by its id.
    """
    if survey.unit.kind is UnitKind.CLIENT:
        return np.full(len(rows), answers_step(survey, client_id))
    return _of_step(survey, f"{client_id}:", map(str, rows), len(rows))


def rows_in_turn(survey: Survey, examples: Examples, client_id: str | None) -> Examples:
    """The rows that answer this survey: all, but where each answers one of two.

    Guarantee: which rows they are depends on the client's id and the rows' numbers alone
    (`rows_of_step`).
    """
    if survey.step is None or not survey.is_local:
        return examples
    if client_id is None:
        raise SettingInvalid(
            "under local privacy each row answers one of two surveys, by its client's id and its "
            "number; found no id. Pass client_id (--client-id), the same for both."
        )
    turn = rows_of_step(survey, client_id, range(len(examples)))
    if not (turn.any() if len(turn) else answers_step(survey, client_id)):
        raise SurveyRefused(
            "under local privacy a client, or each of its rows, answers one of two surveys, by "
            "a public hash; nothing of this client is asked by this one. Answer the other."
        )
    return examples.rows(turn.nonzero()[0])


def _of_step(
    survey: Survey, prefix: str, names: Iterable[str], count: int = 1
) -> npt.NDArray[np.bool_]:
    step = survey.step
    if step is None or not survey.is_local:
        return np.ones(count, dtype=np.bool_)
    match step:
        case FirstOfTwo():
            first, share = survey.fingerprint, step.client_fraction
        case SecondOfTwo():
            first, share = step.first, 1 - step.client_fraction
    # Whole numbers: u / 2^64 < share exactly where u is below this one.
    end = -(-(share.numerator << 64) // share.denominator)
    begun = hashlib.sha256(first + b"step" + prefix.encode())

    def is_below(name: str) -> bool:
        ended = begun.copy()
        ended.update(name.encode())
        return int.from_bytes(ended.digest()[:8], "big") < end

    below = np.fromiter(map(is_below, names), dtype=np.bool_, count=count)
    return below if isinstance(step, FirstOfTwo) else ~below


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
