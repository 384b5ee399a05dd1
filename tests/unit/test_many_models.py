"""The noise of many models at once is that of one after the other."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedassay.grid import Grid
from fedassay.hierarchy import Hierarchy, Interleaved
from fedassay.mechanisms import Privacy
from fedassay.planning.build import build_survey
from fedassay.planning.forecast import expected_histogram
from fedassay.planning.many_models import noise_variances
from fedassay.planning.request import LevelChoice, SurveyRequest
from fedassay.planning.score_model import binormal, on_grid
from fedassay.survey import Survey

CLIENTS = 5000
GRID = Grid.uniform(12)
ASKED = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=CLIENTS)
LOCAL = replace(ASKED, privacy=Privacy.LOCAL)
TREE = Hierarchy(12, (3, 4))
SURVEYS = {
    "distributed tree": build_survey(ASKED, GRID, TREE),
    "distributed batches": build_survey(replace(ASKED, levels=LevelChoice.BATCHES), GRID, TREE),
    "local tree": build_survey(LOCAL, GRID, TREE),
    "local cells": build_survey(LOCAL, GRID, Hierarchy.flat(12)),
    "local turns": build_survey(LOCAL, GRID, Interleaved(12, 3)),
    "local turns, empty clients": build_survey(
        replace(LOCAL, allow_empty=True), GRID, Interleaved(12, 3)
    ),
    "shuffled turns": build_survey(
        replace(ASKED, privacy=Privacy.SHUFFLED), GRID, Interleaved(12, 3)
    ),
}


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_each_models_noise_is_that_of_its_expected_histogram(survey: Survey) -> None:
    models = [
        binormal(examples=CLIENTS, positive_rate=rate, auc=auc)
        for rate, auc in ((0.3, 0.8), (0.05, 0.9), (0.5, 0.7))
    ]
    counts = np.stack([on_grid(model, GRID) for model in models])
    weights = np.random.default_rng(1).normal(size=(3, 2, 2, 12))
    weights[:, 1] = 1.0
    found = noise_variances(survey, counts, weights, clients=float(CLIENTS))
    expected = [
        [
            expected_histogram(survey, model, clients=float(CLIENTS)).noise.variance(sums)
            for sums in each
        ]
        for model, each in zip(models, weights, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
    assert (found[:, 0] > 0.0).all()
