"""Timing: medians of several runs, tasks in turn."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

_TURN_SECONDS = 0.1
_CALLS = 20


def median_of(runs: int, task: Callable[[], object]) -> float:
    """The median of several runs, in seconds."""
    return race(runs, {"task": task})["task"]


def race(runs: int, tasks: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The median run of each task, in seconds.

    Tasks take turns, so that all see the same machine; in its turn a short task repeats, so
    that it does not always find the caches as another left them.
    """
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(runs):
        for name, task in tasks.items():
            turn = perf_counter()
            while True:
                start = perf_counter()
                task()
                end = perf_counter()
                taken[name].append(end - start)
                if end - turn > _TURN_SECONDS:
                    break
    return {name: median(each) for name, each in taken.items()}


def microseconds(runs: int, task: Callable[[], object]) -> float:
    """The median of means over a few calls of a short task."""
    return median_of(runs, _repeated(task)) / _CALLS * 1e6


def race_calls(runs: int, tasks: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """As `race`, for tasks too short to time one by one: seconds for one call."""
    taken = race(runs, {name: _repeated(task) for name, task in tasks.items()})
    return {name: seconds / _CALLS for name, seconds in taken.items()}


def _repeated(task: Callable[[], object]) -> Callable[[], None]:
    """A few calls at once: few enough that most runs of them are not interrupted."""

    def calls() -> None:
        for _ in range(_CALLS):
            task()

    return calls


def shown(seconds: float) -> str:
    """A duration for people, with three significant digits.

    >>> shown(0.0123456)
    '12.3 ms'
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds / 1e-9)} ns"


def three_digits(value: float) -> str:
    """Three significant digits, never in scientific notation.

    >>> three_digits(12345.6), three_digits(1.0)
    ('12,346', '1.00')
    """
    decimals = 2 if value < 10.0 else 1 if value < 100.0 else 0
    return f"{value:,.{decimals}f}"
