"""From nothing to imported, and from nothing to the end of the demo."""

import subprocess
import sys
from functools import partial

from benchmarks.page import Aim, Section
from benchmarks.timing import race, shown

_WANTED_IMPORT_SECONDS = 0.3
_BARE, _NUMPY, _OURS = "`python -c pass`", "`import numpy`", "`import fedassay`"
_FIRST = "`fedassay.simulate`, loaded at its first use"
_DEMO = "`python -m fedassay demo`"


def measure(*, quick: bool) -> Section:
    """Whole processes, from start to end."""
    commands = {
        _BARE: ("-c", "pass"),
        _NUMPY: ("-c", "import numpy"),
        _OURS: ("-c", "import fedassay"),
        _FIRST: ("-c", "import fedassay; fedassay.simulate"),
        _DEMO: ("-m", "fedassay", "demo"),
    }
    tasks = {name: partial(_run, *arguments) for name, arguments in commands.items()}
    seconds = race(3 if quick else 7, tasks)
    added = seconds[_OURS] - seconds[_BARE]
    return Section(
        title="Starting up",
        about="Whole processes, the interpreter's own start included. Names are loaded when they "
        "are first used, so that importing costs next to nothing and the first use all of it.",
        header=("process", "time", "beyond the bare interpreter"),
        rows=[(name, shown(taken), _beyond(taken, seconds)) for name, taken in seconds.items()],
        aims=[
            Aim(
                f"`import fedassay` under {_WANTED_IMPORT_SECONDS} s; measured {shown(added)}",
                added < _WANTED_IMPORT_SECONDS,
            )
        ],
    )


def _beyond(taken: float, seconds: dict[str, float]) -> str:
    return shown(taken - seconds[_BARE]) if taken > seconds[_BARE] else ""


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
