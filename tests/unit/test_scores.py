"""Brier score and log loss where scores sit at the very ends; the largest gap inside buckets."""

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp
from sklearn.metrics import brier_score_loss, log_loss

from fedassay import Grid, ScoreHistogram, metrics
from fedassay.metrics.spans import openness_of_one_class, spans
from fedassay.noise import DenseNoise


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


def test_rows_that_walk_inside_buckets_are_in_the_interval_of_the_largest_gap() -> None:
    """Rows of which many are there twice: of the buckets near the largest gap one goes beyond all.

    False-alarm rate 1e-6: hits below the binomial quantile for a coverage of 93 %.
    """
    generator, held = np.random.default_rng(9), 0
    for _ in range(60):
        scores = generator.beta(2.0, 5.0, 25_000)
        labels = (generator.random(25_000) < 0.02 + 0.9 * scores).astype(int)
        picked = generator.integers(0, 25_000, 50_000)
        scores, labels = scores[picked], labels[picked]
        h = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(4000))
        exact = float(ks_2samp(scores[labels == 1], scores[labels == 0]).statistic)
        held += exact in metrics.ks(h).interval(population=False)
    assert held >= binom.ppf(1e-6, 60, 0.93)


def test_rows_walk_inside_buckets_under_noise_too() -> None:
    """A hundred wide buckets with little noise; false-alarm rate 1e-6 for a coverage of 93 %."""
    generator, held = np.random.default_rng(9), 0
    noise = DenseNoise(4.0 * np.eye(200))
    for _ in range(100):
        scores = generator.beta(2.0, 5.0, 25_000)
        labels = (generator.random(25_000) < 0.02 + 0.9 * scores).astype(int)
        picked = generator.integers(0, 25_000, 50_000)
        scores, labels = scores[picked], labels[picked]
        counts = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(100)).counts
        noisy = counts + 2.0 * generator.standard_normal(counts.shape)
        h = ScoreHistogram(Grid.uniform(100).edges, noisy, noise)
        exact = float(ks_2samp(scores[labels == 1], scores[labels == 0]).statistic)
        held += exact in metrics.ks(h).interval(population=False)
    assert held >= binom.ppf(1e-6, 100, 0.93)


def test_where_one_class_ends_in_noise_its_bucket_is_open() -> None:
    """Negatives end in the third bucket: beyond it no group has both classes clear of noise."""
    edges = np.array([0.0, 0.002, 0.005, 0.04, 0.2, 0.5, 1.0])
    counts = np.array(
        [[75e3, 72e3, 32e3, -130.0, 129.0, -344.0], [437.0, 1174.0, 3338.0, 4163.0, 5527.0, 4650.0]]
    )
    noisy = ScoreHistogram(edges, counts, DenseNoise(600.0**2 * np.eye(12)))
    assert spans(noisy).openness[2] < 0.5
    assert openness_of_one_class(noisy)[2] > 0.8
    # In that bucket all negatives may lie before all positives, at 0.918; at its ends it is 0.756.
    assert metrics.ks(noisy).interval(population=False).high > 0.9


