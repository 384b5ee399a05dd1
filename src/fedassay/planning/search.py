"""The choice of a survey's parameters; nothing else in the package chooses them.

Every candidate is scored by the closed form of `forecast`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import inf, log

import numpy as np

from fedassay.checks import require_type
from fedassay.decoding import DecodeOptions
from fedassay.examples import Examples
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Privacy
from fedassay.nesting import MOST_NESTED_CELLS
from fedassay.planning.build import budget_of, build_survey, rebuilt_survey
from fedassay.planning.candidates import (
    LEAVES,
    MORE_LEAVES,
    PLAIN,
    THOROUGH,
    Variety,
    candidate_grids,
    candidate_surveys,
    prepare_candidates,
    warped_grid,
)
from fedassay.planning.first_survey import first_survey
from fedassay.planning.forecast import model_for
from fedassay.planning.grouped import grouped_cells, request_for_one
from fedassay.planning.open_settings import check_request
from fedassay.planning.rehearsal import rehearsed, two_step_error
from fedassay.planning.request import Preset, Steps, SurveyRequest
from fedassay.planning.scorer import Candidate, Scorer
from fedassay.planning.second_survey import second_like
from fedassay.survey import Survey


@dataclass(frozen=True)
class SurveyDesign:
    """A survey, and how its tally will be read."""

    survey: Survey
    decode_options: DecodeOptions
    rehearse: Callable[[], Survey] | None = None
    """Makes `second`; None where no second survey follows."""
    may_stay_one: bool = False
    """Whether the first survey may stand alone, nobody having asked for two."""

    @cached_property
    def second(self) -> Survey | None:
        """What may follow a first survey of two, to plan with: it is chosen when that is in."""
        return None if self.rehearse is None else self.rehearse()

    def __post_init__(self) -> None:
        require_type(self.survey, Survey, "a design's survey", "Use design_survey(request).")
        require_type(self.decode_options, DecodeOptions, "decode_options", "Pass DecodeOptions().")


PAPER_HEIGHT = 10
PAPER_BUCKETS = 100
_REFERENCE_CELLS = 2**12
_SHORTLIST = 6
_ROOM = 5
_FEWEST_NESTED = 8
_QUICKLY = 2
# What settles on a number stays on grids of a size: so many times more or fewer cells.
_NEAR = 3
# Grids that stand for all when one survey is compared with two.
_TYPICAL = (8, 24, 128)
# Twice the error of fewer cells, three sizes in a row: no larger grid will do better.
_CLEARLY, _TIMES = log(2.0), 3
# Between two ways to compute the same error.
_ROUNDING = 1e-9


def design_survey(request: SurveyRequest) -> SurveyDesign:
    """Fill in everything that the request leaves open.

    >>> design_survey(SurveyRequest(minimum_reports=5)).survey.minimum_reports
    5
    """
    if isinstance(request.reference, np.ndarray):
        return _design(request, _best, thorough=True)
    return _best_design(request)


@lru_cache(maxsize=4)
def _best_design(request: SurveyRequest) -> SurveyDesign:
    """A plan asks for the same design several times over."""
    return _design(request, _best, thorough=True)


def quick_design(request: SurveyRequest, *, near: SurveyDesign | None = None) -> SurveyDesign:
    """A good design by plain trees alone; with `near`, on a grid of some such size.

    >>> quick_design(SurveyRequest(minimum_reports=5)).survey.minimum_reports
    5
    """
    cells = None if near is None or near.rehearse is not None else near.survey.grid.cells
    return _design(request, lambda search: _quick(search, cells), thorough=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Candidates for one request, each judged once however often a plan comes back to it."""

    request: SurveyRequest
    scorer: Scorer
    _plain: dict[Grid, list[Candidate]] = field(default_factory=dict)
    _errors: dict[Survey, float] = field(default_factory=dict)

    @classmethod
    def of(cls, request: SurveyRequest) -> "_Search":
        """For a request, in however many steps it is to be asked."""
        if isinstance(request.reference, np.ndarray):
            return cls(request, Scorer.for_request(request))
        return _last_searches(replace(request, steps=Steps.ONE))

    def plain(self, grid: Grid) -> list[Candidate]:
        """Plain trees on a grid."""
        if grid not in self._plain:
            self._plain[grid] = self.candidates(grid, PLAIN)
        return self._plain[grid]

    def candidates(self, grid: Grid, variety: Variety) -> list[Candidate]:
        """Every tree of a variety on a grid."""
        trees = candidate_surveys(self.request, grid, variety)
        return [self.scorer.candidate(tree) for tree in trees]

    def error(self, candidate: Candidate) -> float:
        """Of all figures: dearer to predict than that of ROC AUC alone."""
        if candidate.survey not in self._errors:
            self._errors[candidate.survey] = self.scorer.error(candidate)
        return self._errors[candidate.survey]

    def best(self, candidates: Iterable[Candidate]) -> Candidate:
        """The first of those with the smallest error; only who may be best is judged in full."""
        listed = list(candidates)
        least = [self.scorer.least_error(each) for each in listed]
        error, place = inf, 0
        for at in sorted(range(len(listed)), key=least.__getitem__):
            if least[at] > error + _ROUNDING:
                break
            error, place = min((error, place), (self.error(listed[at]), at))
        return listed[place]


