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


def write_page(path: Path, verdicts: Sequence[Verdict]) -> None:
    """Bring the sections of these rooms in a page up to date; other rooms' stay as they are."""
    text = path.read_text(encoding="utf-8")
    part = text.partition(BEGIN)[2].partition(END)[0]
    sections = {section.partition(" ")[0]: section.strip() for section in part.split("### ")[1:]}
    for room, group in groupby(verdicts, key=lambda verdict: verdict.bug.room):
        sections[room] = _section(room, list(group))
    bugs = sum(int(section.partition("(")[2].partition(" ")[0]) for section in sections.values())
    whole = [f"{bugs} bugs in {len(sections)} rooms, all caught."]
    whole += [f"### {sections[room]}" for room in sorted(sections)]
    replace_part(path, BEGIN, END, "\n\n".join(whole))


def replace_part(path: Path, begin: str, end: str, part: str) -> None:
    """Replace what stands between two marks of a page, which must be there once each."""
    text = path.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{path} must have {begin} and {end} once each")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{part.strip()}\n\n{end}{after}", encoding="utf-8")


def _section(room: str, verdicts: Sequence[Verdict]) -> str:
    seconds = sum(verdict.seconds for verdict in verdicts)
    lines = [
        f"{room} ({len(verdicts)} bugs, {seconds:.0f} s)",
        "",
        "| id | what would go wrong | caught by | s |",
        "|---|---|---|---:|",
    ]
    for verdict in verdicts:
        bug = verdict.bug
        why = " ".join(bug.why.split()).replace("|", "\\|")
        by = "<br>".join(f"`{_short(test)}`" for test in bug.tests)
        lines.append(f"| {bug.id} | {why} | {by} | {verdict.seconds:.1f} |")
    return "\n".join(lines)


def _short(test: str) -> str:
    """`test_keys.py::test_x`: the folder goes without saying."""
    return test.rpartition("/")[2]
