"""`survey new` as people use it."""

from pathlib import Path

from tests.program import Run, check_refused


def test_a_survey_that_no_client_could_read_is_not_written(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for option in (("--max-examples", 0), ("--minimum-reports", 0), ("--height", 30)):
        check_refused(run("survey", "new", "-o", path, *option), "SettingInvalid")
    check_refused(run("survey", "new", "-o", tmp_path), "FileInvalid")
    check_refused(run("survey", "new", "-o", "."), "FileInvalid")
    assert not path.exists()
