"""A question as it is asked under every privacy model, whatever goes with one of them only."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from fedassay import Privacy, SurveyRequest
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.planning.open_settings import check_request, under_privacy
from fedassay.planning.request import LevelChoice, Preset, Steps
from fedassay.planning.solve import Target, epsilon_needed
from fedassay.report.plan_chart import _like

LOCAL: dict[str, Any] = {"privacy": Privacy.LOCAL, "epsilon": Fraction(1, 3)}
DISTRIBUTED: dict[str, Any] = {"privacy": Privacy.DISTRIBUTED, "epsilon": Fraction(1, 3)}
SITE: dict[str, Any] = {"privacy": Privacy.SITE, "epsilon": Fraction(1, 3)}
QUESTIONS: list[dict[str, Any]] = [
    {"smallest_cell": 20},
    {"site_moments": True},
    {**DISTRIBUTED, "height": 3, "fanout": 2},
    {**DISTRIBUTED, "steps": Steps.TWO, "colluders": 3},
    {**DISTRIBUTED, "height": 2, "budget": (Fraction(1, 4), Fraction(3, 4)), "minimum_reports": 90},
    {**DISTRIBUTED, "height": 2, "levels": LevelChoice.BATCHES},
    {**DISTRIBUTED, "preset": Preset.PAPER, "fanout": 4},
    {**SITE, "sum_only": True},
    {**LOCAL, "allow_empty": True},
    {**LOCAL, "privacy": Privacy.SHUFFLED, "delta": Fraction(1, 10**9)},
]


@pytest.mark.parametrize("privacy", Privacy)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_can_be_asked_under_every_privacy_model(
    question: dict[str, Any], privacy: Privacy
) -> None:
    request = SurveyRequest(clients=100, examples=1000, **question)
    for other in (under_privacy(request, privacy), _like(request, privacy, 50)):
        check_request(other)
        assert other.privacy is privacy
        assert (other.epsilon is None) is (privacy is Privacy.SECURE)
        if privacy.spends_epsilon and request.epsilon is not None:
            assert other.epsilon == Fraction(1, 3)
        assert other.height == request.height


def test_a_shuffled_question_says_how_large_its_crowd_is() -> None:
    asked = SurveyRequest(privacy=Privacy.SHUFFLED, epsilon=Fraction(1))
    with pytest.raises(SettingInvalid, match="found neither minimum_reports nor clients"):
        check_request(asked)
    check_request(replace(asked, minimum_reports=500))
    check_request(replace(asked, clients=500))
    check_request(replace(asked, examples=500))


def test_clients_are_counted_with_exact_sums_though_a_height_was_asked_for() -> None:
    request = SurveyRequest(clients=100, height=3, fanout=2, **DISTRIBUTED)
    with pytest.raises(TargetImpossible, match=r"clients are needed even with exact sums"):
        epsilon_needed(request, Target("roc_auc", 0.02))
