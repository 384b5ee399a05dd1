"""Which surveys the search tries, and that it takes the best of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay import Examples, Grid, Hierarchy, Privacy, SurveyRequest
from fedassay.level_policy import OneLevel
from fedassay.planning.build import build_survey
from fedassay.planning.candidates import PLAIN, candidate_grids, candidate_surveys, warped_grid
from fedassay.planning.forecast import forecast, model_for
from fedassay.planning.request import Preset
from fedassay.planning.search import design_survey
from fedassay.survey import Survey

LOCAL = SurveyRequest(
    privacy=Privacy.LOCAL, epsilon=Fraction(2), clients=20_000, positive_rate=0.3, auc=0.8
)
DISTRIBUTED = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=2_000, positive_rate=0.3, auc=0.8
)


def test_coarse_levels_get_the_larger_share() -> None:
    """Their counts are used by every answer; a tilt of 3 to 2 is 3/5 and 2/5."""
    surveys = list(candidate_surveys(LOCAL, Grid.uniform(16), PLAIN))
    policy = surveys[1].level_policy
    assert surveys[1].hierarchy.cells_per_level == (4, 16)
    assert isinstance(policy, OneLevel)
    assert policy.client_fractions == (Fraction(3, 5), Fraction(2, 5))


def test_thresholds_lie_on_edges_where_there_is_room() -> None:
    request = replace(DISTRIBUTED, thresholds=(0.37,))
    for grid in candidate_grids(request, 16)[:2]:
        assert 0.37 in grid.edges.tolist()
    # One or two are on edges however few the cells are: no other grid is tried.
    few = replace(LOCAL, thresholds=(0.1, 0.37))
    for leaves in (4, 8, 32):
        assert all({0.1, 0.37} <= set(grid.edges.tolist()) for grid in candidate_grids(few, leaves))
    # Under local privacy three thresholds among four cells would leave no choice.
    crowded = replace(LOCAL, thresholds=(0.1, 0.37, 0.6))
    assert all(0.37 not in grid.edges.tolist() for grid in candidate_grids(crowded, 4))


def test_a_grid_warped_to_scores_has_as_many_in_every_cell() -> None:
    scores = np.random.default_rng(0).beta(1.0, 8.0, 4000)
    counts = np.histogram(scores, warped_grid(scores, 8).edges)[0]
    assert np.abs(counts - 500).max() < 60


@pytest.mark.parametrize("request_", [LOCAL, DISTRIBUTED], ids=["local", "distributed"])
def test_the_chosen_survey_is_about_as_good_as_any_flat_one(request_: SurveyRequest) -> None:
    """By the closed form of the area's error, over flat surveys of even cells."""
    model, clients = model_for(request_), request_.clients or 1

    def error(survey: Survey) -> float:
        return forecast(survey, model, clients=clients)["roc_auc"].error_quantile()

    rivals = [
        error(build_survey(request_, Grid.uniform(cells), Hierarchy.flat(cells)))
        for cells in (2, 4, 8, 16, 32, 128)
    ]
    assert error(design_survey(request_).survey) <= 1.1 * min(rivals)


def test_the_papers_preset_is_the_papers_survey() -> None:
    request = replace(DISTRIBUTED, preset=Preset.PAPER)
    design = design_survey(request)
    assert design.survey.hierarchy.cells_per_level == tuple(2**level for level in range(1, 11))
    assert np.diff(design.survey.grid.edges) == pytest.approx(1 / 1024)
    options = design.decode_options
    assert (options.smooth, options.reconcile, options.buckets) == (False, False, 100)


def test_exact_sums_have_fine_cells_with_thresholds_on_their_edges() -> None:
    request = SurveyRequest(examples=100_000, thresholds=(0.37,))
    finest = replace(request, smallest_cell=0)
    # With a smallest cell of 10 a cell holds five times as many on average, or the finest grid.
    assert 2000 <= design_survey(request).survey.grid.cells < 2020
    assert design_survey(finest).survey.grid.cells >= 2**14
    reference = Examples(np.arange(4000) % 2, np.linspace(0.001, 0.1, 4000))
    for asked in (request, finest):
        assert 0.37 in design_survey(asked).survey.grid.edges.tolist()
        warped = design_survey(replace(asked, reference=reference))
        edges = warped.survey.grid.edges
        assert np.median(edges) < 0.1
        assert 0.37 in edges.tolist()


@pytest.mark.parametrize(
    ("request_", "cells"),
    [
        ({}, 200),
        ({"clients": 14}, 200),
        ({"clients": 50_000}, 1000),
        ({"clients": 50_000, "examples": 2000}, 40),
        ({"examples": 10}, 8),
        ({"examples": 10**9}, 4096),
        ({"examples": 100_000, "smallest_cell": 40}, 500),
    ],
)
def test_exact_sums_have_as_many_cells_as_rows_and_the_smallest_cell_allow(
    request_: dict[str, int], cells: int
) -> None:
    assert design_survey(SurveyRequest(**request_)).survey.grid.cells == cells  # type: ignore[arg-type]  # settings by name
