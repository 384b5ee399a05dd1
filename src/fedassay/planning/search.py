"""The choice of a survey's parameters; nothing else in the package chooses them.

Every candidate is judged by the closed form of `prediction`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, log

from fedassay.decoding import DecodeOptions
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved, fanouts_for
from fedassay.mechanisms import Privacy
from fedassay.planning.build import build_survey
from fedassay.planning.request import Preset, SurveyRequest, check_request
from fedassay.planning.scorer import Candidate, Scorer
from fedassay.survey import Survey


@dataclass(frozen=True, slots=True)
class SurveyDesign:
    """A survey, and how its tally will be read."""

    survey: Survey
    decode_options: DecodeOptions


PAPER_HEIGHT = 10
PAPER_BUCKETS = 100
_REFERENCE_CELLS = 2**12
_LEAVES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
# A labelled reference tells neighbouring sizes apart; models of the unknown do not.
_MORE_LEAVES = tuple(sorted({*_LEAVES, 3, 5, 7, 10, 20, 40}))
_SHORTLIST = 10
# Twice the error of fewer cells, three sizes in a row: no larger grid will do better.
_CLEARLY, _TIMES = log(2.0), 3
_MANY_LEAVES = 32
_ARCSINE_BELOW = 64
_MOST_INTERLEAVED = 48


def design_survey(request: SurveyRequest) -> SurveyDesign:
    """Fill in everything that the request leaves open."""
    check_request(request)
    decode_options = decode_options_for(request.preset, request.buckets)
    if request.preset is Preset.PAPER or request.height is not None:
        grid = _given_grid(request)
        hierarchy = Hierarchy.regular(grid.cells, request.fanout or 2)
        return SurveyDesign(build_survey(request, grid, hierarchy, request.budget), decode_options)
    if request.privacy is Privacy.SECURE:
        grid = _exact_grid(request)
        return SurveyDesign(build_survey(request, grid, Hierarchy.flat(grid.cells)), decode_options)
    return SurveyDesign(_best(request), decode_options)


def _best(request: SurveyRequest) -> Survey:
    """The candidate with the smallest predicted errors, of ROC AUC and of thresholds alike.

    Grids are first judged with plain trees, then the best with every tree.
    """
    scorer = Scorer.for_request(request)
    plain = _plain_candidates(request, scorer)
    plain.sort(key=lambda trees: min(tree.area_error for tree in trees))
    finalists = [min(map(scorer.error, trees)) for trees in plain[:_SHORTLIST]]
    ranked = sorted(range(len(finalists)), key=finalists.__getitem__)
    thorough = [
        scorer.candidate(tree)
        for place in ranked[:2]
        for tree in _trees(request, plain[place][0].survey.grid, _THOROUGH)
    ]
    return min(thorough, key=scorer.error).survey


def _plain_candidates(request: SurveyRequest, scorer: Scorer) -> list[list[Candidate]]:
    """Plain trees on every grid, from few cells on, until more are clearly worse."""
    sizes = _MORE_LEAVES if isinstance(request.reference, Examples) else _LEAVES
    found: list[list[Candidate]] = []
    best, worse = inf, 0
    for leaves in sizes:
        of_size = [
            [scorer.candidate(tree) for tree in _trees(request, grid, _PLAIN)]
            for grid in _grids(request, leaves)
        ]
        error = min(tree.area_error for trees in of_size for tree in trees)
        worse = worse + 1 if error > best + _CLEARLY else 0
        best = min(best, error)
        found += of_size
        if worse == _TIMES and len(found) >= _SHORTLIST:
            break
    return found


def decode_options_for(preset: Preset, buckets: int | None) -> DecodeOptions:
    """How a preset reads a tally."""
    if preset is Preset.PAPER:
        return DecodeOptions(smooth=False, reconcile=False, buckets=buckets or PAPER_BUCKETS)
    return DecodeOptions(buckets=buckets)


@dataclass(frozen=True, slots=True)
class _Variety:
    """Which trees, and which interleaved levels, to try on a grid."""

    levels: tuple[int, ...]
    tilts: tuple[Fraction, ...]
    interleaved_cells: tuple[int, ...]


_PLAIN = _Variety((1, 2), (Fraction(3, 2),), (3, 6))
_THOROUGH = _Variety(
    (1, 2, 3),
    (Fraction(2), Fraction(3, 2), Fraction(1), Fraction(2, 3)),
    (2, 3, 4, 6, 8, 12),
)


def _trees(request: SurveyRequest, grid: Grid, variety: _Variety) -> Iterator[Survey]:
    """Surveys over one grid: which levels, and how they share epsilon or clients."""
    for height in variety.levels:
        # A level more pays off only when every level has several children.
        if height > 1 and grid.cells < 4**height:
            continue
        hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, height))
        rows = [[tilt ** (height - level) for level in range(height)] for tilt in variety.tilts]
        for budget in dict.fromkeys(tuple(weight / sum(row) for weight in row) for row in rows):
            yield build_survey(request, grid, hierarchy, budget)
    if request.privacy is not Privacy.LOCAL or grid.cells > _MOST_INTERLEAVED:
        return
    for cells in variety.interleaved_cells:
        step = -(-(grid.cells - 1) // (cells - 1))
        if 1 < step < grid.cells:
            yield build_survey(request, grid, Interleaved(grid.cells, step))


def _grids(request: SurveyRequest, leaves: int) -> list[Grid]:
    if request.reference is not None:
        shapes = [_warped(request.reference, leaves)]
    else:
        shapes = [Grid.uniform(leaves)]
        if leaves < _ARCSINE_BELOW:
            # Finer ends pay while cells are few; among many, even ones feel less noise.
            shapes.append(Grid.cubic(leaves))
        if request.privacy is Privacy.DISTRIBUTED and leaves >= _MANY_LEAVES:
            # Two cells more cost little there, and scores of exactly 0 and 1 are common.
            shapes = [shape.with_ends() for shape in shapes]
    # Thresholds on edges are exact; but where every cell is dear, as under local privacy, many
    # among few take the place of better ones.
    room = 1 if isinstance(request.reference, Examples) else 4
    if request.privacy is Privacy.LOCAL and room * len(request.thresholds) > leaves:
        return shapes
    pinned = [shape.with_edges_at(request.thresholds) for shape in shapes]
    return list(dict.fromkeys([*pinned, *shapes]))


def _warped(reference: Examples | FloatArray, cells: int) -> Grid:
    if isinstance(reference, Examples):
        return _warped_to(reference, cells)
    return Grid.warped(reference, cells)


@lru_cache(maxsize=32)
def _warped_to(reference: Examples, cells: int) -> Grid:
    """Planning backwards asks for the same grids again and again."""
    return Grid.warped(reference.scores, cells, labels=reference.labels)


def _given_grid(request: SurveyRequest) -> Grid:
    """The grid when the user fixes its size."""
    cells = (request.fanout or 2) ** (request.height or PAPER_HEIGHT)
    if request.preset is Preset.PAPER:
        return Grid.uniform(cells)
    if request.reference is not None:
        return _warped(request.reference, cells).with_edges_at(request.thresholds)
    return Grid.uniform(cells).with_edges_at(request.thresholds)


def _exact_grid(request: SurveyRequest) -> Grid:
    """Without noise cells cost nothing, and the leaves say it all."""
    reference = request.reference
    grid = Grid.fine() if reference is None else _warped(reference, _REFERENCE_CELLS)
    return grid.with_edges_at(request.thresholds)
