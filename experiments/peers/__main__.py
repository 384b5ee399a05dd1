"""Measure every peer beside ours, and write `experiments/peers.md`."""

from argparse import ArgumentParser
from pathlib import Path

from experiments.crowded import real_names
from experiments.kept import run_all
from experiments.peers.beside import averages, calibration_errors
from experiments.peers.contests import CONTESTS
from experiments.peers.jobs import Job, measure, outcomes
from experiments.peers.page import (
    Comparison,
    averages_table,
    calibration_table,
    comparisons,
    contest_sections,
    summary,
)

TRIALS = 40
PAGE = Path(__file__).parents[1] / "peers.md"


def main() -> None:
    """Run all contests on all tables, but for those that are kept, and write the page."""
    parser = ArgumentParser(prog="python -m experiments.peers", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"default: {TRIALS}")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing later")
    parser.add_argument("--only", nargs="+", choices=real_names(), help="tables to measure now")
    parser.add_argument("--page", type=Path, default=PAGE, help="default: experiments/peers.md")
    arguments = parser.parse_args()
    jobs = [
        Job(table, contest, arguments.trials)
        for table in real_names()
        for contest in range(len(CONTESTS))
    ]
    wanted = arguments.only or real_names()
    todo = [job for job in jobs if job.table in wanted and not job.path.exists()]
    run_all(todo, measure, processes=arguments.processes, minutes=arguments.minutes)
    found = [
        comparison
        for job in jobs
        if (held := outcomes(job))
        for comparison in comparisons(CONTESTS[job.contest].name, job.table, held)
    ]
    arguments.page.write_text(page(found, arguments.trials), encoding="utf-8")


def page(found: list[Comparison], trials: int) -> str:
    """The whole page."""
    order = {contest.name: place for place, contest in enumerate(CONTESTS)}
    found = sorted(found, key=lambda each: order[each.contest])
    head = (
        "# Ours beside what others do\n\n"
        "Written by `python -m experiments.peers`; contests are kept as they finish. Others are "
        "written here from their publications (`experiments/peers/`), each in its own trust model, "
        "and ours in the same one with the same epsilon, on the same rows, every row a client of "
        f"its own. Errors are means over {trials} trials: of ROC AUC, and of the whole curve "
        "(the area between it and the exact one, the *area error* of arXiv 2510.04979). An "
        "entrant with settings gets, table by table, the one that was best in hindsight, which "
        "nobody has beforehand; ours is what the planner chooses when asked for nothing but "
        "epsilon. *Times ours* has the 95 % interval of the measurement (delta method on the "
        "logarithm); *alike* where that holds 1. Four tables as they are, three made rare (1 % "
        "positives; experiments/crowded.py)."
    )
    sections = [
        head,
        f"## In short\n\n{summary(found)}",
        *contest_sections(found),
        "## Averages of clients' own ROC AUCs\n\nWhat a federation gets that averages its "
        "clients' metrics by their rows. No noise; the server sees every client's figure. Pairs "
        "of rows at different clients are never compared, and clients of one class have no "
        "part.\n\n" + averages_table(list(averages())),
        "## Smooth ECE beside ECE\n\nSmooth ECE (Błasiok and Nakkiran, arXiv 2309.12236) has no "
        "bins to choose. Scores as they are; one survey under distributed privacy each, read at "
        "the middles of its buckets for smECE.\n\n" + calibration_table(list(calibration_errors())),
    ]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    main()
