"""The plan's picture: curves over clients, the plan's own case, and a file of a known kind."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import fedassay
from fedassay import Privacy, SurveyRequest
from fedassay.errors import FileInvalid
from fedassay.planning.forecast import no_forecast
from fedassay.planning.plan import Plan
from fedassay.report import plan_chart


@pytest.fixture(scope="module")
def plan() -> Plan:
    return fedassay.plan(clients=20_000, height=3, smallest_cell=0)


@pytest.fixture
def _few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_chart, "_CLIENTS", (1000, 20_000))


def draw(plan: Plan, path: Path) -> list[str]:
    said: list[str] = []
    plan_chart.write_plan_plot(plan, path, progress=said.append)
    return said


@pytest.mark.usefixtures("_few_points")
def test_a_picture_is_drawn_for_every_privacy_model(plan: Plan, tmp_path: Path) -> None:
    said = draw(plan, tmp_path / "plan.svg")
    models = ("secure", "distributed", "local", "shuffled")
    assert said == [f"drawing {model}" for model in models]
    assert "<svg" in (tmp_path / "plan.svg").read_text()


@pytest.mark.usefixtures("_few_points")
def test_a_picture_goes_to_a_file_that_can_be_and_ends_as_pictures_do(
    plan: Plan, tmp_path: Path
) -> None:
    with pytest.raises(FileInvalid, match=r"pictures end in \.png, \.svg or \.pdf\. Rename it"):
        draw(plan, tmp_path / "plan.xyz")
    with pytest.raises(FileInvalid, match=r"cannot be written \(No such file"):
        draw(plan, tmp_path / "nowhere" / "plan.png")


def test_the_survey_of_a_plan_is_that_of_its_design(plan: Plan) -> None:
    assert plan.survey is plan.design.survey


def test_what_noise_hides_has_neither_a_curve_nor_a_star(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three sites with an epsilon of a thousandth: only exact sums have an error below 1."""
    monkeypatch.setattr(plan_chart, "_CLIENTS", (3,))
    request = SurveyRequest(
        privacy=Privacy.SITE, epsilon=Fraction(1, 1000), clients=3, examples=300, height=4, fanout=2
    )
    nothing = no_forecast("drowned in noise", value=0.8)
    hidden = replace(plan, request=request, forecasts={"roc_auc": nothing})
    said = draw(hidden, tmp_path / "plan.svg")
    assert "drawing site" in said
    text = (tmp_path / "plan.svg").read_text()
    assert "<!-- secure -->" in text
    assert "<!-- this plan -->" not in text
    assert "<!-- local" not in text


def test_every_privacy_model_has_a_colour_of_its_own() -> None:
    assert len({plan_chart._colour(privacy) for privacy in Privacy}) == len(Privacy)
