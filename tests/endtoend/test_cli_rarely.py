"""What people come across rarely: missing folders, ledgers with a past, a broken pipe."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fedassay import ScoreHistogram, metrics
from fedassay.cli import calibrate, demo
from fedassay.cli.accounts import ReceiptKeeper
from fedassay.cli.console import out
from fedassay.ledger import Budget, Ledger, Part, Window
from tests.program import Run, check_refused
from tests.surveys import local_survey
from tests.tables import BUNDLED, ROOT

WARD = Part("ward")


def test_the_version_is_that_of_the_package(run: Run) -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run("--version").out.strip() == said


def test_who_stops_the_program_hears_one_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("fedassay.cli.app._run", stopped)
    ended = run("demo")
    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "Stopped.")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_has_enough_ends_the_program_quietly(
    survey_file: Path, options: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "fedassay", "survey", "show", str(survey_file), *options]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_budgets_of_levels_are_weights(run: Run, tmp_path: Path) -> None:
    def shares(weights: str) -> list[Fraction]:
        path = tmp_path / f"{weights.replace('/', '.')}.json"
        made = run(
            "survey", "new", "--privacy", "distributed", "--epsilon", 1, "--height", 2,
            "--fanout", 4, "--minimum-reports", 10, "--budget", weights, "-o", path,
        )  # fmt: skip
        assert made.code == 0, made.err
        return [Fraction(each["epsilon"]) for each in json.loads(path.read_text())["mechanisms"]]

    assert shares("2,1") == shares("1,1/2") == [Fraction(2, 3), Fraction(1, 3)]
    refused = run("survey", "new", "--epsilon", 1, "--budget", "2,0", "-o", tmp_path / "x.json")
    check_refused(refused, "shares of a budget must be positive; found '2,0'")


def test_a_model_is_named_by_its_files_digest(run: Run, tmp_path: Path) -> None:
    model, survey = tmp_path / "model.bin", tmp_path / "s.json"
    model.write_bytes(b"weights")
    assert run("survey", "new", "--model", model, "-o", survey).code == 0
    digest = hashlib.sha256(b"weights").hexdigest()
    assert json.loads(survey.read_text())["model_digest"] == digest
    missing = run("survey", "new", "--model", tmp_path / "none", "-o", tmp_path / "t.json")
    check_refused(missing, "cannot be read (No such file or directory). Check the path")


def test_a_sites_folder_of_data_must_be_there(run: Run, tmp_path: Path) -> None:
    refused = run(
        "federation", "site", tmp_path / "site", "--name", "a", "--data-folder", tmp_path / "none"
    )
    check_refused(refused, "there is no such folder. Make it, or name another")
    assert not (tmp_path / "site").exists()


def test_a_site_that_trusts_everybody_is_told(run: Run, tmp_path: Path) -> None:
    made = run(
        "federation", "site", tmp_path / "site", "--name", "a", "--data-folder", tmp_path,
        "--colluders", 0,
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "trusts every other site not to work together with the server" in made.err


def test_questions_are_of_a_sites_folder(run: Run, tmp_path: Path) -> None:
    check_refused(run("federation", "questions", tmp_path), "not a site's folder. Name the one")


def test_a_ledgers_history_tells_all_that_happened(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a terminal where nothing is folded to fit.
    monkeypatch.setattr(out, "_width", 200)

    def clock() -> Iterator[datetime]:
        start = datetime(2026, 3, 1, tzinfo=UTC)
        for day in (0, 1, 2, 1):  # the fourth is behind the third
            yield start + timedelta(days=day)
        for minute in range(1000):
            yield start + timedelta(days=3, minutes=minute)

    monkeypatch.setenv("COLUMNS", "200")
    times = clock()
    path = tmp_path / "ledger.db"
    Ledger.create(path)
    ledger = Ledger(path, clock=lambda: next(times))
    window = Window.parse("2026-01-01..2026-07-01")
    ledger.set_budget(
        Budget("ward", Fraction(40), window, delta=Fraction(1, 10**6), split_windows=True)
    )
    for number in range(3):
        ledger.charge(local_survey(Fraction(1, 7), cells=2 + number), Part("ward", window))
    early = path.read_bytes()
    shown = run("ledger", "history", path)
    assert shown.code == 0, shown.err
    said = " ".join(shown.out.split())
    assert "!: the clock was behind that of an earlier entry." in said
    assert "at delta 1e-06" in said
    assert "in 2026-01-01..2026-07-01" in said
    assert "checkpoint" not in said
    for number in range(70):
        ledger.charge(local_survey(Fraction(1, 7), cells=10 + number), Part("ward", window))
    assert " checkpoint " in " ".join(run("ledger", "history", path).out.split())
    path.write_bytes(early)
    ledger.accept_loss(who="she")
    # One budget, three charges, seventy more and a checkpoint.
    assert "loss accepted (75 entries were known)" in run("ledger", "history", path).out


def test_a_receipt_before_any_charge_says_so(tmp_path: Path) -> None:
    keeper = ReceiptKeeper(Ledger.create(tmp_path / "ledger.db"), WARD, "she", False)
    assert keeper.receipt_text() == "Nothing was charged."


def test_what_a_table_has_no_figure_for_it_says_so() -> None:
    nothing = metrics.brier(ScoreHistogram(np.array([0.0, 1.0]), np.zeros((2, 1))))
    assert calibrate._shown(nothing) == demo._with_half_width(nothing) == "not enough data"


def test_a_quiet_calibration_gives_no_reasons(run: Run) -> None:
    quiet = run("simulate", BUNDLED, "--calibrate", "--seed", 4, "--quiet", "--json")
    assert (quiet.code, quiet.err) == (0, "")


def test_results_are_not_saved_below_a_file(run: Run, scores_csv: Path) -> None:
    refused = run("simulate", scores_csv, "--out", scores_csv / "results")
    check_refused(refused, "cannot be made (Not a directory). Choose a folder")


def test_false_rows_are_not_weighed_in_local_reports(run: Run, tmp_path: Path) -> None:
    run(
        "simulate", BUNDLED, "--privacy", "local", "--epsilon", 4, "--seed", 1,
        "--out", tmp_path / "results",
    )  # fmt: skip
    refused = run("show", tmp_path / "results" / "assessment.json", "--liar", 3)
    check_refused(refused, "a locally private report weighs more than its row", "Drop --liar")


def test_a_tally_that_only_collects_releases_nothing(
    run: Run, survey_file: Path, tmp_path: Path
) -> None:
    both = ["--from", tmp_path / "a.tally", "--collect", tmp_path / "b.tally"]
    check_refused(run("tally", survey_file, *both), "--from names the tally to release", "Drop one")
    named = run("tally", survey_file, "-o", tmp_path / "b.tally")
    check_refused(named, "-o names the assessment; for a tally use --collect FILE.tally")
