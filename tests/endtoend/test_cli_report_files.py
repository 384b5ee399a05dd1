"""A federation by files: reports, tallies, assessments."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedassay.tally_file import KeptTally
from tests.oracles import row_values
from tests.program import Run, check_refused, write_csv
from tests.tables import Table


def test_a_federation_travels_as_files(
    run: Run, survey_file: Path, reports: list[Path], scores_csv: Path, tmp_path: Path
) -> None:
    assessment, tally = tmp_path / "assessment.json", tmp_path / "study.tally"
    first = run("tally", survey_file, *reports[:2], "--collect", tally)
    assert first.code == 0
    assert "Counted 2 reports, rejected 0 files or blocks; 2 reports in all" in first.out
    assert run("tally", survey_file, reports[2], "--collect", tally).code == 0
    assert not assessment.exists()
    released = run("tally", survey_file, "--from", tally, "-o", assessment, "--threshold", 0.3)
    assert released.code == 0
    assert "Released" in released.out
    shown = run("show", assessment, "--threshold", 0.3, "--json", "--plot", tmp_path / "c.svg")
    assert shown.code == 0
    assert (tmp_path / "c.svg").stat().st_size > 1000
    content = json.loads(shown.out)
    assert content["format"] == "fedassay.assessment-shown/1"
    assert (content["reports"], content["examples"]) == (3, 180)
    assert "No differential privacy" in content["guarantee"]
    rows = np.loadtxt(scores_csv, delimiter=",", skiprows=1)
    exact = row_values(Table(rows[:, 1].astype(int), rows[:, 0]), (0.3,))
    for name, estimate in content["estimates"].items():
        value = exact.get(name)
        if value is not None:
            assert abs(estimate["value"] - value) <= estimate["binning_bound"] + 1e-9, name


def test_a_client_of_one_class_may_answer(run: Run, tmp_path: Path, survey_file: Path) -> None:
    path = write_csv(tmp_path / "one.csv", "0.7312345,1")
    assert (
        run(
            "answer",
            survey_file,
            path,
            "--exact-sums",
            "--smallest-cell",
            0,
            "-o",
            tmp_path / "r.fa",
        ).code
        == 0
    )
    assert (
        run(
            "answer",
            survey_file,
            path,
            "--exact-sums",
            "--smallest-cell",
            0,
            "-o",
            tmp_path / "s.fa",
        ).code
        == 0
    )
    result = run("tally", survey_file, tmp_path / "r.fa", tmp_path / "s.fa", "-o",
                 tmp_path / "a.json")  # fmt: skip
    assert result.code == 0
    assert "there must be negatives to divide by; the tally has 0" in result.err


def damaged(path: Path, change: Callable[[bytes], bytes]) -> Path:
    target = path.with_name(f"bad-{path.name}")
    target.write_bytes(change(path.read_bytes()))
    return target


@pytest.mark.parametrize(
    ("change", "error", "counted"),
    [
        (lambda b: b[:-3], "ReportMalformed", 2),
        (lambda b: b[:10], "ReportMalformed", 2),
        (lambda b: b"", "ReportMalformed", 2),
        (lambda b: b[:70] + bytes([b[70] ^ 1]) + b[71:], "ReportMalformed", 2),
        (lambda b: b[:56] + b"\xff" * 4 + b[60:] + bytes(100_000), "ReportTooLarge", 2),
        (lambda b: b"score,label\n0.7312345,1\n" * 5, "ReportMalformed", 2),
        (lambda b: b"PK\x03\x04" + b[4:], "ReportMalformed", 2),
        # A report that is whole counts, whatever follows it.
        (lambda b: b + bytes(100_000), "ReportMalformed", 3),
    ],
    ids=[
        "truncated",
        "cut",
        "empty",
        "corrupted",
        "oversized",
        "text",
        "foreign kind",
        "extended",
    ],
)
def test_a_bad_report_is_named_and_the_others_are_counted(
    run: Run,
    reports: list[Path],
    survey_file: Path,
    *,
    change: Callable[[bytes], bytes],
    error: str,
    counted: int,
) -> None:
    bad = damaged(reports[0], change)
    output = bad.with_name("a.json")
    result = run("tally", survey_file, bad, *reports[1:], "-o", output)
    check_refused(result, error, bad.name)
    assert f"Counted {counted} reports, rejected 1 files or blocks" in result.out
    assert tallied(output).reports == counted
    # Releasing closes the tally, so that waits until somebody has looked at what is wrong.
    assert not output.exists()
    assert run("tally", survey_file, "-o", output).code == 0
    assert set(json.loads(output.read_text())["reports"]) == {counted}


def tallied(output: Path) -> KeptTally:
    """The tally beside an assessment."""
    return KeptTally.load(output.with_suffix(".tally"))


def test_a_report_to_another_survey_is_refused(
    run: Run, reports: list[Path], survey_file: Path, scores_csv: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    assert run("survey", "new", "--height", 4, "--smallest-cell", 0, "-o", other).code == 0
    assert (
        run(
            "answer",
            other,
            scores_csv,
            "--exact-sums",
            "--smallest-cell",
            0,
            "-o",
            tmp_path / "other.fa",
        ).code
        == 0
    )
    path = tmp_path / "a.json"
    check_refused(run("tally", survey_file, *reports, tmp_path / "other.fa", "-o", path), "other")
    assert run("tally", survey_file, "-o", path).code == 0
    before = path.read_bytes()
    check_refused(run("tally", other, tmp_path / "other.fa", "-o", path), "SurveyMismatch")
    tally = tmp_path / "b.tally"
    refused = run("tally", other, tmp_path / "other.fa", "--collect", tally, "-o", path)
    check_refused(refused, "both or neither")
    assert run("tally", other, tmp_path / "other.fa", "--collect", tally).code == 0
    check_refused(run("tally", other, "--from", tally, "-o", path), "SurveyMismatch")
    assert path.read_bytes() == before


def test_nothing_tallied_is_lost_when_a_later_call_goes_wrong(
    run: Run, reports: list[Path], survey_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    check_refused(run("tally", survey_file, reports[0], "-o", path), "TooFewReports")
    before = path.with_suffix(".tally").read_bytes()
    bad = damaged(reports[2], lambda b: b[:-1])
    for wrong in (
        (bad, "--collect", path.with_suffix(".tally")),
        (reports[2], "-o", path, "--buckets", 70_000),
        (reports[2], "-o", path, "--threshold", 7),
        (tmp_path / "missing.fa", "--collect", path.with_suffix(".tally")),
    ):
        check_refused(run("tally", survey_file, *wrong))
        assert path.with_suffix(".tally").read_bytes() == before
    check_refused(run("tally", tmp_path / "missing.json", reports[2], "-o", path))
    assert run("tally", survey_file, *reports, "-o", path).code == 0
    assert tallied(path).reports == 3


def test_a_damaged_assessment_is_refused_and_left_alone(
    run: Run, reports: list[Path], survey_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    for text in (
        "{",
        '{"format": "fedassay.assessment/1"}',
        '{"format": "fedassay.assessment/2"}',
        "[" * 100_000,
        "",
    ):
        path.write_text(text)
        check_refused(run("tally", survey_file, *reports, "-o", path), "FileInvalid")
        check_refused(run("show", path), "FileInvalid")
        assert path.read_text() == text


def test_a_page_is_about_the_thresholds_that_are_asked_for(
    run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    asked = ("report", assessment_file, "-o", page)
    made = run(*asked, "--threshold", 0.37, "--threshold", 0.37)
    assert made.code == 0, made.err
    assert "at 0.37" in page.read_text()
    assert run(*asked, "--force").code == 0
    assert "at 0.37" not in page.read_text()
    check_refused(run(*asked, "--force", "--threshold", 7))
