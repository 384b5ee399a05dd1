"""Intervals hold as often as they say where scores crowd, and errors are as large as told.

Every run draws 200,000 rows anew from a made-up table, asks them as the planner chooses when
nothing is said, and reads the metrics. `interval(population=False)` is to hold the metric of
the drawn rows, `interval()` that of the table; both come from sorted rows. An outcome without
a value ("not enough data", "too coarse") holds nothing and is counted apart.

False-alarm rate: a figure passes unless its hits are below the binomial quantile at 1e-8 for a
coverage of 93 %, or its errors spread more or less than told at 1e-8 (`laws.fits_spread`);
with fewer than 100 figures a run cries wolf with a probability below 2e-6. The full size,
FEDASSAY_VERIFY=1, has 200 runs of each case; all tables and metrics are in
experiments/coverage.md.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from experiments.coverage import table_reader, table_rows
from experiments.resampled import exact_metrics
from experiments.trials import DISTRIBUTED, LOCAL, SECURE, Setting
from scipy.stats import binom

from fedassay import Estimate
from tests.laws import fits_spread, full

pytestmark = pytest.mark.statistical

RUNS = full(200, 40)
FALSE_ALARM = 1e-8
CASES = {
    "ten values": LOCAL[2],
    "one class crowded": DISTRIBUTED[0],
    "0.9 %, AUC 0.99": DISTRIBUTED[1],
}
METRICS = (
    "roc_auc",
    "average_precision",
    "brier",
    "ks",
    "prevalence",
    "recall@0.1",
    "accuracy@0.1",
    "gain@0.1",
)
Runs = list[tuple[dict[str, float], dict[str, Estimate]]]
Change = Callable[[Estimate], Estimate]


@cache
def runs(table: str, setting: Setting) -> Runs:
    """Each run's exact values and estimates."""
    rows, read_at, _ = table_rows(table)
    reader = table_reader(table, setting)
    generator, found = np.random.default_rng(12), []
    for _ in range(RUNS):
        counts = rows.drawn(generator)
        truth = exact_metrics(rows, counts, read_at)
        found.append((truth, reader.estimates(counts, METRICS, read_at, generator)))
    return found


def answered(table: str, setting: Setting, name: str) -> list[tuple[float, Estimate]]:
    both = [(truth[name], estimates[name]) for truth, estimates in runs(table, setting)]
    return [(truth, estimate) for truth, estimate in both if estimate.is_available]


def holds(found: list[tuple[float, Estimate]], population: float | None) -> bool:
    """Whether intervals hold the population's value, or with None the rows', often enough."""
    hits = sum(
        (truth if population is None else population)
        in estimate.interval(population=population is not None)
        for truth, estimate in found
    )
    return bool(hits >= binom.ppf(FALSE_ALARM, len(found), 0.93))


def spreads(found: list[tuple[float, Estimate]]) -> bool:
    """Whether errors against the rows' values are as large as told."""
    return fits_spread(
        [estimate.value - truth for truth, estimate in found],
        [estimate.noise_sd for _, estimate in found],
        extra=[estimate.binning_sd for _, estimate in found],
        false_alarm=FALSE_ALARM,
    )


cases = pytest.mark.parametrize(("table", "setting"), CASES.items(), ids=CASES)


@cases
def test_intervals_hold_where_scores_crowd(table: str, setting: Setting) -> None:
    population = table_rows(table)[2]
    missed = [
        (name, whose)
        for name in METRICS
        for whose, value in (("rows", None), ("population", population[name]))
        if not holds(answered(table, setting, name), value)
    ]
    assert not missed


@cases
def test_errors_are_as_large_as_told_where_scores_crowd(table: str, setting: Setting) -> None:
    assert spreads(answered(table, setting, "roc_auc"))


def test_errors_at_a_kink_are_as_large_as_told() -> None:
    """The highest tenth ends where negatives begin to crowd: rows of either side count as theirs.

    With one slope for both sides errors are twice as large as told, with a bias of a deviation.
    """
    assert spreads(answered("one class crowded", DISTRIBUTED[0], "gain@0.1"))


@pytest.mark.parametrize("factor", [0.4, 3.5])
@cases
def test_noise_of_a_wrong_size_is_rejected(table: str, setting: Setting, factor: float) -> None:
    """The twin: all noise told 0.4 or 3.5 times as large as it is."""
    wrong = [
        (truth, replace(each, noise_sd=factor * each.noise_sd, binning_sd=0.0))
        for truth, each in answered(table, setting, "prevalence")
    ]
    assert not spreads(wrong)


@pytest.mark.parametrize("name", ["brier", "average_precision"])
def test_intervals_that_ignore_what_cells_hide_are_rejected(name: str) -> None:
    """The twin: the last of the cells in which exact sums are published hides where scores lie.

    It reaches from 0.006 to 1, and holds a third of the positives. With binning's part of the
    interval left out, 40 runs hold next to nothing.
    """
    found = answered("0.9 %, AUC 0.99", SECURE, name)
    ignored = [(truth, replace(each, binning_sd=0.0)) for truth, each in found]
    assert holds(found, None)
    assert not holds(ignored, None)


def test_intervals_that_are_too_narrow_are_rejected() -> None:
    """The twin: intervals 0.35 times as wide as they are.

    They hold in some 51 of 100 runs, which 120 of the three tables together tell from 93 % and
    take for it less than once in a million times. What cells hide alone is too little for this
    size: without it average precision still held in 105 of 120. `tests/unit` asks for it directly.
    """
    found = [pair for case in CASES.items() for pair in answered(*case, "roc_auc")]
    narrow = [
        (truth, replace(each, noise_sd=0.35 * each.noise_sd, binning_sd=0.35 * each.binning_sd))
        for truth, each in found
    ]
    assert holds(found, None)
    assert not holds(narrow, None)
