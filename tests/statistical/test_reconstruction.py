"""Rows worked out from what is published (Matthews and Harel 2013): never beyond the promise.

The attacker knows all rows but one, whose label a coin decided. Of `TRIALS` guesses that are
right with probability p at most, so many are right by chance less than once in a million times
as `scipy.stats.binom.isf` says. The twins must be found out: an exact release, and noise of an
eighth of what is promised.
"""

import os
from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from experiments.reconstruction import most_right, reconstruct
from scipy import stats

from fedassay.examples import Examples
from fedassay.mechanisms import Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.survey import Survey

FALSE_ALARM = 1e-6
TRIALS = 4000 if os.environ.get("FEDASSAY_VERIFY") else 400
ROWS = 120


def sample() -> Examples:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, ROWS)
    return Examples(labels, np.clip(rng.normal(0.4 + 0.2 * labels, 0.15), 0.0, 1.0))


def survey_of(privacy: Privacy, epsilon: Fraction | None, smallest_cell: int | None) -> Survey:
    return design_survey(
        SurveyRequest(
            privacy=privacy,
            epsilon=epsilon,
            clients=1 if privacy is Privacy.SITE else ROWS,
            dropouts=Fraction(0),
            examples=ROWS,
            # Few cells, on which noise is not thin, and no search for better ones.
            height=None if epsilon is None else 1,
            fanout=None if epsilon is None else 8,
            smallest_cell=smallest_cell,
        )
    ).survey


def beyond(trials: int, bound: float) -> float:
    """The share of right guesses that a bound allows less than once in a million times."""
    return float(stats.binom.isf(FALSE_ALARM, trials, bound)) / trials


@pytest.mark.parametrize("privacy", [each for each in Privacy if each.spends_epsilon])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_no_label_is_guessed_more_often_than_epsilon_allows(
    privacy: Privacy, epsilon: Fraction
) -> None:
    survey = survey_of(privacy, epsilon, None)
    changed = 1 if privacy.is_local else 2
    bound = 1.0 / (1.0 + exp(-changed * float(epsilon)))
    assert most_right(survey) == pytest.approx(bound)
    found = reconstruct(survey, sample(), trials=TRIALS, seed=1)
    assert found.right <= beyond(TRIALS, bound)
    if epsilon == 1:
        # The attack is worth its name: better than a coin.
        assert found.right > 0.55


def test_the_attack_sees_a_shuffler_that_keeps_the_order() -> None:
    """The planted twin of shuffled reports: whose report is whose can be seen."""
    one = sample()
    many = Examples(np.tile(one.labels, 20), np.tile(one.scores, 20))
    request = SurveyRequest(
        privacy=Privacy.SHUFFLED, epsilon=Fraction(1), clients=len(many), dropouts=Fraction(0)
    )
    survey = design_survey(replace(request, height=1, fanout=8)).survey
    found = reconstruct(survey, many, trials=TRIALS, seed=2, in_order=True)
    assert found.right > beyond(TRIALS, most_right(survey))


@pytest.mark.parametrize(
    "privacy", [each for each in Privacy if each.spends_epsilon and each is not Privacy.SHUFFLED]
)
def test_the_attack_sees_noise_of_an_eighth_of_what_is_promised(privacy: Privacy) -> None:
    """The planted twin: epsilon 8 where 1 was promised."""
    found = reconstruct(survey_of(privacy, Fraction(8), None), sample(), trials=TRIALS, seed=2)
    assert found.right > beyond(TRIALS, most_right(survey_of(privacy, Fraction(1), None)))


def test_an_exact_release_gives_every_missing_row_away_and_single_rows_besides() -> None:
    """The unprotected twin: each step of its curve is a row."""
    survey = survey_of(Privacy.SECURE, None, 0)
    found = reconstruct(survey, sample(), trials=40, seed=3)
    assert found.right == 1.0
    assert found.width < 0.001
    assert found.singles > 0.9 * ROWS


def test_a_smallest_cell_shows_no_single_row_and_hides_no_row_from_who_knows_the_others() -> None:
    survey = survey_of(Privacy.SECURE, None, 10)
    found = reconstruct(survey, sample(), trials=40, seed=3)
    assert found.singles == 0.0
    assert found.width > 0.05
    assert found.right == 1.0
    assert most_right(replace(survey, minimum_reports=3)) == 1.0
