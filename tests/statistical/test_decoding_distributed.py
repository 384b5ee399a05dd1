"""Are 95 % intervals right, neither too narrow nor too wide? Of the rows' own value, and of the
population's.

The population is the bundled table, smoothed: a finite table taken for a population has
lumps of its own, which would count as binning error twice. Every run draws new rows from it,
so what binning hides differs from run to run, and adds the noise of a whole cohort.

Two checks of every figure: how often intervals cover, and whether errors spread as much as is
told (`laws.fits_spread`), which sees intervals that are too wide long before coverage does.
False alarms: below 1e-6 for each figure's coverage, 1e-8 for its spread. Runs: 300, or 2,000. The
noise of few counters has heavier tails than a normal one, a kurtosis of at most 4, so that noise
told to be 0.6 or 1.7 times what it is is seen in 999 of 1,000 tests; with 2,000 runs 0.8 or 1.25.
The twins below have the size of the tests.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import isnan, nan

import numpy as np
import pytest
from scipy import stats

from fedassay import (
    Estimate,
    Examples,
    Grid,
    Privacy,
    ScoreHistogram,
    SurveyRequest,
    Tally,
)
from fedassay.decoding import decode
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.planning.search import design_survey
from tests.laws import FALSE_ALARM, FloatArray, IntArray, fits_spread, full
from tests.tables import Table, read_table, table_paths

pytestmark = pytest.mark.statistical

CLIENTS = 100_000
FINE = 2**14
SMOOTHED_OVER = 128
RUNS = full(2_000, 300)
EPSILONS = ("1/10", "1", "5")
AT: dict[str, Callable[[ScoreHistogram, float], Estimate]] = {
    "precision": precision,
    "recall": recall,
    "accuracy": accuracy,
}


@dataclass(frozen=True)
class Population:
    """Probabilities on cells far finer than a survey's, label x cell."""

    edges: FloatArray
    shares: FloatArray

    @classmethod
    def smoothed(cls, table: Table) -> "Population":
        counts = Grid.uniform(FINE).count(Examples(table.labels, table.scores))
        window = np.ones(SMOOTHED_OVER + 1) / (SMOOTHED_OVER + 1)
        padded = np.pad(counts, ((0, 0), (SMOOTHED_OVER // 2,) * 2), mode="symmetric")
        smooth = np.stack([np.convolve(row, window, mode="valid") for row in padded])
        return cls(np.arange(FINE + 1) / FINE, smooth / smooth.sum())

    def cut_at(self, edges: FloatArray) -> "Population":
        """The same with more edges; cells are even inside."""
        finer = np.union1d(self.edges, edges)
        below = np.concatenate([np.zeros((2, 1)), np.cumsum(self.shares, axis=1)], axis=1)
        shares = np.diff(np.stack([np.interp(finer, self.edges, row) for row in below]), axis=1)
        return Population(finer, shares / shares.sum())

    def values(self, counts: FloatArray | IntArray, thresholds: FloatArray) -> dict[str, float]:
        """The metrics of rows that sit in the middle of their fine cells."""
        n, p = counts.astype(np.float64)
        N, P = n.sum(), p.sum()
        found = {"roc_auc": float(p @ (np.cumsum(n) - 0.5 * n) / (N * P))}
        for i, threshold in enumerate(thresholds):
            place = np.searchsorted(self.edges, threshold)
            fp, tp = n[place:].sum(), p[place:].sum()
            found[f"precision {i}"] = float(tp / (tp + fp)) if tp + fp else nan
            found[f"recall {i}"] = float(tp / P)
            found[f"accuracy {i}"] = float((tp + N - fp) / (N + P))
        return found


@dataclass(frozen=True)
class Run:
    """One estimate with the values that its intervals should hold."""

    estimate: Estimate
    table: float
    population: float

    @property
    def holds_rows(self) -> bool:
        return self.table in self.estimate.interval(population=False)

    @property
    def holds_population(self) -> bool:
        return self.population in self.estimate.interval()


Figures = dict[str, list[Run]]


@cache
def drawn(epsilon: str, which: str) -> tuple[Figures, int]:
    """The runs of every figure; without known thresholds each run takes three new ones."""
    known = KNOWN[which]
    design = design_survey(request(epsilon, known))
    generator = np.random.default_rng(11)
    survey = design.survey
    figures: Figures = {}
    places = 2**8
    some = (np.arange(1, places) / places) * 0.5 + 0.1 * np.sqrt(0.5)
    population = Population.smoothed(read_table(table_paths()[0]))
    fine = population.cut_at(np.concatenate([survey.grid.edges, known, some]))
    first = np.searchsorted(fine.edges, survey.grid.edges[:-1])
    for _ in range(RUNS):
        counts = generator.multinomial(CLIENTS, fine.shares.ravel()).reshape(fine.shares.shape)
        leaves = np.add.reduceat(counts, first, axis=1)
        sums = [
            mechanism.cohort(
                survey.hierarchy.at_level(leaves, level), reports=CLIENTS, generator=generator
            ).ravel()
            for level, mechanism in enumerate(survey.mechanisms)
        ]
        reports = (CLIENTS,) * survey.hierarchy.levels
        tally = Tally(survey.fingerprint, reports, np.concatenate(sums))
        histogram = decode(survey, tally, decode_options=design.decode_options)
        thresholds = known if len(known) else generator.choice(some, 3)
        estimates = {"roc_auc": roc_auc(histogram)}
        for i, threshold in enumerate(thresholds):
            for name, metric in AT.items():
                estimates[f"{name} {i}"] = metric(histogram, float(threshold))
        values = fine.values(counts, thresholds)
        truth = fine.values(fine.shares, thresholds)
        for name, estimate in estimates.items():
            if estimate.is_available and not isnan(values[name]):
                family = name if len(known) else name.split()[0]
                figures.setdefault(family, []).append(Run(estimate, values[name], truth[name]))
    return figures, RUNS


def told(runs: list[Run], *, noise: float = 1.0, binning: float = 1.0) -> list[Run]:
    """The same runs, had their estimates told other errors."""
    return [
        replace(
            run,
            estimate=replace(
                run.estimate,
                noise_sd=noise * run.estimate.noise_sd,
                binning_sd=binning * run.estimate.binning_sd,
            ),
        )
        for run in runs
    ]


def covers(runs: list[Run]) -> dict[str, bool]:
    """Whether intervals of the rows, and of the population, cover as often as they say.

    Binning errors are told with caution (at epsilon 1/10 and any threshold, precision's are told
    1.6 times as large as they are), so that intervals without them must not cover too often.
    """
    bare = told(runs, binning=0.0)
    rows = [sum(run.holds_rows for run in kind) for kind in (runs, bare)]
    population = [sum(run.holds_population for run in kind) for kind in (runs, bare)]
    return {
        "rows": is_covered(rows[0], rows[1], len(runs)),
        "population": is_covered(population[0], population[1], len(runs)),
    }


def spreads(runs: list[Run], draws: int) -> dict[str, bool]:
    """Whether errors against the rows, and against the population, are as large as told."""
    value, noise, binning, sampling, table, population = np.array(
        [
            (
                run.estimate.value,
                run.estimate.noise_sd,
                run.estimate.binning_sd,
                run.estimate.sampling_sd,
                run.table,
                run.population,
            )
            for run in runs
        ]
    ).T
    of_all = np.hypot(noise, sampling)
    same = {"extra": binning, "draws": draws, "kurtosis": 4.0, "false_alarm": 1e-8}
    return {
        "rows": fits_spread(value - table, noise, **same),
        "population": fits_spread(value - population, of_all, **same),
    }


def request(epsilon: str, thresholds: FloatArray) -> SurveyRequest:
    return SurveyRequest(
        privacy=Privacy.DISTRIBUTED,
        epsilon=Fraction(epsilon),
        clients=CLIENTS,
        dropouts=Fraction(0),
        thresholds=tuple(map(float, thresholds)),
    )


KNOWN = {"known thresholds": np.array([0.1, 0.3, 0.5]), "any thresholds": np.zeros(0)}


def is_covered(hits: int, bare: int, trials: int) -> bool:
    """Whether a coverage of 94 to 97 % is believable, up to one false alarm in a million.

    `hits` must not be too few, nor `bare`, those of intervals without binning, too many.
    """
    few = float(stats.binom.cdf(hits, trials, 0.94))
    many = float(stats.binom.sf(bare - 1, trials, 0.97))
    return min(few, many) > FALSE_ALARM


@pytest.mark.parametrize("which", KNOWN)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_cover_and_errors_spread_as_they_say(epsilon: str, which: str) -> None:
    figures, draws = drawn(epsilon, which)
    for name, runs in figures.items():
        assert len(runs) > 0.9 * draws
        assert all(covers(runs).values()), (name, covers(runs))
        assert all(spreads(runs, draws).values()), (name, spreads(runs, draws))


@pytest.mark.parametrize("noise", [0.6, 1.7])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_errors_that_are_told_wrong_noise_do_not_spread_as_told(epsilon: str, noise: float) -> None:
    """At thresholds on edges, where there is nothing but noise."""
    figures, draws = drawn(epsilon, "known thresholds")
    for name, runs in figures.items():
        if name != "roc_auc":
            assert not spreads(told(runs, noise=noise), draws)["rows"], name


def test_errors_that_are_told_of_no_binning_spread_more() -> None:
    figures, draws = drawn("5", "any thresholds")
    for name in AT:
        unaware = told(figures[name], binning=0.0)
        assert not covers(unaware)["rows"], name
        assert not spreads(unaware, draws)["rows"], name
