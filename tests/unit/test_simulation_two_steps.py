"""One cohort asked in two steps: who answers which, what is spent, and what comes of it."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fedassay
from fedassay import Examples, Privacy, Survey, SurveyRequest
from fedassay.assessment import Assessment
from fedassay.cli.outputs import Voice
from fedassay.cli.simulate_output import print_results
from fedassay.decoding import DecodeOptions
from fedassay.errors import SettingInvalid
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Unit, UnitKind
from fedassay.metrics.exact_rows import row_metrics
from fedassay.planning.request import Steps
from fedassay.planning.search import SurveyDesign, design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation import two_steps
from fedassay.simulation.result import simulated_assessment
from fedassay.simulation.two_steps import assess_cohort, split_steps, stood_alone
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo
from tests.laws import FALSE_ALARM
from tests.steps import first_local, first_shared, second_local, second_shared
from tests.surveys import cohort_of

ROWS = 400
PER_CLIENT = 4


def rows(count: int = ROWS) -> Examples:
    generator = np.random.default_rng(5)
    scores = generator.random(count) ** 2
    return Examples((generator.random(count) < scores).astype(int), scores)


def held_by_clients() -> ScoredClients:
    """A hundred clients with four rows each, in mixed order."""
    owners = np.random.default_rng(4).permutation(np.repeat(np.arange(ROWS // PER_CLIENT), 4))
    return cohort_of(rows(), owners.tolist())


def assessed(
    first: Survey, cohort: ScoredClients, seed: int = 0, *, each_client: bool = False
) -> Assessment:
    design = SurveyDesign(first, DecodeOptions())
    return assess_cohort(
        design,
        cohort,
        thresholds=(0.5,),
        randomness=SimulatedRandomness(seed),
        each_client=each_client,
    )


def test_where_noise_is_shared_everybody_answers_both_and_epsilon_is_split() -> None:
    first = first_shared(minimum_reports=100, total=Fraction(3), epsilon=Fraction(1))
    result = assessed(first, held_by_clients())
    assert result.first is not None
    assert (result.first.reports, result.reports, result.steps) == (100, 100, 2)
    assert result.first.survey.epsilon == 1
    assert result.survey.epsilon == 2
    assert result.guarantee.epsilon == result.survey.total_epsilon == 3
    assert "Two surveys spent it, 1 and 2." in result.guarantee.sentence()


def test_under_local_privacy_no_row_answers_both_and_each_answers_one() -> None:
    scores = (np.arange(1000) + 0.5) / 1000
    cohort = ScoredClients(Examples(np.arange(1000) % 2, scores), None, 1000)
    sides = split_steps(first_local(), cohort, np.random.default_rng(0))
    one, other = sides.first.examples.scores, sides.second.examples.scores
    assert np.array_equal(np.sort(np.concatenate([one, other])), scores)
    assert (sides.first.clients, sides.second.clients) == (len(one), len(other))
    # A fifth answers the first; false alarms below 1e-6.
    assert stats.binomtest(len(one), 1000, 0.2).pvalue > FALSE_ALARM
    assert stats.binomtest(len(other), 1000, 0.8).pvalue > FALSE_ALARM


def test_where_clients_are_protected_all_rows_of_one_are_on_the_same_side() -> None:
    first = replace(first_local(), unit=Unit(UnitKind.CLIENT, 1))
    owners = np.repeat(np.arange(300), PER_CLIENT)
    cohort = cohort_of(Examples(owners % 2, (owners + 0.5) / 300), owners.tolist())
    sides = split_steps(first, cohort, np.random.default_rng(1))
    one, other = (np.unique(each.examples.scores) for each in (sides.first, sides.second))
    assert not set(one) & set(other)
    assert len(one) + len(other) == 300
    assert (sides.first.clients, sides.second.clients) == (len(one), len(other))
    by_row = split_steps(first_local(), cohort, np.random.default_rng(1))
    assert set(by_row.first.examples.scores) & set(by_row.second.examples.scores)


def test_clients_without_rows_are_divided_too() -> None:
    first = first_local(allow_empty=True, epsilon=Fraction(8))
    cohort = ScoredClients(rows(), np.arange(ROWS) + 50, 500)
    sides = split_steps(first, cohort, np.random.default_rng(2))
    assert sides.first.clients + sides.second.clients == 500
    assert stats.binomtest(sides.first.clients, 500, 0.2).pvalue > FALSE_ALARM
    result = assessed(first, cohort, each_client=True)
    assert result.reports == 500


def test_a_survey_that_stands_alone_is_asked_once() -> None:
    request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=ROWS)
    design = design_survey(request)
    result = assess_cohort(
        design,
        ScoredClients(rows(), None, ROWS),
        thresholds=(),
        randomness=SimulatedRandomness(0),
    )
    assert (result.steps, result.first, result.survey) == (1, None, design.survey)


@pytest.mark.parametrize("privacy", ["distributed", "local"])
def test_python_runs_two_steps_when_asked_and_says_so(privacy: str) -> None:
    examples = rows(3000)
    result = fedassay.simulate(
        examples.labels, examples.scores, privacy=privacy, epsilon=4, steps=2, seed=1
    )
    assert result.steps == 2
    assert result.first is not None
    assert isinstance(result.first.survey.step, FirstOfTwo)
    assert isinstance(result.survey.step, SecondOfTwo)
    assert result.survey.step.first == result.first.survey.fingerprint
    assert result.reports == 3000
    assert "wo surveys" in str(result)
    exact = row_metrics(examples, ())["roc_auc"]
    assert exact is not None
    assert abs(float(result["roc_auc"]) - exact) < 0.1
    again = fedassay.simulate(
        examples.labels, examples.scores, privacy=privacy, epsilon=4, steps="2", seed=1
    )
    assert again.to_dict() == result.to_dict()


def test_steps_are_one_two_or_auto() -> None:
    labels, scores = [0, 1] * 50, [0.2, 0.7] * 50
    once = fedassay.simulate(labels, scores, privacy="local", epsilon=5, steps=1, seed=0)
    assert once.steps == 1
    for wrong in (3, "both", True, 1.0):
        with pytest.raises(SettingInvalid, match="steps is one of auto, 1, 2"):
            fedassay.simulate(labels, scores, privacy="local", epsilon=5, steps=wrong, seed=0)  # type: ignore[arg-type]  # what a user may pass


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"privacy": "secure"}, "exact sums"),
        ({"privacy": "distributed", "epsilon": 1, "height": 4}, "a height"),
        ({"privacy": "distributed", "epsilon": 1, "budget": (2, 1)}, "a budget"),
        ({"privacy": "distributed", "epsilon": 1, "preset": "paper"}, "the paper preset"),
        ({"privacy": "local", "epsilon": 1, "reference": [0.1, 0.7]}, "a reference"),
    ],
)
def test_what_only_one_survey_can_keep_does_not_go_with_two(
    settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingInvalid, match=f"{said} does not go with two steps"):
        fedassay.simulate([0, 1] * 50, [0.2, 0.7] * 50, steps=2, **settings)


def test_where_nobody_asked_for_two_steps_a_first_that_finds_only_noise_stands_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = first_shared(minimum_reports=20, total=Fraction(1, 100), epsilon=Fraction(1, 1000))
    cohort = ScoredClients(rows(20), None, 20)
    design = SurveyDesign(first, DecodeOptions(), may_stay_one=True)
    found = assess_cohort(design, cohort, thresholds=(), randomness=SimulatedRandomness(0))
    assert (found.survey, found.first, found.steps) == (first, None, 1)
    assert "nothing but noise" in stood_alone(found)
    assert "epsilon 0.001 of 0.01" in stood_alone(found)
    assert found.guarantee.sentence()
    result = simulated_assessment(design, cohort, thresholds=(), seed=0)
    assert stood_alone(found) in result.headline
    print_results(Voice(as_json=False, quiet=False), cohort, [found.estimates()], {}, found)
    assert stood_alone(found) in " ".join(capsys.readouterr().out.split())


def test_only_a_choice_of_two_steps_by_the_planner_may_stay_one() -> None:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=100_000, steps=Steps.AUTO
    )
    chosen = design_survey(request)
    assert isinstance(chosen.survey.step, FirstOfTwo)
    assert chosen.may_stay_one
    assert not design_survey(replace(request, steps=Steps.TWO)).may_stay_one


def test_of_two_surveys_and_of_one_nothing_is_told_of_standing_alone() -> None:
    once = fedassay.simulate([0, 1] * 20, [0.2, 0.7] * 20, seed=0)
    twice = assessed(first_shared(minimum_reports=100), held_by_clients())
    assert stood_alone(once) == stood_alone(twice) == ""


def test_a_first_step_that_finds_nothing_but_noise_is_refused() -> None:
    few = rows(20)
    with pytest.raises(SettingInvalid, match="nothing but noise"):
        fedassay.simulate(
            few.labels,
            few.scores,
            privacy="distributed",
            epsilon="1/100",
            steps=2,
            seed=0,
        )


def test_an_epsilon_too_fine_to_split_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(SettingInvalid, match="epsilon must be a simple fraction"):
        fedassay.simulate(
            [0, 1] * 50,
            [0.2, 0.7] * 50,
            privacy="distributed",
            epsilon=Fraction(1, 10**9),
            steps=2,
        )


def test_both_ways_to_simulate_two_steps_have_one_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both surveys' counters over 60 runs, all of them; a false alarm in a million.

    The second survey is a given one, so that runs can be compared counter by counter.
    """
    cohort, share = held_by_clients(), Fraction(1, 5)
    shared = first_shared(minimum_reports=100, total=Fraction(3), epsilon=4 * share / 5)
    for first, second in (
        (shared, second_shared(shared)),
        (local := first_local(epsilon=Fraction(3), share=share), second_local(local)),
    ):
        monkeypatch.setattr(two_steps, "second_survey", lambda *_, made=second, **__: made)
        drawn: list[list[list[int]]] = [[], []]
        for each_client in (False, True):
            for seed in range(60):
                result = assessed(first, cohort, seed, each_client=each_client)
                assert result.first is not None
                tallies = (result.first.tally, result.tally)
                counters = [*tallies[0].counters.tolist(), *tallies[1].counters.tolist()]
                heard = [sum(tally.reports) for tally in tallies]
                drawn[each_client].append([*heard, *counters])
        at_once, one_by_one = (np.array(each).T for each in drawn)
        for one, other in zip(at_once, one_by_one, strict=True):
            assert stats.ks_2samp(one, other, method="asymp").pvalue > FALSE_ALARM / 200
        means = at_once.mean(axis=1)
        # Neither side is empty: counters of the first hold its share, of the second the rest.
        if first.is_local:
            assert abs(means[0] / ROWS - float(share)) < 0.05
            assert abs(means[1] / ROWS - float(1 - share)) < 0.05


def test_designs_of_auto_are_first_surveys_where_two_are_foreseen() -> None:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=100_000, steps=Steps.AUTO
    )
    assert isinstance(design_survey(request).survey.step, FirstOfTwo)
