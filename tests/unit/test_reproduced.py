"""The results page of docs, from folders that `fedassay reproduce` wrote."""

import json
from pathlib import Path

import pytest
from experiments.reproduced import pairs, read_all, small_picture

from fedassay.reproduction.results import points_of

CONTENT = {
    "format": "x/1",
    "quick": False,
    "settings": {},
    "data": [],
    "sources": "a",
    "points": [],
}


def test_figures_of_one_run_are_gathered_in_the_papers_order(tmp_path: Path) -> None:
    for folder, name in (("a", "pra"), ("b", "auc"), ("b", "pra")):
        (tmp_path / folder).mkdir(exist_ok=True)
        content = CONTENT | {"seconds": 1.0 if folder == "a" else 2.0}
        (tmp_path / folder / f"{name}.json").write_text(json.dumps(content))
    found = read_all([tmp_path / "a", tmp_path / "b"])
    assert {name: each["seconds"] for name, each in found.items()} == {"auc": 2.0, "pra": 1.0}
    assert list(found) == ["auc", "pra"]


def test_figures_of_different_runs_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "auc.json").write_text(json.dumps(CONTENT))
    for other in ({"quick": True}, {"sources": "b"}):
        (tmp_path / "pra.json").write_text(json.dumps(CONTENT | other))
        with pytest.raises(SystemExit, match=r"pra.json: is of other rows, settings or sources"):
            read_all([tmp_path])
    with pytest.raises(SystemExit, match="run fedassay reproduce first"):
        read_all([tmp_path / "nowhere"])
    (tmp_path / "pra.json").unlink()
    assert list(read_all([tmp_path])) == ["auc"]
    with pytest.raises(SystemExit, match="figures are missing"):
        read_all([tmp_path], need_all=True)


def test_a_default_is_held_against_the_preset_at_its_own_place() -> None:
    points = points_of("d", "p", {("a", 1.0): [2.0], ("a", 2.0): [3.0], ("a: default", 2.0): [1.0]})
    ((name, preset, default),) = pairs({"auc": points})
    assert (name, preset.mean, default.mean) == ("auc", 3.0, 1.0)


def test_a_picture_is_small() -> None:
    values = {(curve, x): [0.1 / x, 0.2 / x] for curve in "abcd" for x in (1.0, 5.0, 9.0)}
    points = [point for data in "xyz" for point in points_of(data, "panel", values)]
    content = small_picture("auc", points)
    assert content.startswith(b"\x89PNG")
    assert len(content) < 60_000
