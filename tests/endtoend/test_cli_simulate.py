"""`simulate` as people use it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.oracles import row_values
from tests.program import Run, check_refused, write_csv
from tests.tables import BUNDLED, read_table


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
        ("--smallest-cell", 0, "--buckets", 10),
        ("--smallest-cell", 0, "--each-client"),
        ("--smallest-cell", 0, "--threshold", 0, "--threshold", 1),
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
        "report.html",
    }
    assert "roc_auc" in run("show", folder / "assessment.json").out


def test_simulate_refuses_a_table_without_rows(run: Run, tmp_path: Path) -> None:
    check_refused(run("simulate", write_csv(tmp_path / "none.csv", "")), "NoRows")


@pytest.mark.parametrize("rows", ["0.7312345,1", "0.7312345,1\n0.3,1", "0.7312345,0\n0.3,0"])
def test_simulate_needs_two_classes(run: Run, tmp_path: Path, rows: str) -> None:
    check_refused(run("simulate", write_csv(tmp_path / "one.csv", rows)), "SingleClass")


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


def test_simulate_reports_calibration_on_clients_held_out(run: Run) -> None:
    result = run("simulate", BUNDLED, "--calibrate", "--json", "--seed", 4)
    content = json.loads(result.out)["calibration"]
    assert content["fitting_clients"] == content["held_out_rows"] == 50_000
    assert set(content["before"]) == set(content["after"]) == {"ece", "brier", "log_loss"}
    assert content["after"]["brier"] < content["before"]["brier"] + 1e-4
    assert "calibration" not in json.loads(run("simulate", BUNDLED, "--json").out)
    shown = run("simulate", BUNDLED, "--calibrate", "--client", "carrier")
    assert "fitted on 8 clients" in shown.out


@pytest.mark.parametrize("options", [(), ("--trials", 2), ("--privacy", "local", "--epsilon", 1)])
def test_the_table_needs_no_more_than_eighty_columns(
    run: Run, scores_csv: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...]
) -> None:
    """On a wide terminal, where nothing is cut or folded to fit."""
    monkeypatch.setenv("COLUMNS", "200")
    result = run("simulate", scores_csv, "--threshold", 0.123456, *options)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("metric")) :]
    assert len(table) > 10
    assert max(map(len, table)) <= 80
