"""The client: checks a survey against its own policy, then answers it."""

from dataclasses import dataclass, field

import numpy as np

from fedassay.errors import SettingInvalid, SurveyRefused
from fedassay.examples import Examples, IntArray
from fedassay.mechanisms import UnitKind
from fedassay.randomness import Randomness
from fedassay.survey import Survey
from fedassay.wire import REPORT_ID_BYTES, Report


@dataclass(frozen=True, slots=True)
class ClientPolicy:
    """What a client accepts; a survey outside it is refused, whoever sent it."""

    smallest_cohort: int = 1
    model_digests: frozenset[str] = field(default_factory=frozenset)
    """Digests of the models this client will assess; empty accepts any."""

    def check(self, survey: Survey) -> None:
        """Raise `SurveyRefused` when the survey asks for more than this client gives."""
        if survey.minimum_reports < self.smallest_cohort:
            raise SurveyRefused(
                f"this client answers together with at least {self.smallest_cohort} others; the "
                f"survey asks for {survey.minimum_reports}. Raise its minimum_reports."
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
    examples = int(leaf_counts.sum())
    if survey.unit.kind is UnitKind.CLIENT and examples > survey.unit.max_examples:
        raise SurveyRefused(
            f"this survey takes at most {survey.unit.max_examples} examples from a client; found "
            f"{examples}. Choose that many at random, or raise max_examples."
        )
    if examples >= 2**31:
        raise SurveyRefused(
            f"a report counts fewer than 2^31 examples; found {examples}. Split the table."
        )
    shares = [
        mechanism.share(counts, randomness=randomness).ravel()
        for mechanism, counts in zip(
            survey.mechanisms, survey.hierarchy.climb(leaf_counts), strict=True
        )
    ]
    return Report(survey.fingerprint, randomness.bytes(REPORT_ID_BYTES), np.concatenate(shares))
