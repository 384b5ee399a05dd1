"""Cutoffs that noise allows, against a test of every edge by hand."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.metrics import recall_at_specificity, specificity_at_recall
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


TOWER = np.array([[500.0, 0.0, 900.0, 0.0, 500.0], [50.0, 0.0, 400.0, 0.0, 50.0]])


@pytest.mark.parametrize(("fixed", "rate"), [(1, 1400 / 1900), (0, 50 / 500)])
def test_a_wanted_recall_takes_in_tied_scores_and_a_wanted_specificity_leaves_them_out(
    fixed: int, rate: float
) -> None:
    h = ScoreHistogram(np.arange(6) / 5, TOWER, DenseNoise(np.eye(10)))
    found = crossing(h, fixed, 0.5)
    assert found is not None
    assert not found.leaps
    assert (found.low, found.high) == pytest.approx((rate, rate))


@pytest.mark.parametrize("fixed", [0, 1])
def test_where_noise_may_have_reached_the_goal_before_or_after_a_tie_the_rate_leaps(
    fixed: int,
) -> None:
    """As many of the fixed class are above the upper edge of its tie as are wanted."""
    h = ScoreHistogram(np.arange(6) / 5, TOWER, DenseNoise(np.eye(10)))
    beyond = TOWER[:, 3:].sum(axis=1) / TOWER.sum(axis=1)
    with_it = TOWER[:, 2:].sum(axis=1) / TOWER.sum(axis=1)
    found = crossing(h, fixed, float(beyond[fixed]))
    assert found is not None
    assert found.leaps
    assert found.low <= beyond[1 - fixed]
    assert bool(found.high >= with_it[1 - fixed]) is (fixed == 1)
    allowed = recall_at_specificity if fixed == 0 else specificity_at_recall
    wanted = float(1.0 - beyond[0] if fixed == 0 else beyond[1])
    low, high = allowed(h, wanted).interval(population=False)
    for rate in (beyond[1 - fixed], 0.0 if fixed == 0 else with_it[0]):
        assert low <= (rate if fixed == 0 else 1.0 - rate) <= high


def test_without_a_cutoff_that_noise_allows_there_is_none() -> None:
    counts = np.array([[500.0, 500.0], [50.0, 900.0]])
    tiny = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, DenseNoise(1e-12 * np.eye(4)))
    assert crossing(tiny, 1, 0.9123) is None