@lru_cache(maxsize=4)
def _last_searches(request: SurveyRequest) -> _Search:
    return _Search(request, Scorer.for_request(request))


def _design(
    request: SurveyRequest, choose: Callable[[_Search], Survey], *, thorough: bool
) -> SurveyDesign:
    check_request(request)
    decode_options = decode_options_for(request.preset, request.buckets)
    if request.groups is not None:
        one = request_for_one(request, len(request.groups.names))
        alone = _design(one, choose, thorough=thorough).survey
        grid, levels = grouped_cells(alone.grid, alone.hierarchy, len(request.groups.parts))
        budget = budget_of(alone) if levels.levels == alone.hierarchy.levels else None
        return SurveyDesign(build_survey(request, grid, levels, budget), decode_options)
    if request.preset is Preset.PAPER or request.height is not None:
        grid = _given_grid(request)
        hierarchy = Hierarchy.regular(grid.cells, request.fanout or 2)
        return SurveyDesign(build_survey(request, grid, hierarchy, request.budget), decode_options)
    if not request.privacy.spends_epsilon:
        grid = _exact_grid(request)
        return SurveyDesign(build_survey(request, grid, Hierarchy.flat(grid.cells)), decode_options)
    search = _Search.of(request)
    if _steps(request, search) is Steps.ONE:
        return SurveyDesign(_with_ends(request, choose(search)), decode_options)
    first = first_survey(request)
    return SurveyDesign(
        first,
        decode_options,
        lambda: rehearsed(request, first, model_for(request), thorough=thorough),
        may_stay_one=request.steps is Steps.AUTO,
    )


def _with_ends(request: SurveyRequest, chosen: Survey) -> Survey:
    """The same with counters of exactly 0 and 1, which cost nothing where nobody has such a score.

    Where noise is added to sums, that is (`quiet_ends`); who answers at random pays for every cell.
    A reference says by itself where scores lie.
    """
    is_added = request.privacy is Privacy.DISTRIBUTED
    if not is_added or request.reference is not None or chosen.hierarchy.levels > 1:
        return chosen
    grid = chosen.grid.with_ends()
    return build_survey(request, grid, Hierarchy.flat(grid.cells))


def rebuilt_design(request: SurveyRequest, like: SurveyDesign) -> SurveyDesign:
    """A design of the same grid, levels and shares for another epsilon or number of clients.

    >>> request = SurveyRequest(minimum_reports=5)
    >>> rebuilt_design(request, design_survey(request)).survey.minimum_reports
    5
    """
    second = like.second
    if second is None:
        return SurveyDesign(rebuilt_survey(request, like.survey), like.decode_options)
    first = first_survey(request)
    return SurveyDesign(first, like.decode_options, lambda: second_like(second, first))


def steps_for(request: SurveyRequest) -> Steps:
    """How many surveys to ask in: as the request says, or as errors are predicted to be smaller.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(
    ...     privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=100_000, steps=Steps.AUTO
    ... )
    >>> steps_for(request)
    <Steps.TWO: '2'>
    """
    return _steps(request, _Search.of(request))


def _steps(request: SurveyRequest, search: _Search) -> Steps:
    if request.steps is not Steps.AUTO:
        return request.steps
    if request.fixes_levels or request.clients is None:
        return Steps.ONE
    typical = [
        tree
        for leaves in _TYPICAL
        for grid in candidate_grids(request, leaves)
        for tree in search.plain(grid)
    ]
    # Thresholds cost most to predict: they are for those whose ROC AUC is good.
    good = sorted(typical, key=lambda tree: tree.area_error)[:_SHORTLIST]
    one = search.error(search.best(good))
    return Steps.TWO if two_step_error(request, search.scorer) < one else Steps.ONE


