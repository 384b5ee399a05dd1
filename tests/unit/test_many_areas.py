"""ROC AUC of many models at once is that of one after the other."""

import numpy as np
import pytest

from fedassay.estimate import NotEnoughData
from fedassay.examples import FloatArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.roc_auc import area_gradient, even_area, roc_auc
from fedassay.planning.many_areas import ManyAreas
from fedassay.planning.score_model import binormal, on_grid

GRIDS = {
    "one cell": Grid.uniform(1),
    "two cells": Grid.uniform(2),
    "odd": Grid.uniform(7),
    "cubic": Grid.cubic(24),
    "many": Grid.uniform(512).with_ends(),
    "octaves": Grid.octaves(2),
}


def spiked(counts: FloatArray) -> FloatArray:
    """Single buckets that tower, of one class or of both."""
    moved = np.random.default_rng(3).poisson(counts).astype(np.float64)
    moved[:, :: max(moved.shape[1] // 6, 1)] *= 40.0
    return moved


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_each_models_area_is_that_of_its_histogram(grid: Grid) -> None:
    models = [
        binormal(examples=rows, positive_rate=rate, auc=auc, shift=shift)
        for rows, rate, auc, shift in (
            (5000, 0.3, 0.8, 0.0),
            (800, 0.01, 0.95, 0.0),
            (10**6, 0.1, 0.8, -6.0),
        )
    ]
    counts = [on_grid(model, grid) for model in models]
    counts += [spiked(counts[0]), np.stack([counts[0][0], 0.0 * counts[0][1]])]
    histograms = tuple(ScoreHistogram(grid.edges, each) for each in counts)
    found = ManyAreas.of(histograms)
    singly = [roc_auc(each) for each in histograms]
    assert found.is_told.tolist() == [not isinstance(each, NotEnoughData) for each in singly]
    for place, (histogram, single) in enumerate(zip(histograms, singly, strict=True)):
        if isinstance(single, NotEnoughData):
            assert not found.gradients[place].any()
            continue
        assert found.values[place] == pytest.approx(single.value, rel=1e-12)
        assert found.even[place] == pytest.approx(even_area(histogram)[0], rel=1e-12)
        assert found.binning_sds[place] == pytest.approx(single.binning_sd, rel=1e-9)
        np.testing.assert_allclose(found.gradients[place], area_gradient(histogram), rtol=1e-9)
