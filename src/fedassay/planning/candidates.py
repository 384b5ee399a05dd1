"""Which grids and which levels the search tries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved, fanouts_for
from fedassay.mechanisms import Privacy
from fedassay.planning.build import build_survey
from fedassay.planning.crowd import LevelShares, can_fill, find_noise
from fedassay.planning.request import SurveyRequest
from fedassay.survey import Survey

LEAVES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
# A labelled reference tells neighbouring sizes apart; models of the unknown do not.
MORE_LEAVES = tuple(sorted({*LEAVES, 3, 5, 7, 10, 20, 40}))
_MANY_LEAVES = 32
_CUBIC_BELOW = 64
_MOST_INTERLEAVED = 48
_ALWAYS_ON_EDGES = 2


@dataclass(frozen=True, slots=True)
class Variety:
    """Which trees, and which interleaved levels, to try on a grid."""

    levels: tuple[int, ...]
    tilts: tuple[Fraction, ...]
    interleaved_cells: tuple[int, ...]


PLAIN = Variety((1, 2), (Fraction(3, 2),), (3, 6))
THOROUGH = Variety(
    (1, 2, 3),
    (Fraction(2), Fraction(3, 2), Fraction(1), Fraction(2, 3)),
    (2, 3, 4, 6, 8, 12),
)


def candidate_surveys(request: SurveyRequest, grid: Grid, variety: Variety) -> Iterator[Survey]:
    """Surveys over one grid: which levels, and how they share epsilon or clients.

    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> [s.hierarchy.levels for s in candidate_surveys(request, Grid.uniform(16), PLAIN)]
    [1, 2, 8, 3]
    """
    for levels, budget in _levels(request, grid, variety):
        yield build_survey(request, grid, levels, budget)


def prepare_candidates(request: SurveyRequest, grids: Iterable[Grid], variety: Variety) -> None:
    """Find for all surveys over some grids at once what each of them would look for alone.

    They are the same surveys with it and without.

    >>> request = SurveyRequest(privacy=Privacy.SHUFFLED, epsilon=Fraction(1), clients=5_000)
    >>> prepare_candidates(request, [Grid.uniform(16)], PLAIN)
    >>> [s.hierarchy.levels for s in candidate_surveys(request, Grid.uniform(16), PLAIN)]
    [1, 2, 8, 3]
    """
    if request.privacy is Privacy.SHUFFLED:
        find_noise(request, [each for grid in grids for each in _levels(request, grid, variety)])


def _levels(request: SurveyRequest, grid: Grid, variety: Variety) -> Iterator[LevelShares]:
    """Levels over one grid that its clients can fill, and how these share epsilon or clients."""
    for height in variety.levels:
        # A level more pays off only when every level has several children.
        if height > 1 and grid.cells < 4**height:
            continue
        hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, height))
        rows = [[tilt ** (height - level) for level in range(height)] for tilt in variety.tilts]
        for budget in dict.fromkeys(tuple(weight / sum(row) for weight in row) for row in rows):
            if request.privacy.needs_crowd and not can_fill(request, budget):
                continue
            yield hierarchy, budget
    if not request.privacy.is_local or grid.cells > _MOST_INTERLEAVED:
        return
    for cells in variety.interleaved_cells:
        step = -(-(grid.cells - 1) // (cells - 1))
        if 1 < step < grid.cells:
            levels = Interleaved(grid.cells, step)
            even = (Fraction(1, levels.levels),) * levels.levels
            if request.privacy.needs_crowd and not can_fill(request, even):
                continue
            yield levels, even


def candidate_grids(request: SurveyRequest, leaves: int) -> list[Grid]:
    """Grids of about so many leaves, with thresholds on edges where there is room for them.

    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> [grid.cells for grid in candidate_grids(request, 16)]
    [16, 16]
    """
    if request.reference is not None:
        shapes = [warped_grid(request.reference, leaves)]
    else:
        shapes = [Grid.uniform(leaves)]
        if leaves < _CUBIC_BELOW:
            # Finer ends pay while cells are few; among many, even ones feel less noise.
            shapes.append(Grid.cubic(leaves))
        if not request.privacy.is_local and leaves >= _MANY_LEAVES:
            # Two cells more cost little there, and scores of exactly 0 and 1 are common.
            shapes = [shape.with_ends() for shape in shapes]
    # What is asked for at a threshold is exact on an edge, and open inside a cell, where scores may
    # be tied on either side of it. But where every cell is dear, as under local privacy, many
    # among few take the place of better ones: then intervals say what is open.
    room = 1 if isinstance(request.reference, Examples) else 4
    asked = len(request.thresholds)
    if request.privacy.is_local and asked > _ALWAYS_ON_EDGES and room * asked > leaves:
        return shapes
    pinned = [shape.with_edges_at(request.thresholds) for shape in shapes]
    return list(dict.fromkeys(pinned))


def warped_grid(reference: Examples | FloatArray, cells: int) -> Grid:
    """A grid warped to a reference, with labels or without.

    >>> import numpy as np
    >>> warped_grid(np.linspace(0.0, 0.5, 1000), 8).cells
    8
    """
    if isinstance(reference, Examples):
        return _warped_to(reference, cells)
    return Grid.warped(reference, cells)


@lru_cache(maxsize=32)
def _warped_to(reference: Examples, cells: int) -> Grid:
    """Planning backwards asks for the same grids again and again."""
    return Grid.warped(reference.scores, cells, labels=reference.labels)
