"""The command line as people use it."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedassay.cli import main
from fedassay.tally_file import KeptTally
from tests.oracles import row_values
from tests.tables import BUNDLED, Table, read_table

CANARY = "7312345"


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


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


def check_refused(result: Result, *words: str) -> None:
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert "Traceback" not in result.err
    assert CANARY not in result.err + result.out
    for word in words:
        assert word in result.err


def write_csv(path: Path, rows: str, header: str = "score,label") -> Path:
    path.write_text(f"{header}\n{rows}\n" if header else f"{rows}\n")
    return path


@pytest.fixture
def scores_csv(tmp_path: Path) -> Path:
    rows = "\n".join(f"{(i * 37 % 101) / 101},{int(i % 3 == 0)}" for i in range(60))
    return write_csv(tmp_path / "scores.csv", rows)


@pytest.fixture
def survey_file(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "survey.json"
    assert run("survey", "new", "--height", 4, "--threshold", 0.3, "-o", path).code == 0
    return path


@pytest.fixture
def reports(run: Run, tmp_path: Path, survey_file: Path, scores_csv: Path) -> list[Path]:
    paths = [tmp_path / f"{i}.fa" for i in range(3)]
    for path in paths:
        assert run("answer", survey_file, scores_csv, "--exact-sums", "-o", path).code == 0
    return paths


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fedassay", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_demo_prints_every_metric_beside_its_exact_value() -> None:
    done = program("demo")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("16 airlines", "roc_auc", "average_precision", "brier", "log_loss", "mcc@0.3"):
        assert word in done.stdout


def test_a_real_process_refuses_in_one_line(tmp_path: Path) -> None:
    done = program("simulate", write_csv(tmp_path / "bad.csv", "0.2,0\n-0.7312345,1"))
    check_refused(Result(done.returncode, done.stdout, done.stderr), "ScoreOutOfRange")


def test_simulate_prints_one_json_object_of_the_documented_schema(run: Run) -> None:
    result = run("simulate", BUNDLED, "--threshold", 0.3, "--threshold", 0.7, "--json", "--trials",
                 2, "--client", "carrier", "--seed", 5)  # fmt: skip
    assert result.code == 0
    assert result.err == ""
    content = json.loads(result.out)
    assert {"format", "rows", "clients", "exact", "trials", "seconds"} <= set(content)
    assert content["format"] == "fedassay.simulation/1"
    assert (content["rows"], content["clients"]) == (100_000, 16)
    assert content["seconds"] > 0
    names = {"roc_auc", "average_precision", "brier", "log_loss"}
    names |= {f"{m}@{t}" for m in ("precision", "recall", "accuracy", "f1") for t in (0.3, 0.7)}
    assert names <= set(content["exact"])
    assert len(content["trials"]) == 2
    exact = row_values(read_table(BUNDLED), (0.3, 0.7))
    for trial in content["trials"]:
        for name in names:
            keys = {"value", "low", "high", "noise_sd", "binning_bound", "sampling_sd"}
            assert keys <= set(trial[name])
            assert trial[name]["low"] <= trial[name]["value"] <= trial[name]["high"]
            assert content["exact"][name] == pytest.approx(exact[name], abs=1e-9)
            error = abs(trial[name]["value"] - content["exact"][name])
            assert error <= trial[name]["binning_bound"] + 1e-9


def simulate_json(run: Run, path: Path, *more: object) -> dict[str, Any]:
    result = run("simulate", path, "--json", *more)
    assert result.code == 0, result.err
    content: dict[str, Any] = json.loads(result.out)
    return content


def test_csv_compressed_csv_and_parquet_give_the_same(
    run: Run, scores_csv: Path, tmp_path: Path
) -> None:
    from pyarrow import csv

    pq.write_table(csv.read_csv(scores_csv), tmp_path / "scores.parquet")
    with gzip.open(tmp_path / "scores.csv.gz", "wb") as stream:
        stream.write(scores_csv.read_bytes())
    contents = [
        simulate_json(run, tmp_path / name)
        for name in ("scores.csv", "scores.csv.gz", "scores.parquet")
    ]
    assert contents[0]["trials"] == contents[1]["trials"] == contents[2]["trials"]
    assert contents[0]["exact"] == contents[1]["exact"] == contents[2]["exact"]


@pytest.mark.parametrize(
    "options",
    [
        ("--preset", "paper"),
        ("--preset", "paper", "--height", 6, "--buckets", 20),
        ("--height", 3, "--fanout", 5),
        ("--buckets", 10),
        ("--each-client",),
        ("--threshold", 0, "--threshold", 1),
        ("--threshold", "5e-324", "--threshold", 1e-310, "--preset", "paper"),
        ("--threshold", 1e-310, "--height", 3),
    ],
)
def test_every_way_to_simulate_stays_within_its_bounds(
    run: Run, scores_csv: Path, options: tuple[object, ...]
) -> None:
    content = simulate_json(run, scores_csv, *options)
    for name, estimate in content["trials"][0].items():
        if content["exact"][name] is not None and estimate["value"] is not None:
            error = abs(estimate["value"] - content["exact"][name])
            assert error <= estimate["binning_bound"] + 1e-9, name
    assert content["trials"][0]["roc_auc"]["value"] is not None


def test_a_reference_shapes_the_grid_with_or_without_labels(
    run: Run, scores_csv: Path, tmp_path: Path
) -> None:
    unlabelled = write_csv(tmp_path / "reference.csv", "0.1\n0.5\n0.9", header="score")
    for reference in (scores_csv, unlabelled):
        content = simulate_json(run, scores_csv, "--reference", reference, "--height", 4)
        found = content["trials"][0]["roc_auc"]
        assert abs(found["value"] - content["exact"]["roc_auc"]) <= found["binning_bound"] + 1e-9


def test_out_keeps_results_that_show_can_read(run: Run, scores_csv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "result"
    assert run("simulate", scores_csv, "--out", folder).code == 0
    assert {p.name for p in folder.iterdir()} == {
        "assessment.json",
        "simulation.json",
        "curves.png",
    }
    assert "roc_auc" in run("show", folder / "assessment.json").out


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
        value = exact[name]
        if value is not None:
            assert abs(estimate["value"] - value) <= estimate["binning_bound"] + 1e-9, name


BAD_TABLES = {
    "NaN": ("0.2,0\nnan,1", "ValueMissing"),
    "infinite": ("0.2,0\ninf,1", "ScoreOutOfRange"),
    "negative": ("0.2,0\n-0.7312345,1", "ScoreOutOfRange"),
    "above one": ("0.2,0\n1.7312345,1", "ScoreOutOfRange"),
    "missing score": ("0.2,0\n,1", "ValueMissing"),
    "odd label": ("0.2,0\n0.3,7312345", "LabelInvalid"),
    "mixed labels": ("0.2,0\n0.3,-1\n0.4,1", "LabelInvalid"),
    "missing label": ("0.2,0\n0.7312345,", "ValueMissing"),
    "text score": ("0.2,0\n0.7312345x,1", "ColumnTypeInvalid"),
    "text label": ("0.2,no\n0.7312345,yes", "ColumnTypeInvalid"),
    "ragged": ("0.2,0\n0.7312345,1,5", "FileInvalid"),
}
bad_tables = pytest.mark.parametrize(("rows", "error"), BAD_TABLES.values(), ids=BAD_TABLES.keys())


@bad_tables
def test_simulate_refuses_a_bad_table(run: Run, tmp_path: Path, rows: str, error: str) -> None:
    check_refused(run("simulate", write_csv(tmp_path / "bad.csv", rows)), error)


@bad_tables
def test_answer_refuses_a_bad_table_and_writes_nothing(
    run: Run, tmp_path: Path, survey_file: Path, rows: str, error: str
) -> None:
    path = write_csv(tmp_path / "bad.csv", rows)
    check_refused(run("answer", survey_file, path, "--exact-sums", "-o", tmp_path / "r.fa"), error)
    assert not (tmp_path / "r.fa").exists()


def test_simulate_refuses_a_table_without_rows(run: Run, tmp_path: Path) -> None:
    check_refused(run("simulate", write_csv(tmp_path / "none.csv", "")), "NoRows")


@pytest.mark.parametrize("rows", ["0.7312345,1", "0.7312345,1\n0.3,1", "0.7312345,0\n0.3,0"])
def test_simulate_needs_two_classes(run: Run, tmp_path: Path, rows: str) -> None:
    check_refused(run("simulate", write_csv(tmp_path / "one.csv", rows)), "SingleClass")


def test_a_client_of_one_class_may_answer(run: Run, tmp_path: Path, survey_file: Path) -> None:
    path = write_csv(tmp_path / "one.csv", "0.7312345,1")
    assert run("answer", survey_file, path, "--exact-sums", "-o", tmp_path / "r.fa").code == 0
    assert run("answer", survey_file, path, "--exact-sums", "-o", tmp_path / "s.fa").code == 0
    result = run("tally", survey_file, tmp_path / "r.fa", tmp_path / "s.fa", "-o",
                 tmp_path / "a.json")  # fmt: skip
    assert result.code == 0
    assert "there must be negatives to divide by; the tally has 0" in result.err


def test_a_missing_column_is_answered_with_the_closest(run: Run, scores_csv: Path) -> None:
    check_refused(run("simulate", scores_csv, "--score", "scroe"), "ColumnMissing", '"score"')
    check_refused(run("simulate", scores_csv, "--client", "zzz"), "ColumnMissing", "score, label")


def test_a_table_without_a_header_keeps_its_values(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bare.csv", "0.7312345,1\n0.5,0", header="")
    check_refused(run("simulate", path), "ColumnMissing", "column names")


def test_a_repeated_column_is_refused(run: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "twice.csv", "0.1,0.7312345,1", header="score,score,label")
    check_refused(run("simulate", path), "FileInvalid", "2 times")
    twice = pa.table([[0.1], [0.2], [1]], names=["score", "score", "label"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    check_refused(run("simulate", tmp_path / "twice.parquet"), "FileInvalid", "2 times")


@pytest.mark.parametrize("clients", [[[1], [2]], [b"\xff", b"a"]], ids=["list", "bytes"])
def test_a_client_column_that_names_nobody_is_refused(
    run: Run, tmp_path: Path, clients: list[object]
) -> None:
    table = pa.table({"score": [0.1, 0.9], "label": [0, 1], "site": clients})
    pq.write_table(table, tmp_path / "t.parquet")
    check_refused(run("simulate", tmp_path / "t.parquet", "--client", "site"), "ColumnTypeInvalid")


def test_a_file_that_is_no_table_is_refused(run: Run, tmp_path: Path, scores_csv: Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_bytes(scores_csv.read_bytes())
    check_refused(run("simulate", text), "FileInvalid")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(BUNDLED.read_bytes()[:-500])
    check_refused(run("simulate", cut), "FileInvalid")
    empty = tmp_path / "empty.csv"
    empty.touch()
    check_refused(run("simulate", empty), "FileInvalid")
    check_refused(run("simulate", tmp_path / "none.csv"), "FileInvalid")
    check_refused(run("simulate", tmp_path / "scores.xlsx"), "FileInvalid", ".csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    check_refused(run("simulate", folder), "FileInvalid")


def test_a_damaged_parquet_file_is_refused_or_read_but_never_a_traceback(
    run: Run, tmp_path: Path
) -> None:
    content = bytearray(BUNDLED.read_bytes())
    generator = np.random.default_rng(3)
    for trial in range(5):
        broken = content.copy()
        start = int(generator.integers(4, len(content) - 2000))
        broken[start : start + 1000] = generator.bytes(1000)
        path = tmp_path / f"{trial}.parquet"
        path.write_bytes(bytes(broken))
        result = run("simulate", path)
        assert result.code in (0, 2)
        assert result.code == 0 or len(result.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--threshold", "nan"),
        ("--threshold", "1.5"),
        ("--trials", 0),
        ("--seed", -1),
        ("--buckets", 0),
        ("--buckets", 70_000),
        ("--height", 0),
        ("--height", 20, "--fanout", 1024),
        ("--fanout", 4),
        ("--minimum-reports", -1),
        ("--minimum-reports", 1000),
    ],
)
def test_a_setting_that_breaks_a_rule_is_refused(
    run: Run, scores_csv: Path, options: tuple[object, ...]
) -> None:
    check_refused(run("simulate", scores_csv, *options))


def test_a_survey_that_no_client_could_read_is_not_written(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for option in (("--max-examples", 0), ("--minimum-reports", 0), ("--height", 30)):
        check_refused(run("survey", "new", "-o", path, *option), "SettingInvalid")
    check_refused(run("survey", "new", "-o", tmp_path), "FileInvalid")
    check_refused(run("survey", "new", "-o", "."), "FileInvalid")
    assert not path.exists()


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
    assert run("survey", "new", "--height", 4, "-o", other).code == 0
    assert run("answer", other, scores_csv, "--exact-sums", "-o", tmp_path / "other.fa").code == 0
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


def test_help_has_examples(run: Run) -> None:
    for command in (
        ["simulate"], ["survey", "new"], ["survey", "show"], ["answer"], ["tally"], ["merge"],
        ["show"], ["demo"],
    ):  # fmt: skip
        result = run(*command, "--help")
        assert result.code == 0
        assert "Example" in result.out
        assert f"fedassay {' '.join(command)}" in result.out


@pytest.fixture
def assessment_file(run: Run, tmp_path: Path) -> Path:
    folder = tmp_path / "result"
    assert run("simulate", BUNDLED, "--seed", 1, "--out", folder).code == 0
    return folder / "assessment.json"


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


def test_simulate_reports_calibration_on_clients_held_out(run: Run) -> None:
    result = run("simulate", BUNDLED, "--calibrate", "--json", "--seed", 4)
    content = json.loads(result.out)["calibration"]
    assert content["fitting_clients"] == content["held_out_rows"] == 50_000
    assert set(content["before"]) == set(content["after"]) == {"ece", "brier", "log_loss"}
    assert content["after"]["brier"] < content["before"]["brier"] + 1e-4
    assert "calibration" not in json.loads(run("simulate", BUNDLED, "--json").out)
    shown = run("simulate", BUNDLED, "--calibrate", "--client", "carrier")
    assert "fitted on 8 clients" in shown.out
