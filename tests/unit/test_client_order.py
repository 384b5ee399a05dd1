"""What a client checks, in which order, and that no refusal costs it anything."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay import ClientPolicy, Examples, Grid, Hierarchy, Polya, Survey, SystemRandomness
from fedassay.client import OPEN_POLICY, answer, answer_counts
from fedassay.errors import FedassayError, SettingInvalid, SurveyRefused
from fedassay.examples import IntArray
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy
from fedassay.randomness import Randomness, SimulatedRandomness
from tests.surveys import local_survey, small_survey

ROWS = Examples([0, 1, 1], [0.1, 0.62, 1.0])
NOISY = Survey(
    privacy=Privacy.DISTRIBUTED,
    grid=Grid.uniform(4),
    hierarchy=Hierarchy.flat(4),
    mechanisms=(Polya(Fraction(1), 1, 3),),
    minimum_reports=3,
)


@dataclass
class Watch:
    """An account and a source of randomness that write down the order of what happens."""

    happened: list[str] = field(default_factory=list)
    refuses: bool = False
    is_secret: bool = True

    def charge(self, survey: Survey) -> None:
        if self.refuses:
            raise SurveyRefused("nothing is left")
        self.happened.append("charged")

    def bytes(self, count: int) -> bytes:
        self.happened.append("drew")
        return SystemRandomness().bytes(count)


def by_hash() -> Survey:
    survey = local_survey(cells=8, fanouts=(2, 4), kinds="oue oue")
    assert isinstance(survey.level_policy, OneLevel)
    return replace(survey, level_policy=replace(survey.level_policy, by_hash=True))


def too_many() -> IntArray:
    counts = np.zeros((2, 4), dtype=np.int64)
    counts[1, 2] = 2**31
    return counts


def asked(
    survey: Survey,
    counts: IntArray | None = None,
    *,
    policy: ClientPolicy | None = None,
    randomness: Callable[[Watch], Randomness] = lambda watch: watch,
    client_id: str | None = None,
) -> Callable[[Watch], object]:
    given = survey.grid.count(ROWS) if counts is None else counts
    return lambda watch: answer_counts(
        survey,
        given,
        randomness=randomness(watch),
        policy=policy or OPEN_POLICY,
        client_id=client_id,
        account=watch,
    )


REFUSALS: dict[str, tuple[Callable[[Watch], object], type[FedassayError]]] = {
    "repeatable randomness": (
        asked(NOISY, randomness=lambda _: SimulatedRandomness(1)),
        SettingInvalid,
    ),
    "no id for a level by hash": (asked(by_hash()), SettingInvalid),
    "a crowd too small": (asked(NOISY, policy=ClientPolicy(smallest_cohort=4)), SurveyRefused),
    "too much epsilon": (
        asked(NOISY, policy=ClientPolicy(largest_epsilon=Fraction(1, 2))),
        SurveyRefused,
    ),
    "exact sums": (asked(small_survey(), policy=ClientPolicy(smallest_cell=0)), SurveyRefused),
    "too many others": (asked(NOISY, policy=ClientPolicy(colluders=1)), SurveyRefused),
    "an unknown model": (
        asked(NOISY, policy=ClientPolicy(model_digests=frozenset(["ab" * 32]))),
        SurveyRefused,
    ),
    "nothing to say": (asked(local_survey(), np.zeros((2, 4), dtype=np.int64)), SurveyRefused),
    "more than a report holds": (asked(small_survey(), too_many()), SurveyRefused),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_costs_nothing_and_draws_nothing(name: str) -> None:
    ask, kind = REFUSALS[name]
    watch = Watch()
    with pytest.raises(kind):
        ask(watch)
    assert watch.happened == []


@pytest.mark.parametrize("survey", [NOISY, small_survey(), local_survey()], ids=lambda s: s.privacy)
def test_a_client_is_charged_once_and_before_it_draws(survey: Survey) -> None:
    watch = Watch()
    asked(survey)(watch)
    assert watch.happened[0] == "charged"
    assert watch.happened.count("charged") == 1
    assert "drew" in watch.happened


def test_what_an_account_refuses_is_not_answered_and_draws_nothing() -> None:
    watch = Watch(refuses=True)
    with pytest.raises(SurveyRefused, match="nothing is left"):
        asked(NOISY)(watch)
    assert watch.happened == []


def test_a_policy_is_asked_before_the_rows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_: object) -> IntArray:
        raise AssertionError("the rows were counted")

    monkeypatch.setattr(Grid, "count", looked)
    with pytest.raises(SurveyRefused):
        answer(NOISY, ROWS, randomness=SystemRandomness(), policy=ClientPolicy(smallest_cohort=4))


def test_the_id_decides_the_level_and_nothing_else_is_needed() -> None:
    watch = Watch()
    asked(by_hash(), client_id="ward 7")(watch)
    assert watch.happened[0] == "charged"


@pytest.mark.parametrize("noise", [2**31, -(2**31) - 5, 2**32 + 7])
def test_noise_that_a_counter_cannot_hold_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, noise: int
) -> None:
    """Four bytes hold no more: 2^32 + 7 would arrive as 7."""

    def loud(self: Polya, counts: IntArray, *, randomness: Randomness) -> IntArray:
        shared = counts.copy()
        shared[0, 1] += noise
        return shared

    monkeypatch.setattr(Polya, "share", loud)
    with pytest.raises(SurveyRefused, match=r"counters must stay below 2\^31"):
        asked(NOISY)(Watch())
