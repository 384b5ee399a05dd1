"""What cells hide is told neither too small nor too large, over many tables at random.

Exact counts on few cells, so that nothing errs but what cells hide. Every table is drawn anew:
where its scores crowd, how far its classes are apart, and how rare its positives are.
`binning_sd` is to be as large as the errors, neither smaller, beyond the binomial quantile at
1e-7 for a coverage of 93 %, nor so large that the median of |error| / binning_sd is
below 0.2, where a normal law has 0.67: what is possible is mostly not what is.
False-alarm rate: 1e-7 for each of four figures.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from fedassay import Estimate, Grid, ScoreHistogram, metrics
from tests.laws import full

pytestmark = pytest.mark.statistical

TABLES = full(1000, 400)
ROWS = 20_000
FALSE_ALARM = 1e-7
Pair = tuple[float, Estimate]


def table(generator: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Log-odds of both classes normal, somewhere between crowded at 0 and even."""
    rate = np.exp(generator.uniform(np.log(0.02), np.log(0.5)))
    labels = (generator.random(ROWS) < rate).astype(np.int64)
    middle, spread = generator.uniform(-5.0, 0.0), generator.uniform(0.7, 2.0)
    odds = middle + spread * generator.normal(size=ROWS)
    odds += generator.uniform(0.5, 3.0) * spread * labels
    return labels, 1.0 / (1.0 + np.exp(-odds))


@cache
def figures() -> dict[str, list[Pair]]:
    """Exact values and estimates, by metric; those that are too coarse are not told."""
    generator = np.random.default_rng(21)
    found: dict[str, list[Pair]] = {"roc_auc": [], "average_precision": [], "ks": [], "recall": []}
    for _ in range(TABLES):
        labels, scores = table(generator)
        fine = ScoreHistogram.from_scores(labels, scores)
        cells = Grid.uniform(int(generator.integers(12, 40)))
        coarse = ScoreHistogram.from_scores(labels, scores, grid=cells)
        threshold = float(np.quantile(scores, generator.uniform(0.3, 0.95)))
        recalled = float((scores[labels == 1] > threshold).mean())
        for name, metric in (
            ("roc_auc", metrics.roc_auc),
            ("average_precision", metrics.average_precision),
            ("ks", metrics.ks),
        ):
            found[name].append((metric(fine).value, metric(coarse)))
        found["recall"].append((recalled, metrics.recall(coarse, threshold)))
    return {name: [pair for pair in pairs if pair[1].is_available] for name, pairs in found.items()}


def holds(pairs: list[Pair], factor: float = 1.0) -> bool:
    """Whether intervals hold the exact values often enough, with cells hiding `factor` as much."""
    hits = sum(
        abs(estimate.value - exact) <= 1.96 * factor * estimate.binning_sd + 1e-9
        for exact, estimate in pairs
    )
    return bool(hits >= binom.ppf(FALSE_ALARM, len(pairs), 0.93))


def is_needed(pairs: list[Pair], factor: float = 1.0) -> bool:
    """Whether errors are no small part of what is told."""
    parts = [
        abs(estimate.value - exact) / (factor * estimate.binning_sd)
        for exact, estimate in pairs
        if estimate.binning_sd > 1e-6
    ]
    return bool(np.median(parts) >= 0.2)


NAMES = ("roc_auc", "average_precision", "ks", "recall")


@pytest.mark.parametrize("name", NAMES)
def test_what_cells_hide_is_as_large_as_the_errors_that_it_makes(name: str) -> None:
    pairs = figures()[name]
    assert len(pairs) > 0.5 * TABLES
    assert holds(pairs)
    assert is_needed(pairs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("check", "factor"), [(holds, 1 / 3), (is_needed, 4.0)])
def test_what_cells_hide_told_too_small_or_too_large_is_rejected(
    name: str, check: Callable[[list[Pair], float], bool], factor: float
) -> None:
    """The twins: a third of it, and four times as much."""
    assert not check(figures()[name], factor)
