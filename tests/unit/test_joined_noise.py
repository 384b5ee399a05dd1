"""The noise of two surveys' leaves, scaled from one fit, is that of a fit of its own."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay.mechanisms import Privacy
from fedassay.noise import DenseNoise
from fedassay.planning.first_survey import first_survey
from fedassay.planning.forecast import expected_histogram, model_for
from fedassay.planning.joined_noise import shared_noise
from fedassay.planning.rehearsal import rehearsed
from fedassay.planning.request import SurveyRequest
from fedassay.planning.second_survey import second_like

ASKED = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=5000, thresholds=(0.3,)
)


@pytest.mark.parametrize("privacy", [Privacy.DISTRIBUTED, Privacy.SITE])
def test_the_noise_of_other_numbers_of_clients_is_that_of_their_own_fit(privacy: Privacy) -> None:
    asked = replace(ASKED, privacy=privacy)
    model = model_for(asked)
    second = rehearsed(asked, first_survey(asked), model, thorough=False)
    for clients in (700, 5000, 123_456):
        first = first_survey(replace(asked, clients=clients))
        own = expected_histogram(
            first, model, clients=float(clients), second=second_like(second, first)
        )
        found = shared_noise(first, second_like(second, first), clients=float(clients))
        assert isinstance(own.noise, DenseNoise)
        assert found is not None
        largest = np.abs(own.noise.covariance).max()
        np.testing.assert_allclose(found, own.noise.covariance, rtol=1e-9, atol=1e-12 * largest)


def test_noise_of_single_reports_is_not_shared() -> None:
    asked = replace(ASKED, privacy=Privacy.LOCAL)
    first = first_survey(asked)
    second = rehearsed(asked, first, model_for(asked), thorough=False)
    assert shared_noise(first, second, clients=5000.0) is None
