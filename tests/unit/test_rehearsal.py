"""One survey or two: chosen by predicted errors, refused where two cannot be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import fedassay
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples
from fedassay.mechanisms import Privacy
from fedassay.planning.forecast import forecast, model_for
from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest
from fedassay.planning.search import design_survey, rebuilt_design, steps_for
from fedassay.planning.solve import predicted
from fedassay.survey_steps import FirstOfTwo

AUTO = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=200_000, steps=Steps.AUTO
)
REFERENCE = Examples([0, 1] * 500, np.linspace(0.001, 0.999, 1000))


def test_many_clients_whose_scores_nobody_knows_are_asked_in_two_steps() -> None:
    design = design_survey(AUTO)
    assert isinstance(design.survey.step, FirstOfTwo)
    assert design.second is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"reference": REFERENCE},
        {"preset": Preset.PAPER},
        {"height": 6},
        {"levels": LevelChoice.BATCHES},
        {"privacy": Privacy.SECURE, "epsilon": None},
    ],
)
def test_what_only_one_survey_can_keep_is_asked_in_one(changes: dict[str, object]) -> None:
    request = replace(AUTO, **changes)  # type: ignore[arg-type]  # settings by name
    assert steps_for(request) is Steps.ONE
    assert design_survey(request).survey.step is None
    with pytest.raises(SettingInvalid, match="does not go with two steps"):
        replace(request, steps=Steps.TWO)


@pytest.mark.parametrize("clients", [40, 300])
def test_few_clients_are_asked_once(clients: int) -> None:
    assert steps_for(replace(AUTO, clients=clients, epsilon=Fraction(1, 10))) is Steps.ONE


def test_a_rare_event_sharpens_the_choice() -> None:
    """Ten thousand rare events, well told apart: even cells would hold all in the first."""
    request = replace(AUTO, clients=1_000_000, positive_rate=0.01, auc=0.97)
    assert steps_for(request) is Steps.TWO


def test_two_steps_on_request_are_two_steps() -> None:
    design = design_survey(replace(AUTO, clients=300, steps=Steps.TWO))
    assert isinstance(design.survey.step, FirstOfTwo)


def test_the_predicted_error_falls_with_epsilon_for_the_same_cells() -> None:
    request = replace(AUTO, steps=Steps.TWO)
    design = design_survey(request)
    errors = []
    for epsilon in (Fraction(1, 4), Fraction(1), Fraction(4)):
        asked = replace(request, epsilon=epsilon)
        again = rebuilt_design(asked, design)
        assert again.survey.total_epsilon == epsilon
        errors.append(predicted(asked, again, "roc_auc", model=model_for(request)).noise_sd)
    # Noise is proportional to 1/epsilon while it is large against whole numbers.
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.03)
    assert errors[1] > errors[2] > 0.0


def test_the_half_width_that_is_planned_is_the_one_that_is_printed() -> None:
    """Of a binormal classifier under local epsilon 1, in two steps; medians of five draws."""
    rows, generator = 100_000, np.random.default_rng(0)
    labels = (generator.random(rows) < 0.3).astype(np.int8)
    apart = 1.19  # sqrt(2) times the normal quantile of 0.8
    log_odds = apart * generator.normal(apart * labels, 1.0) - apart**2 / 2 + np.log(0.3 / 0.7)
    scores = 1.0 / (1.0 + np.exp(-log_odds))
    request = SurveyRequest(
        privacy=Privacy.LOCAL,
        epsilon=Fraction(1),
        clients=rows,
        positive_rate=0.3,
        auc=0.8,
        steps=Steps.TWO,
        thresholds=(0.5,),
    )
    design = design_survey(request)
    planned = forecast(design.survey, model_for(request), clients=rows, second=design.second)
    asked = {"privacy": "local", "epsilon": 1, "steps": 2, "thresholds": [0.5]}
    runs = [fedassay.simulate(labels, scores, **asked, seed=seed) for seed in range(5)]
    for metric in ("roc_auc", "brier"):
        ends = [run[metric].interval() for run in runs]
        printed = float(np.median([(each.high - each.low) / 2 for each in ends]))
        assert 0.85 < planned[metric].half_width / printed < 1.2
