"""The variance of counts put together from parts is that of repeated draws."""

import numpy as np
import pytest

from fedassay.classes.joined_counts import area_gradient, area_parts, join_own, pooled, scaled_up
from fedassay.classes.part_noise import JoinedNoise, SummedNoise
from fedassay.histogram import ScoreHistogram
from fedassay.noise import DenseNoise, NoNoise, PartNoise
from fedassay.paired.pair_histogram import MarginNoise
from fedassay.sites.pooling import SummedNoise as PooledNoise

EDGES = np.arange(4) / 3
WEIGHTS = np.array([[0.5, -1.0, 2.0], [1.0, 3.0, -0.5]])


def dense(variances: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> DenseNoise:
    return DenseNoise(np.diag(variances.ravel()))


def test_counts_scaled_up_vary_with_who_was_drawn() -> None:
    counts = np.array([[40.0, 20.0, 60.0], [10.0, 30.0, 20.0]])
    generator = np.random.default_rng(0)
    drawn = generator.binomial(counts.astype(np.int64), 0.25, size=(40_000, 2, 3)) * 4.0
    wanted = float((drawn * WEIGHTS).sum(axis=(1, 2)).var())
    quarter = ScoreHistogram(EDGES, counts / 4)
    noise = scaled_up(quarter, 4.0).noise
    assert noise.variance(WEIGHTS) == pytest.approx(wanted, rel=0.05)
    both = noise.covariances(np.stack([WEIGHTS, WEIGHTS]))
    assert both == pytest.approx(np.full((2, 2), noise.variance(WEIGHTS)))


def test_noise_is_scaled_up_with_the_counts() -> None:
    noisy = ScoreHistogram(EDGES, np.zeros((2, 3)), dense(np.full((2, 3), 2.0)))
    assert scaled_up(noisy, 3.0).noise.variance(WEIGHTS) == pytest.approx(
        9 * 2.0 * (WEIGHTS**2).sum()
    )


def test_joined_counts_have_the_noise_of_the_part_that_each_label_comes_from() -> None:
    rest = ScoreHistogram(EDGES, np.ones((2, 3)), dense(np.full((2, 3), 5.0)))
    of_own = np.arange(1.0, 13.0).reshape(2, 6)
    own = ScoreHistogram(np.arange(7) / 6, np.ones((2, 6)), dense(of_own))
    noise = join_own(rest, own, 1).noise
    assert isinstance(noise, JoinedNoise)
    wanted = 5.0 * (WEIGHTS[0] ** 2).sum() + (of_own[1, 3:] * WEIGHTS[1] ** 2).sum()
    assert noise.variance(WEIGHTS) == pytest.approx(wanted)
    assert noise.covariances(WEIGHTS[None])[0, 0] == pytest.approx(wanted)


def test_pooled_counts_and_noises_add_up_over_the_edges_that_all_have() -> None:
    fine = ScoreHistogram(EDGES, np.ones((2, 3)), dense(np.full((2, 3), 2.0)))
    coarse = ScoreHistogram(np.array([0.0, 2 / 3, 1.0]), np.full((2, 2), 4.0))
    both = pooled([fine, coarse])
    assert both.counts.tolist() == [[6.0, 5.0], [6.0, 5.0]]
    assert isinstance(both.noise, SummedNoise)
    assert both.noise.variance(np.ones((2, 2))) == pytest.approx(12.0)


def test_the_area_moves_with_counts_as_its_gradient_says() -> None:
    counts = np.array([[40.0, 20.0, 10.0], [10.0, 30.0, 20.0]])
    value, gradient = area_gradient(ScoreHistogram(EDGES, counts))
    for label in (0, 1):
        for bucket in range(3):
            step = np.zeros((2, 3))
            step[label, bucket] = 1e-4
            moved, _ = area_gradient(ScoreHistogram(EDGES, counts + step))
            assert (moved - value) / 1e-4 == pytest.approx(gradient[label, bucket], abs=1e-6)


def test_the_parts_of_an_areas_variance_are_those_of_delong() -> None:
    generator = np.random.default_rng(1)
    counts = np.array([[400.0, 200.0, 100.0], [100.0, 300.0, 200.0]])
    chances = counts.ravel() / counts.sum()
    areas = []
    for _ in range(4000):
        drawn = generator.multinomial(1300, chances).reshape(2, 3).astype(np.float64)
        areas.append(area_gradient(ScoreHistogram(EDGES, drawn))[0])
    parts = area_parts(ScoreHistogram(EDGES, counts))
    assert sum(parts) == pytest.approx(np.var(areas), rel=0.12)


def test_counts_made_of_local_reports_keep_their_epsilon_however_they_are_put_together() -> None:
    """What a figure may be moved by who lies is asked of it, and how many reports more would do."""
    local = DenseNoise(np.eye(12), None, 3.0)
    wide = DenseNoise(np.eye(24), None, 3.0)
    made = (
        scaled_up(ScoreHistogram(np.arange(7) / 6, np.ones((2, 6)), local), 4.0).noise,
        JoinedNoise(local, wide, 0, 12),
        SummedNoise((local, local)),
        PooledNoise((NoNoise(), local)),
        PartNoise(wide, 2, 1),
        MarginNoise(local, (2, 3), 0),
    )
    assert [noise.local_epsilon for noise in made] == [3.0] * len(made)
    assert [noise.reports_for(2.0) for noise in made] == [local.reports_for(2.0)] * len(made)
