"""A rate at a goal is held where its class is small against its noise, or not told at all.

20,000 negatives and 300 positives with known counts in 40 buckets, and noise drawn anew in every
run: of the same size in every bucket, or small in cells of four and large in the buckets inside
them, as after two surveys. The true rate is that of the counts without noise.

False-alarm rate: hits below the binomial quantile at 1e-6 for a coverage of 93 %.
"""

import numpy as np
import pytest
from scipy.stats import binom

from fedassay import Estimate, ScoreHistogram
from fedassay.examples import FloatArray, IntArray
from fedassay.metrics import specificity_at_recall
from fedassay.noise import DenseNoise
from tests.laws import FALSE_ALARM, full

pytestmark = pytest.mark.statistical

RUNS = full(2000, 200)
BUCKETS, CELLS = 40, 10
EDGES = np.arange(BUCKETS + 1) / BUCKETS
EVEN: FloatArray = 64.0 * np.eye(BUCKETS)
IN_CELLS: FloatArray = np.kron(np.eye(CELLS), 4.0 + 1e4 * (np.eye(4) - 0.25)).astype(np.float64)
"""A cell's count has a deviation of 8, as a bucket's above; a bucket's in it one of 87."""


def table() -> FloatArray:
    middle = 0.5 * (EDGES[1:] + EDGES[:-1])
    shapes = np.exp(-0.5 * ((middle - [[0.35], [0.6]]) / [[0.18], [0.2]]) ** 2)
    counts: FloatArray = np.round(
        shapes / shapes.sum(axis=1, keepdims=True) * [[20_000.0], [300.0]]
    )
    return counts


def runs(covariance: FloatArray, cells: IntArray | None) -> tuple[float, list[Estimate]]:
    counts, generator = table(), np.random.default_rng(5)
    noise = DenseNoise(np.kron(np.eye(2), covariance).astype(np.float64))
    sizes, sides = np.linalg.eigh(covariance)
    factor = sides * np.sqrt(np.maximum(sizes, 0.0))
    found = [
        specificity_at_recall(
            ScoreHistogram(
                EDGES,
                counts + generator.standard_normal((2, BUCKETS)) @ factor.T,
                noise,
                cells=cells,
            ),
            0.9,
        )
        for _ in range(RUNS)
    ]
    return specificity_at_recall(ScoreHistogram(EDGES, counts), 0.9).value, found


@pytest.mark.parametrize("by_cells", [False, True], ids=["even noise", "two surveys"])
def test_a_goal_that_noise_crosses_again_and_again_is_held(by_cells: bool) -> None:
    cells = np.arange(0, BUCKETS + 1, 4) if by_cells else None
    truth, found = runs(IN_CELLS if by_cells else EVEN, cells)
    told = [each for each in found if each.is_available]
    hits = sum(truth in each.interval(population=False) for each in told)
    assert len(told) > RUNS // 2
    assert all(0.0 <= each.value <= 1.0 for each in told)
    assert hits >= binom.ppf(FALSE_ALARM, len(told), 0.93)
