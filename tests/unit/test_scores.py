"""Brier score and log loss where scores sit at the very ends."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from fedassay import Grid, ScoreHistogram, metrics


@pytest.mark.parametrize("at_ends", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("cells", [8, 16, 64])
def test_scores_at_the_very_ends_are_within_the_likely_error(at_ends: float, cells: int) -> None:
    """A share of the scores is exactly 0 or 1, as trees and rules make them."""
    generator = np.random.default_rng(4)
    scores = generator.beta(2, 2, 20_000)
    scores = np.where(generator.random(20_000) < at_ends, np.rint(scores), scores)
    labels = (generator.random(20_000) < scores).astype(int)
    histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(cells))
    exact = brier_score_loss(labels, scores)
    estimate = metrics.brier(histogram)
    assert abs(estimate.value - exact) < 2.5 * estimate.binning_sd
    assert estimate.binning_sd < 0.05
    losses = metrics.log_loss(histogram)
    assert abs(losses.value - log_loss(labels, scores)) < 2.5 * losses.binning_sd
