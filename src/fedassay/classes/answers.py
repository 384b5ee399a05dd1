"""A client's answer to a question about classes: every part, or the one that it draws."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import lcm
from typing import Protocol, TypeVar

import numpy as np

from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.encodings import Part, PartKind, part_examples
from fedassay.classes.rows import ClassRows
from fedassay.classes.survey_file import class_fingerprint
from fedassay.client import (
    Answer,
    ClientPolicy,
    check_answerable,
    default_epsilon,
    make_answer,
)
from fedassay.errors import LabelInvalid, SurveyRefused
from fedassay.examples import FloatArray, IntArray
from fedassay.ledger import Question
from fedassay.limits import check_published
from fedassay.mechanisms import UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.patient_rows import limited_rows
from fedassay.randomness import Randomness
from fedassay.survey_cells import count_rows

_Values = TypeVar("_Values", IntArray, FloatArray)


class QuestionAccount(Protocol):
    """Where a client records what it spends on all parts together, before it spends it."""

    def charge(self, survey: Question, /) -> object:
        """Record the cost for good, or raise `SurveyRefused`."""


def question_of(survey: ClassSurvey) -> Question:
    """What a ledger is told: one question, what all its parts spend together, and the model."""
    return Question(
        fingerprint=class_fingerprint(survey),
        guarantee=survey.guarantee,
        model_digest=survey.model_digest,
    )


def check_class_policy(policy: ClientPolicy, survey: ClassSurvey) -> None:
    """Raise `SurveyRefused` when all parts together ask for more than a client gives."""
    epsilon = survey.epsilon
    if epsilon is not None:
        most = policy.largest_epsilon or default_epsilon(survey.privacy)
        if epsilon > most:
            raise SurveyRefused(
                f"this client spends at most epsilon {float(most):g} on a survey; all parts of "
                f"this one ask for epsilon {float(epsilon):g} together. Lower its epsilon."
            )
    elif policy.exact_sums:
        check_published(survey.parts[0].survey, policy.smallest_cell)
    if policy.model_digests and survey.model_digest not in policy.model_digests:
        raise SurveyRefused(
            "this client assesses only models it knows; the survey names another, or none. "
            "Set the survey's model digest, or add the model to the client's policy."
        )
    for part in survey.parts:
        part_policy(policy, part).check(part.survey)


def part_policy(policy: ClientPolicy, part: Part) -> ClientPolicy:
    """What of a client's policy is about a part by itself.

    Digests of parts are made of the model's and what is asked, which `survey_file` checks. Cells
    of the confusion matrix are no scores, and are hidden by a rule of their own
    (`published_parts`), which knows the smallest cell of the whole survey.
    """
    smallest = 0 if part.kind is PartKind.CONFUSION else policy.smallest_cell
    return replace(policy, model_digests=frozenset(), smallest_cell=smallest)


def answer_classes(
    survey: ClassSurvey,
    rows: ClassRows,
    *,
    randomness: Randomness,
    policy: ClientPolicy,
    account: QuestionAccount | None = None,
    patients: IntArray | None = None,
    times: FloatArray | None = None,
) -> Answer:
    """Answer a question about classes with all that may leave this client.

    Guarantee: that of `survey.guarantee`. Everything is checked for every part before the account
    is charged, once for all parts, and charged before any noise is drawn; which part is answered
    is drawn without looking at the rows.
    """
    if rows.names != survey.names:
        raise LabelInvalid(
            f"the survey asks about {len(survey.names)} classes, in its own order; the rows have "
            "others. Name the same columns as the survey (--scores)."
        )
    check_class_policy(policy, survey)
    asked = []
    for part, chosen in _drawn(survey, len(rows), Dice(randomness)):
        mine = rows if chosen is None else rows.rows(chosen)
        examples = limited_rows(
            part.survey,
            part_examples(part, mine, randomness=randomness),
            patients=_some(patients, chosen),
            times=_some(times, chosen),
            randomness=randomness,
        )
        counts = count_rows(part.survey, examples)
        check_answerable(
            part.survey,
            counts,
            randomness=randomness,
            policy=part_policy(policy, part),
            rows_limited=True,
        )
        asked.append((part.survey, counts))
    if account is not None:
        account.charge(question_of(survey))
    return Answer(
        tuple(
            message
            for each, counts in asked
            for message in make_answer(each, counts, randomness=randomness).messages
        )
    )


def _some(values: _Values | None, chosen: IntArray | None) -> _Values | None:
    return values if values is None or chosen is None else values[chosen]


def _drawn(survey: ClassSurvey, rows: int, dice: Dice) -> Iterator[tuple[Part, IntArray | None]]:
    """The parts that are answered, each with the rows that answer it; None for all rows.

    Guarantee: a unit's rows are all in one part where each answers one: those of a client, or,
    where every row has a report of its own and is protected by itself, each row alone.
    """
    if not survey.draws_one_part:
        yield from ((part, None) for part in survey.parts)
        return
    first, draw = survey.parts[0].survey, PartDraw(survey)
    if not (first.is_local and first.unit.kind is UnitKind.EXAMPLE):
        yield survey.parts[draw(dice)], None
        return
    numbers = np.array([draw(dice) for _ in range(rows)], dtype=np.int64)
    for number, part in enumerate(survey.parts):
        chosen = np.flatnonzero(numbers == number)
        if len(chosen):
            yield part, chosen


class PartDraw:
    """Draws the number of one part, by the public shares of units that answer each."""

    def __init__(self, survey: ClassSurvey) -> None:
        shares = [part.client_fraction or Fraction(0) for part in survey.parts]
        self._common = lcm(*(share.denominator for share in shares))
        self._ends = list(accumulate(int(share * self._common) for share in shares))

    def __call__(self, dice: Dice) -> int:
        """One draw, exact."""
        return bisect_right(self._ends, dice.below(self._common))
