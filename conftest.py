"""In CI nothing is skipped: a test that cannot run there is a failure, with its reason.

Every process of the tests does its linear algebra in one thread: where several of them share
few cores, the threads of matrix products wait for each other ten times as long as they work.
They compile each module once, and so do the programs that they start. Their files are in memory
where there is room: a ledger waits for the disk at every charge, and no test can see that.
"""

import os
import sys
from collections.abc import Generator

import pytest

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
_MEMORY = "/dev/shm"  # noqa: S108  # pytest makes a folder of its own there
_ROOM = 4 * 2**30


def _takes_files(folder: str) -> bool:
    """Whether a folder has room for the tests' files, and programs among them may be run."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    is_whole = not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
    return is_whole and os.access(folder, os.W_OK) and found.f_bavail * found.f_frsize >= _ROOM


if _takes_files(_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped test, doctest or fixture."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A file that is skipped as a whole."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    # A test that is expected to fail is reported as skipped, too.
    if not os.environ.get("CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    where = report.longrepr
    reason = where[2] if isinstance(where, tuple) else where
    report.outcome = "failed"
    report.longrepr = f"CI is set, and there nothing is skipped; found: {reason}"
