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
