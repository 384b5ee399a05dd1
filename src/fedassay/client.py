"""The client: checks a survey against its own policy, then answers it."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

import numpy as np

from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.examples import Examples, IntArray
from fedassay.mechanisms import UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness
from fedassay.survey import OneLevel, Survey
from fedassay.wire import REPORT_ID_BYTES, Report


@dataclass(frozen=True, slots=True)
class ClientPolicy:
    """What a client accepts; a survey outside it is refused, whoever sent it."""

    smallest_cohort: int = 1
    largest_epsilon: Fraction | None = None
    """The most that one survey may spend; None accepts any, and exact sums too."""
    model_digests: frozenset[str] = field(default_factory=frozenset)
    """Digests of the models this client will assess; empty accepts any."""

    def check(self, survey: Survey) -> None:
        """Raise `SurveyRefused` when the survey asks for more than this client gives."""
        honest = survey.minimum_reports - survey.colluders
        if honest < self.smallest_cohort:
            raise SurveyRefused(
                f"this client answers only in a crowd of at least {self.smallest_cohort}; the "
                f"survey guarantees {honest}. Raise its minimum_reports."
            )
        if self.largest_epsilon is not None:
            epsilon = survey.epsilon
            if epsilon is None or epsilon > self.largest_epsilon:
                asked = "no noise at all" if epsilon is None else f"epsilon {float(epsilon):g}"
                raise SurveyRefused(
                    f"this client spends at most epsilon {float(self.largest_epsilon):g} on a "
                    f"survey; this one asks for {asked}. Lower its epsilon."
                )
        if self.model_digests and survey.model_digest not in self.model_digests:
            raise SurveyRefused(
                "this client assesses only models it knows; the survey names another, or none. "
                "Set the survey's model digest, or add the model to the client's policy."
            )


def answer(
    survey: Survey, examples: Examples, *, randomness: Randomness, policy: ClientPolicy
) -> Report:
    """Answer a survey with all that may leave this client.

    Guarantee: that of `survey.guarantee`, provided the randomness is secret, which is
    checked.
    """
    policy.check(survey)
    return answer_counts(survey, survey.grid.count(examples), randomness=randomness, policy=policy)


def answer_counts(
    survey: Survey, leaf_counts: IntArray, *, randomness: Randomness, policy: ClientPolicy
) -> Report:
    """Answer a survey from counts per label and leaf cell, for tables too large to hold."""
    if not randomness.is_secret:
        raise SettingInvalid(
            "a client must answer with SystemRandomness; found a repeatable source, which "
            "protects nobody. Use engines.simulation to simulate."
        )
    policy.check(survey)
    return make_report(survey, leaf_counts, randomness=randomness)


def make_report(survey: Survey, leaf_counts: IntArray, *, randomness: Randomness) -> Report:
    """Turn counts into a report: `answer_counts` without the client's checks, for simulation."""
    dice = Dice(randomness)
    if survey.unit.kind is UnitKind.CLIENT:
        leaf_counts = at_most(leaf_counts, survey.unit.max_examples, dice)
    levels = range(survey.hierarchy.levels)
    level = None
    if isinstance(survey.levels, OneLevel):
        level = choose_level(survey.levels, dice)
        levels = range(level, level + 1)
    shares = [
        survey.mechanisms[i]
        .share(survey.hierarchy.at_level(leaf_counts, i), randomness=randomness)
        .ravel()
        for i in levels
    ]
    counters = np.concatenate(shares)
    if np.abs(counters).max() >= 2**31:
        raise SurveyRefused(
            "a report's counters must stay below 2^31; found more examples than that. "
            "Split the table."
        )
    return Report(survey.fingerprint, randomness.bytes(REPORT_ID_BYTES), counters, level)


def at_most(leaf_counts: IntArray, most: int, dice: Dice) -> IntArray:
    """Keep `most` of a client's examples, chosen uniformly, where it has more."""
    flat = leaf_counts.ravel()
    total = int(flat.sum())
    if total <= most:
        return leaf_counts
    chosen: set[int] = set()
    # Floyd's sampling without replacement: uniform over subsets, one draw for each member.
    for last in range(total - most, total):
        rank = dice.below(last + 1)
        chosen.add(last if rank in chosen else rank)
    cells = np.searchsorted(np.cumsum(flat), sorted(chosen), side="right")
    return np.bincount(cells, minlength=flat.size).reshape(leaf_counts.shape)


def choose_level(policy: OneLevel, dice: Dice) -> int:
    """Draw the level that a client reports on, without looking at its data."""
    common = lcm(*(share.denominator for share in policy.shares))
    mark = Fraction(dice.below(common), common)
    level = 0
    while mark >= policy.shares[level]:
        mark -= policy.shares[level]
        level += 1
    return level
