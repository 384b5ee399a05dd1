"""Sites as people see them: figures of each, what differs between them, and a new one."""

import json
from collections.abc import Mapping
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

import fedassay
from fedassay.sites import SeenSites, SummedSites
from tests.program import Run, check_refused
from tests.tables import Table, flights_by_carrier

ROWS = 2500
LARGE = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E")
FLIGHTS = {
    name: Table(table.labels[:ROWS], table.scores[:ROWS])
    for name, table in flights_by_carrier().items()
    if name in (*LARGE, "HA")
}
FIGURES = {"mean", "low", "high", "tau", "i2", "prediction_low", "prediction_high", "sites"}
SITE = ("--privacy", "site", "--epsilon", 1, "--steps", 1)
CLEAR = ("--privacy", "site", "--epsilon", 3, "--steps", 1)


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("flights") / "flights.parquet", FLIGHTS)


def json_of(run: Run, *arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.code == 0, result.err
    content: dict[str, Any] = json.loads(result.out)
    return content


def auc(table: Table) -> float:
    return float(roc_auc_score(table.labels, table.scores))


def logit(value: float) -> float:
    return log(value / (1.0 - value))


def write_table(path: Path, tables: Mapping[str, Table]) -> Path:
    """Rows of several sites in one table."""
    columns = {
        "score": np.concatenate([table.scores for table in tables.values()]),
        "label": np.concatenate([table.labels for table in tables.values()]),
        "hospital": [name for name, table in tables.items() for _ in table.labels],
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_sites_that_allow_it_are_seen_with_the_figures_of_their_own_rows(
    run: Run, flights: Path
) -> None:
    content = json_of(run, "simulate", flights, "--client", "hospital", "--show-sites")
    (trial,) = content["trials"]
    assert set(trial["sites"]) == set(FLIGHTS)
    for name, table in FLIGHTS.items():
        figures = trial["sites"][name]
        assert figures["prevalence"]["value"] == pytest.approx(table.labels.mean())
        if name != "HA":
            assert figures["roc_auc"]["value"] == pytest.approx(auc(table), abs=1e-2)
            observed = table.labels.sum() / table.scores.sum()
            assert figures["oe_ratio"]["value"] == pytest.approx(observed, rel=5e-2)
    compared = trial["heterogeneity"]["roc_auc"]
    assert set(compared) >= FIGURES
    assert compared["sites"] == 8
    assert set(compared["left_out"]) == {"HA"}
    assert compared["prediction_low"] < compared["low"] < compared["mean"] < compared["high"]


def test_under_site_privacy_each_trial_sees_sites_with_their_own_noise(
    run: Run, flights: Path
) -> None:
    content = json_of(
        run, "simulate", flights, "--client", "hospital", *CLEAR, "--seed", 1, "--trials", 2,
        "--wanted", "roc_auc=0.7", "--metric", "ks",
    )  # fmt: skip
    first, second = content["trials"]
    assert set(first["sites"]) == set(FLIGHTS)
    for name in LARGE:
        mine = first["sites"][name]["roc_auc"]
        assert mine["noise_sd"] > 0.0
        assert mine["value"] != second["sites"][name]["roc_auc"]["value"]
        spread = (mine["noise_sd"] ** 2 + mine["binning_sd"] ** 2) ** 0.5
        assert abs(mine["value"] - auc(FLIGHTS[name])) < 6.0 * spread
    assert "ks" in first["sites"]["UA"]
    assert "ks" in first["heterogeneity"]
    assert 0.0 < first["heterogeneity"]["roc_auc"]["chance"] < 1.0


def test_secure_sums_tell_the_spread_by_moments_and_no_site(run: Run, flights: Path) -> None:
    content = json_of(run, "simulate", flights, "--client", "hospital")
    (trial,) = content["trials"]
    assert "sites" not in trial
    compared = trial["heterogeneity"]["roc_auc"]
    areas = [auc(table) for name, table in FLIGHTS.items() if name != "HA"]
    mean = float(np.mean([logit(each) for each in areas]))
    assert compared["sites"] == len(areas) == 8
    assert compared["mean"] == pytest.approx(1.0 / (1.0 + exp(-mean)), abs=1e-3)
    assert set(trial["heterogeneity"]) == {
        "roc_auc", "oe_ratio", "calibration_slope", "calibration_in_the_large",
    }  # fmt: skip


@pytest.mark.parametrize("privacy", ["distributed", "local"])
def test_shared_and_local_noise_tell_nothing_of_sites(
    run: Run, flights: Path, privacy: str
) -> None:
    arguments = ("simulate", flights, "--client", "hospital", "--privacy", privacy, "--epsilon", 2,
                 "--steps", 1)  # fmt: skip
    (trial,) = json_of(run, *arguments)["trials"]
    assert not {"sites", "heterogeneity"} & set(trial)
    check_refused(run(*arguments, "--show-sites"), "secure privacy")
    check_refused(run(*arguments, "--site-moments"), "sums without noise")
    check_refused(run(*arguments, "--wanted", "roc_auc=0.8"), "Known: nothing")
    check_refused(run(*arguments, "--tau-prior", "roc_auc=0.055,0.015"), "sites that may be seen")


def test_what_is_printed_fits_80_columns_and_says_what_intervals_cover(
    run: Run, flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "result"
    simulated = run("simulate", flights, "--client", "hospital", *CLEAR, "--seed", 1, "--out", out,
                    "--wanted", "roc_auc=0.75")  # fmt: skip
    shown = run("show", out / "assessment.json", "--plot-sites", tmp_path / "forest.png")
    for result in (simulated, shown):
        assert result.code == 0
        assert max(map(len, result.out.splitlines())) <= 80
        assert "cover new rows of these sites" in " ".join(result.out.split())
        assert "a new site" in result.out
        assert "Left out one at a time" in result.out
        assert "Listed and not compared" in result.out
    assert "reaches 0.75" in simulated.out
    assert (tmp_path / "forest.png").stat().st_size > 10_000
    assert "Brier score" in shown.out


def test_a_saved_assessment_gives_the_same_sites_again(
    run: Run, flights: Path, tmp_path: Path
) -> None:
    arguments = ("simulate", flights, "--client", "hospital", *CLEAR, "--seed", 1)
    (trial,) = json_of(run, *arguments, "--out", tmp_path / "result")["trials"]
    path = tmp_path / "result" / "assessment.json"
    shown = json_of(run, "show", path)
    assert shown["sites"] == trial["sites"]
    assert shown["heterogeneity"] == trial["heterogeneity"]
    loaded = fedassay.load(path)
    assert isinstance(loaded, fedassay.Assessment)
    assert isinstance(loaded.sites, SeenSites)
    figure = loaded.sites["UA"]["roc_auc"].value
    assert figure == pytest.approx(trial["sites"]["UA"]["roc_auc"]["value"])
    assert loaded.heterogeneity("roc_auc").mean == trial["heterogeneity"]["roc_auc"]["mean"]


def site_files(run: Run, survey: Path, folder: Path, *more: object) -> list[Path]:
    """A report of each large airline, under its name."""
    folder.mkdir()
    for name in LARGE:
        table = write_table(folder.parent / f"{name}.parquet", {name: FLIGHTS[name]})
        answered = run("answer", survey, table, "-o", folder / f"{name}.fa", *more)
        assert answered.code == 0, answered.err
    return sorted(folder.iterdir())


def test_moments_travel_in_report_files(run: Run, tmp_path: Path) -> None:
    survey, assessment = tmp_path / "survey.json", tmp_path / "assessment.json"
    made = run("survey", "new", "--site-moments", "--examples", 20_000, "-o", survey)
    assert made.code == 0, made.err
    files = site_files(run, survey, tmp_path / "in", "--exact-sums")
    check_refused(run("tally", survey, *files[:4], "-o", assessment), "at least 5 reports")
    tallied = json_of(run, "tally", survey, *files, "-o", assessment)
    compared = tallied["heterogeneity"]["roc_auc"]
    mean = np.mean([logit(auc(FLIGHTS[name])) for name in LARGE])
    assert compared["sites"] == len(LARGE)
    assert logit(compared["mean"]) == pytest.approx(mean, abs=1e-3)
    assert "sites" not in tallied
    assert json_of(run, "show", assessment)["heterogeneity"] == tallied["heterogeneity"]
    loaded = fedassay.load(assessment)
    assert isinstance(loaded, fedassay.Assessment)
    assert isinstance(loaded.sites, SummedSites)


def test_a_site_withdraws_before_the_release_and_not_after(run: Run, tmp_path: Path) -> None:
    survey, study = tmp_path / "survey.json", tmp_path / "study.tally"
    assert run("survey", "new", *SITE, "--clients", 8, "--examples", 20_000,
               "-o", survey).code == 0  # fmt: skip
    files = site_files(run, survey, tmp_path / "in")
    assert run("tally", survey, tmp_path / "in", "--collect", study).code == 0
    gone = tmp_path / "in" / "US.fa"
    withdrawn = json_of(run, "withdraw", study, gone)
    assert (withdrawn["withdrawn"], withdrawn["reports"]) == (1, len(files) - 1)
    check_refused(run("withdraw", study, gone), "never counted")
    assessment = tmp_path / "assessment.json"
    tallied = json_of(run, "tally", survey, "--from", study, "-o", assessment)
    assert set(tallied["sites"]) == set(LARGE) - {"US"}
    rows = sum(len(FLIGHTS[name].labels) for name in LARGE if name != "US")
    assert tallied["examples"] == pytest.approx(rows, abs=300)
    check_refused(run("withdraw", study, tmp_path / "in" / "UA.fa"), "cannot be taken back")


def test_a_report_of_another_survey_or_one_twice_is_named_and_the_rest_counts(
    run: Run, tmp_path: Path
) -> None:
    survey, other = tmp_path / "survey.json", tmp_path / "other.json"
    for path, rows in ((survey, 20_000), (other, 2_000)):
        assert run("survey", "new", *SITE, "--clients", 8, "--examples", rows,
                   "-o", path).code == 0  # fmt: skip
    files = site_files(run, survey, tmp_path / "in")
    table = tmp_path / "UA.parquet"
    (tmp_path / "again").mkdir()
    again, foreign = tmp_path / "again" / "UA.fa", tmp_path / "foreign.fa"
    assert run("answer", survey, table, "-o", again).code == 0
    assert run("answer", other, table, "-o", foreign).code == 0
    study, assessment = tmp_path / "study.tally", tmp_path / "assessment.json"
    assert run("tally", survey, *files, "--collect", study).code == 0
    twice = run("tally", survey, files[0], again, foreign, "--collect", study)
    assert twice.code == 2
    assert "1 already there" in twice.out
    assert "'UA' is already in the tally" in twice.err
    assert "ReportForeign" in twice.err
    tallied = json_of(run, "tally", survey, "--from", study, "-o", assessment)
    assert set(tallied["sites"]) == set(LARGE)


@pytest.mark.parametrize("sites", [1, 2])
def test_one_site_and_two_get_a_sentence_and_the_rest_of_the_answer(
    run: Run, tmp_path: Path, sites: int
) -> None:
    table = write_table(tmp_path / "few.parquet", {name: FLIGHTS[name] for name in LARGE[:sites]})
    arguments = ("simulate", table, "--client", "hospital", *CLEAR, "--seed", 1)
    printed = run(*arguments)
    assert printed.code == 0, printed.err
    assert ("One site" if sites == 1 else "Two sites") in printed.out
    (trial,) = json_of(run, *arguments)["trials"]
    rows = [FLIGHTS[name] for name in LARGE[:sites]]
    both = Table(
        np.concatenate([each.labels for each in rows]),
        np.concatenate([each.scores for each in rows]),
    )
    assert trial["roc_auc"]["value"] == pytest.approx(auc(both), abs=0.03)
    assert len(trial["sites"]) == sites
    assert trial["heterogeneity"]["roc_auc"]["prediction_low"] is None
    assert trial["heterogeneity"]["roc_auc"]["mean"] is not None


def test_a_site_without_positives_is_listed_and_the_others_are_compared(
    run: Run, tmp_path: Path
) -> None:
    tables = {name: FLIGHTS[name] for name in LARGE}
    only = FLIGHTS["HA"]
    tables["HA"] = Table(np.zeros_like(only.labels), only.scores)
    table = write_table(tmp_path / "nine.parquet", tables)
    (trial,) = json_of(run, "simulate", table, "--client", "hospital", "--show-sites")["trials"]
    compared = trial["heterogeneity"]["roc_auc"]
    assert compared["sites"] == len(LARGE)
    assert "0 positives" in compared["left_out"]["HA"]
    assert trial["sites"]["HA"]["roc_auc"]["value"] is None
    # By sums it adds zeros, and nobody can tell.
    (summed,) = json_of(run, "simulate", table, "--client", "hospital")["trials"]
    assert summed["heterogeneity"]["roc_auc"]["sites"] == len(LARGE)
