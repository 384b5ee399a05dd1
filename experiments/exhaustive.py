"""Every survey worth trying, simulated, against the planner's choice."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp, isfinite

import numpy as np

from experiments.populations import Population
from fedassay.decode import Readout, decode
from fedassay.draft import draft
from fedassay.draws import draw_tally, whole_counts
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved, fanouts_for
from fedassay.metrics.named import named_metric
from fedassay.planner import Choice, choose
from fedassay.request import Privacy, Request
from fedassay.survey import Survey

CLIENTS = 100_000
SETTINGS = (
    (Privacy.DISTRIBUTED, Fraction(1)),
    (Privacy.LOCAL, Fraction(1)),
    (Privacy.LOCAL, Fraction(5)),
)
_THRESHOLDS = (0.2, 0.5, 0.8)
_METRICS = (
    "roc_auc",
    *(f"{name}@{t}" for t in _THRESHOLDS for name in ("precision", "recall", "accuracy")),
)
_LEAVES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512)
_TILTS = (Fraction(3), Fraction(2), Fraction(3, 2), Fraction(1), Fraction(2, 3))
_FIRST_TRIALS = 12
_FINALISTS = 10


@dataclass(frozen=True, slots=True)
class Searched:
    """What an exhaustive search found."""

    tried: int
    chosen: str
    best: str
    ratio: float


def compare_with_all(
    pop: Population, privacy: Privacy, epsilon: Fraction, *, has_reference: bool, trials: int
) -> Searched:
    """The planner's choice against the best of all settings, re-simulated."""
    request = Request(
        privacy=privacy,
        epsilon=epsilon,
        clients=CLIENTS,
        thresholds=_THRESHOLDS,
        reference=pop.reference if has_reference else None,
    )
    choice = choose(request)
    settings = list(_all(request))
    first = [_score(pop, survey, choice.readout, _FIRST_TRIALS, seed=1) for survey in settings]
    order = np.argsort(first)[:_FINALISTS]
    again = {int(i): _score(pop, settings[i], choice.readout, trials, seed=2) for i in order}
    best = min(again, key=lambda i: again[i])
    own = _score(pop, choice.survey, choice.readout, trials, seed=2)
    return Searched(
        len(settings), _shape(choice.survey), _shape(settings[best]), exp(own - again[best])
    )


def _score(pop: Population, survey: Survey, readout: Readout, trials: int, *, seed: int) -> float:
    """The mean log of root mean square errors, two thirds of it ROC AUC's."""
    choice = Choice(survey, readout)
    truth = pop.truth(None, _THRESHOLDS)
    counts = whole_counts(pop.shares(choice, None) * CLIENTS)
    generator = np.random.default_rng(seed)
    squares = np.zeros(len(_METRICS))
    for _ in range(trials):
        tally = draw_tally(survey, counts, clients=CLIENTS, generator=generator)
        histogram = decode(survey, tally, readout=readout)
        for place, name in enumerate(_METRICS):
            error = named_metric(histogram, name).value - truth[name]
            squares[place] += error**2 if isfinite(error) else 1.0
    logs = 0.5 * np.log(squares / trials + 1e-24)
    return float((2.0 * logs[0] + logs[1:].mean()) / 3.0)


def _all(request: Request) -> Iterator[Survey]:
    for grid in dict.fromkeys(_grids(request)):
        for height in (1, 2, 3, 4):
            if height > 1 and grid.cells < 3**height:
                continue
            hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, height))
            rows = [[tilt ** (height - level) for level in range(height)] for tilt in _TILTS]
            for budget in dict.fromkeys(tuple(w / sum(row) for w in row) for row in rows):
                yield draft(request, grid, hierarchy, budget)
        if request.privacy is Privacy.LOCAL and grid.cells <= 64:
            for step in dict.fromkeys(-(-(grid.cells - 1) // k) for k in (1, 2, 3, 4, 5, 7, 9, 11)):
                if 1 < step < grid.cells:
                    yield draft(request, grid, Interleaved(grid.cells, step))


def _grids(request: Request) -> Iterator[Grid]:
    most = 128 if request.privacy is Privacy.LOCAL else 512
    for leaves in _LEAVES:
        if leaves > most:
            continue
        shapes = [Grid.uniform(leaves)]
        if leaves <= 64:
            shapes.append(Grid.arcsine(leaves))
        reference = request.reference
        if reference is not None and not isinstance(reference, np.ndarray):
            shapes = [Grid.warped(reference.scores, leaves, labels=reference.labels)]
        for shape in shapes:
            yield shape
            yield shape.with_edges_at(request.thresholds)


def _shape(survey: Survey) -> str:
    cells = "/".join(map(str, survey.hierarchy.cells_per_level))
    return f"{survey.grid.cells} leaves, {cells}"
