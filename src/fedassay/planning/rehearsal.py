"""Two steps before the first is taken: which second survey may follow, and what both are worth."""

import numpy as np

from fedassay.draws import draw_tally, whole_counts
from fedassay.errors import SettingInvalid, TooFewReports
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.planning.first_survey import first_survey
from fedassay.planning.forecast import expected_histogram, expected_reports
from fedassay.planning.pilot import Pilot, expected_pilot, pilot_from
from fedassay.planning.request import SurveyRequest
from fedassay.planning.score_model import on_grid
from fedassay.planning.scorer import Scorer
from fedassay.planning.second_survey import second_for
from fedassay.survey import Survey

_SEED = 0


def rehearsed(
    request: SurveyRequest, first: Survey, model: ScoreHistogram, *, thorough: bool = True
) -> Survey:
    """The second survey that would follow if scores lie as the model says, or quickly one like it.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Privacy
    >>> from fedassay.planning.forecast import model_for
    >>> request = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=1000)
    >>> rehearsed(request, first_survey(request), model_for(request)).epsilon
    Fraction(9, 10)
    """
    pilot = expected_pilot(
        first, on_grid(model, first.grid), clients=float(expected_reports(request))
    )
    return second_for(pilot, request.thresholds, thorough=thorough)


def two_step_error(request: SurveyRequest, scorer: Scorer) -> float:
    """The mean log of predicted errors, over the scorer's models and as it weighs them.

    The first survey is rehearsed with its noise: where it finds little, the second's cells
    lie badly, and where it finds nothing it is read alone.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Privacy
    >>> request = SurveyRequest(
    ...     privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=100_000
    ... )
    >>> two_step_error(request, Scorer.for_request(request)) < 0.0
    True
    """
    first = first_survey(request)
    clients = float(expected_reports(request))
    expected = []
    for model in scorer.models:
        pilot = expected_pilot(first, on_grid(model, first.grid), clients=clients)
        second = _second_after_noise(pilot, scorer.thresholds)
        expected.append(
            expected_histogram(first, model, clients=clients, second=second, likely=True)
        )
    return scorer.error_of(expected)


def _second_after_noise(pilot: Pilot, thresholds: tuple[float, ...]) -> Survey | None:
    """A second survey from a first whose noise was drawn; None where nothing can be seen."""
    first = pilot.survey
    leaves = whole_counts(pilot.histogram.counts * (pilot.reports / pilot.clients))
    heard = max(round(pilot.reports), first.minimum_reports)
    if isinstance(first.level_policy, OneLevel):
        # Batches are drawn of clients with one example each.
        heard = max(heard, int(leaves.sum()))
    tally = draw_tally(first, leaves, clients=heard, generator=np.random.default_rng(_SEED))
    try:
        pilot = pilot_from(first, tally, thorough=False)
        return second_for(pilot, thresholds, thorough=False)
    except (SettingInvalid, TooFewReports):
        return None
