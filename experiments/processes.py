"""This process and those that it started: the time that they took, and Spark's workers."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_DAEMON = "pyspark.daemon"


def family() -> dict[int, int]:
    """This process and its descendants, each with its parent."""
    parents = {int(each.name): _fields(each) for each in Path("/proc").glob("[0-9]*")}
    found = {os.getpid(): os.getppid()}
    grown = True
    while grown:
        more = {
            pid: int(told[1]) for pid, told in parents.items() if told and int(told[1]) in found
        }
        grown = not more.keys() <= found.keys()
        found |= more
    return found


def cpu_seconds() -> float:
    """What the family has taken of the processors, those that have ended included."""
    told = [_fields(Path(f"/proc/{pid}")) for pid in family()]
    # User and system time, own and of children that were waited for.
    return sum(int(ticks) for each in told if each for ticks in each[11:15]) / _TICKS


def spark_workers() -> list[int]:
    """Python workers of the Spark that this process started: children of its daemon."""
    found = family()
    daemons = {pid for pid in found if _DAEMON in _words(pid)}
    return [pid for pid in daemons if found[pid] in daemons]


def _fields(process: Path) -> list[str]:
    """The fields of /proc/PID/stat after the command; none if the process has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
