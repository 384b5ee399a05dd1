"""Cutoffs that noise allows, against a test of every edge by hand."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.metrics.crossings import crossing
from fedassay.noise import DenseNoise

BUCKETS = 30
EDGES = np.arange(BUCKETS + 1) / BUCKETS


def noisy(sd: float, seed: int = 1) -> ScoreHistogram:
    generator = np.random.default_rng(seed)
    counts = np.stack([np.linspace(900.0, 100.0, BUCKETS), np.linspace(1.0, 20.0, BUCKETS)])
    noise = DenseNoise(sd**2 * np.eye(2 * BUCKETS))
    return ScoreHistogram(EDGES, counts + sd * generator.standard_normal((2, BUCKETS)), noise)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("fixed", [0, 1])
def test_every_edge_that_a_test_allows_lies_between_the_ends(fixed: int, share: float) -> None:
    h = noisy(6.0)
    allowed = []
    for edge in range(BUCKETS + 1):
        weights = np.zeros((2, BUCKETS))
        weights[fixed] = (np.arange(BUCKETS) >= edge) - share
        excess = float((weights * h.counts).sum())
        if abs(excess) <= 1.959964 * 6.0 * np.sqrt((weights**2).sum()):
            allowed.append(edge)
    found = crossing(h, fixed, share)
    assert (found is None) <= (not allowed)
    if found is not None and allowed:
        assert allowed[0] - 1 < found.first <= allowed[0]
        assert allowed[-1] <= found.last < allowed[-1] + 1
        other = h.counts[1 - fixed]
        for edge in allowed:
            assert found.low <= other[edge:].sum() / other.sum() <= found.high


def test_a_steep_curve_crosses_once_and_a_flat_one_again_and_again() -> None:
    steep, flat = crossing(noisy(0.5), 1, 0.9), crossing(noisy(8.0), 1, 0.9)
    assert steep is not None
    assert flat is not None
    assert not steep.is_long
    assert flat.is_long
    assert flat.apart > 4.0 * steep.apart


def test_a_bucket_of_tied_scores_is_taken_or_left_as_a_whole() -> None:
    counts = np.array([[500.0, 0.0, 900.0, 0.0, 500.0], [50.0, 0.0, 400.0, 0.0, 50.0]])
    h = ScoreHistogram(np.arange(6) / 5, counts, DenseNoise(np.eye(10)))
    found = crossing(h, 1, 0.5)
    assert found is not None
    assert not found.is_long
    assert (found.low, found.high) == pytest.approx((500 / 1900, 1400 / 1900))


def test_without_a_cutoff_that_noise_allows_there_is_none() -> None:
    counts = np.array([[500.0, 500.0], [50.0, 900.0]])
    tiny = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, DenseNoise(1e-12 * np.eye(4)))
    assert crossing(tiny, 1, 0.9123) is None
