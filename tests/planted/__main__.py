"""Plant every bug in a copy of the tree and see that the named tests notice.

`python -m tests.planted --only 'secagg/*' --jobs 2`; exit code 1 when one survives.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Queue

from tests.planted.bugs import Bug, EntryWrong, check_entry, chosen, read_bugs, sample_of
from tests.planted.page import table_of, write_page
from tests.planted.workshop import Verdict, Workshop


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    options = _options().parse_args(arguments)
    try:
        bugs = chosen(read_bugs(), *options.only)
        if options.sample:
            bugs = sample_of(bugs, options.sample)
        if options.write and {bug.room for bug in read_bugs() if bug not in bugs} & {
            bug.room for bug in bugs
        }:
            raise EntryWrong("a page is written for whole rooms; this run has parts of some.")
        for bug in bugs:
            check_entry(bug)
    except EntryWrong as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    started = time.monotonic()
    verdicts, broken = judge_all(bugs, jobs=options.jobs)
    minutes = (time.monotonic() - started) / 60.0
    survivors = [verdict for verdict in verdicts if not verdict.is_caught]
    print(table_of(verdicts))  # noqa: T201
    print(  # noqa: T201
        f"{len(verdicts) - len(survivors)} of {len(verdicts)} planted bugs caught in "
        f"{minutes:.1f} minutes with {options.jobs} jobs"
    )
    for verdict in survivors:
        print(f"SURVIVES {verdict.bug.room}/{verdict.bug.id}: {verdict.trouble}")  # noqa: T201
    for test in broken:
        print(f"FAILS WITHOUT A BUG {test}")  # noqa: T201
    if options.write and not survivors and not broken:
        write_page(Path(options.write), verdicts)
    return 1 if survivors or broken else 0


def judge_all(bugs: Sequence[Bug], *, jobs: int) -> tuple[list[Verdict], list[str]]:
    """A verdict for every bug, and the named tests that do not pass without one."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder, ExitStack() as stack:
        idle: Queue[Workshop] = Queue()
        for job in range(jobs):
            (copy := Path(folder) / str(job)).mkdir()
            idle.put(stack.enter_context(closing(Workshop(copy))))

        def clean(tests: list[str]) -> list[str]:
            workshop = idle.get()
            try:
                return workshop.failures_without_bugs(tests)
            finally:
                idle.put(workshop)

        def judge(bug: Bug) -> Verdict:
            workshop = idle.get()
            try:
                verdict = workshop.judge(bug)
            finally:
                idle.put(workshop)
            if not verdict.is_caught:
                said = f"SURVIVES {bug.room}/{bug.id}: {verdict.trouble}"
                print(said, file=sys.stderr, flush=True)  # noqa: T201
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            batches = _by_file(bugs, jobs)
            verdicts = list(pool.map(judge, bugs))
            broken = [test for failing in pool.map(clean, batches) for test in failing]
            return verdicts, broken


def _by_file(bugs: Sequence[Bug], jobs: int) -> list[list[str]]:
    """All distinct tests, in one batch per job, with the tests of a file together."""
    tests = sorted({test for bug in bugs for test in bug.tests})
    files = sorted({test.partition("::")[0] for test in tests})
    batches = [
        [test for test in tests if test.partition("::")[0] in files[job::jobs]]
        for job in range(jobs)
    ]
    return [batch for batch in batches if batch]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="GLOB", help="by room/id, room or id"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="N bugs, evenly spread")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", metavar="PAGE", help="put the table into this page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
