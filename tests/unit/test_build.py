"""Surveys built from a request: which oracle, whose share, and noise for how many."""

from fractions import Fraction
from math import exp

import pytest

from fedassay import Grid, Hierarchy, Privacy, SurveyRequest
from fedassay.errors import SettingInvalid
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Polya, Unit, UnitKind
from fedassay.planning.build import budget_of, build_survey, rebuilt_survey
from fedassay.planning.request import LevelChoice, Preset
from fedassay.survey import Survey

UNEVEN = (Fraction(1, 5), Fraction(4, 5))
TREE = Hierarchy(8, (2, 4))


def distributed(**changes: object) -> SurveyRequest:
    settings = {"privacy": Privacy.DISTRIBUTED, "epsilon": Fraction(3, 2), "clients": 1000}
    return SurveyRequest(**(settings | changes))  # type: ignore[arg-type]  # settings by name


def shares_sized_for(survey: Survey) -> list[int]:
    return [m.noise_shares for m in survey.mechanisms if isinstance(m, Polya)]


def mean_variance_of_response(odds: float, values: int) -> float:
    """Of a count's share per report (Wang et al. 2017), over values of equal frequency."""
    p, q = odds / (odds + values - 1), 1 / (odds + values - 1)
    seen = p / values + q * (1 - 1 / values)
    return seen * (1 - seen) / (p - q) ** 2


def mean_variance_of_unary(odds: float, values: int) -> float:
    p, q = 0.5, 1 / (odds + 1)
    seen = p / values + q * (1 - 1 / values)
    return seen * (1 - seen) / (p - q) ** 2


@pytest.mark.parametrize("epsilon", [1, 2, 4])
@pytest.mark.parametrize("cells", [2, 4, 16, 64, 256])
def test_each_level_has_the_oracle_with_less_noise(epsilon: int, cells: int) -> None:
    request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(epsilon), clients=1000)
    survey = build_survey(request, Grid.uniform(cells), Hierarchy.flat(cells))
    response, unary = (
        variance(exp(epsilon), 2 * cells)
        for variance in (mean_variance_of_response, mean_variance_of_unary)
    )
    assert survey.mechanisms[0].kind == ("grr" if response < unary else "oue")


def test_the_papers_oracle_is_unary_encoding() -> None:
    request = SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=1000, preset=Preset.PAPER
    )
    survey = build_survey(request, Grid.uniform(2), Hierarchy.flat(2))
    assert survey.mechanisms[0].kind == "oue"


def test_levels_that_everybody_reports_on_share_epsilon() -> None:
    survey = build_survey(distributed(), Grid.uniform(8), TREE, UNEVEN)
    assert [m.epsilon_spent for m in survey.mechanisms] == [Fraction(3, 10), Fraction(6, 5)]
    assert survey.epsilon == Fraction(3, 2)
    even = build_survey(distributed(), Grid.uniform(8), TREE)
    assert [m.epsilon_spent for m in even.mechanisms] == [Fraction(3, 4)] * 2


def test_clients_of_batches_spend_all_of_epsilon_on_one_level() -> None:
    request = distributed(levels=LevelChoice.BATCHES)
    survey = build_survey(request, Grid.uniform(8), TREE, UNEVEN)
    assert [m.epsilon_spent for m in survey.mechanisms] == [Fraction(3, 2)] * 2
    assert survey.epsilon == Fraction(3, 2)
    assert isinstance(survey.level_policy, OneLevel)
    assert survey.level_policy.client_fractions == UNEVEN


def test_batches_size_their_noise_for_the_smallest_batch_less_a_tenth() -> None:
    request = distributed(levels=LevelChoice.BATCHES)
    # A fifth of 1,000 clients, less a tenth.
    assert shares_sized_for(build_survey(request, Grid.uniform(8), TREE, UNEVEN)) == [180, 180]


def test_noise_shares_are_sized_for_those_who_do_not_collude() -> None:
    request = distributed(minimum_reports=800, colluders=50)
    survey = build_survey(request, Grid.uniform(8), TREE, UNEVEN)
    assert shares_sized_for(survey) == [750, 750]
    assert (survey.minimum_reports, survey.colluders) == (800, 50)


def test_noise_grows_with_the_examples_that_a_client_may_bring() -> None:
    request = distributed(unit=Unit(UnitKind.CLIENT, 7))
    survey = build_survey(request, Grid.uniform(8), TREE, UNEVEN)
    assert [m.step for m in survey.mechanisms if isinstance(m, Polya)] == [
        Fraction(3, 10) / 7,
        Fraction(6, 5) / 7,
    ]


@pytest.mark.parametrize(
    "budget",
    [
        (Fraction(1),),
        (Fraction(1, 2), Fraction(1, 3)),
        (Fraction(1, 2), Fraction(2, 3)),
        (Fraction(0), Fraction(1)),
        (Fraction(-1, 2), Fraction(3, 2)),
    ],
    ids=str,
)
def test_a_budget_has_a_positive_share_for_every_level_and_no_more(
    budget: tuple[Fraction, ...],
) -> None:
    with pytest.raises(SettingInvalid, match="adding up to 1"):
        build_survey(distributed(), Grid.uniform(8), TREE, budget)


@pytest.mark.parametrize("levels", LevelChoice)
def test_a_survey_for_another_epsilon_keeps_its_shares(levels: LevelChoice) -> None:
    survey = build_survey(distributed(levels=levels), Grid.uniform(8), TREE, UNEVEN)
    again = rebuilt_survey(distributed(levels=levels, epsilon=Fraction(3)), survey)
    spent = [m.epsilon_spent for m in again.mechanisms]
    everybody = levels is LevelChoice.EVERY
    assert spent == ([Fraction(3, 5), Fraction(12, 5)] if everybody else [Fraction(3)] * 2)


def test_exact_sums_of_fewer_than_two_are_asked_for_by_nobody_unless_told() -> None:
    survey = build_survey(SurveyRequest(clients=10), Grid.nested(8), Hierarchy.flat(8))
    assert survey.minimum_reports == 2
    assert survey.is_exact


def test_a_shuffled_survey_of_one_level_is_rebuilt_though_a_report_alone_spends_more() -> None:
    asked = SurveyRequest(privacy=Privacy.SHUFFLED, epsilon=Fraction(1), clients=20_000)
    survey = build_survey(asked, Grid.uniform(8), Hierarchy.flat(8))
    assert survey.local_epsilon is not None
    assert survey.local_epsilon > 1
    assert budget_of(survey) == (Fraction(1),)
    assert rebuilt_survey(asked, survey) == survey
