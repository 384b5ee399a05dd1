"""The report of what tests reach says what coverage.py measured, and why it is so."""

from pathlib import Path

import pytest

from tests.planted.page import replace_part
from tests.reached import page_part, read_coverage, read_reasons

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


def test_rooms_are_counted_and_places_have_their_reasons(tmp_path: Path) -> None:
    path = tmp_path / "src" / "fedassay" / "room" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    files = read_coverage(MEASURED)
    (file,) = files
    assert (file.room, file.places) == ("room", (2, 4))
    reasons = {"src/fedassay/room/module.py: return 2": "nobody passes zero"}
    lines = page_part(files, reasons, tmp_path).splitlines()
    assert "| room | 4 | 1 | 2 | 1 |" in lines
    assert "| room/module.py:2 | `if x:` |  |" in lines
    assert "| room/module.py:4 | `return 2` | nobody passes zero |" in lines


def test_every_reason_is_for_a_line_that_is_there() -> None:
    for place in read_reasons():
        path, _, text = place.partition(": ")
        source = (Path(__file__).parents[2] / path).read_text()
        assert text in [line.strip() for line in source.splitlines()]


def test_a_part_of_a_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<a>\nold\n<b>\nafter\n")
    replace_part(page, "<a>", "<b>", "new\n")
    assert page.read_text() == "before\n<a>\n\nnew\n\n<b>\nafter\n"
    with pytest.raises(ValueError, match="once each"):
        replace_part(page, "<a>", "<c>", "new")
