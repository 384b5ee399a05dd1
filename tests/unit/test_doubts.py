"""Doubts of a smooth curve: how much of an error is needed, and what the evidence says."""

import numpy as np
import pytest
from scipy import stats

from fedassay import ScoreHistogram
from fedassay.doubts import Doubts, part_of_error
from fedassay.metrics import log_loss
from fedassay.noise import DenseNoise
from fedassay.odds_doubts import doubts_of
from fedassay.smooth_odds import most_evident
from tests.unit.test_smooth_odds import EDGES, LEAVES, MIDDLE, POOLED, TRUTH, cells, family


@pytest.mark.parametrize("chance", [0.06, 0.2, 0.5, 0.9, 1.0])
def test_an_error_that_is_there_by_chance_is_held_in_19_of_20_surveys(chance: float) -> None:
    end = 1.959964 * part_of_error(chance)
    missed = chance * 2.0 * stats.norm.sf(end)
    assert missed == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.05])
def test_an_error_that_is_there_once_in_twenty_surveys_is_left_out(chance: float) -> None:
    assert part_of_error(chance) == 0.0


STARTS = list(range(0, LEAVES, 4))
CLIFF = POOLED * np.stack([MIDDLE < 0.3, MIDDLE >= 0.3])
"""Above 0.3 there is no negative, and below no positive."""
# All examples of every fourth leaf lie in the first of them.
LUMPS = np.zeros_like(TRUTH)
LUMPS[:, ::4] = np.add.reduceat(TRUTH, STARTS, axis=1)


def test_evidence_tells_cliffs_from_lumps_and_both_from_what_is_usual() -> None:
    every = list(range(LEAVES))
    usual = doubts_of(family().tried(cells(every, sd=20.0)))
    cliff = doubts_of(family().tried(cells(every, CLIFF, sd=20.0)))
    lumps = doubts_of(family().tried(cells(every, LUMPS, sd=60.0)))
    assert max(usual.cliffs, usual.lumps) < 0.3
    assert cliff.cliffs > 0.9
    assert lumps.lumps > 0.9
    assert lumps.cliffs < 0.3
    assert doubts_of(family(is_lumpy=True).tried(cells(every))).lumps == 1.0


def test_more_positives_are_expected_than_likeliest_where_they_are_few() -> None:
    """Against draws of the log-odds by scipy, from the covariance of the best reading."""
    tried = family().tried(cells([0, 20], sd=300.0))
    best, skew = most_evident(tried), doubts_of(tried).skew
    first = best.family.of_pooled.shape[1]
    covariance = np.linalg.inv(best.precision)[first:, first:]
    drawn = stats.multivariate_normal(np.zeros(len(covariance)), covariance).rvs(
        40_000, random_state=1
    )
    negatives, positives = best.counts
    odds = np.log(positives / negatives) + drawn @ best.family.of_odds.T
    expected = (best.counts.sum(axis=0) / (1.0 + np.exp(-odds))).mean(axis=0)
    assert np.abs(positives + skew - expected).max() < 0.02 * expected.max()
    assert skew[MIDDLE < 0.2].sum() > 5.0


@pytest.mark.parametrize("more", [0.0, 0.5, 40.0])
def test_log_loss_may_be_anywhere_between_likeliest_and_expected_counts(more: float) -> None:
    """So many more positives in the lowest leaf: off by their loss, as a uniform law spreads."""
    skew = np.zeros(LEAVES)
    skew[0] = more
    noise = DenseNoise(4.0 * np.eye(2 * LEAVES), is_smoothed=True)
    plain = log_loss(ScoreHistogram(EDGES, TRUTH, noise))
    doubted = log_loss(ScoreHistogram(EDGES, TRUTH, noise, doubts=Doubts(0.0, 0.0, skew)))
    # The mean of -log s and of -log(1 - s) over an even leaf from 0 to h.
    h = float(EDGES[1])
    own, other = 1.0 - np.log(h), 1.0 + (1.0 - h) * np.log1p(-h) / h
    off = min(more * (own - other) / TRUTH.sum(), plain.noise_sd)
    assert doubted.value == plain.value
    assert doubted.noise_sd == pytest.approx(np.hypot(plain.noise_sd, off / 3.0**0.5), rel=1e-6)
    low, high = doubted.interval(population=False)
    assert high / doubted.value == pytest.approx(doubted.value / low)
