"""Intervals at 95 % cover the population's value 93 to 97 times in a hundred.

A run draws resamples of 10,000 rows from a table's class-conditional cell distributions,
at a set share of positives. The truth is the metric of the expected counts.

False-alarm rate: an interval passes when its hits lie in [b(0.93), b(0.97)], where b(c) is
the binomial quantile at 1e-8 below or above for a coverage of c, over 1,200 resamples. With
18 checks, a true coverage within 93 to 97 % fails a run with probability below 18 * 1e-8 < 1e-6.
With FEDASSAY_VERIFY=1 the sample is 2,000 resamples and the observed share itself must lie within
93 to 97 %.
"""

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from fedassay import Estimate, Examples, Grid, ScoreHistogram, metrics
from tests.tables import Table

VERIFY = os.environ.get("FEDASSAY_VERIFY") == "1"
# Of 700 an interval twice too wide would have to hold all to be noticed.
RESAMPLES = 2000 if VERIFY else 1200
ROWS = 10_000
THRESHOLD = 0.5
FALSE_ALARM = 1e-8

METRICS: dict[str, Callable[[ScoreHistogram], Estimate]] = {
    "roc_auc": metrics.roc_auc,
    "average_precision": metrics.average_precision,
    "precision": lambda h: metrics.precision(h, THRESHOLD),
    "recall": lambda h: metrics.recall(h, THRESHOLD),
    "accuracy": lambda h: metrics.accuracy(h, THRESHOLD),
    "brier": metrics.brier,
}

pytestmark = pytest.mark.statistical


def population(table: Table, rate: float, grid: Grid) -> npt.NDArray[np.float64]:
    """The probability of every label and cell when a share `rate` is positive."""
    counts = grid.count(Examples(*table)).astype(np.float64)
    shares = counts / counts.sum(axis=1, keepdims=True)
    weighted = shares * np.array([[1 - rate], [rate]])
    chances: npt.NDArray[np.float64] = weighted / weighted.sum()
    return chances


def resampled(table: Table, rate: float) -> tuple[dict[str, float], dict[str, list[Estimate]]]:
    """The true values, and the estimates of every resample."""
    grid = Grid.fine(2**12)
    chances = population(table, rate, grid)
    truth = {
        name: metric(ScoreHistogram(grid.edges, chances * 1e12)).value
        for name, metric in METRICS.items()
    }
    generator = np.random.default_rng(20_240_601)
    found: dict[str, list[Estimate]] = {name: [] for name in METRICS}
    for _ in range(RESAMPLES):
        drawn = generator.multinomial(ROWS, chances.ravel()).reshape(chances.shape)
        histogram = ScoreHistogram(grid.edges, drawn.astype(np.float64))
        for name, metric in METRICS.items():
            found[name].append(metric(histogram))
    return truth, found


def hits(estimates: list[Estimate], truth: float) -> int:
    return sum(truth in estimate.interval(0.95) for estimate in estimates)


def fits(count: int) -> bool:
    if VERIFY:
        return 0.93 * RESAMPLES <= count <= 0.97 * RESAMPLES
    low = binom.ppf(FALSE_ALARM, RESAMPLES, 0.93)
    high = binom.isf(FALSE_ALARM, RESAMPLES, 0.97)
    return bool(low <= count <= high)


@pytest.mark.parametrize("rate", [0.5, 0.05, 0.01])
def test_intervals_cover_the_population_as_often_as_they_say(sample: Table, rate: float) -> None:
    truth, found = resampled(sample, rate)
    shares = {name: hits(found[name], truth[name]) / RESAMPLES for name in METRICS}
    print(f"positives {rate}: coverage {shares}")  # noqa: T201  # shown with pytest -s
    missed = {name: share for name, share in shares.items() if not fits(round(share * RESAMPLES))}
    assert not missed


def test_intervals_of_a_wrong_width_are_rejected(sample: Table) -> None:
    """The twin: half as wide covers about two times in three, twice as wide nearly always."""
    truth, found = resampled(sample, 0.05)
    for name in ("roc_auc", "average_precision", "brier"):
        for factor in (0.5, 2.0):
            wrong = [replace(e, sampling_sd=factor * e.sampling_sd) for e in found[name]]
            assert not fits(hits(wrong, truth[name]))
    for name in ("precision", "recall", "accuracy"):
        for factor in (0.25, 4.0):
            wrong = [replace(e, trials=factor * e.trials) for e in found[name]]
            assert not fits(hits(wrong, truth[name]))
