"""The program in this process, and files that its commands start from."""

import sys
from pathlib import Path

import pytest

from fedassay.cli import main
from tests.program import Result, Run, write_csv
from tests.tables import BUNDLED


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the program in this process; it ends by its exit code alone."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["fedassay", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def scores_csv(tmp_path: Path) -> Path:
    rows = "\n".join(f"{(i * 37 % 101) / 101},{int(i % 3 == 0)}" for i in range(60))
    return write_csv(tmp_path / "scores.csv", rows)


@pytest.fixture
def survey_file(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "survey.json"
    assert (
        run(
            "survey", "new", "--height", 4, "--smallest-cell", 0, "--threshold", 0.3, "-o", path
        ).code
        == 0
    )
    return path


@pytest.fixture
def reports(run: Run, tmp_path: Path, survey_file: Path, scores_csv: Path) -> list[Path]:
    paths = [tmp_path / f"{i}.fa" for i in range(3)]
    for path in paths:
        assert (
            run(
                "answer", survey_file, scores_csv, "--exact-sums", "--smallest-cell", 0, "-o", path
            ).code
            == 0
        )
    return paths


@pytest.fixture
def assessment_file(run: Run, tmp_path: Path) -> Path:
    folder = tmp_path / "result"
    assert run("simulate", BUNDLED, "--seed", 1, "--out", folder).code == 0
    return folder / "assessment.json"
