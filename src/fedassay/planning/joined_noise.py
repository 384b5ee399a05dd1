"""The noise of two surveys' leaves, read together, before anybody has answered."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from fedassay.cut_levels import AnyLevels
from fedassay.examples import FloatArray
from fedassay.grid import Grid
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Polya
from fedassay.reconcile import Observed, leaves_covariance
from fedassay.survey import Survey
from fedassay.two_steps import leaf_of


def shared_noise(first: Survey, second: Survey, *, clients: float) -> FloatArray | None:
    """The covariance of all leaves where clients share the noise; None where they do not.

    Whatever the number of clients, it is that of one share alone, times the clients for each
    share: planning backwards asks for many numbers, and fits once.

    >>> from fractions import Fraction
    >>> from fedassay.mechanisms import Privacy
    >>> from fedassay.planning.first_survey import first_survey
    >>> from fedassay.planning.request import SurveyRequest
    >>> request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=1000)
    >>> first = first_survey(request)
    >>> shared_noise(first, first, clients=1000) is None  # each client has noise of its own
    True
    """
    noise = [
        mechanism
        for survey in (first, second)
        for mechanism in survey.mechanisms
        if isinstance(mechanism, Polya) and _all_answer(survey)
    ]
    shares = {mechanism.noise_shares for mechanism in noise}
    if len(noise) < len(first.mechanisms) + len(second.mechanisms) or len(shares) > 1:
        return None
    alone = tuple(replace(mechanism, noise_shares=1) for mechanism in noise)
    places = (first.grid, first.hierarchy), (second.grid, second.hierarchy)
    return _of_one_share(places, alone, total_is_known=first.total_is_known) * (
        clients / shares.pop()
    )


def _all_answer(survey: Survey) -> bool:
    is_split = isinstance(survey.level_policy, OneLevel)
    return not is_split and (survey.step is None or survey.step.client_fraction == 1)


@lru_cache(maxsize=2)
def _of_one_share(
    places: tuple[tuple[Grid, AnyLevels], ...],
    noise: tuple[Polya, ...],
    *,
    total_is_known: bool,
) -> FloatArray:
    fine = places[-1][0]
    observed: list[Observed] = []
    for grid, levels in places:
        for level in range(levels.levels):
            rows = levels.rows(level)
            rows = rows if grid == fine else rows[:, :, leaf_of(grid, fine)]
            variance = noise[len(observed)].law().variance_per_report
            variances = np.full(rows.shape[:2], variance)
            observed.append(Observed(rows, np.zeros_like(variances), variances))
    return leaves_covariance(observed, total_is_known=total_is_known)
