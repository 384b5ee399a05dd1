"""`fedassay plan` as people use it."""

import json
from pathlib import Path

import pytest

from fedassay.survey_json import load_survey, survey_from_json
from tests.program import Run, check_refused
from tests.tables import BUNDLED

KNOWN = ("--auc", "0.8", "--positive-rate", "0.3")


def test_a_plan_prints_a_table_within_eighty_columns(run: Run) -> None:
    found = run("plan", "--privacy", "distributed", "--epsilon", 1, "--clients", 20000, *KNOWN)
    assert found.code == 0
    assert all(len(line) <= 80 for line in found.out.splitlines())
    for word in ("roc_auc", "precision@0.5", "ece", "sampling", "privacy", "Enough: "):
        assert word in found.out


def test_the_written_survey_is_that_of_the_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "survey.json"
    found = run(
        "plan", "--privacy", "local", "--epsilon", 5, "--clients", 50000,
        "--reference", BUNDLED, "--json", "-o", path,
    )  # fmt: skip
    content = json.loads(found.out)
    assert content["format"] == "fedassay.plan/1"
    survey = survey_from_json(content["survey"])
    assert load_survey(path).fingerprint == survey.fingerprint
    assert content["predictions"]["roc_auc"]["noise_sd"] > 0.0
    assert content["assumed"] == {"scores": "reference"}


def test_survey_new_and_plan_choose_the_same_survey(run: Run, tmp_path: Path) -> None:
    asked = ("--privacy", "local", "--epsilon", 2, "--clients", 30000, "--threshold", 0.4)
    run("survey", "new", *asked, "-o", tmp_path / "new.json")
    run("plan", *asked, "-o", tmp_path / "plan.json")
    assert (tmp_path / "new.json").read_bytes() == (tmp_path / "plan.json").read_bytes()


def test_clients_and_epsilon_are_found_for_a_target(run: Run) -> None:
    asked = ("plan", "--privacy", "local", "--target-error", 0.02, "--json", *KNOWN)
    clients = json.loads(run(*asked, "--epsilon", 4).out)
    assert clients["enough"]
    assert clients["needed"]["clients"] > 1000
    epsilon = json.loads(run(*asked, "--clients", clients["needed"]["clients"]).out)
    assert float(epsilon["needed"]["epsilon"].partition("/")[0]) > 0
    assert epsilon["survey"]["mechanisms"][0]["epsilon"] == epsilon["needed"]["epsilon"]


