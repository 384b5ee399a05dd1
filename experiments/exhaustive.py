"""Every survey worth trying, simulated, against the planner's choice."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
from numpy.typing import NDArray

from experiments.populations import Population
from fedassay.decoding import DecodeOptions, decode
from fedassay.draws import draw_tally
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved, fanouts_for
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.metrics.named import named_metric
from fedassay.planning.build import build_survey
from fedassay.planning.forecast import expected_histogram
from fedassay.planning.request import SurveyRequest
from fedassay.planning.score_model import from_reference
from fedassay.planning.search import design_survey
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
_FINE = 2**14
_COHORTS = 30
_FEW_COHORTS = 5
_FINALISTS = 10


@dataclass(frozen=True, slots=True)
class Searched:
    """What an exhaustive search found."""

    tried: int
    chosen: str
    best: str
    ratio: float


@dataclass(frozen=True, slots=True, eq=False)
class Cohorts:
    """Groups of clients drawn from a population, on a grid too fine to matter."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    """Cohort x label x fine cell."""
    exact: NDArray[np.float64]
    """Cohort x metric."""

    @classmethod
    def drawn(cls, pop: Population) -> "Cohorts":
        """Clients with replacement, and their own metrics."""
        edges = np.unique(np.concatenate([np.arange(_FINE + 1) / _FINE, _THRESHOLDS]))
        shares = Grid.explicit(edges).count(pop.rows) / len(pop.rows)
        generator = np.random.default_rng(17)
        counts = generator.multinomial(CLIENTS, shares.ravel(), _COHORTS)
        counts = counts.reshape(_COHORTS, *shares.shape)
        exact = [_values(ScoreHistogram(edges, each.astype(np.float64))) for each in counts]
        return cls(edges, counts, np.array(exact))

    def on(self, grid: Grid) -> NDArray[np.int64]:
        """Cohort x label x cell of a survey's grid."""
        cells = grid.locate(0.5 * (self.edges[1:] + self.edges[:-1]))
        starts = np.searchsorted(cells, np.arange(grid.cells))
        padded = np.concatenate([self.counts, np.zeros_like(self.counts[..., :1])], axis=-1)
        sums: NDArray[np.int64] = np.add.reduceat(padded, starts, axis=-1)
        # A cell without any fine cell would repeat its neighbour's first.
        sums[..., np.diff(np.append(starts, len(cells))) == 0] = 0
        return sums


def compare_with_all(
    pop: Population, privacy: Privacy, epsilon: Fraction, *, has_reference: bool, trials: int
) -> Searched:
    """The planner's choice against the best of all settings.

    All are ranked by the closed form of their noise with the binning errors of drawn
    cohorts; the best and the choice are then simulated.
    """
    request = SurveyRequest(
        privacy=privacy,
        epsilon=epsilon,
        clients=CLIENTS,
        dropouts=Fraction(0),
        thresholds=_THRESHOLDS,
        reference=pop.reference if has_reference else None,
    )
    design, cohorts = design_survey(request), Cohorts.drawn(pop)
    model = from_reference(pop.rows, examples=float(CLIENTS), positive_rate=None)
    settings = list(_all(request))
    first = [_ranked(survey, model, cohorts) for survey in settings]
    order = [int(place) for place in np.argsort(first)[:_FINALISTS]]
    again = {i: _simulated(settings[i], design.decode_options, cohorts, trials) for i in order}
    best = min(again, key=lambda i: again[i])
    own = _simulated(design.survey, design.decode_options, cohorts, trials)
    return Searched(
        len(settings), _shape(design.survey), _shape(settings[best]), exp(own - again[best])
    )


def _ranked(survey: Survey, model: ScoreHistogram, cohorts: Cohorts) -> float:
    expected = expected_histogram(survey, model, clients=CLIENTS)
    found = [named_metric(expected, name) for name in _METRICS]
    noise = np.array([each.noise_sd if each.is_available else 1.0 for each in found])
    leaves = cohorts.on(survey.grid)[:_FEW_COHORTS].astype(np.float64)
    binned = [_values(ScoreHistogram(survey.grid.edges, each)) for each in leaves]
    bias = np.array(binned) - cohorts.exact[:_FEW_COHORTS]
    return _score(noise**2 + _filled(bias**2).mean(axis=0))


def _simulated(
    survey: Survey, decode_options: DecodeOptions, cohorts: Cohorts, trials: int
) -> float:
    generator = np.random.default_rng(2)
    leaves = cohorts.on(survey.grid)
    squares = []
    for trial in range(trials):
        place = trial % _COHORTS
        tally = draw_tally(survey, leaves[place], clients=CLIENTS, generator=generator)
        found = _values(decode(survey, tally, decode_options=decode_options))
        squares.append((np.array(found) - cohorts.exact[place]) ** 2)
    return _score(_filled(np.array(squares)).mean(axis=0))


def _values(histogram: ScoreHistogram) -> list[float]:
    return [named_metric(histogram, name).value for name in _METRICS]


def _filled(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where there is no answer, the error is 1."""
    return np.where(np.isfinite(squares), squares, 1.0)


def _score(squares: NDArray[np.float64]) -> float:
    """The mean log of root mean square errors, two thirds of it ROC AUC's."""
    logs = 0.5 * np.log(squares + 1e-24)
    return float((2.0 * logs[0] + logs[1:].mean()) / 3.0)


def _all(request: SurveyRequest) -> Iterator[Survey]:
    for grid in dict.fromkeys(_grids(request)):
        for height in (1, 2, 3, 4):
            if height > 1 and grid.cells < 3**height:
                continue
            hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, height))
            rows = [[tilt ** (height - level) for level in range(height)] for tilt in _TILTS]
            for budget in dict.fromkeys(tuple(w / sum(row) for w in row) for row in rows):
                yield build_survey(request, grid, hierarchy, budget)
        if request.privacy is Privacy.LOCAL and grid.cells <= 64:
            for step in dict.fromkeys(-(-(grid.cells - 1) // k) for k in (1, 2, 3, 4, 5, 7, 9, 11)):
                if 1 < step < grid.cells:
                    yield build_survey(request, grid, Interleaved(grid.cells, step))


def _grids(request: SurveyRequest) -> Iterator[Grid]:
    most = 128 if request.privacy is Privacy.LOCAL else 512
    for leaves in _LEAVES:
        if leaves > most:
            continue
        shapes = [Grid.uniform(leaves)]
        if leaves <= 64:
            shapes.append(Grid.cubic(leaves))
        reference = request.reference
        if reference is not None and not isinstance(reference, np.ndarray):
            shapes = [Grid.warped(reference.scores, leaves, labels=reference.labels)]
        for shape in shapes:
            yield shape
            yield shape.with_edges_at(request.thresholds)


def _shape(survey: Survey) -> str:
    cells = survey.hierarchy.cells_per_level
    shown = "/".join(map(str, cells[:4])) + ("/…" if len(cells) > 4 else "")
    return f"{survey.grid.cells} leaves, {shown}"
