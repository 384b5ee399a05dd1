"""The page that the benchmarks write: sections of tables, the machine, how to repeat."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_LIBRARIES = (
    "fedassay",
    "numpy",
    "scipy",
    "pyarrow",
    "cryptography",
    "scikit-learn",
    "torch",
    "torchmetrics",
    "opendp",
    "pure-ldp",
    "multi-freq-ldpy",
    "flwr",
    "netcal",
    "duckdb",
    "polars",
)


@dataclass(frozen=True, slots=True)
class Aim:
    """What a figure should reach, and whether this run did."""

    text: str
    is_met: bool

    def sentence(self) -> str:
        """One line for the page."""
        return f"Aim: {self.text}. {'Met.' if self.is_met else '**Missed.**'}"


@dataclass(frozen=True, slots=True)
class Section:
    """One topic: a sentence, a table, and its aims."""

    title: str
    about: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    aims: Sequence[Aim] = ()

    def markdown(self) -> str:
        """The section as it stands on the page."""
        rule = ["---", *["---:"] * (len(self.header) - 1)]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (self.header, rule, *self.rows))
        parts = [f"## {self.title}", self.about, table, *(aim.sentence() for aim in self.aims)]
        return "\n\n".join(parts)


def page(sections: Sequence[Section], *, load_before: float, seconds: float) -> str:
    """The whole page; the load is the system's 1-minute average before the first section."""
    head = (
        "# Benchmarks\n\n"
        "Written by `make bench` (`python -m benchmarks`); every figure was measured in one run "
        "on the machine below; its load says what else it had to do. Times are medians of "
        "several runs, tasks in turn, unless a row says one run; memory is the largest. "
        "`python -m benchmarks --quick` prints a smaller run and writes nothing."
    )
    picture = "![How many times faster than each peer](summary.png)"
    return (
        "\n\n".join(
            [
                head,
                picture,
                _machine(load_before, seconds),
                *(section.markdown() for section in sections),
            ]
        )
        + "\n"
    )


def with_section(known: str, section: Section) -> str:
    """A page with one section replaced or added, which says that it was measured apart."""
    head, *parts = known.rstrip("\n").split("\n## ")
    others = [part for part in parts if not part.startswith(f"{section.title}\n")]
    place = next((i for i, part in enumerate(parts) if part not in others), len(others))
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    note = f"Measured in a run of its own on {date}, load average {os.getloadavg()[0]:.1f}."
    others.insert(place, f"{section.markdown().removeprefix('## ')}\n\n{note}\n")
    return "\n## ".join([head, *others]).rstrip("\n") + "\n"


def _machine(load_before: float, seconds: float) -> str:
    rows = [
        ("date", datetime.now(UTC).strftime("%Y-%m-%d")),
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("load average before and after", f"{load_before:.1f}, {os.getloadavg()[0]:.1f}"),
        ("the whole run", f"{seconds / 60.0:.0f} min"),
        ("Python", sys.version.split()[0]),
        *((name, _version(name)) for name in _LIBRARIES),
    ]
    lines = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"| machine | |\n| --- | --- |\n{lines}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    if known.exists():
        for line in known.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
