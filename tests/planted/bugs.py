"""A planted bug as data: where it goes, what it changes, and who must notice."""

import ast
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
_FIELDS = {"id", "file", "before", "after", "test", "why", "breaks_import"}


class EntryWrong(Exception):
    """An entry that does not fit the code any more, or never did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One entry of one room's file."""

    room: str
    id: str
    file: str
    """Path from the root of the repository."""
    before: str
    """Text that stands exactly once in the file."""
    after: str
    tests: tuple[str, ...]
    """Node ids; each must fail. An id without parameters fails when one of its cases does."""
    why: str
    """What would go wrong for somebody if this bug were real."""
    breaks_import: bool = False
    """Whether a module of tests that cannot even be imported counts as a failing test."""

    def planted_in(self, text: str) -> str:
        """The file's text with the bug in it."""
        if (times := text.count(self.before)) != 1:
            raise EntryWrong(
                f"{self.room}/{self.id}: the text before must stand exactly once in {self.file}; "
                f"found {times} times. The code has moved: move the entry with it."
            )
        return text.replace(self.before, self.after)


def read_bugs(folder: Path = FOLDER) -> list[Bug]:
    """All entries, by room and in the order of its file; ids are unique."""
    bugs = [bug for path in sorted(folder.glob("*.toml")) for bug in _read_room(path)]
    ids = [bug.id for bug in bugs]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise EntryWrong(f"an id stands for one bug; these stand for more: {', '.join(repeated)}.")
    return bugs


def chosen(bugs: Sequence[Bug], *only: str) -> list[Bug]:
    """Those whose `room/id`, room or id matches one of these globs."""
    return [
        bug
        for bug in bugs
        for name in [(f"{bug.room}/{bug.id}", bug.room, bug.id)]
        if any(fnmatch(each, glob) for each in name for glob in only)
    ]


def sample_of(bugs: Sequence[Bug], size: int) -> list[Bug]:
    """Evenly spread over the list: entries 0, n/size, 2n/size, ... rounded down."""
    if size >= len(bugs):
        return list(bugs)
    return [bugs[i * len(bugs) // size] for i in range(size)]


def check_entry(bug: Bug, root: Path = ROOT) -> None:
    """Raise `EntryWrong` unless the text is found once and every named test exists."""
    path = root / bug.file
    if not path.is_file():
        raise EntryWrong(f"{bug.room}/{bug.id}: there is no file {bug.file}.")
    bug.planted_in(path.read_text(encoding="utf-8"))
    for test in bug.tests:
        check_test(bug, test, root)


def check_test(bug: Bug, test: str, root: Path) -> None:
    """Raise `EntryWrong` unless a node id names a test that stands in its file."""
    name, _, inside = test.partition("::")
    path = root / name
    if not path.is_file():
        raise EntryWrong(f"{bug.room}/{bug.id}: there is no file {name}.")
    if name.startswith("src/"):  # a doctest; its name is made by pytest
        return
    scope = _statements(path)
    for part in inside.partition("[")[0].split("::"):
        named = [
            node
            for node in scope
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        if not named:
            raise EntryWrong(f"{bug.room}/{bug.id}: there is no test {test}.")
        scope = named[0].body


@cache
def _statements(path: Path) -> Sequence[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def _read_room(path: Path) -> list[Bug]:
    bugs = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("bug", []):
        missing = _FIELDS - {"breaks_import"} - set(entry)
        if missing or set(entry) - _FIELDS:
            raise EntryWrong(
                f"{path.name}: an entry has {', '.join(sorted(_FIELDS))}; "
                f"{entry.get('id', '(no id)')} has {', '.join(sorted(entry))}."
            )
        tests = [entry["test"]] if isinstance(entry["test"], str) else entry["test"]
        if not tests or entry["before"] == entry["after"]:
            raise EntryWrong(f"{path.name}: {entry['id']} needs a test and a change.")
        bugs.append(
            Bug(
                room=path.stem,
                id=entry["id"],
                file=entry["file"],
                before=entry["before"],
                after=entry["after"],
                tests=tuple(tests),
                why=entry["why"],
                breaks_import=entry.get("breaks_import", False),
            )
        )
    return bugs
