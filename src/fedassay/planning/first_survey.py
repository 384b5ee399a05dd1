"""The first of two surveys: it finds where scores lie, wherever they crowd."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fedassay.cut_levels import MAX_CUT_LEAVES
from fedassay.errors import SettingInvalid
from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, fanouts_for
from fedassay.planning.build import build_survey
from fedassay.planning.request import SurveyRequest
from fedassay.survey import Survey
from fedassay.survey_steps import FirstOfTwo

FIRST_SHARE = Fraction(1, 10)
"""Of epsilon, or of the clients under local privacy."""
_PARTS = 2
# Down to scores of one in a thousand, where most rare events are, octaves have more parts.
_MORE_PARTS, _RARE = 4, 2.0**-10
_MIDDLE = 128
_LEVELS = 3


def first_survey(request: SurveyRequest) -> Survey:
    """A tall tree over octaves of odds, with even cells where scores spread.

    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=1000)
    >>> first_survey(request).step.total_epsilon, first_survey(request).epsilon
    (Fraction(1, 1), Fraction(1, 10))
    """
    total = request.epsilon
    if total is None:
        raise SettingInvalid(
            "exact sums tell where scores lie at no cost; a first survey is for privacy that "
            "spends epsilon. Choose distributed or local privacy, or steps=1."
        )
    grid = first_grid(request.thresholds)
    if grid.cells > MAX_CUT_LEAVES:
        raise SettingInvalid(
            f"two surveys that are read together have at most {MAX_CUT_LEAVES:,} cells; these "
            f"thresholds make {grid.cells:,}. Name fewer thresholds, or choose steps=1."
        )
    hierarchy = Hierarchy(grid.cells, fanouts_for(grid.cells, _LEVELS))
    share = FIRST_SHARE
    if request.privacy.is_local:
        survey = build_survey(request, grid, hierarchy)
        return replace(survey, step=FirstOfTwo(total, share))
    survey = build_survey(replace(request, epsilon=total * share), grid, hierarchy)
    return replace(survey, step=FirstOfTwo(total, Fraction(1)))


def first_grid(thresholds: Sequence[float] = ()) -> Grid:
    """Octaves in two or four parts each, even cells of 1/128, thresholds on edges.

    >>> first_grid().cells
    282
    """
    octaves = Grid.octaves(_PARTS)
    finer = Grid.octaves(_MORE_PARTS).edges
    finer = finer[(finer >= _RARE) & (finer <= 1.0 - _RARE)]
    middle = np.arange(1, _MIDDLE) / _MIDDLE
    inside = [threshold for threshold in thresholds if 0.0 < threshold < 1.0]
    return Grid(np.unique(np.concatenate([octaves.edges, finer, middle, inside])), octaves.rule)
