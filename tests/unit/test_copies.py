"""Rows that fall together: copies of a row, and lumps of tied scores that no bucket shows."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.examples import FloatArray
from fedassay.metrics import flagged
from fedassay.metrics.copies import COPIES, DRAWN, copies_of, lump_size
from fedassay.noise import DenseNoise

CELLS, ROWS, LUMP, TABLES = 100, 30_000, 15, 150
EDGES: FloatArray = np.arange(CELLS + 1) / CELLS
THRESHOLDS = (0.104, 0.307, 0.505, 0.756)


def lumpy_scores(seed: int, lump: int) -> FloatArray:
    """A falling density of distinct values, each of which so many rows share."""
    generator = np.random.default_rng(seed)
    scores: FloatArray = np.repeat(generator.beta(1.2, 2.0, ROWS // lump), lump)
    return scores


def read(scores: FloatArray, seed: int) -> ScoreHistogram:
    """One row in ten is positive, whatever its score."""
    labels = np.random.default_rng([seed, 1]).random(len(scores)) < 0.1
    counts = [np.histogram(scores[labels == label], EDGES)[0] for label in (False, True)]
    return ScoreHistogram(EDGES, np.array(counts, dtype=np.float64))


@pytest.fixture(scope="module")
def held() -> FloatArray:
    """How often the share above thresholds inside cells is in its interval, over many tables."""
    inside = np.zeros((TABLES, len(THRESHOLDS)))
    for seed in range(TABLES):
        scores = lumpy_scores(seed, LUMP)
        histogram = read(scores, seed)
        for place, threshold in enumerate(THRESHOLDS):
            low, high = flagged(histogram, threshold).interval(population=False)
            inside[seed, place] = low <= 1000.0 * (scores > threshold).mean() <= high
    share: FloatArray = inside.mean(axis=0)
    return share


def test_thresholds_between_lumps_are_held(held: FloatArray) -> None:
    assert held.min() > 0.9


def test_lumps_are_seen_in_all_cells_together() -> None:
    found = [lump_size(read(lumpy_scores(seed, LUMP), seed)) for seed in range(20)]
    assert 0.7 * LUMP < np.median(found) < 1.4 * LUMP


@pytest.mark.parametrize("lump", [1, 2])
def test_rows_and_their_copies_are_no_lumps(lump: int) -> None:
    for seed in range(20):
        histogram = read(lumpy_scores(seed, lump), seed)
        assert lump_size(histogram) == DRAWN
        assert copies_of(histogram).tolist() == [[COPIES], [COPIES]]


def test_noise_is_no_lump() -> None:
    histogram = read(lumpy_scores(3, LUMP), 3)
    noise = DenseNoise(25.0 * np.eye(2 * CELLS))
    assert lump_size(ScoreHistogram(EDGES, histogram.counts, noise)) == DRAWN


def test_a_class_feels_lumps_by_its_share_of_them() -> None:
    negatives, positives = copies_of(read(lumpy_scores(5, LUMP), 5))[:, 0]
    assert negatives > 0.8 * (2.0 * LUMP - 1.0) * 0.7
    assert COPIES <= positives < 0.25 * negatives
