"""How long plans and surveys take, in two versions, in one run. Writes `plan_time.md`.

`python -m experiments.plan_time --runs 5` takes some two minutes on an idle machine.
"""

import os
import resource
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from experiments.data import ROOT
from experiments.page import markdown_table, say

BEFORE = "df392ce"
"""The last commit whose planner chose anew for every number of clients that it tried."""
PAGE = Path(__file__).with_suffix(".md")
NOTHING = ("--version",)
COMMANDS: dict[str, tuple[str, ...]] = {
    "plan, distributed, clients for an error of 0.01": (
        "plan", "--privacy", "distributed", "--epsilon", "1", "--target-error", "0.01",
    ),
    "plan, local, clients for an error of 0.01": (
        "plan", "--privacy", "local", "--epsilon", "5", "--target-error", "0.01",
    ),
    "plan, distributed, epsilon for an error of 0.01": (
        "plan", "--privacy", "distributed", "--clients", "20000", "--target-error", "0.01",
    ),
    "survey new, distributed": (
        "survey", "new", "--privacy", "distributed", "--epsilon", "1", "--clients", "20000",
        "-o", "survey.json",
    ),
    "survey new, local": (
        "survey", "new", "--privacy", "local", "--epsilon", "5", "--clients", "20000",
        "-o", "survey.json",
    ),
}  # fmt: skip


def cpu_seconds(source: Path, command: Sequence[str], folder: Path) -> float:
    """Of one run of a command, in a process of its own that takes the package from there."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "fedassay", *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(source / "src"), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (folder / "survey.json").unlink(missing_ok=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(old: Path, runs: int, folder: Path) -> list[list[str]]:
    """Both versions in turns, less what a command takes that does nothing."""
    body = []
    for name, command in COMMANDS.items():
        say(name)
        taken: dict[Path, list[float]] = {old: [], ROOT: []}
        for _ in range(runs):
            for source, seconds in taken.items():
                idle = cpu_seconds(source, NOTHING, folder)
                seconds.append(cpu_seconds(source, command, folder) - idle)
        before, after = (median(seconds) for seconds in taken.values())
        body.append([name, f"{before:.2f}", f"{after:.2f}", f"{before / after:.1f}"])
    return body


def main() -> None:
    """Measure, print, and write the page."""
    parser = ArgumentParser(prog="python -m experiments.plan_time", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    arguments = parser.parse_args()
    with TemporaryDirectory() as place:
        old = Path(place) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(old), arguments.before], check=True)  # noqa: S603
        try:
            body = measure(old, arguments.runs, Path(place))
            busy = os.getloadavg()[1]
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)  # noqa: S603
    header = ("command", "before, s", "after, s", "times faster")
    text = f"""# How long plans and surveys take

Seconds of processor time of commands, both versions in turns, medians of {arguments.runs}, less
what `fedassay --version` takes. *Before* is {arguments.before}, where nothing was asked in two
steps; *after* weighs two steps against one as well. {busy:.0f} processes wanted {os.cpu_count()}
processors meanwhile: where there are more, both take longer than alone.
Made by `python -m experiments.plan_time --runs {arguments.runs}`.

{markdown_table(header, body)}
"""
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
