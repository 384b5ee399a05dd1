"""The report of what tests reach says what coverage.py measured, and why it is so."""

import subprocess
import sys
from pathlib import Path

import pytest

from coverage import CoverageData
from tests.planted.page import replace_part
from tests.reached import (
    Reason,
    Run,
    is_there,
    page_part,
    read_coverage,
    read_reasons,
    remove_unusable,
    stale,
)

SOURCE = "def f(x):\n    if x:\n        return 1\n    return 2\n"
MEASURED = {
    "files": {
        "src/fedassay/room/module.py": {
            "summary": {"num_statements": 4, "num_branches": 2},
            "missing_lines": [4],
            "missing_branches": [[2, 4]],
        },
        "tests/elsewhere.py": {
            "summary": {"num_statements": 9, "num_branches": 0},
            "missing_lines": [1],
            "missing_branches": [],
        },
    }
}


RUN = Run("abc1234", 41.6, 3)
MODULE = "src/fedassay/room/module.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / MODULE
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return tmp_path


def test_rooms_are_counted_and_places_have_their_reasons(root: Path) -> None:
    files = read_coverage(MEASURED)
    (file,) = files
    assert (file.room, file.places) == ("room", (2, 4))
    reasons = [Reason(MODULE, "return 2", "nobody passes zero")]
    lines = page_part(files, reasons, RUN, root).splitlines()
    assert "| room | 4 | 1 | 2 | 1 |" in lines
    assert "| room/module.py:2 | `if x:` | no test yet |" in lines
    assert "| room/module.py:4 | `return 2` | nobody passes zero |" in lines


def test_the_page_says_which_commit_how_long_and_how_much_was_lost(root: Path) -> None:
    said = page_part(read_coverage(MEASURED), [], RUN, root).splitlines()[0]
    assert "commit abc1234 in 42 minutes" in said
    assert "3 processes were killed" in said


@pytest.mark.parametrize(
    ("text", "sometimes", "said"),
    [
        ("return 2", False, None),
        ("return 2", True, None),
        ("return 1", False, "is reached"),
        ("return 1", True, None),
        ("return 3", False, "is gone"),
        ("return 3", True, "is gone"),
    ],
)
def test_a_reason_for_a_line_that_is_reached_or_gone_is_an_error(
    root: Path, text: str, sometimes: bool, said: str | None
) -> None:
    wrong = stale(read_coverage(MEASURED), [Reason(MODULE, text, "why", sometimes)], root)
    assert len(wrong) == (said is not None)
    assert all(said in each for each in wrong if said)


def test_a_reason_for_a_file_that_is_gone_is_an_error(root: Path) -> None:
    (wrong,) = stale(read_coverage(MEASURED), [Reason("src/fedassay/x.py", "a", "why")], root)
    assert wrong.startswith("src/fedassay/x.py: a\n    is gone")


def test_one_reason_may_stand_for_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "reasons.toml"
    path.write_text(
        '[[line]]\nfile = "f"\ntext = ["a", "b"]\nwhy = "w"\nsometimes = true\n'
        '[[line]]\nfile = "g"\ntext = "c"\nwhy = "v"\n'
    )
    assert read_reasons(path) == [
        Reason("f", "a", "w", True),
        Reason("f", "b", "w", True),
        Reason("g", "c", "v", False),
    ]


def test_every_reason_is_for_a_line_that_is_there_and_stands_once() -> None:
    reasons = read_reasons()
    assert [reason.place for reason in reasons if not is_there(reason)] == []
    places = [reason.place for reason in reasons]
    assert [place for place in places if places.count(place) > 1] == []
    assert [reason.place for reason in reasons if not reason.why.endswith(".")] == []


def test_data_that_a_killed_process_left_half_written_is_counted_and_not_used(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print(1)\n")
    command = [sys.executable, "-m", "coverage", "run", "-p", "--source", ".", str(program)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (whole,) = tmp_path.glob(".coverage.*")
    content = whole.read_bytes()
    for size in (0, 20, 600, 4096, len(content) // 2, len(content) - 4096):
        (tmp_path / f".coverage.cut{size}").write_bytes(content[:size])
    assert remove_unusable(tmp_path) == 6
    assert list(tmp_path.glob(".coverage.*")) == [whole]
    data = CoverageData(str(whole))
    data.read()
    assert {Path(path).name for path in data.measured_files()} == {"program.py"}


def test_a_part_of_a_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<a>\nold\n<b>\nafter\n")
    replace_part(page, "<a>", "<b>", "new\n")
    assert page.read_text() == "before\n<a>\n\nnew\n\n<b>\nafter\n"
    with pytest.raises(ValueError, match="once each"):
        replace_part(page, "<a>", "<c>", "new")
