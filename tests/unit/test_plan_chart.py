"""The plan's picture: curves over clients, the plan's own case, and a file of a known kind."""

from pathlib import Path

import pytest

import fedassay
from fedassay.errors import FileInvalid
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
    assert said == ["drawing secure", "drawing distributed", "drawing local"]
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