def test_a_plot_is_drawn(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    found = run("plan", "--clients", 1000, "--plot", path, *KNOWN)
    assert found.code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_pipeline_adds_up(run: Run) -> None:
    found = run(
        "plan", "--privacy", "distributed", "--epsilon", "1/3", "--clients", 20000, *KNOWN,
        "--pipeline", "evaluation,calibration=2", "--json",
    )  # fmt: skip
    content = json.loads(found.out)
    assert content["epsilon"] == "1/3"
    assert [each["stage"] for each in content["stages"]] == ["evaluation", "calibration"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "neither"),
        (
            ("--privacy", "local", "--clients", 100),
            "(--epsilon 1) or target_error=0.005 (--target-error",
        ),
        (("--privacy", "local", "--target-error", 0.1), "both open"),
        (("--privacy", "secure", "--epsilon", 1, "--clients", 100), "spend no epsilon"),
        (("--clients", 100, "--target-error", 0), "between 0 and 1"),
        (("--clients", 100, "--power", 1), "power must lie"),
        (("--clients", 100, "--metric", "auroc"), "roc_auc"),
        (("--clients", 100, "--auc", 0.4), "between 0.5 and 1"),
        (("--clients", 100, "--auc", 0.8, "--reference", BUNDLED), "Drop one of the two"),
        (("--clients", 0), "from 1 to"),
        (("--clients", 100, "--positive-rate", 1.5), "between 0 and 1"),
        (("--clients", 100, "--pipeline", "evaluation,lunch"), "lunch"),
        (("--clients", 100, "--pipeline", "evaluation", "--plot", "x.png"), "do not go"),
        (
            ("--privacy", "local", "--clients", 100, "--target-error", 0.0001),
            "sampling alone leaves",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    run: Run, arguments: tuple[object, ...], words: str
) -> None:
    check_refused(run("plan", *arguments), words)


def test_where_rows_are_what_lacks_the_verdict_says_rows(run: Run) -> None:
    asked = ("plan", "--clients", 4, "--target-error", 0.01, *KNOWN)
    short = json.loads(run(*asked, "--examples", 8000, "--json").out)
    rows = short["needed"]["rows"]
    assert f"{rows:,} rows would do" in short["verdict"]
    assert "within 0.01 only" not in short["verdict"]
    assert json.loads(run(*asked, "--examples", rows, "--json").out)["enough"]


def test_what_classes_and_overlapping_attributes_cost_is_said(run: Run) -> None:
    asked = ("plan", "--privacy", "distributed", "--epsilon", 1, "--clients", 20_000, "--json")
    content = json.loads(run(*asked, "--scores", "p0,p1,p2,p3,p4").out)
    assert content["design"] == content["designs"][0]["design"]
    assert {each["design"] for each in content["designs"]} == {"every", "drawn", "own"}
    content = json.loads(run(*asked, "--groups", "F,M", "--groups", "young,old").out)
    assert [each["epsilon"] for each in content["attributes"]] == ["1/2", "1/2"]
    assert content["joined"]["groups"] == 4
    check_refused(run(*asked, "--groups", "F,M", "--paired"))


def test_one_attribute_has_nothing_to_be_joined_with(run: Run) -> None:
    asked = ("plan", "--privacy", "distributed", "--epsilon", 1, "--clients", 20_000)
    both = run(*asked, "--groups", "F,M", "--groups", "young,old")
    assert "all joined into one" in both.out
    assert "Overlapping attributes cost epsilon each" in both.out
    one = run(*asked, "--groups", "F,M")
    assert one.code == 0, one.err
    assert "one epsilon serves all its groups" in " ".join(one.out.split())
    assert "joined" not in one.out
    assert "Overlapping" not in one.out
    assert json.loads(run(*asked, "--groups", "F,M", "--json").out)["joined"] is None


def test_where_nothing_can_be_told_no_difference_is_promised(run: Run) -> None:
    few = ("plan", "--privacy", "local", "--epsilon", "1/10", "--clients", 20, *KNOWN)
    content = json.loads(run(*few, "--json").out)
    assert content["detectable"]["different_clients"] is None
    assert not content["enough"]
    assert "Two models are told apart" not in run(*few).out


def test_a_budget_is_split_over_months_and_delays_are_told(run: Run) -> None:
    asked = ("--privacy", "distributed", "--epsilon", 6, "--clients", 5000, *KNOWN)
    found = run("plan", *asked, "--track", "months=12", "--shift", -0.02, "--json")
    assert found.code == 0, found.err
    content = json.loads(found.out)
    assert content["epsilon_per_look"] == "1/2"
    assert 2 <= content["delays"]["-0.02"] <= 8
    said = run("plan", *asked, "--track", "months=12", "--shift", -0.02)
    assert max(map(len, said.out.splitlines())) <= 80
    assert "a ledger with a budget of 6 takes 12 such surveys" in " ".join(said.out.split())
    check_refused(run("plan", *asked, "--track", "12"), "months=12 or weeks=12")
    check_refused(run("plan", *asked, "--track", "months=12", "-o", "s.json"), "do not go with")


def test_a_plan_for_looks_predicts_when_a_rise_of_ece_is_noticed(run: Run) -> None:
    asked = ("plan", "--clients", "5000", "--track", "months=24", "--metric", "ece")
    told = json.loads(run(*asked, "--shift", "0.2", "--json").out)
    assert told["delays"] == {"0.2": 1.0}
    check_refused(run(*asked, "--shift", "-0.05"), "whose ece can only rise")
    check_refused(run(*asked[:-1], "auroc"), "found 'auroc'")
