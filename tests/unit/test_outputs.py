"""Outputs of commands: nothing is replaced by accident."""

import json
from pathlib import Path

import pytest

from fedassay.cli.outputs import Voice, check_output
from fedassay.errors import FileInvalid


def test_an_output_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "survey.json"
    check_output(path, force=False)
    path.write_text("handed out")
    with pytest.raises(FileInvalid, match="--force"):
        check_output(path, force=False)
    check_output(path, force=True)


def test_a_dangling_link_is_there_too(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileInvalid, match="--force"):
        check_output(link, force=False)


@pytest.mark.parametrize("force", [False, True])
def test_an_input_is_never_replaced(tmp_path: Path, force: bool) -> None:
    table, alias = tmp_path / "table.csv", tmp_path / "alias.csv"
    table.write_text("score,label\n")
    alias.hardlink_to(table)
    for output in (table, alias):
        with pytest.raises(FileInvalid, match="an input itself"):
            check_output(output, None, table, force=force)


@pytest.mark.parametrize("name", ["", "folder", "no/such/file", "x" * 5000])
def test_what_cannot_be_written_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileInvalid, match="cannot be written"):
        check_output(tmp_path / name, force=True)


def test_a_voice_speaks_to_people_or_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    for voice, words in (
        (Voice(), "done\n"),
        (Voice(quiet=True), ""),
        (Voice(as_json=True), '{"reports": 2}\n'),
        (Voice(as_json=True, quiet=True), '{"reports": 2}\n'),
    ):
        voice.say("done")
        voice.result({"reports": 2})
        assert capsys.readouterr().out == words
    assert json.loads(words) == {"reports": 2}
