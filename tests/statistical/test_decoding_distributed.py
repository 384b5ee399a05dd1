"""Do 95 % intervals cover? Of the rows' own value, and of the population's.

The population is the bundled table, smoothed: a finite table taken for a population has
lumps of its own, which would count as binning error twice. Every run draws new rows from it,
so what binning hides differs from run to run, and adds the noise of a whole cohort.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
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
    SurveyDesign,
    SurveyRequest,
    Tally,
)
from fedassay.decoding import decode
from fedassay.metrics import accuracy, precision, recall, roc_auc
from fedassay.planning.search import design_survey
from tests.laws import FALSE_ALARM, FloatArray, IntArray, full
from tests.tables import Table

pytestmark = pytest.mark.statistical

CLIENTS = 100_000
FINE = 2**14
SMOOTHED_OVER = 128
RUNS = full(2_000, 150)
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


@dataclass
class Cover:
    """How often intervals held what they should."""

    table: int = 0
    population: int = 0
    trials: int = 0

    def add(self, estimate: Estimate, table: float, population: float) -> None:
        if not estimate.is_available or isnan(table):
            return
        self.table += table in estimate.interval(population=False)
        self.population += population in estimate.interval()
        self.trials += 1


def coverage(
    population: Population,
    design: SurveyDesign,
    *,
    known: FloatArray,
    noise: float = 1.0,
    binning: float = 1.0,
    runs: int = RUNS,
) -> dict[str, Cover]:
    """Cover counts per metric; without known thresholds each run takes new ones.

    `noise` and `binning` multiply the standard deviations that intervals are told.
    """
    generator = np.random.default_rng(11)
    survey = design.survey
    found: dict[str, Cover] = {}
    places = 2**8
    some = (np.arange(1, places) / places) * 0.5 + 0.1 * np.sqrt(0.5)
    fine = population.cut_at(np.concatenate([survey.grid.edges, known, some]))
    first = np.searchsorted(fine.edges, survey.grid.edges[:-1])
    for _ in range(runs):
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
        table = fine.values(counts, thresholds)
        truth = fine.values(fine.shares, thresholds)
        for name, estimate in estimates.items():
            told = replace(
                estimate,
                noise_sd=noise * estimate.noise_sd,
                binning_sd=binning * estimate.binning_sd,
            )
            family = name if len(known) else name.split()[0]
            found.setdefault(family, Cover()).add(told, table[name], truth[name])
    return found


def request(epsilon: str, thresholds: FloatArray) -> SurveyRequest:
    return SurveyRequest(
        privacy=Privacy.DISTRIBUTED,
        epsilon=Fraction(epsilon),
        clients=CLIENTS,
        dropouts=Fraction(0),
        thresholds=tuple(map(float, thresholds)),
    )


KNOWN = {"known thresholds": np.array([0.1, 0.3, 0.5]), "any thresholds": np.zeros(0)}


def is_covered(hits: int, trials: int) -> bool:
    """Whether a coverage of 94 to 97 % is believable, up to one false alarm in a million."""
    few = float(stats.binom.cdf(hits, trials, 0.94))
    many = float(stats.binom.sf(hits - 1, trials, 0.97))
    return min(few, many) > FALSE_ALARM


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN.keys())
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_cover_the_rows_and_the_population(
    epsilon: str, known: FloatArray, sample: Table
) -> None:
    # False alarms: 1e-6 for each figure whose coverage is from 94 to 97 %. Runs: 2,000, or 150;
    # without known thresholds each run brings three intervals, which share their noise.
    design = design_survey(request(epsilon, known))
    found = coverage(Population.smoothed(sample), design, known=known)
    for name, cover in found.items():
        print(  # noqa: T201
            f"epsilon {epsilon} {name}: table {cover.table / cover.trials:.4f} "
            f"population {cover.population / cover.trials:.4f} of {cover.trials}"
        )
        assert cover.trials > 0.9 * RUNS
        assert is_covered(cover.table, cover.trials), name
        assert is_covered(cover.population, cover.trials), name


@pytest.mark.parametrize("noise", [0.6, 2.0])
def test_intervals_that_are_told_wrong_noise_do_not_cover(noise: float, sample: Table) -> None:
    known = KNOWN["known thresholds"]
    design = design_survey(request("1/10", known))
    # Runs: 600, because fewer do not tell 97 % from always.
    found = coverage(Population.smoothed(sample), design, known=known, noise=noise, runs=600)
    assert not is_covered(found["recall 1"].table, found["recall 1"].trials)


def test_intervals_that_are_told_of_no_binning_do_not_cover(sample: Table) -> None:
    known = KNOWN["any thresholds"]
    design = design_survey(request("5", known))
    found = coverage(Population.smoothed(sample), design, known=known, binning=0.0)
    assert not is_covered(found["recall"].table, found["recall"].trials)
