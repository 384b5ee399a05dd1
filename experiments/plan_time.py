"""How long plans and surveys take, in three versions, in one run. Writes `plan_time.md`.

`python -m experiments.plan_time --runs 5` takes some ten minutes on an idle machine.
"""

import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from experiments.data import ROOT
from experiments.page import markdown_table, say

BEFORE = ("df392ce", "7dc5a9f")
"""The last commit whose planner chose anew for every number of clients that it tried, and the last
one that judged a candidate against one model of the scores after the other."""
Seconds = tuple[float, float]
"""To start, and to run."""
PAGE = Path(__file__).with_suffix(".md")
MODELS: dict[str, tuple[str, str]] = {
    "distributed": ("--privacy distributed --epsilon 1", "--clients 20000"),
    "local": ("--privacy local --epsilon 1", "--clients 200000"),
    "secure": ("", "--clients 20000"),
    "shuffled": ("--privacy shuffled --epsilon 1", "--clients 20000"),
}
COMMANDS: dict[tuple[str, str], str] = {
    ("help", "all commands"): "--help",
    **{
        ("plan with a target", name): f"plan {model} --target-error 0.01"
        for name, (model, _) in MODELS.items()
    },
    # Sites are a given: what is found for them is epsilon.
    (
        "plan with a target",
        "site",
    ): "plan --privacy site --clients 8 --examples 80000 --target-error 0.01",
    **{
        ("plan of so many clients", name): f"plan {model} {clients}"
        for name, (model, clients) in MODELS.items()
    },
    (
        "plan of so many clients",
        "site",
    ): "plan --privacy site --epsilon 1 --clients 8 --examples 80000",
    **{
        ("survey new", name): f"survey new {model} {clients} -o survey.json"
        for name, (model, clients) in MODELS.items()
    },
    (
        "survey new",
        "site",
    ): "survey new --privacy site --epsilon 1 --clients 8 --examples 80000 -o survey.json",
}
# What a command needs is loaded first, and timed apart; help is loading and nothing else.
PROGRAM = """
import contextlib, importlib, io, sys, time
words = sys.argv[1:]
from fedassay.cli.app import app
with contextlib.suppress(ImportError):  # earlier versions load all commands at once
    importlib.import_module("fedassay.cli." + words[0])
loaded = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    app(words, standalone_mode=False)
done = time.process_time()
if words[0] == "--help":
    loaded = done
print(loaded, done - loaded)
"""


def cpu_seconds(source: Path, command: str, folder: Path) -> Seconds | None:
    """To start, and to run a command, in a process of its own; None where it is refused."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM, *command.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(source / "src"), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "survey.json").unlink(missing_ok=True)
    if done.returncode != 0:
        return None
    started, taken = map(float, done.stdout.split())
    return started, taken


def measure(
    versions: Sequence[Path], runs: int, folder: Path
) -> Iterator[dict[str, list[list[Seconds]]]]:
    """Seconds by command and version after each run; all versions take turns."""
    taken: dict[str, list[list[Seconds]]] = {
        command: [[] for _ in versions] for command in COMMANDS.values()
    }
    for run in range(runs):
        for (what, whom), command in COMMANDS.items():
            say(f"run {run + 1}: {what}, {whom}")
            for source, seconds in zip(versions, taken[command], strict=True):
                found = cpu_seconds(source, command, folder)
                if found is not None:
                    seconds.append(found)
        yield taken


def _shown(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.2f}" if seconds else "refused"


def main() -> None:
    """Measure, print, and write the page, after every run."""
    parser = ArgumentParser(prog="python -m experiments.plan_time", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--before", nargs="+", default=BEFORE, help="the commits to compare with")
    arguments = parser.parse_args()
    git = ["git", "-C", str(ROOT), "worktree"]
    loads = []
    with TemporaryDirectory() as place:
        versions = []
        try:
            for commit in arguments.before:
                source = Path(place) / commit
                subprocess.run([*git, "add", "--detach", str(source), commit], check=True)  # noqa: S603
                versions.append(source)
            for taken in measure([*versions, ROOT], arguments.runs, Path(place)):
                loads.append(os.getloadavg()[2])
                text = page(taken, [*arguments.before, "today"], loads)
                PAGE.write_text(text, encoding="utf-8")
        finally:
            for source in versions:
                subprocess.run([*git, "remove", "--force", str(source)], check=True)  # noqa: S603
    print(text)


def page(
    taken: dict[str, list[list[Seconds]]], names: Sequence[str], loads: Sequence[float]
) -> str:
    """What the page says after so many runs."""
    body = [
        [
            what,
            whom,
            *(_shown([started for started, _ in seconds]) for seconds in taken[command]),
            *(_shown([run for _, run in seconds]) for seconds in taken[command]),
        ]
        for (what, whom), command in COMMANDS.items()
    ]
    now = len(names) + 1
    header = ("command", "privacy", "to start", "to run", "together")
    today = [
        [*row[:2], row[now], row[-1], f"{float(row[now]) + float(row[-1]):.2f}"] for row in body
    ]
    changes = [[*row[:2], *row[2 + len(names) :]] for row in body if row[0] != "help"]
    starts = [[*row[:2], *row[2 : 2 + len(names)]] for row in _one_of_each(body)]
    return f"""# How long plans and surveys take

Seconds of processor time, medians of {len(loads)}, each run in a process of its own, all versions
in turns. *To start* is what Python and the command's modules take to load, *to run* all the rest.
{median(loads):.0f} processes wanted {os.cpu_count()} processors meanwhile, which makes all of it
more than on an idle machine.
Made by `python -m experiments.plan_time --runs {len(loads)}`.

## Today

A plan of so many clients whose target is missed also says what would meet it: how many clients, and
which epsilon.

{markdown_table(header, today)}

## To run, before and today

In df392ce nothing was asked in two steps; since then two steps are weighed against one as well.
"refused" is a version without that model, or one that could not plan with it.

{markdown_table(("command", "privacy", *names), changes)}

## To start, before and today

{markdown_table(("command", "of", *names), starts)}
"""


def _one_of_each(body: list[list[str]]) -> list[list[str]]:
    """Modules to load depend on the command alone."""
    first: dict[str, list[str]] = {}
    for row in body:
        first.setdefault(row[0].partition(" ")[0], row)
    return list(first.values())


if __name__ == "__main__":
    main()
