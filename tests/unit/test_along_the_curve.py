"""Cutoffs of smoothed counts, against conditional draws and ties that are put there."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.doubts import Doubts
from fedassay.examples import FloatArray
from fedassay.metrics import specificity_at_recall
from fedassay.metrics.along_the_curve import beside_ties, ends_along, rates_at_goal
from fedassay.metrics.crossings import crossing
from fedassay.noise import DenseNoise

BUCKETS = 40
EDGES = np.arange(BUCKETS + 1) / BUCKETS
COUNTS = 4000.0 * np.stack([np.linspace(1.9, 0.1, BUCKETS), np.linspace(0.02, 0.38, BUCKETS)])


def shared_noise(sd: float) -> DenseNoise:
    """Examples lie somewhat higher or lower, of both classes alike; a little each for itself."""
    wave = np.sin(2.0 * np.pi * (np.arange(BUCKETS) + 0.5) / BUCKETS)
    moved = np.concatenate([COUNTS[0] * wave, COUNTS[1] * wave])
    covariance = sd**2 * np.outer(moved, moved) + np.diag(COUNTS.ravel())
    return DenseNoise(covariance, is_smoothed=True)


def curve(
    doubts: Doubts | None, noise: DenseNoise, counted: FloatArray | None = None
) -> ScoreHistogram:
    raw = None
    if counted is not None:
        raw = ScoreHistogram(EDGES.copy(), counted, DenseNoise(200.0**2 * np.eye(2 * BUCKETS)))
    return ScoreHistogram(EDGES, COUNTS, noise, counted=raw, doubts=doubts)


def no_doubts(lumps: float = 0.0) -> Doubts:
    return Doubts(0.0, lumps, np.zeros(BUCKETS))


@pytest.mark.parametrize(("fixed", "share"), [(0, 0.4), (1, 0.8)])
def test_rates_at_a_goal_are_those_of_draws_that_reach_it(fixed: int, share: float) -> None:
    """Of tables that differ by the noise, those with the goal at an edge have that rate there."""
    noise = shared_noise(0.15)
    h = curve(no_doubts(), noise)
    found = rates_at_goal(h, noise, fixed, share)
    generator = np.random.default_rng(2)
    root = np.linalg.cholesky(noise.covariance)
    drawn = h.counts.ravel() + generator.standard_normal((200_000, 2 * BUCKETS)) @ root.T
    tables = drawn.reshape(-1, 2, BUCKETS)
    above = tables[..., ::-1].cumsum(axis=-1)[..., ::-1]
    shares = above / above[..., :1]
    start = int(np.argmin(np.abs(shares.mean(axis=0)[fixed] - share)))
    for edge in (start - 1, start, start + 1):
        reached = np.abs(shares[:, fixed, edge] - share) < 0.002
        assert reached.sum() > 300
        assert found[edge] == pytest.approx(shares[reached, 1 - fixed, edge].mean(), abs=0.01)


def test_where_no_lump_is_likely_a_rate_is_surer_than_its_threshold() -> None:
    noise = shared_noise(0.2)
    plain, sure, lumpy = (
        crossing(curve(doubts, noise), 1, 0.6) for doubts in (None, no_doubts(), no_doubts(1.0))
    )
    assert plain is not None
    assert sure is not None
    assert lumpy is not None
    assert plain.is_long
    assert (sure.first, sure.last) == (plain.first, plain.last)
    assert sure.high - sure.low < 0.5 * (plain.high - plain.low)
    assert (lumpy.low, lumpy.high) == pytest.approx((plain.low, plain.high))


def test_ends_lie_between_the_curves_and_those_of_a_lump_as_it_is_likely() -> None:
    rates, cutoffs, ends = np.array([0.5, 0.48, 0.46]), (0.0, 2.0), (0.3, 0.7)
    assert ends_along(no_doubts(), rates, cutoffs, ends) == pytest.approx((0.46, 0.5))
    assert ends_along(no_doubts(1.0), rates, cutoffs, ends) == pytest.approx(ends)
    low, high = ends_along(no_doubts(0.3), rates, cutoffs, ends)
    assert ends[0] < low < 0.46
    assert 0.5 < high < ends[1]


def tied(leaf: int, rows: float) -> FloatArray:
    """As the curve has it, but that so many of its neighbours' rows lie in one leaf."""
    counts = COUNTS.copy()
    part = COUNTS[:, leaf] / COUNTS[:, leaf].sum()
    counts[:, leaf] += rows * part
    counts[:, [leaf - 1, leaf + 1]] -= 0.5 * rows * part[:, None]
    return counts


def test_a_tie_that_counters_show_is_in_the_rates_beside_it() -> None:
    """6,000 rows more in one leaf than the curve has, with noise of 280."""
    leaf, noise = 12, shared_noise(0.2)
    shown = curve(no_doubts(), noise, tied(leaf, 6000.0))
    seen, unseen = beside_ties(shown, no_doubts(), 0, (8.0, 16.0))
    part = COUNTS[0, leaf] / COUNTS[:, leaf].sum()
    assert seen == pytest.approx(6000.0 * part / COUNTS[0].sum())
    assert unseen == 0.0
    assert beside_ties(shown, no_doubts(), 0, (14.0, 20.0)) == (0.0, 0.0)
    # Counters that agree with the curve show none, and say nothing of smaller ones.
    agree = curve(no_doubts(), noise, COUNTS)
    assert beside_ties(agree, no_doubts(), 0, (8.0, 16.0)) == (0.0, 0.0)
    assert beside_ties(agree, no_doubts(0.9), 0, (8.0, 16.0))[1] > 0.0
    wide, narrow = (specificity_at_recall(each, 0.9) for each in (shown, agree))
    assert wide.noise_sd > narrow.noise_sd + 0.5 * seen / 1.96


def test_a_crowd_at_an_end_is_no_tie() -> None:
    counts = COUNTS.copy()
    counts[0, 0] += 20_000.0
    h = curve(no_doubts(), shared_noise(0.1), counts)
    assert beside_ties(h, no_doubts(), 0, (0.0, 1.0)) == (0.0, 0.0)
    assert beside_ties(h, no_doubts(), 0, (0.0, 5.0)) == (0.0, 0.0)
