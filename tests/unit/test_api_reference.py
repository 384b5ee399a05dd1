"""Earlier assessments shape a grid at no cost; exact ones only where nothing is published."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedassay
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.simulation.result import SimulatedAssessment

ROWS = 4000


def earlier(privacy: str, **settings: Any) -> SimulatedAssessment:
    """Last month's: scores of rare events, most of them below 0.05."""
    generator = np.random.default_rng(3)
    scores = generator.beta(0.3, 12.0, ROWS)
    labels = generator.random(ROWS) < scores
    epsilon = None if privacy == "secure" else 5
    return fedassay.simulate(
        labels,
        scores,
        privacy=privacy,
        epsilon=epsilon,
        steps=1,
        seed=0,
        **settings,
    )


def share_of_cells_below(survey: fedassay.Survey, score: float) -> float:
    return float((survey.grid.edges[1:] < score).mean())


@pytest.mark.parametrize("privacy", ["distributed", "local"])
def test_an_earlier_private_assessment_says_where_to_ask(privacy: str, tmp_path: Path) -> None:
    result = earlier(privacy)
    result.save(tmp_path / "last-month.json")
    asked = {"privacy": "distributed", "epsilon": 1, "clients": 20_000, "steps": 1}
    blind = fedassay.new_survey(**asked)  # type: ignore[arg-type]  # settings by name
    for reference in (result, tmp_path / "last-month.json", str(tmp_path / "last-month.json")):
        survey = fedassay.new_survey(reference=reference, **asked)  # type: ignore[arg-type]  # settings by name
        assert survey.step is None
        assert survey.epsilon == 1
        assert share_of_cells_below(survey, 0.05) > share_of_cells_below(blind, 0.05)
        assert share_of_cells_below(survey, 0.05) > 0.4


def test_an_exact_assessment_is_no_reference_except_in_simulations(tmp_path: Path) -> None:
    exact = earlier("secure", smallest_cell=0)
    exact.save(tmp_path / "exact.json")
    for reference in (exact, tmp_path / "exact.json"):
        with pytest.raises(SettingInvalid, match="publishes quantiles of its rows"):
            fedassay.new_survey(reference=reference, clients=100)
        with pytest.raises(SettingInvalid, match="publishes quantiles of its rows"):
            fedassay.plan(reference=reference, clients=100)
        labels, scores = [0, 1] * 100, [0.01, 0.02] * 100
        found = fedassay.simulate(
            labels, scores, privacy="local", epsilon=5, reference=reference, seed=0
        )
        assert found.steps == 1


def test_an_exact_assessment_with_a_smallest_cell_is_a_reference(tmp_path: Path) -> None:
    exact = earlier("secure")
    exact.save(tmp_path / "exact.json")
    for reference in (exact, tmp_path / "exact.json"):
        survey = fedassay.new_survey(reference=reference, examples=ROWS)
        assert share_of_cells_below(survey, 0.05) > 0.4
        assert survey.smallest_cell == 10


def test_a_reference_whose_scores_are_all_equal_is_refused() -> None:
    asked = {"privacy": "local", "epsilon": 1, "clients": 1000}
    for equal in ([0.3] * 50, ([0, 1] * 25, [0.3] * 50)):
        with pytest.raises(SettingInvalid, match="all of this one are equal"):
            fedassay.new_survey(reference=equal, **asked)  # type: ignore[arg-type]  # settings by name


def test_an_edited_assessment_is_no_reference(tmp_path: Path) -> None:
    path = tmp_path / "last-month.json"
    earlier("local").save(path)
    content = json.loads(path.read_text())
    content["counters"][0] += 30
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match="figures in an assessment follow from its counters"):
        fedassay.new_survey(privacy="local", epsilon=1, clients=1000, reference=path)
    content["format"] = "fedassay.survey/2"
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match="assessment"):
        fedassay.new_survey(privacy="local", epsilon=1, clients=1000, reference=path)


def test_a_threshold_that_no_axis_holds_is_refused_before_anything_is_spent() -> None:
    for wrong in (1.5, -0.1, float("nan")):
        with pytest.raises(SettingInvalid, match="threshold"):
            fedassay.new_survey(
                privacy="distributed", epsilon=1, clients=1000, steps=2, thresholds=wrong
            )
