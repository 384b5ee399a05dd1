"""How cost grows with rows, cells, clients and sites: times at several sizes, and the exponent."""

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from benchmarks.page import Aim, Section
from benchmarks.rows import scored_rows
from benchmarks.timing import median_of, shown
from fedassay.client import OPEN_POLICY, answer, make_answer
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Exact, Privacy
from fedassay.metrics.named import named_metrics
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.randomness import SystemRandomness
from fedassay.survey import Survey
from fedassay.tally import Tally, TallyBuilder
from fedassay.wire import decode

SIZES = {
    "rows": (100_000, 400_000, 1_600_000),
    "cells": (1_024, 4_096, 16_384),
    "clients": (100, 400, 1_600),
    "sites": (8, 32, 128),
}
_WHAT = {
    "rows": "rows to a histogram",
    "cells": "every metric of a histogram",
    "clients": "reports of 4,096 cells added",
    "sites": "sites answer and are added, distributed ε = 1, 1,000 rows each",
}
_MOST = 1.15
"""Above it, more than proportional beyond what caches and luck explain."""


def measure(*, quick: bool) -> Section:
    """Time every task at every size, and fit time = constant x size^exponent."""
    runs = 2 if quick else 7
    found = {
        name: {size: median_of(runs, task) for size, task in _tasks(name, quick).items()}
        for name in SIZES
    }
    powers = {name: exponent(times) for name, times in found.items()}
    rows = [
        (
            f"{_WHAT[name]}: {' / '.join(f'{size:,}' for size in times)} {name}",
            " / ".join(shown(seconds) for seconds in times.values()),
            f"{powers[name]:.2f}",
        )
        for name, times in found.items()
    ]
    worst = max(powers, key=lambda name: powers[name])
    return Section(
        title="How cost grows",
        about="Times at three sizes, each four times the last, and the exponent of a power law "
        "fitted to them: 1 is in proportion, 0 not at all.",
        header=("what", "time", "exponent"),
        rows=rows,
        aims=[
            Aim(
                "nothing grows faster than in proportion; the largest exponent is "
                f"{powers[worst]:.2f}, of {worst}",
                powers[worst] <= _MOST,
            )
        ],
    )


def exponent(times: Mapping[int, float]) -> float:
    """The slope of least squares through the logarithms of size and time.

    >>> round(exponent({10: 1.0, 100: 100.0, 1000: 10000.0}), 6)
    2.0
    """
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def _tasks(name: str, quick: bool) -> dict[int, Callable[[], object]]:
    make = {"rows": _rows, "cells": _cells, "clients": _clients, "sites": _sites}[name]
    sizes = SIZES[name][:2] if quick else SIZES[name]
    return {size: make(size) for size in sizes}


def _rows(size: int) -> Callable[[], object]:
    labels, scores = scored_rows(size, generator=np.random.default_rng(20))
    return lambda: ScoreHistogram.from_scores(labels, scores)


def _cells(size: int) -> Callable[[], object]:
    labels, scores = scored_rows(200_000, generator=np.random.default_rng(20))
    counts = Grid.uniform(size).count(Examples(labels, scores)).astype(np.float64)
    edges = np.linspace(0.0, 1.0, size + 1)
    # A new histogram, because one remembers its cumulative counts.
    return lambda: named_metrics(ScoreHistogram(edges, counts), (0.5,))


def _clients(size: int) -> Callable[[], object]:
    cells = 4_096
    survey = Survey(
        privacy=Privacy.SECURE,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(Exact(),),
    )
    counts = survey.grid.count(Examples([1], [0.62]))
    messages = [
        make_answer(survey, counts, randomness=SystemRandomness()).to_bytes() for _ in range(size)
    ]

    def add() -> None:
        builder = TallyBuilder(Tally.zero(survey), survey)
        for message in messages:
            builder.add(decode(message, survey))

    return add


def _sites(size: int) -> Callable[[], object]:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED,
        epsilon=Fraction(1),
        clients=128,
        examples=128_000,
        dropouts=Fraction(0),
    )
    survey = design_survey(request).survey
    examples = Examples(*scored_rows(1_000, generator=np.random.default_rng(20)))

    def round_of_all() -> None:
        builder = TallyBuilder(Tally.zero(survey), survey)
        for _ in range(size):
            made = answer(survey, examples, randomness=SystemRandomness(), policy=OPEN_POLICY)
            builder.add(decode(made.to_bytes(), survey))

    return round_of_all
