"""Files that are none of ours, and what is no path: refused, with what to do instead."""

import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fedassay
from fedassay import Answer, Assessment, Calibrator, ClientPolicy, Survey, Tally
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.tally_file import KeptTally


@cache
def survey() -> Survey:
    return fedassay.new_survey(minimum_reports=2, smallest_cell=0)


@cache
def answers() -> list[Answer]:
    policy = ClientPolicy(exact_sums=True, smallest_cell=0)
    return [fedassay.answer(survey(), [0, 1], [0.2, 0.7], policy=policy) for _ in range(3)]


@cache
def result() -> Assessment:
    return fedassay.tally_answers(survey(), answers())


def truncated(folder: Path) -> Path:
    result().save(folder / "whole.json")
    content = (folder / "whole.json").read_bytes()
    (folder / "a.json").write_bytes(content[: len(content) // 2])
    return folder / "a.json"


def foreign(folder: Path) -> Path:
    (folder / "a.json").write_text('{"format": "other/1"}')
    return folder / "a.json"


def a_survey(folder: Path) -> Path:
    survey().save(folder / "a.json")
    return folder / "a.json"


def a_list(folder: Path) -> Path:
    (folder / "a.json").write_text("[1, 2]")
    return folder / "a.json"


def nothing(folder: Path) -> Path:
    (folder / "a.json").write_bytes(b"")
    return folder / "a.json"


def pickled(folder: Path) -> Path:
    (folder / "a.json").write_bytes(pickle.dumps({"format": "fedassay.assessment/2"}))
    return folder / "a.json"


FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda folder: folder / "a.json", "cannot be read.*Check the path"),
    "a folder": (lambda folder: folder, "cannot be read.*Check the path"),
    "truncated": (truncated, "cut short. Copy it again from its source"),
    "empty": (nothing, "cut short. Copy it again from its source"),
    "a pickle": (pickled, "Copy it again from its source"),
    "foreign": (foreign, "found 'other/1'.*the fedassay version that wrote it"),
    "a list": (a_list, "the fedassay version that wrote it"),
}


@pytest.mark.parametrize("read", [Assessment.load, Calibrator.load, fedassay.load])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_none_of_ours_is_refused(
    read: Callable[[Path], object], name: str, tmp_path: Path
) -> None:
    make, says = FILES[name]
    path = make(tmp_path)
    with pytest.raises(FileInvalid, match=says):
        read(path)


@pytest.mark.parametrize("read", [Assessment.load, Calibrator.load])
def test_a_file_of_another_kind_is_refused_by_name(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(FileInvalid, match=r"found 'fedassay\.survey/2'\. Pass the right file"):
        read(a_survey(tmp_path))


@pytest.mark.parametrize("path", [5, None, "", b"a.json", "a\0b"])
def test_what_is_no_path_is_refused(path: object) -> None:
    given: Any = path
    for read in (fedassay.load, Assessment.load, Calibrator.load, result().save):
        with pytest.raises(SettingInvalid, match="Name a file"):
            read(given)


def test_the_door_loads_a_tally_file(tmp_path: Path) -> None:
    kept = KeptTally(survey(), Tally.of(survey(), [a.messages[0] for a in answers()]))
    kept.save(tmp_path / "ward.tally")
    loaded = fedassay.load(tmp_path / "ward.tally")
    assert isinstance(loaded, KeptTally)
    assert loaded.tally == result().tally
    assert loaded.survey == survey()
    content = (tmp_path / "ward.tally").read_bytes()
    (tmp_path / "cut.tally").write_bytes(content[:-1])
    with pytest.raises(FileInvalid, match="Copy the file again from its source"):
        fedassay.load(tmp_path / "cut.tally")
