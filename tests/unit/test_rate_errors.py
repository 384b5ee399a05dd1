"""The quick bound of a survey's errors at thresholds, and the search that rests on it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fedassay.cut_levels import AnyLevels
from fedassay.estimate import REACH
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved, fanouts_for
from fedassay.mechanisms import Privacy
from fedassay.metrics import confusion_figures
from fedassay.planning.build import build_survey
from fedassay.planning.candidates import THOROUGH
from fedassay.planning.request import SurveyRequest
from fedassay.planning.scorer import Scorer
from fedassay.planning.search import _Search

ASKED = SurveyRequest(
    privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=20_000, thresholds=(0.02, 0.25, 0.8)
)
FEW = replace(ASKED, clients=300)
SHARED = replace(ASKED, privacy=Privacy.DISTRIBUTED)


def in_full(scorer: Scorer, request: SurveyRequest, grid: Grid) -> list[tuple[float, float]]:
    """The bound, and the error by reading every expected histogram, of several levels."""
    levels: list[AnyLevels] = [Hierarchy.flat(grid.cells)]
    levels.append(Hierarchy(grid.cells, fanouts_for(grid.cells, 2)))
    if request.privacy.is_local:
        levels.append(Interleaved(grid.cells, 2))
    found = []
    for each in levels:
        candidate = scorer.candidate(build_survey(request, grid, each))
        rates = scorer._rates_error(scorer._expected(candidate.survey))
        found.append((scorer.least_error(candidate), 2.0 * candidate.area_error + rates))
    return found


@pytest.mark.parametrize("request_", [ASKED, FEW, SHARED], ids=["local", "few", "shared"])
def test_on_edges_the_bound_is_the_error(
    request_: SurveyRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for divisors that hardly stand clear: these may be off by more than their noise."""
    grid = Grid.uniform(16).with_edges_at(request_.thresholds)
    scorer = Scorer.for_request(request_)
    assert scorer._rates(grid).is_exact
    for bound, error in in_full(scorer, request_, grid):
        assert bound <= error + 1e-9 * abs(error)
    monkeypatch.setattr(confusion_figures, "reach_given_clear", lambda *_: REACH)
    for bound, error in in_full(scorer, request_, grid):
        assert bound == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("request_", [ASKED, FEW, SHARED], ids=["local", "few", "shared"])
@pytest.mark.parametrize("cells", [4, 7, 24])
def test_inside_cells_no_error_is_below_its_bound(request_: SurveyRequest, cells: int) -> None:
    scorer = Scorer.for_request(request_)
    for bound, error in in_full(scorer, request_, Grid.cubic(cells)):
        assert bound <= error + 1e-9
        assert bound > error - 6.0  # and it says something


@pytest.mark.parametrize("thresholds", [(), (0.25,), (0.02, 0.25, 0.8)])
def test_who_is_not_judged_in_full_is_not_the_best(thresholds: tuple[float, ...]) -> None:
    request = replace(ASKED, thresholds=thresholds)
    search = _Search.of(request)
    for grid in (Grid.uniform(6), Grid.cubic(12), Grid.uniform(16)):
        trees = search.candidates(grid, THOROUGH)
        assert search.best(trees) is min(trees, key=search.error)