def _best(search: _Search) -> Survey:
    """The candidate with the smallest predicted errors, of ROC AUC and of thresholds alike.

    Grids are first judged with plain trees, then the best with every tree.
    """
    plain = _plain_candidates(search, _sizes(search.request))
    best = search.best(tree for trees in plain[:_SHORTLIST] for tree in trees)
    grid = best.survey.grid
    prepare_candidates(search.request, [grid], THOROUGH)
    return search.best(search.candidates(grid, THOROUGH)).survey


def _quick(search: _Search, cells: int | None) -> Survey:
    """The best plain tree on the two grids whose ROC AUC is best, all sizes or some near one."""
    sizes = _sizes(search.request)
    if cells is not None:
        near = [leaves for leaves in sizes if cells <= _NEAR * leaves and leaves <= _NEAR * cells]
        sizes = near or sizes
    plain = _plain_candidates(search, sizes)
    quickly = (tree for trees in plain[:_QUICKLY] for tree in trees)
    return search.best(quickly).survey


def _sizes(request: SurveyRequest) -> Sequence[int]:
    return MORE_LEAVES if isinstance(request.reference, Examples) else LEAVES


def _plain_candidates(search: _Search, sizes: Sequence[int]) -> list[list[Candidate]]:
    """Plain trees on every grid, from few cells on, until more are clearly worse; best first."""
    request = search.request
    if request.reference is None:
        # Grids that follow a reference cost more to make than is gained, if they are not needed.
        grids = (grid for leaves in sizes for grid in candidate_grids(request, leaves))
        prepare_candidates(request, grids, PLAIN)
    candidates: list[list[Candidate]] = []
    best, worse = inf, 0
    for leaves in sizes:
        of_size = [search.plain(grid) for grid in candidate_grids(request, leaves)]
        error = min(tree.area_error for trees in of_size for tree in trees)
        worse = worse + 1 if error > best + _CLEARLY else 0
        best = min(best, error)
        candidates += of_size
        if worse == _TIMES and len(candidates) >= _SHORTLIST:
            break
    return sorted(candidates, key=lambda trees: min(tree.area_error for tree in trees))


def decode_options_for(preset: Preset, buckets: int | None) -> DecodeOptions:
    """How a preset reads a tally.

    >>> decode_options_for(Preset.PAPER, None).buckets
    100
    """
    if preset is Preset.PAPER:
        return DecodeOptions(smooth=False, reconcile=False, buckets=buckets or PAPER_BUCKETS)
    return DecodeOptions(buckets=buckets)


def _given_grid(request: SurveyRequest) -> Grid:
    """The grid when the user fixes its size."""
    cells = (request.fanout or 2) ** (request.height or PAPER_HEIGHT)
    if request.preset is Preset.PAPER:
        return Grid.uniform(cells)
    if request.reference is not None:
        return warped_grid(request.reference, cells).with_edges_at(request.thresholds)
    return Grid.uniform(cells).with_edges_at(request.thresholds)


def _exact_grid(request: SurveyRequest) -> Grid:
    """Without noise cells cost nothing but the privacy of who is alone in one."""
    reference = request.reference
    if request.smallest:
        cells = nested_cells(request.rows_expected, request.smallest)
        if reference is None:
            return Grid.nested(cells, thresholds=request.thresholds)
        scores, labels = (
            (reference.scores, reference.labels)
            if isinstance(reference, Examples)
            else (reference, None)
        )
        return Grid.nested(cells, reference=scores, labels=labels, thresholds=request.thresholds)
    grid = Grid.fine() if reference is None else warped_grid(reference, _REFERENCE_CELLS)
    return grid.with_edges_at(request.thresholds)


def nested_cells(rows: int, smallest: int) -> int:
    """So many cells that one holds five times the smallest on average, and few hold fewer.

    Whoever adds up sees the sums before they are merged. Scores crowd, though, and nobody knows
    where beforehand: some cells will hold fewer, unless a reference says where scores lie.

    >>> nested_cells(100_000, 10), nested_cells(500, 10)
    (2000, 10)
    """
    return min(max(rows // (_ROOM * smallest), _FEWEST_NESTED), MOST_NESTED_CELLS)
