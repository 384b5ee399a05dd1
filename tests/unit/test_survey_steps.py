"""A survey's place among two, and what both cost a unit together."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from fedassay import Hierarchy, Polya, Survey, Unit
from fedassay.client import OPEN_POLICY, ClientPolicy
from fedassay.cut_levels import CutLevels
from fedassay.errors import FileInvalid, SettingInvalid, SurveyRefused
from fedassay.examples import IntArray
from fedassay.files import Fields, canonical
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import Privacy, RandomizedResponse, UnaryEncoding, UnitKind
from fedassay.survey_json import survey_from_json
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo, step_from_json
from tests.laws import discrete_laplace, polya_difference
from tests.steps import (
    CUTS,
    WEIGHTS,
    first_local,
    first_shared,
    second_local,
    second_shared,
)
from tests.surveys import local_survey, small_survey

ONE, HALF = Fraction(1), Fraction(1, 2)
SLACK = 1e-9
"""Of logarithms of sums of exponentials, in doubles."""


# --- what stands in a file -------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        FirstOfTwo(Fraction(1), ONE),
        FirstOfTwo(Fraction(7, 3), Fraction(1, 999_999)),
        SecondOfTwo(Fraction(1, 10**9), Fraction(4, 5), bytes(range(32))),
    ],
)
def test_a_step_survives_its_json(step: FirstOfTwo | SecondOfTwo) -> None:
    text = json.dumps(step.to_json())
    assert step_from_json(Fields(json.loads(text), "step")) == step


def test_the_json_of_steps_is_this() -> None:
    assert canonical(FirstOfTwo(Fraction(3, 2), Fraction(1, 5)).to_json()) == (
        b'{"client_fraction":"1/5","kind":"first","total_epsilon":"3/2"}'
    )
    assert canonical(SecondOfTwo(Fraction(1), ONE, b"\xab" * 32).to_json()) == (
        b'{"client_fraction":"1","first":"' + b"ab" * 32 + b'","kind":"second","total_epsilon":"1"}'
    )


def test_a_survey_that_stands_alone_says_nothing_of_steps() -> None:
    assert "step" not in small_survey().to_json()
    assert small_survey().total_epsilon is None
    assert local_survey(Fraction(3)).total_epsilon == 3


HOSTILE: list[tuple[str, Any]] = [
    ("kind", "third"), ("kind", None), ("kind", ["second"]), ("kind", "s" * 5000),
    ("total_epsilon", 1), ("total_epsilon", "0"), ("total_epsilon", "-1"),
    ("total_epsilon", "1.5"), ("total_epsilon", "1/0"), ("total_epsilon", "2/2"),
    ("total_epsilon", "01"), ("total_epsilon", True), ("total_epsilon", "9" * 5000),
    ("total_epsilon", "4/5"), ("total_epsilon", "1/5"),
    ("client_fraction", "0"), ("client_fraction", "2"), ("client_fraction", "4/5"),
    ("client_fraction", "999999/1000000"), ("client_fraction", 1), ("client_fraction", 1.0),
    ("client_fraction", None), ("client_fraction", "1/1"),
    ("first", "ab" * 31), ("first", "ab" * 33), ("first", "zz" * 32), ("first", "AB" * 32),
    ("first", " ".join(["ab"] * 32)), ("first", 5), ("first", None), ("first", "ab" * 5000),
    ("surprise", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), HOSTILE, ids=lambda each: repr(each)[:30])
def test_a_hostile_step_is_refused_as_a_file(name: str, value: object) -> None:
    content = second_shared(first_shared()).to_json()
    survey_from_json(content)
    with pytest.raises(FileInvalid) as caught:
        survey_from_json({**content, "step": {**content["step"], name: value}})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["kind", "total_epsilon", "client_fraction", "first"])
def test_a_step_without_one_of_its_fields_is_refused(name: str) -> None:
    content = second_shared(first_shared()).to_json()
    del content["step"][name]
    with pytest.raises(FileInvalid, match=f'"{name}" is missing'):
        survey_from_json(content)


@pytest.mark.parametrize("value", [None, [], "second", 2, True])
def test_a_step_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(FileInvalid, match="expected an object"):
        survey_from_json({**second_shared(first_shared()).to_json(), "step": value})


def test_a_first_survey_names_no_other() -> None:
    content = first_shared().to_json()
    content["step"]["first"] = "ab" * 32
    with pytest.raises(FileInvalid, match="unknown field"):
        survey_from_json(content)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FirstOfTwo(1, ONE),  # type: ignore[arg-type]  # what a user may pass
        lambda: FirstOfTwo(0.5, ONE),  # type: ignore[arg-type]  # what a user may pass
        lambda: FirstOfTwo(Fraction(0), ONE),
        lambda: FirstOfTwo(Fraction(-1), ONE),
        lambda: FirstOfTwo(ONE, Fraction(0)),
        lambda: FirstOfTwo(ONE, Fraction(2)),
        lambda: FirstOfTwo(ONE, 1),  # type: ignore[arg-type]  # what a user may pass
        lambda: FirstOfTwo(ONE, Fraction(1, 10**6)),
        lambda: SecondOfTwo(ONE, ONE, bytes(31)),
        lambda: SecondOfTwo(ONE, ONE, "ab" * 16),  # type: ignore[arg-type]  # what a user may pass
    ],
)
def test_a_step_that_cannot_be_is_not_made(make: Callable[[], Any]) -> None:
    with pytest.raises(SettingInvalid):
        make()


def test_the_fingerprint_changes_with_every_field_of_a_step() -> None:
    first = first_shared()
    second = second_shared(first)
    shared, local = first_local(), second_local(first_local())
    assert isinstance(second.step, SecondOfTwo)
    assert isinstance(local.step, SecondOfTwo)
    variants = [
        first,
        replace(first, step=None),
        replace(first, step=FirstOfTwo(Fraction(2), ONE)),
        second,
        replace(second, step=replace(second.step, first=bytes(32))),
        replace(second, step=replace(second.step, total_epsilon=Fraction(3, 2))),
        shared,
        replace(shared, step=FirstOfTwo(Fraction(2), HALF)),
        local,
        replace(local, step=replace(local.step, client_fraction=HALF)),
        second_shared(first, CutLevels(6, CUTS[::-1], WEIGHTS)),
        second_shared(first, CutLevels(6, tuple((b, a) for a, b in CUTS), WEIGHTS)),
        second_shared(first, CutLevels(6, CUTS, (WEIGHTS[1], WEIGHTS[0]))),
    ]
    assert len({survey.fingerprint for survey in variants}) == len(variants)


# --- which epsilons fit ----------------------------------------------------------------------


def test_steps_of_shared_noise_spend_a_part_each_and_hear_everybody() -> None:
    first = first_shared(total=ONE, epsilon=Fraction(1, 5))
    assert (first.epsilon, first.total_epsilon) == (Fraction(1, 5), ONE)
    second = second_shared(first)
    assert (second.epsilon, second.total_epsilon) == (Fraction(4, 5), ONE)
    for total in (Fraction(1, 5), Fraction(1, 6)):
        with pytest.raises(SettingInvalid, match="each spends a part of the total"):
            replace(first, step=FirstOfTwo(total, ONE))
    with pytest.raises(SettingInvalid, match="all clients answer both"):
        replace(first, step=FirstOfTwo(ONE, HALF))


def test_steps_of_local_privacy_spend_the_whole_each_and_hear_some() -> None:
    first = first_local(epsilon=Fraction(2))
    assert first.epsilon == first.total_epsilon == 2
    for step in (
        FirstOfTwo(Fraction(3), HALF),
        FirstOfTwo(ONE, HALF),
        FirstOfTwo(Fraction(2), ONE),
    ):
        with pytest.raises(SettingInvalid, match="a client answers one of the two"):
            replace(first, step=step)


def test_exact_sums_have_no_steps() -> None:
    with pytest.raises(SettingInvalid, match="exact sums need no second survey"):
        replace(small_survey(), step=FirstOfTwo(ONE, ONE))


def test_chosen_levels_belong_to_a_second_survey_and_only_to_that() -> None:
    second = second_shared(first_shared())
    tree = Hierarchy(6, (2, 3))
    with pytest.raises(SettingInvalid, match="one without the other"):
        replace(second, step=None)
    with pytest.raises(SettingInvalid, match="one without the other"):
        replace(second, step=FirstOfTwo(ONE, ONE))
    with pytest.raises(SettingInvalid, match="one without the other"):
        replace(second, hierarchy=tree, mechanisms=(Polya(Fraction(1, 9), 1, 4),) * 2)


def test_a_client_compares_its_limit_with_what_both_surveys_spend() -> None:
    policy = ClientPolicy(largest_epsilon=Fraction(9, 10))
    for survey in (first_shared(), second_shared(first_shared())):
        assert survey.epsilon is not None
        assert survey.epsilon < Fraction(9, 10)
        with pytest.raises(SurveyRefused, match="asks for epsilon 1"):
            policy.check(survey)
        ClientPolicy(largest_epsilon=ONE).check(survey)
    for survey in (first_local(), second_local(first_local())):
        with pytest.raises(SurveyRefused, match="asks for epsilon 2"):
            policy.check(survey)
        OPEN_POLICY.check(survey)


# --- privacy, from exact probabilities -------------------------------------------------------


def one_example(survey: Survey, label: int, leaf: int) -> IntArray:
    one = np.zeros((2, survey.hierarchy.leaves), dtype=np.int64)
    one[label, leaf] = 1
    return one


def loss_of_level(survey: Survey, level: int, moved: IntArray) -> float:
    """The largest log ratio of one level's counters with and without an example.

    Noise is independent over counters, so that the largest losses of single counters add up.
    """
    mechanism = survey.mechanisms[level]
    assert isinstance(mechanism, Polya)
    # The sum of all honest clients' shares, from its exact probabilities.
    pmf = discrete_laplace(float(mechanism.epsilon) / mechanism.sensitivity)
    support = np.arange(-40, 41)
    loss = 0.0
    for by in moved.ravel().tolist():
        ratio = np.log(pmf(support)) - np.log(pmf(support - by))
        loss += float(np.abs(ratio).max())
    return loss


def loss_of_example(survey: Survey, label: int, leaf: int) -> float:
    """Over all levels: what one example moves comes from a loop over cuts and weights."""
    return sum(
        loss_of_level(
            survey, level, survey.hierarchy.at_level(one_example(survey, label, leaf), level)
        )
        for level in range(survey.hierarchy.levels)
    )


def losses(survey: Survey) -> dict[tuple[int, int], float]:
    return {
        (label, leaf): loss_of_example(survey, label, leaf)
        for label, leaf in product((0, 1), range(survey.hierarchy.leaves))
    }


@pytest.mark.parametrize("shares", [1, 3, 40])
def test_shares_of_noise_at_a_weighted_levels_sensitivity_add_up_to_discrete_laplace(
    shares: int,
) -> None:
    """As many Polya differences as there are honest clients, convolved: shape 1 in all."""
    step = float(Fraction(4, 15)) / 7
    single = polya_difference(1.0 / shares, step)
    support = np.arange(-1500, 1501)
    mass = single(support)
    whole = mass
    for _ in range(shares - 1):
        whole = np.convolve(whole, mass, mode="same")
    middle = np.abs(support) <= 40
    np.testing.assert_allclose(whole[middle], discrete_laplace(step)(support[middle]), rtol=1e-6)


@pytest.mark.parametrize(
    "weights", [WEIGHTS, (WEIGHTS[1], WEIGHTS[0]), ((0,) * 6, (0, 0, 9, 0, 0, 0)), None]
)
def test_all_counters_of_an_example_lose_what_is_announced_and_the_heaviest_leaf_all_of_it(
    weights: Any,
) -> None:
    first = first_shared()
    second = second_shared(first, CutLevels(6, CUTS, weights))
    spent = losses(second)
    assert second.epsilon is not None
    assert max(spent.values()) == pytest.approx(float(second.epsilon), abs=SLACK)
    if weights is not None:
        heaviest = max(spent, key=lambda each: abs(weights[each[0]][each[1]]))
        assert spent[heaviest] == pytest.approx(float(second.epsilon), abs=SLACK)
        lightest = min(spent, key=lambda each: abs(weights[each[0]][each[1]]))
        assert spent[lightest] < float(second.epsilon) - 0.1


def test_both_surveys_together_lose_what_both_announce() -> None:
    first = first_shared()
    second = second_shared(first)
    before, after = losses(first), losses(second)
    together = [before[example] + after[example] for example in before]
    assert first.total_epsilon == second.total_epsilon == 1
    assert max(together) == pytest.approx(1.0, abs=SLACK)
    for policy in (EveryLevel(), OneLevel((Fraction(1, 3),) * 3)):
        assert replace(second, level_policy=policy).total_epsilon == 1


@pytest.mark.parametrize("most", [1, 3])
def test_a_clients_examples_together_lose_what_is_announced(most: int) -> None:
    first = first_shared(unit=Unit(UnitKind.CLIENT, most))
    second = second_shared(first)
    assert second.epsilon is not None
    worst = 0.0
    places = list(product((0, 1), range(6)))
    for rows in product(places, repeat=most):
        counts = sum(one_example(second, label, leaf) for label, leaf in rows)
        assert isinstance(counts, np.ndarray)
        moved = [second.hierarchy.at_level(counts, level) for level in range(3)]
        worst = max(worst, sum(loss_of_level(second, k, each) for k, each in enumerate(moved)))
    assert worst == pytest.approx(float(second.epsilon), abs=SLACK)


def test_a_twin_that_forgets_the_weight_is_refused_and_would_lose_seven_times_as_much() -> None:
    second = second_shared(first_shared())
    *cells, weighted = second.mechanisms
    assert isinstance(weighted, Polya)
    forgetful = replace(weighted, sensitivity=1)
    with pytest.raises(SettingInvalid, match="sensitivity for one example is 7; found 1"):
        replace(second, mechanisms=(*cells, forgetful))
    pmf = discrete_laplace(float(forgetful.epsilon))
    support = np.arange(-30, 31)
    lost = np.abs(np.log(pmf(support)) - np.log(pmf(support - 7))).max()
    assert lost == pytest.approx(7 * float(weighted.epsilon))
    for wrong in (6, 8):
        with pytest.raises(SettingInvalid, match="found"):
            replace(second, mechanisms=(*cells, replace(weighted, sensitivity=wrong)))


def test_a_survey_read_from_its_file_has_the_weights_sensitivity() -> None:
    second = second_shared(first_shared(unit=Unit(UnitKind.CLIENT, 5)))
    again = survey_from_json(json.loads(canonical(second.to_json())))
    assert [m.sensitivity for m in again.mechanisms if isinstance(m, Polya)] == [5, 5, 35]


# --- local privacy ---------------------------------------------------------------------------


def answers_of(survey: Survey, level: int, place: int) -> dict[tuple[int, ...], float]:
    """Every answer to one level with its exact probability, from the definition."""
    mechanism = survey.mechanisms[level]
    size = 2 * survey.hierarchy.cells_per_level[level]
    if isinstance(mechanism, RandomizedResponse):
        p = mechanism.numerator / 2**64
        return {(v,): p if v == place else (1 - p) / (size - 1) for v in range(size)}
    assert isinstance(mechanism, UnaryEncoding)
    q = mechanism.numerator / 2**24
    chances = {}
    for bits in product((0, 1), repeat=size):
        chance = 1.0
        for i, bit in enumerate(bits):
            one = 0.5 if i == place else q
            chance *= one if bit else 1 - one
        chances[bits] = chance
    return chances


def place_of(levels: CutLevels, level: int, label: int, leaf: int) -> int:
    cell = sum(start <= leaf for start in levels.cuts[level][label]) - 1
    return label * levels.cells_per_level[level] + cell


def test_a_local_answer_on_chosen_cells_loses_at_most_the_whole_epsilon() -> None:
    """Whatever the level, replacing an example by any other; nearly all of it is reached."""
    second = second_local(first_local(epsilon=Fraction(2)))
    levels = second.hierarchy
    assert isinstance(levels, CutLevels)
    worst = 0.0
    for level in range(levels.levels):
        places = {place_of(levels, level, y, leaf) for y in (0, 1) for leaf in range(6)}
        known = {place: answers_of(second, level, place) for place in places}
        for one, other in product(places, repeat=2):
            worst = max(worst, *(abs(np.log(known[one][a] / known[other][a])) for a in known[one]))
    assert second.total_epsilon == 2
    assert 2 - 1e-5 < worst <= 2


def test_a_client_that_answers_one_of_two_local_surveys_loses_the_larger_of_both() -> None:
    """Which one it answers is public: the loss is that of the survey it answers."""
    first = first_local(epsilon=Fraction(2))
    second = second_local(first)
    assert first.epsilon == second.epsilon == first.total_epsilon == second.total_epsilon
    shares = [survey.step.client_fraction for survey in (first, second) if survey.step]
    assert sum(shares) == 1


def test_privacy_without_weights_or_steps_is_as_before() -> None:
    plain = replace(first_shared(), step=None)
    assert plain.privacy is Privacy.DISTRIBUTED
    assert plain.total_epsilon == plain.epsilon == Fraction(1, 5)
    assert max(losses(plain).values()) == pytest.approx(0.2, abs=SLACK)
