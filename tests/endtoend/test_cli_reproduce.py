"""`reproduce` as people use it: a figure's JSON, picture and page, and a run that goes on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedassay.cli import reproduce as reproduction
from fedassay.reproduction.figures import Figure
from fedassay.reproduction.run import reproduce
from tests.program import Run, check_refused, write_csv


def table(folder: Path, rows: int) -> Path:
    generator = np.random.default_rng(2)
    labels = generator.integers(0, 2, rows)
    scores = 1.0 / (1.0 + np.exp(-generator.normal(labels - 0.5, 1.0)))
    text = "\n".join(f"{s:.6f},{y}" for s, y in zip(scores, labels, strict=True))
    return write_csv(folder / "mine.csv", text)


def test_a_figure_becomes_json_picture_and_page_and_is_not_measured_twice(
    run: Run, tmp_path: Path
) -> None:
    data, out = table(tmp_path, 1_500), tmp_path / "out"
    first = run("reproduce", "auc", "--quick", "--data", data, "--out", out)
    assert first.code == 0, first.err
    assert "auc: 3 parts done" in first.err
    content = json.loads((out / "auc.json").read_text())
    assert content["format"] == "fedassay.reproduction/1"
    assert (content["quick"], content["settings"]["repetitions"]) == (True, 3)
    assert {point["panel"] for point in content["points"]} == {
        "secure",
        "distributed, ε = 1",
        "local, ε = 5",
    }
    assert len(content["seeds"]) == 3
    assert (out / "auc.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "auc.md").read_text()
    assert "fig:auc" in page
    assert "| mine | table mine.csv | 1,500 |" in page
    second = run("reproduce", "auc", "--quick", "--data", data, "--out", out, "--json")
    assert second.code == 0
    assert "left" not in second.err
    assert json.loads(second.out)["data"] == ["mine"]
    assert json.loads((out / "auc.json").read_text())["points"] == content["points"]


def test_bad_input_is_one_clear_line(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, 50)
    check_refused(run("reproduce", "figure-3", "--out", tmp_path), "auc, auc-pop", "figure-3")
    check_refused(
        run("reproduce", "auc", "--quick", "--data", data, "--out", tmp_path / "out"),
        "at least 1,000 rows",
        "mine has 50 rows",
    )
    check_refused(
        run("reproduce", "auc", "--out", data), "mine.csv", "Choose a folder you may write to"
    )
    check_refused(
        run("reproduce", "auc", "--kaggle", tmp_path / "nowhere", "--out", tmp_path / "out"),
        "nowhere: no such folder",
    )


def test_several_figures_say_which_of_them_is_measured(run: Run, tmp_path: Path) -> None:
    data, out = table(tmp_path, 1_500), tmp_path / "out"
    told = run("reproduce", "table2", "auc", "--quick", "--data", data, "--out", out)
    assert told.code == 0, told.err
    assert "table2 (1 of 2): 1 parts done" in told.err
    assert "auc (2 of 2): 3 parts done" in told.err
    text = (out / "results.md").read_text()
    assert "| Secure: error at 100 buckets | 1e-5 | mine |" in text


def test_an_interrupted_run_says_that_what_is_finished_is_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = table(tmp_path, 1_500), tmp_path / "out"
    with monkeypatch.context() as patch:

        def interrupted(figure: Figure, *rest: Any, **more: Any) -> dict[str, Any]:
            if figure.name == "auc":
                raise KeyboardInterrupt
            return reproduce(figure, *rest, **more)

        patch.setattr(reproduction, "reproduce", interrupted)
        stopped = run("reproduce", "table2", "auc", "--quick", "--data", data, "--out", out)
    assert stopped.code == 130
    assert f"Finished parts are kept in {out}/parts: the same command goes on" in stopped.err
    assert "Traceback" not in stopped.err
    again = run("reproduce", "table2", "auc", "--quick", "--data", data, "--out", out)
    assert again.code == 0
    assert (out / "auc.json").exists()


def test_a_run_says_what_is_kept_and_quiet_says_nothing(run: Run, tmp_path: Path) -> None:
    data, out = table(tmp_path, 1_500), tmp_path / "out"
    asked = ("reproduce", "auc", "--quick", "--data", data, "--out", out)
    quiet = run(*asked, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    points = json.loads((out / "auc.json").read_text())["points"]
    one, *_ = sorted((out / "parts").iterdir())
    one.unlink()
    again = run(*asked, "--force")
    assert again.code == 0, again.err
    assert "auc: 2 of 3 parts were finished before and are kept" in again.err
    assert json.loads((out / "auc.json").read_text())["points"] == points
