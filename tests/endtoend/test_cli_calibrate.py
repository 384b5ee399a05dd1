"""`calibrate` and `apply` as people use them."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.program import CANARY, Run, check_refused, write_csv
from tests.tables import BUNDLED


def test_an_assessment_becomes_a_calibrator_that_is_applied_to_a_table(
    run: Run, tmp_path: Path, assessment_file: Path
) -> None:
    calibrator, target = tmp_path / "calibrator.json", tmp_path / "out.parquet"
    for method in (
        "auto",
        "binning",
        "bbq",
        "isotonic",
        "sigmoid",
        "beta",
        "temperature",
        "smooth",
    ):
        result = run("calibrate", assessment_file, "--method", method, "--force", "-o", calibrator)
        assert result.code == 0, result.err
    assert json.loads(calibrator.read_text())["format"] == "fedassay.calibrator/1"
    assert run("apply", calibrator, BUNDLED, "-o", target).code == 0
    before, after = pq.read_table(BUNDLED), pq.read_table(target)
    assert after.column_names == [*before.column_names, "calibrated"]
    assert after.drop_columns(["calibrated"]).equals(before)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_apply_keeps_the_text_of_a_csv(
    run: Run, tmp_path: Path, assessment_file: Path, name: str
) -> None:
    calibrator, target = tmp_path / "calibrator.json", tmp_path / name
    assert run("calibrate", assessment_file, "-o", calibrator).code == 0
    table = write_csv(tmp_path / "in.csv", '007,0.250,"a, b"\n008,1,', header="id,score,note")
    assert run("apply", calibrator, table, "-o", target).code == 0
    opened = gzip.open if name.endswith("gz") else open
    with opened(target, "rt") as stream:
        lines = str(stream.read()).splitlines()
    assert lines[0] == "id,score,note,calibrated"
    assert lines[1].startswith('007,0.250,"a, b",0.')
    assert lines[2].startswith("008,1,,")


def test_apply_refuses_what_it_cannot_map(run: Run, tmp_path: Path, assessment_file: Path) -> None:
    calibrator, target = tmp_path / "calibrator.json", tmp_path / "out.csv"
    assert run("calibrate", assessment_file, "-o", calibrator).code == 0
    bad = write_csv(tmp_path / "bad.csv", f"1.{CANARY},0")
    check_refused(run("apply", calibrator, bad, "-o", target), "ScoreOutOfRange")
    text = write_csv(tmp_path / "text.csv", "high,0")
    check_refused(run("apply", calibrator, text, "-o", target), "text.csv")
    twice = write_csv(tmp_path / "twice.csv", "0.5,1", header="score,calibrated")
    check_refused(run("apply", calibrator, twice, "-o", target), "already")
    good = write_csv(tmp_path / "good.csv", "0.5,1")
    check_refused(run("apply", assessment_file, good, "-o", target), "fedassay.calibrator/1")
    check_refused(run("apply", calibrator, good, "-o", tmp_path / "no" / "o.csv"), "written")
    assert not target.exists()
    assert not list(tmp_path.glob(".*part"))


def test_a_calibrator_is_judged_on_the_tally_of_other_clients(
    run: Run, tmp_path: Path, assessment_file: Path
) -> None:
    other = tmp_path / "other"
    assert run("simulate", BUNDLED, "--seed", 2, "--out", other).code == 0
    target, test = tmp_path / "calibrator.json", other / "assessment.json"
    result = run("calibrate", assessment_file, "--test", test, "-o", target)
    assert result.code == 0, result.err
    assert "On the test clients, calibrated: 0.0" in result.out
    target.unlink()
    check_refused(run("calibrate", assessment_file, "--test", BUNDLED, "-o", target), BUNDLED.name)
    assert not target.exists()


def test_calibrate_refuses_a_map_that_falls_when_it_must_rise(
    run: Run, tmp_path: Path, assessment_file: Path
) -> None:
    target = tmp_path / "calibrator.json"
    refused = run("calibrate", assessment_file, "--method", "bbq", "--monotone", "-o", target)
    check_refused(refused, "SettingInvalid", "isotonic")
    assert not target.exists()
