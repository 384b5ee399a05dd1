"""`simulate --scores` as people use it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.class_rows import drawn_rows
from tests.program import Run, check_refused

ROWS = drawn_rows(3000, (4.0, 2.0, 1.0))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "classes.csv"
    lines = ["p_early,p_late,p_lost,y,site"]
    names = ("early", "late", "lost")
    for place, (label, row) in enumerate(zip(ROWS.labels, ROWS.scores, strict=True)):
        lines.append(",".join([*(f"{p:.9f}" for p in row), names[label], f"s{place % 5}"]))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_figures_of_classes_come_as_json_by_the_suffixes_of_columns(run: Run, table: Path) -> None:
    result = run("simulate", table, "--scores", "p_*", "--label", "y", "--json", "--trials", 2,
                 "--privacy", "distributed", "--epsilon", 2, "--seed", 1)  # fmt: skip
    assert result.code == 0, result.err
    content = json.loads(result.out)
    assert content["classes"] == ["early", "late", "lost"]
    assert len(content["trials"]) == 2
    wanted = {"accuracy", "log_loss", "brier", "ece/classwise", "ece/top"}
    for metric in ("roc_auc", "average_precision"):
        kinds = ("early", "late", "lost", "macro", "weighted", "micro")
        wanted |= {f"{metric}/{kind}" for kind in kinds}
    for trial in content["trials"]:
        assert wanted <= set(trial)
        assert abs(trial["roc_auc/early"]["value"] - content["exact"]["roc_auc/early"]) < 0.05
        assert np.shape(trial["confusion"]["shares"]) == (3, 3)
    assert "2-differential privacy for one example" in content["guarantee"]


def test_a_list_of_columns_and_clients_print_a_table(run: Run, table: Path, tmp_path: Path) -> None:
    result = run("simulate", table, "--scores", "p_early,p_late,p_lost", "--label", "y", "--client",
                 "site", "--out", tmp_path / "out", "--seed", 1)  # fmt: skip
    assert result.code == 0, result.err
    assert "3,000 rows of 3 classes, 5 clients" in result.out
    assert "roc_auc/macro" in result.out
    assert json.loads((tmp_path / "out" / "simulation.json").read_text())["clients"] == 5


def test_classes_go_over_files_from_a_survey_to_a_page(
    run: Run, table: Path, tmp_path: Path
) -> None:
    survey, ledger = tmp_path / "survey.json", tmp_path / "ledger.db"
    made = run("survey", "new", "--scores", "p_early,p_late,p_lost", "--privacy", "distributed",
               "--epsilon", 1, "--clients", 2, "--minimum-reports", 2, "--examples", 6000,
               "-o", survey, "--json")  # fmt: skip
    assert made.code == 0, made.err
    assert json.loads(made.out)["classes"] == ["early", "late", "lost"]
    assert run("ledger", "new", ledger).code == 0
    assert run("ledger", "budget", ledger, "--data-id", "w", "--epsilon", 1).code == 0
    asked = ("--scores", "p_*", "--label", "y")
    charged = ("--ledger", ledger, "--data-id", "w")
    done = run("answer", survey, table, *asked, *charged, "-o", tmp_path / "a.fa")
    assert done.code == 0, done.err
    again = run("answer", survey, table, *asked, *charged, "-o", tmp_path / "again.fa", "--json")
    assert json.loads(again.out)["given_before"] is True
    assert (tmp_path / "again.fa").read_bytes() == (tmp_path / "a.fa").read_bytes()
    assert run("answer", survey, table, *asked, "-o", tmp_path / "b.fa").code == 0
    reports = [tmp_path / name for name in ("a.fa", "again.fa", "b.fa")]
    tallied = run("tally", survey, *reports, "-o", tmp_path / "classes.json", "--json")
    assert tallied.code == 0, tallied.err
    content = json.loads(tallied.out)
    assert (content["reports"], content["state"]) == (2, "released")
    shown = json.loads(run("show", tmp_path / "classes.json", "--json").out)
    assert shown["estimates"] == content["estimates"]
    exact = (ROWS.predicted == ROWS.labels).mean()
    assert shown["estimates"]["accuracy"]["value"] == pytest.approx(exact, abs=0.03)
    page = run("report", tmp_path / "classes.json", "-o", tmp_path / "page.html")
    assert page.code == 0, page.err
    assert 'id="confusion"' in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("survey", "new", "--scores", "p*"), "lists its columns"),
        (("survey", "new", "--scores", "a,b"), "found two"),
        (("survey", "new", "--scores", "a,b,c", "--paired"), "found --paired"),
        (("survey", "new", "--scores", "a,b,c", "--threshold", "0.5"), "--thresh"),
        (("answer", "{survey}", "{table}", "--score", "p_late"), "found --score"),
        (("answer", "{survey}", "{table}", "--label", "y", "--scores", "p_late,p_lost,site",
          "--exact-sums", "--smallest-cell", "0"), "Name one column for each class"),
        (("answer", "{survey}", "{table}"), "--exact-sums"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_a_survey_of_classes_is_said(
    run: Run, table: Path, command: tuple[str, ...], words: str
) -> None:
    folder = table.parent
    survey = folder / "survey.json"
    if "{survey}" in command:
        assert run("survey", "new", "--scores", "p_early,p_late,p_lost", "-o", survey).code == 0
    filled = [each.format(survey=survey, table=table) for each in command]
    result = run(*filled, "-o", folder / "x")
    check_refused(result)
    assert words in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--scores", "p_*", "--score", "p_late"), "--score too"),
        (("--scores", "p_*", "--threshold", "0.3"), "--threshold too"),
        (("--scores", "p_early,p_late"), "found two"),
        (("--scores", "q*"), "called like 'q*'"),
        (("--scores", "p_early,p_late,site"), "must hold numbers"),
        (("--class-design", "own"), "goes with --scores"),
        (("--scores", "p_*", "--steps", "2", "--privacy", "local", "--epsilon", "1"), "two steps"),
    ],
)
def test_what_does_not_go_with_classes_is_refused_in_one_line(
    run: Run, table: Path, options: tuple[str, ...], words: str
) -> None:
    result = run("simulate", table, "--label", "y", *options)
    check_refused(result)
    assert words in result.err


def test_labels_outside_the_classes_are_refused_without_their_values(run: Run, table: Path) -> None:
    table.write_text(table.read_text().replace(",lost,", ",Atlantis,"))
    result = run("simulate", table, "--scores", "p_*", "--label", "y")
    check_refused(result)
    assert "among the 3 classes early, late, lost" in result.err
    assert "Atlantis" not in result.err
