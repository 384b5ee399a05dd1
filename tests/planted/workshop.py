"""A copy of the tree in which bugs are planted, one at a time, and tests run."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.planted.bugs import ROOT, Bug
from tests.planted.outcomes import WHERE

NEEDED = ("src", "tests", "docs", "examples", "experiments", "pyproject.toml", "README.md",
          "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "conftest.py")  # fmt: skip
LONGEST_SECONDS = 180.0
"""A bug whose tests take longer counts as one that nobody noticed: `make planted` must end."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the named tests said about one bug."""

    bug: Bug
    seconds: float
    trouble: str
    """Empty when every named test failed; else what did not."""

    @property
    def is_caught(self) -> bool:
        """Whether every named test failed."""
        return not self.trouble


class Workshop:
    """One worker's copy; it is clean except while a bug is planted."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder
        self._second = 1_000_000_000
        for name in NEEDED:
            source = root / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(source, folder / name, ignore=ignored)
            elif source.is_file():
                shutil.copy2(source, folder / name)
        self._report = folder / "outcomes.json"
        paths = os.pathsep.join((str(folder / "src"), str(folder)))
        # Modules are compiled once a copy: `_write` sees to it that none is taken for another.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.planted.nursery"],
            cwd=folder,
            env={
                **inherited,
                "PYTHONPATH": paths,
                WHERE: str(self._report),
                # A process with threads does not fork well.
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def judge(self, bug: Bug) -> Verdict:
        """Plant a bug, run its tests, take it away again."""
        started = time.monotonic()
        with self._planted(bug):
            outcomes = self.run(bug.tests)
        seconds = time.monotonic() - started
        said = [f"{test}: {word}" for test in bug.tests if (word := _trouble(bug, test, outcomes))]
        return Verdict(bug, seconds, "; ".join(said))

    def failures_without_bugs(self, tests: Iterable[str]) -> list[str]:
        """Which of these tests do not pass in the clean copy."""
        named = list(tests)
        outcomes = self.run(named, seconds=LONGEST_SECONDS * 10)
        return [test for test in named if set(_words(test, outcomes)) != {"passed"}]

    def run(self, tests: Iterable[str], *, seconds: float = LONGEST_SECONDS) -> dict[str, str]:
        """The outcome of every test by node id; collectors that failed are there too.

        Nothing where the tests took longer than these seconds.
        """
        self._report.unlink(missing_ok=True)
        arguments = [
            "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist",
            "-p", "tests.planted.outcomes", "--hypothesis-profile=planted", *tests,
        ]  # fmt: skip
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps([arguments, seconds]) + "\n")
        self._nursery.stdin.flush()
        if self._nursery.stdout.readline() != "done\n":
            raise RuntimeError("the process that runs the tests has ended")
        if not self._report.is_file():
            return {}
        outcomes: dict[str, str] = json.loads(self._report.read_text(encoding="utf-8"))
        return outcomes

    def close(self) -> None:
        """End the process that runs the tests."""
        with self._nursery:
            pass

    @contextmanager
    def _planted(self, bug: Bug) -> Iterator[None]:
        path = self.folder / bug.file
        clean = path.read_text(encoding="utf-8")
        self._write(path, bug.planted_in(clean))
        try:
            yield
        finally:
            self._write(path, clean)

    def _write(self, path: Path, text: str) -> None:
        # Python takes a compiled module for current when second and size agree, so that every
        # text gets a second of its own.
        path.write_text(text, encoding="utf-8")
        self._second += 1
        os.utime(path, (self._second, self._second))


def _trouble(bug: Bug, test: str, outcomes: dict[str, str]) -> str:
    words = _words(test, outcomes)
    if "failed" in words:
        return ""
    module = test.partition("::")[0]
    if outcomes.get(module) == "unimportable":
        return "" if bug.breaks_import else "its module could not be imported"
    return "passed with the bug in place" if words else "did not run, or took too long"


def _words(test: str, outcomes: dict[str, str]) -> list[str]:
    return [word for name, word in outcomes.items() if name == test or name.startswith(test + "[")]
