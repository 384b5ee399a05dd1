"""What the tests reach, by room, and what they do not, with why.

`make coverage` runs all tests under coverage.py with branches and then
`python -m tests.reached coverage.json --write docs/testing.md`. It is a report, not a target.
"""

import argparse
import json
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.planted.page import replace_part

ROOT = Path(__file__).parents[1]
REASONS = Path(__file__).with_name("unreached.toml")
BEGIN = "<!-- what tests reach: written by `make coverage`, not by hand -->"
END = "<!-- end of what tests reach -->"


@dataclass(frozen=True, slots=True)
class Reached:
    """One file: how much of it runs in some test, and where none does."""

    path: str
    lines: int
    missed_lines: tuple[int, ...]
    branches: int
    missed_branches: tuple[tuple[int, int], ...]

    @property
    def room(self) -> str:
        """The folder below the package, or the module itself."""
        return self.path.removeprefix("src/fedassay/").partition("/")[0].removesuffix(".py")

    @property
    def places(self) -> tuple[int, ...]:
        """Lines that never run, and lines that never go one of their ways."""
        return tuple(sorted({*self.missed_lines, *(line for line, _ in self.missed_branches)}))


def read_coverage(content: Mapping[str, Any]) -> list[Reached]:
    """Files of a JSON report of coverage.py."""
    return [
        Reached(
            path,
            entry["summary"]["num_statements"],
            tuple(entry["missing_lines"]),
            entry["summary"]["num_branches"],
            tuple((first, second) for first, second in entry["missing_branches"]),
        )
        for path, entry in sorted(content["files"].items())
        if path.startswith("src/fedassay/")
    ]


def page_part(files: Sequence[Reached], reasons: Mapping[str, str], root: Path = ROOT) -> str:
    """Two tables: by room, and what is missed."""
    rooms: dict[str, list[Reached]] = defaultdict(list)
    for file in files:
        rooms[file.room].append(file)
    parts = [
        "| room | lines | never run | ways at branches | never taken |",
        "|---|---:|---:|---:|---:|",
    ]
    for room, inside in sorted(rooms.items()):
        numbers = (
            sum(file.lines for file in inside),
            sum(len(file.missed_lines) for file in inside),
            sum(file.branches for file in inside),
            sum(len(file.missed_branches) for file in inside),
        )
        parts.append(f"| {room} | {' | '.join(map(str, numbers))} |")
    parts += ["", "| where | text | why no test goes there |", "|---|---|---|"]
    for file in files:
        source = (root / file.path).read_text(encoding="utf-8").splitlines()
        for line in file.places:
            text = source[line - 1].strip().replace("|", "\\|")[:70]
            why = reasons.get(f"{file.path}: {source[line - 1].strip()}", "")
            short = file.path.removeprefix("src/fedassay/")
            parts.append(f"| {short}:{line} | `{text}` | {why} |")
    return "\n".join(parts)


def read_reasons(path: Path = REASONS) -> dict[str, str]:
    """Why a line is not reached, by file and text, so that it moves with the code."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("line", [])
    return {f"{entry['file']}: {entry['text']}": entry["why"] for entry in entries}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.reached", description=__doc__)
    parser.add_argument("report", help="coverage json")
    parser.add_argument("--write", metavar="PAGE")
    options = parser.parse_args(arguments)
    files = read_coverage(json.loads(Path(options.report).read_text(encoding="utf-8")))
    part = page_part(files, read_reasons())
    if options.write:
        replace_part(Path(options.write), BEGIN, END, part)
    else:
        print(part)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
