"""`check` and `compare` as pipelines use them."""

import json
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from tests.program import Run, check_refused


@pytest.mark.parametrize(
    ("rules", "code", "verdict"),
    [
        (["roc_auc >= 0.6"], 0, "pass"),
        (["roc_auc >= 0.6", "roc_auc >= 0.99"], 1, "fail"),
        (["precision@0.5 >= 0"], 0, "pass"),
    ],
)
def test_exit_codes_say_the_verdict(
    run: Run, assessment_file: Path, rules: list[str], code: int, verdict: str
) -> None:
    asked = [text for rule in rules for text in ("--require", rule)]
    result = run("check", assessment_file, *asked)
    assert (result.code, result.out.splitlines()[-1]) == (code, f"{verdict} (confidence 0.95)")
    assert json.loads(run("check", assessment_file, *asked, "--json").out)["verdict"] == verdict
    quiet = run("check", assessment_file, *asked, "--quiet")
    assert (quiet.code, quiet.out) == (code, "")


def test_what_lies_on_its_bound_cannot_be_told_and_has_a_code_of_its_own(
    run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    shown = json.loads(run("show", assessment_file, "--json").out)
    bound = shown["estimates"]["roc_auc"]["value"] + 1e-4
    xml = tmp_path / "gate.xml"
    result = run("check", assessment_file, "--require", f"roc_auc >= {bound}", "--junit", xml)
    assert result.code == 3
    assert "reports in all would tell" in " ".join(result.out.split())
    suite = parse(xml).getroot()[0]  # noqa: S314  # our own file
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("1", "1")
    again = run("check", assessment_file, "--require", "roc_auc >= 0.6", "--junit", xml)
    check_refused(again, "is already there")


def test_an_assessment_is_no_worse_than_itself_with_a_margin(
    run: Run, assessment_file: Path
) -> None:
    asked = ("check", assessment_file, "--no-worse-than", assessment_file)
    assert run(*asked, "--by", "0.2").code == 0
    assert run(*asked).code == 3
    both = run(*asked, "--by", "0.2", "--metric", "precision", "--metric", "brier", "--json")
    names = [each["requirement"] for each in json.loads(both.out)["findings"]]
    assert [name.split()[0] for name in names] == ["precision@0.5", "brier"]


def test_what_cannot_be_checked_is_refused_with_code_2(run: Run, assessment_file: Path) -> None:
    check_refused(run("check", assessment_file), "something to hold the assessment to")
    check_refused(run("check", assessment_file, "--require", "roc_auc=0.8"), "roc_auc >= 0.80")
    check_refused(run("check", assessment_file, "--by", "0.1"), "--no-worse-than old.json")
    check_refused(
        run("check", assessment_file, "--require", "roc_auc>=0.8", "--confidence", "0.4"),
        "between 0.5",
    )


def test_assessments_are_compared_by_their_files(
    run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(assessment_file.read_bytes())
    result = run("compare", assessment_file, other)
    assert result.code == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80
    assert "other.json" in result.out
    content = json.loads(run("compare", assessment_file, other, "--metric", "brier", "--json").out)
    told = content["differences"]["other.json"]
    assert list(told) == ["brier"]
    assert told["brier"]["value"] == 0.0
    assert told["brier"]["told_apart"] is False
    check_refused(run("compare", assessment_file, assessment_file), "found a file twice")
    check_refused(run("compare", assessment_file), "found 1")
