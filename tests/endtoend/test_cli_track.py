"""`track` as people use it."""

import json
from pathlib import Path

from tests.program import Run, check_refused


def test_a_history_is_added_to_shown_and_drawn(
    run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    folder, picture = tmp_path / "history", tmp_path / "history.png"
    for month in ("2026-09", "2026-10"):
        added = run("track", "add", folder, assessment_file, "--at", month)
        assert added.code == 0, added.err
    assert "2 looks, the last at 2026-10" in " ".join(added.out.split())
    shown = run("track", "show", folder, "--metric", "roc_auc", "--metric", "recall@0.5")
    assert shown.code == 0, shown.err
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "wait: no change stands out of noise in 2 looks" in " ".join(shown.out.split())
    content = json.loads(run("track", "show", folder, "--json").out)
    assert content["looks"] == ["2026-09", "2026-10"]
    assert content["alarms"] == []
    assert content["watch"]["looks_per_year"] == 12
    assert content["advice"]["action"] == "wait"
    assert content["watch"]["metrics"][-1].startswith("flagged@")
    assert "a trend needs 3 looks" in content["trends"]["roc_auc"]["reason"]
    assert run("track", "plot", folder, "-o", picture, "--metric", "roc_auc").code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    check_refused(run("track", "plot", folder, "-o", picture), "is already there")


def test_the_calibration_error_over_bins_is_watched_by_name(
    run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    folder, page = tmp_path / "history", tmp_path / "history.html"
    for month in ("2026-09", "2026-10", "2026-11"):
        assert run("track", "add", folder, assessment_file, "--at", month).code == 0
    content = json.loads(run("track", "show", folder, "--metric", "ece", "--json").out)
    assert content["watch"]["metrics"] == ["ece"]
    assert content["alarms"] == []
    low, high = (content["estimates"]["2026-10"]["ece"][end] for end in ("low", "high"))
    assert 0.0 <= low < content["estimates"]["2026-10"]["ece"]["value"] < high
    assert run("track", "report", folder, "-o", page, "--metric", "ece").code == 0
    assert "ECE" in page.read_text(encoding="utf-8")


def test_what_does_not_belong_into_a_history_is_refused_and_nothing_is_written(
    run: Run, assessment_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "history"
    check_refused(run("track", "add", folder, assessment_file, "--at", "October"), "month or a day")
    assert not folder.exists()
    assert run("track", "add", folder, assessment_file, "--at", "2026-10").code == 0
    twice = run("track", "add", folder, assessment_file, "--at", "2026-10")
    check_refused(twice, "a second one for 2026-10")
    early = run("track", "add", folder, assessment_file, "--at", "2026-09")
    check_refused(early, "in the order of time")
    assert [file.name for file in folder.iterdir()] == ["2026-10.json"]
    check_refused(run("track", "show", tmp_path / "nowhere"), "a history is a folder")
    empty = tmp_path / "empty"
    empty.mkdir()
    check_refused(run("track", "show", empty), "a history needs a look")
    check_refused(
        run("track", "add", assessment_file, assessment_file, "--at", "2026-10"), "a file"
    )
