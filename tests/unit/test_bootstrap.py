"""Bias and spread by drawing the noise again, against what noise really does."""

import numpy as np
import numpy.typing as npt
import pytest

from fedassay import ScoreHistogram
from fedassay.metrics.bootstrap import bias_and_spread, clear_at_the_top, few_buckets
from fedassay.noise import DenseNoise

Floats = npt.NDArray[np.float64]
CELLS, NOISE_SD = 10, 5.0
TRUTH = np.stack([np.linspace(100.0, 10.0, CELLS), np.linspace(10.0, 40.0, CELLS)])


def noisy(counts: Floats) -> ScoreHistogram:
    noise = DenseNoise(NOISE_SD**2 * np.eye(2 * CELLS))
    return ScoreHistogram(np.arange(CELLS + 1) / CELLS, counts, noise)


def squares(counts: Floats) -> Floats:
    total: Floats = (counts**2).sum(axis=(-2, -1))
    return total


def test_what_is_linear_has_no_bias_and_its_own_spread() -> None:
    bias, spread = bias_and_spread(noisy(TRUTH), lambda counts: counts[..., 1, :].sum(axis=-1))
    assert bias == pytest.approx(0.0, abs=1e-9)
    assert spread == pytest.approx(NOISE_SD * CELLS**0.5, rel=0.25)


def test_the_bias_of_squares_is_the_variance() -> None:
    """E (c + e)^2 - c^2 is the variance, of each of 20 counts."""
    bias, _ = bias_and_spread(noisy(TRUTH), squares)
    assert bias == pytest.approx(2 * CELLS * NOISE_SD**2, rel=0.2)


def test_the_same_tally_gives_the_same_answer() -> None:
    assert bias_and_spread(noisy(TRUTH), squares) == bias_and_spread(noisy(TRUTH), squares)


def test_a_few_buckets_hold_the_same_counts() -> None:
    fine = ScoreHistogram(np.arange(1001) / 1000, np.ones((2, 1000)))
    few = few_buckets(fine)
    assert few.buckets <= 48
    assert few.counts.sum(axis=1).tolist() == [1000.0, 1000.0]
    assert few.counts.max() <= 1000 / 48 + 1


def test_the_top_bucket_stands_clear_of_the_noise() -> None:
    """One example a bucket with noise of 5: 16 and three times the noise of both labels."""
    noise = DenseNoise(NOISE_SD**2 * np.eye(2000))
    histogram = ScoreHistogram(np.arange(1001) / 1000, np.ones((2, 1000)), noise)
    top = clear_at_the_top(histogram, 3.0)
    merged = 1000 - (top.buckets - 1)
    assert 2 * merged >= 16 + 3 * NOISE_SD * (2 * merged) ** 0.5
    assert 2 * (merged - 1) < 16 + 3 * NOISE_SD * (2 * (merged - 1)) ** 0.5
    assert (top.counts[:, :-1] == 1.0).all()


def test_where_nothing_stands_clear_all_scores_are_one_bucket() -> None:
    loud = ScoreHistogram(np.arange(5) / 4, np.full((2, 4), 9.0), DenseNoise(1e6 * np.eye(8)))
    assert clear_at_the_top(loud, 3.0).edges.tolist() == [0.0, 1.0]
