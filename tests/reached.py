"""What the tests reach, by room, and what they do not, with why.

`make coverage` is `python -m tests.reached --run --write docs/testing.md`: all tests under
coverage.py with branches. It is a report, not a target; but a reason whose line is gone, or is
reached after all, is an error, so that the list of reasons moves with the code.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import Coverage
from tests.planted.page import replace_part

ROOT = Path(__file__).parents[1]
REASONS = Path(__file__).with_name("unreached.toml")
BEGIN = "<!-- what tests reach: written by `make coverage`, not by hand -->"
END = "<!-- end of what tests reach -->"
_NO_TEST = "no test yet"


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


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no test reaches a line, by file and text, so that it moves with the code."""

    file: str
    text: str
    why: str
    sometimes: bool = False
    """Whether a run may reach it by luck, as lines do that wait for another process."""

    @property
    def place(self) -> str:
        return f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True)
class Run:
    """Which code the tests ran on, for how long, and whose data could not be used."""

    commit: str
    minutes: float
    unusable: int

    def sentence(self) -> str:
        """For the page."""
        return (
            f"All tests at commit {self.commit} in {self.minutes:.0f} minutes. "
            f"{self.unusable} processes were killed, or their files cut short, on purpose, while "
            "they wrote their data; lines that only they reach are listed."
        )


def read_reasons(path: Path = REASONS) -> list[Reason]:
    """The reasons on file; one may stand for several lines of a file."""
    reasons = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("line", []):
        texts = [entry["text"]] if isinstance(entry["text"], str) else entry["text"]
        for text in texts:
            reasons.append(Reason(entry["file"], text, entry["why"], entry.get("sometimes", False)))
    return reasons


def missed(files: Iterable[Reached], root: Path = ROOT) -> list[tuple[Reached, int, str]]:
    """Every place that no test reaches, with its text."""
    places = []
    for file in files:
        source = (root / file.path).read_text(encoding="utf-8").splitlines()
        places += [(file, line, source[line - 1].strip()) for line in file.places]
    return places


def stale(files: Sequence[Reached], reasons: Iterable[Reason], root: Path = ROOT) -> list[str]:
    """What is wrong with reasons: their line is gone, or some test reaches it."""
    still = {f"{file.path}: {text}" for file, _, text in missed(files, root)}
    wrong = []
    for reason in reasons:
        if not is_there(reason, root):
            wrong.append(f"{reason.place}\n    is gone: take its reason out of {REASONS.name}")
        elif reason.place not in still and not reason.sometimes:
            wrong.append(f"{reason.place}\n    is reached: take its reason out of {REASONS.name}")
    return wrong


def is_there(reason: Reason, root: Path = ROOT) -> bool:
    """Whether the line still stands in its file."""
    path = root / reason.file
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return reason.text in [line.strip() for line in lines]


def page_part(
    files: Sequence[Reached], reasons: Iterable[Reason], run: Run, root: Path = ROOT
) -> str:
    """When it was measured, and two tables: by room, and what is missed."""
    rooms: dict[str, list[Reached]] = defaultdict(list)
    for file in files:
        rooms[file.room].append(file)
    parts = [
        run.sentence(),
        "",
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
    why = {reason.place: reason.why for reason in reasons}
    parts += ["", "| where | text | why no test goes there |", "|---|---|---|"]
    for file, line, text in missed(files, root):
        shown = text.replace("|", "\\|")[:70]
        short = file.path.removeprefix("src/fedassay/")
        reason = why.get(f"{file.path}: {text}", _NO_TEST)
        parts.append(f"| {short}:{line} | `{shown}` | {reason} |")
    return "\n".join(parts)


def remove_unusable(folder: Path) -> int:
    """Delete data files that a killed process left half-written; returns how many."""
    unusable = [path for path in sorted(folder.glob(".coverage.*")) if not _is_whole(path)]
    for path in unusable:
        path.unlink()
    return len(unusable)


def _is_whole(path: Path) -> bool:
    """Whether a data file has its tables and all of its pages."""
    with closing(sqlite3.connect(path)) as database, suppress(sqlite3.DatabaseError):
        (checked,) = database.execute("PRAGMA integrity_check").fetchone()
        return bool(
            checked == "ok" and database.execute("SELECT version FROM coverage_schema").fetchone()
        )
    return False


def run_tests(report: Path, root: Path = ROOT) -> int:
    """All tests under coverage.py; its JSON with which commit, how long, how many unusable.

    Returns pytest's exit code; the JSON is made either way.
    """
    for path in root.glob(".coverage*"):
        path.unlink()
    commit = subprocess.check_output(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=root, text=True
    )
    started = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        "-m",
        "pytest",
        "-n",
        "auto",
        "--dist",
        "worksteal",
    ]
    code = subprocess.run(command, cwd=root, check=False).returncode
    run = Run(commit.strip(), (time.monotonic() - started) / 60.0, remove_unusable(root))
    measured = Coverage(config_file=str(root / "pyproject.toml"))
    measured.combine()
    measured.json_report(outfile=str(report))
    content = json.loads(report.read_text(encoding="utf-8"))
    content["run"] = {"commit": run.commit, "minutes": run.minutes, "unusable": run.unusable}
    report.write_text(json.dumps(content), encoding="utf-8")
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.reached", description=__doc__)
    parser.add_argument("report", nargs="?", default="coverage.json", type=Path)
    parser.add_argument("--run", action="store_true", help="make the report first, with all tests")
    parser.add_argument("--write", metavar="PAGE", type=Path)
    options = parser.parse_args(arguments)
    if options.run and (code := run_tests(options.report)):
        print("tests failed: no page is written", file=sys.stderr)  # noqa: T201
        return code
    content = json.loads(options.report.read_text(encoding="utf-8"))
    files, reasons = read_coverage(content), read_reasons()
    part = page_part(files, reasons, Run(**content["run"]))
    if options.write:
        replace_part(options.write, BEGIN, END, part)
    else:
        print(part)  # noqa: T201
    known = {reason.place for reason in reasons}
    without = sum(f"{file.path}: {text}" not in known for file, _, text in missed(files))
    print(f"{without} places without a reason", file=sys.stderr)  # noqa: T201
    wrong = stale(files, reasons)
    for each in wrong:
        print(each, file=sys.stderr)  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
