"""A seeded simulation repeats as a whole, and its trials differ from each other."""

from fractions import Fraction

import numpy as np
import pytest

from fedassay import Examples, SurveyRequest
from fedassay.cli.simulate import run_trials
from fedassay.mechanisms import Privacy
from fedassay.planning.search import design_survey
from tests.surveys import cohort_of

ROWS = 400


@pytest.mark.parametrize("each_client", [False, True])
def test_trials_of_one_seed_differ_and_the_seed_repeats_them_all(each_client: bool) -> None:
    rng = np.random.default_rng(2)
    scores = rng.random(ROWS)
    cohort = cohort_of(Examples((rng.random(ROWS) < scores).astype(int), scores))
    design = design_survey(
        SurveyRequest(
            privacy=Privacy.LOCAL, epsilon=Fraction(5), clients=ROWS, examples=ROWS, height=3
        )
    )

    def areas(seed: int) -> list[float]:
        results, _ = run_trials(
            design, cohort, thresholds=(0.5,), trials=3, seed=seed, each_client=each_client
        )
        return [result["prevalence"].value for result in results]

    first = areas(7)
    # Noise of a continuous estimate: equal values would be the same draws.
    assert len(set(first)) == 3
    assert areas(7) == first
    assert areas(8) != first