def test_after_two_surveys_the_largest_gap_is_that_of_the_cells() -> None:
    """Leaves in fours, whose noise of 400 cancels in each cell; 2,000 positives are in all."""
    generator = np.random.default_rng(3)
    middle = (np.arange(40) + 0.5) / 40
    shapes = np.exp(-0.5 * ((middle - [[0.35], [0.6]]) / [[0.18], [0.2]]) ** 2)
    counts = shapes / shapes.sum(axis=1, keepdims=True) * [[20_000.0], [2_000.0]]
    leaf = np.eye(4) - 0.25
    noise = DenseNoise((0.25 + 160_000.0 * np.kron(np.eye(20), leaf)).astype(np.float64))
    off = 400.0 * (generator.standard_normal((2, 10, 4)) @ leaf).reshape(2, 40)
    edges = np.arange(41) / 40
    found = metrics.ks(ScoreHistogram(edges, counts + off, noise, cells=np.arange(0, 41, 4)))
    exact = metrics.ks(ScoreHistogram(edges, counts)).value
    assert found.value == pytest.approx(exact, abs=0.03)
    assert found.noise_sd < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_rounded_scores_at_one_side_of_merged_buckets_are_in_the_interval(seed: int) -> None:
    """Ranks in hundredths of a rare event: low ones are published three or more together."""
    generator = np.random.default_rng(seed)
    scores = np.floor(100.0 * generator.random(60_000)) / 100.0
    labels = (generator.random(60_000) < 0.05 * scores**1.5).astype(np.int64)
    wide = [0.1, *(i / 100 for i in range(13, 60, 3))]
    narrow = np.ravel([[i / 100 - 1e-4, i / 100] for i in range(60, 100)])
    histogram = ScoreHistogram.from_scores(
        labels, scores, grid=Grid.explicit([0.0, *wide, *narrow, 1.0])
    )
    for metric, exact in ((metrics.brier, brier_score_loss), (metrics.log_loss, log_loss)):
        value = exact(labels, np.clip(scores, 2**-52, 1 - 2**-52))
        estimate = metric(histogram)
        assert abs(estimate.value - value) > 5e-4  # the guess alone is far off
        assert value in estimate.interval(population=False)
        assert estimate.binning_sd < 0.02 * value


@pytest.mark.parametrize("cell", [60, 77, 90, 101, 118, 135])
def test_the_largest_gap_is_read_where_it_is_though_noise_is_drawn_in_few_buckets(
    cell: int,
) -> None:
    """Of 200 cells with a flat gap, one after which it peaks; sums of four would cut it off.

    By hand: the gap at the edge after that cell, where negatives below are most ahead.
    """
    cells = 200
    counts = np.full((2, cells), 1000.0)
    counts[:, cell], counts[:, cell + 1] = [1900.0, 100.0], [100.0, 1900.0]
    noise = DenseNoise(np.eye(2 * cells))
    below = counts[:, : cell + 1].sum(axis=1) / counts.sum(axis=1)
    found = metrics.ks(ScoreHistogram(Grid.uniform(cells).edges, counts, noise))
    assert found.value > 0.99 * float(below[0] - below[1])
    assert float(below[0] - below[1]) in found.interval(population=False)


@pytest.mark.parametrize("cells", [10, 20])
def test_where_rates_jump_the_largest_gap_is_open_further_under_noise(cells: int) -> None:
    """The largest gap is where rates jump from .05 to .85, inside a cell of few."""
    generator = np.random.default_rng(1)
    scores = generator.beta(1.5, 2.5, 60_000)
    labels = (generator.random(60_000) < np.where(scores < 0.37, 0.05, 0.85)).astype(np.int64)
    exact = float(ks_2samp(scores[labels == 1], scores[labels == 0]).statistic)
    cut = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(cells))
    h = ScoreHistogram(cut.edges, cut.counts, DenseNoise(np.eye(2 * cells)))
    assert exact in metrics.ks(h).interval(population=False)
    assert metrics.ks(h).value < exact - 0.01


def test_scores_in_decimals_that_no_cell_shows_are_in_the_interval_of_the_brier_score() -> None:
    """Thousandths, all at the right edge of cells as wide; and too high, so that all add up."""
    generator = np.random.default_rng(3)
    exact = generator.beta(2.0, 3.0, 60_000)
    labels = (generator.random(60_000) < 0.8 * exact).astype(np.int64)
    scores = np.round(exact, 3)
    h = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(1000))
    found, wanted = metrics.brier(h), brier_score_loss(labels, scores)
    assert wanted in found.interval(population=False)
    # Chance inside cells explains no fifth of that.
    assert abs(found.value - wanted) > 5e-5
