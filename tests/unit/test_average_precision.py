"""Average precision's likely binning error and noise, against errors that are known."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.hierarchy import Hierarchy
from fedassay.noise import TreeNoise


def test_crowded_buckets_tell_little_of_the_mean_precision() -> None:
    """Three full buckets: the order inside each is open, and a million rows do not close it.

    So many rows that the luck of a random order explains nothing, and no bucket is a spike.
    """
    histogram = ScoreHistogram(Grid.uniform(3).edges, np.full((2, 3), 1e6))
    estimate = metrics.average_precision(histogram)
    assert estimate.value == pytest.approx(0.5, abs=0.01)
    assert estimate.binning_bound / 20 < estimate.binning_sd < estimate.binning_bound


def test_placing_rows_at_random_inside_buckets_errs_as_much_as_is_said() -> None:
    """2,000 placements, even inside buckets, read by scikit-learn."""
    generator = np.random.default_rng(8)
    n, p = np.array([90, 60, 30, 12, 6]), np.array([4, 8, 12, 16, 20])
    histogram = ScoreHistogram(Grid.uniform(5).edges, np.stack([n, p]).astype(float), smooth=False)
    estimate = metrics.average_precision(histogram)
    errors = []
    for _ in range(2000):
        scores = np.concatenate(
            [(np.repeat(np.arange(5), k) + generator.random(k.sum())) / 5 for k in (n, p)]
        )
        labels = np.repeat([0, 1], [n.sum(), p.sum()])
        errors.append(average_precision_score(labels, scores) - estimate.value)
    spread = float(np.sqrt(np.mean(np.square(errors))))
    assert spread / 1.5 < estimate.binning_sd < 2.5 * spread


def test_noise_that_swamps_the_top_does_not_make_the_noise_of_the_mean_explode() -> None:
    """Noisy counts drawn 1,500 times: the figure's own spread against what it is said to be."""
    generator = np.random.default_rng(9)
    edges = Grid.uniform(32).edges
    middle = (edges[1:] + edges[:-1]) / 2
    counts = np.stack([40_000 * (1 - middle) ** 8, 6_000 * middle * (1 - middle) ** 4])
    hierarchy = Hierarchy.flat(32)
    noise = TreeNoise(hierarchy, (np.full((2, 32), 900.0),))
    values, said = [], []
    for _ in range(1500):
        noisy = counts + generator.normal(0.0, 30.0, counts.shape)
        estimate = metrics.average_precision(ScoreHistogram(edges, noisy, noise))
        values.append(estimate.value)
        said.append(estimate.noise_sd)
    spread, typical = float(np.std(values)), float(np.median(said))
    assert spread / 2.0 < typical < 2.0 * spread
    # Not even the unluckiest draw says something absurd.
    assert max(said) < 6.0 * spread
