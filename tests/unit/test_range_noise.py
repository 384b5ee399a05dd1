"""The noise of sums of buckets, against the covariance matrix itself."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.hierarchy import Hierarchy
from fedassay.metrics.range_noise import cell_noise_sd, range_noise
from fedassay.noise import DenseNoise, TreeNoise

BUCKETS = 6


def test_the_noise_of_a_sum_is_that_of_its_covariance_matrix() -> None:
    generator = np.random.default_rng(5)
    root = generator.normal(size=(2 * BUCKETS, 2 * BUCKETS))
    covariance = root @ root.T
    histogram = ScoreHistogram(
        np.arange(BUCKETS + 1) / BUCKETS, np.ones((2, BUCKETS)), DenseNoise(covariance)
    )
    noise = range_noise(histogram)
    for label in (0, 1):
        for start in range(BUCKETS):
            for stop in range(start + 1, BUCKETS + 1):
                picked = slice(label * BUCKETS + start, label * BUCKETS + stop)
                expected = np.sqrt(covariance[picked, picked].sum())
                assert noise.sd(label, start, stop) == pytest.approx(expected)


def test_a_trees_prefix_is_surer_than_as_many_leaves() -> None:
    """64 leaves in groups of eight, each counter with a variance of 1."""
    levels = Hierarchy(64, (8, 8))
    variances = tuple(np.ones((2, cells)) for cells in levels.cells_per_level)
    tree = ScoreHistogram(np.arange(65) / 64, np.ones((2, 64)), TreeNoise(levels, variances))
    noise = range_noise(tree)
    # Seven groups: the counters of 8 leaves each, joined with their sum, have 8/9 of its variance.
    assert noise.sd(1, 0, 56) == pytest.approx(np.sqrt(7 * 8 / 9))
    assert noise.sd(1, 0, 56) < 0.5 * cell_noise_sd(tree) * np.sqrt(56)


def test_very_many_buckets_count_as_independent() -> None:
    leaves = Hierarchy.flat(1000)
    noise = TreeNoise(leaves, (np.full((2, 1000), 9.0),))
    many = ScoreHistogram(np.arange(1001) / 1000, np.ones((2, 1000)), noise)
    assert range_noise(many).covariances is None
    assert range_noise(many).sd(0, 100, 125) == pytest.approx(15.0)


def test_a_sum_is_clear_when_it_is_beyond_chance_and_noise() -> None:
    noise = DenseNoise(25.0 * np.eye(4))
    histogram = ScoreHistogram(np.arange(3) / 2, np.ones((2, 2)), noise)
    least = 16.0 + 3.0 * 5.0 * np.sqrt(2.0)
    assert range_noise(histogram).is_clear(least + 1e-9, 1, 0, 2)
    assert not range_noise(histogram).is_clear(least - 1e-9, 1, 0, 2)
    assert not range_noise(histogram).is_clear(least + 1e-9, 1, 0, 2, by=6.0)


@pytest.mark.parametrize("of_population", [False, True])
def test_merged_or_not_and_with_a_table_covariances_below_edges_are_the_products(
    of_population: bool,
) -> None:
    generator = np.random.default_rng(6)
    root = generator.normal(size=(2 * BUCKETS, 2 * BUCKETS))
    table = generator.uniform(1.0, 9.0, (2, BUCKETS)) if of_population else None
    noise = DenseNoise(200.0 * np.eye(2 * BUCKETS) + root @ root.T, table)
    leaves = ScoreHistogram(np.arange(BUCKETS + 1) / BUCKETS, np.ones((2, BUCKETS)), noise)
    for kept in (np.arange(BUCKETS + 1), np.array([0, 1, 4, 6])):
        merged = leaves.merge(kept)
        found = range_noise(merged).covariances
        assert found is not None
        for label in (0, 1):
            weights = np.zeros((len(kept), 2, BUCKETS))
            for place, edge in enumerate(kept):
                weights[place, label, :edge] = 1.0
            np.testing.assert_allclose(found[label], noise.covariances(weights), atol=1e-9)
