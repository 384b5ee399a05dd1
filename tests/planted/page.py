"""The table of planted bugs, for people."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.planted.workshop import Verdict

BEGIN = "<!-- planted bugs: written by `make planted`, not by hand -->"
END = "<!-- end of planted bugs -->"


def table_of(verdicts: Sequence[Verdict]) -> str:
    """One line for every bug: room, id, who caught it, seconds."""
    rows = [
        (
            verdict.bug.room,
            verdict.bug.id,
            ", ".join(_short(test) for test in verdict.bug.tests)
            if verdict.is_caught
            else "NOBODY",
            f"{verdict.seconds:.1f}",
        )
        for verdict in verdicts
    ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    return "\n".join(
        f"{room:<{widths[0]}}  {name:<{widths[1]}}  {seconds:>6} s  {by}"
        for room, name, by, seconds in rows
    )


def write_page(path: Path, verdicts: Sequence[Verdict], *, minutes: float, jobs: int) -> None:
    """Replace the table in a page."""
    replace_part(path, BEGIN, END, _sections(verdicts, minutes, jobs))


def replace_part(path: Path, begin: str, end: str, part: str) -> None:
    """Replace what stands between two marks of a page, which must be there once each."""
    text = path.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{path} must have {begin} and {end} once each")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{part.strip()}\n\n{end}{after}", encoding="utf-8")


def _sections(verdicts: Sequence[Verdict], minutes: float, jobs: int) -> str:
    lines = [
        f"{len(verdicts)} bugs, all caught, in {minutes:.1f} minutes with {jobs} jobs (starting "
        "Python and importing take most of each run).",
        "",
    ]
    for room, group in groupby(verdicts, key=lambda verdict: verdict.bug.room):
        inside = list(group)
        lines += [
            f"### {room} ({len(inside)})",
            "",
            "| id | what would go wrong | caught by | s |",
            "|---|---|---|---:|",
        ]
        for verdict in inside:
            bug = verdict.bug
            why = " ".join(bug.why.split()).replace("|", "\\|")
            by = "<br>".join(f"`{_short(test)}`" for test in bug.tests)
            lines.append(f"| {bug.id} | {why} | {by} | {verdict.seconds:.1f} |")
        lines.append("")
    return "\n".join(lines)


def _short(test: str) -> str:
    """`test_keys.py::test_x`: the folder goes without saying."""
    return test.rpartition("/")[2]
