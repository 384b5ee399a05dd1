"""Two surveys read as one: errors of sums spread as much as is told, neither less nor more.

Each run draws the noise of both surveys anew, and under local privacy which rows answer which.
Errors are those of sums of leaves, about the counts of the very rows. Checked are the positives,
those above a threshold, the sum that ROC AUC depends on, and a sum in a random direction.

False alarms: 1e-8 for each of 20 figures (`laws.fits_spread`). Runs: 300, or 2,000. The noise of
few counters has a kurtosis of at most 4, so that errors told 0.6 or 1.7 times what they are are
seen in 999 of 1,000 tests; with 2,000 runs 0.8 or 1.25. Means of errors have limits of 5.8 of their
own sd: a bias of half an sd is seen in 999 of 1,000 tests. The twins have the size of the tests.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import sqrt

import numpy as np
import pytest

from fedassay import DecodeOptions, ScoreHistogram, Survey, Tally
from fedassay.cut_levels import CutLevels
from fedassay.draws import draw_tally, randomised
from fedassay.two_steps import decode_two, least_squares
from tests.laws import FloatArray, IntArray, fits_spread, full
from tests.steps import first_local, first_shared, second_local, second_shared

pytestmark = pytest.mark.statistical

RUNS = full(2_000, 300)
LEAVES = 12
FALSE_ALARM = 1e-8
PLACES = np.linspace(-2.0, 2.0, LEAVES)
SHAPES = np.stack([np.exp(-((PLACES + 0.7) ** 2)), 0.5 * np.exp(-((PLACES - 0.7) ** 2))])
CUTS = (((0, 3, 5, 8), (0, 4, 7)),)
# Every leaf begins a cell of some level, so that local reports are read by leaves too.
LOCAL_CUTS = (((0, 3, 5, 8), (0, 4, 7)), ((0, 6, 11), (0, 1, 2, 6, 9, 10)))
HALF_SCALE = tuple(int(weight) for weight in np.rint(np.linspace(-100, 100, LEAVES)))
DIRECTIONS = ("positives", "above", "area", "random")


@dataclass(frozen=True)
class Errors:
    """Of many runs: what was off, and the standard deviation that was told."""

    off: FloatArray
    told: FloatArray

    def fit(self, *, times: float = 1.0, cautious: bool = False) -> bool:
        """Whether they spread as told; a cautious one may be told up to 2.5 times too large."""
        told = self.told * times
        sure = 0.4 * told if cautious else told
        return fits_spread(
            self.off,
            sure,
            extra=np.sqrt(told**2 - sure**2),
            kurtosis=4.0,
            false_alarm=FALSE_ALARM,
        )

    @property
    def leaning(self) -> float:
        """The mean over its own standard deviation."""
        scores = self.off / self.told
        return float(scores.mean() / scores.std() * sqrt(len(scores)))


def towards(name: str, generator: np.random.Generator) -> FloatArray:
    weights = np.zeros((2, LEAVES))
    leaf = np.arange(LEAVES)
    if name == "positives":
        weights[1] = 1.0
    elif name == "above":
        weights[1, 5:] = 1.0
    elif name == "area":
        weights[0], weights[1] = 0.5 - leaf / LEAVES, leaf / LEAVES - 0.5
    else:
        weights = generator.normal(size=(2, LEAVES))
    return weights


class Runs:
    """Errors by direction, gathered run by run."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._off: dict[str, list[float]] = {name: [] for name in DIRECTIONS}
        self._told: dict[str, list[float]] = {name: [] for name in DIRECTIONS}

    def add(self, histogram: ScoreHistogram, truth: IntArray) -> None:
        for name in DIRECTIONS:
            weights = towards(name, self._generator)
            self._off[name].append(float(((histogram.counts - truth) * weights).sum()))
            self._told[name].append(sqrt(histogram.noise.variance(weights)))

    def errors(self) -> dict[str, Errors]:
        return {
            name: Errors(np.array(self._off[name]), np.array(self._told[name]))
            for name in DIRECTIONS
        }


def read(first: Survey, second: Survey, one: Tally, other: Tally) -> ScoreHistogram:
    return decode_two(first, one, second, other, decode_options=DecodeOptions())


@cache
def shared_runs(weighted: bool) -> dict[str, Errors]:
    clients = 600
    generator = np.random.default_rng(21)
    first = first_shared(leaves=LEAVES, minimum_reports=clients)
    weights = (tuple(reversed(HALF_SCALE)), HALF_SCALE) if weighted else None
    second = second_shared(first, CutLevels(LEAVES, CUTS, weights))
    table = np.rint(SHAPES / SHAPES.sum() * clients).astype(np.int64)
    runs = Runs(generator)
    for _ in range(RUNS):
        tallies = [
            draw_tally(survey, table, clients=clients, generator=generator)
            for survey in (first, second)
        ]
        runs.add(read(first, second, *tallies), table)
    return runs.errors()


@cache
def local_runs(allow_empty: bool) -> dict[str, Errors]:
    clients, holding = 40_000, 30_000 if allow_empty else 40_000
    generator = np.random.default_rng(22)
    first = first_local(leaves=LEAVES, allow_empty=allow_empty, share=Fraction(1, 4))
    second = second_local(first, CutLevels(LEAVES, LOCAL_CUTS))
    runs = Runs(generator)
    for _ in range(RUNS):
        shares = SHAPES.ravel() / SHAPES.sum()
        table = generator.multinomial(holding, shares).reshape(2, LEAVES)
        # Each client answers the first with probability 1/4, whatever it holds.
        early = generator.binomial(table, 0.25)
        silent = int(generator.binomial(clients - holding, 0.25))
        parts = [(first, early, silent), (second, table - early, clients - holding - silent)]
        tallies = [
            draw_tally(each, held, clients=int(held.sum()) + empty, generator=generator)
            for each, held, empty in parts
        ]
        # What is read of them is smoother, and leans where leaves are not.
        leaves, _ = least_squares(first, tallies[0], second, tallies[1])
        runs.add(leaves, table)
    return runs.errors()


@cache
def differing_runs(missing_in: str, *, truth_of: str = "second") -> dict[str, Errors]:
    """Sites of uneven size and mix; four of forty answer one of the two surveys only."""
    sites, missing = 40, 4
    generator = np.random.default_rng(23)
    first = first_shared(leaves=LEAVES, minimum_reports=sites - missing)
    weights = (tuple(reversed(HALF_SCALE)), HALF_SCALE)
    second = second_shared(first, CutLevels(LEAVES, CUTS, weights))
    runs = Runs(generator)
    for _ in range(RUNS):
        size = 60 * generator.gamma(4.0, 0.25, (sites, 1, 1))
        mix = SHAPES * np.exp(generator.normal(0.0, 0.5, (sites, 2, 1)))
        tables = generator.poisson(size * mix / mix.sum(axis=(1, 2), keepdims=True))
        held = {"all": (tables.sum(axis=0), sites), "some": (tables[missing:].sum(axis=0), 36)}
        order = ("some", "all") if missing_in == "first" else ("all", "some")
        tallies = []
        for survey, which in zip((first, second), order, strict=True):
            table, reports = held[which]
            levels = survey.hierarchy.levels
            tallies.append(
                randomised(
                    survey, [table] * levels, reports=(reports,) * levels, generator=generator
                )
            )
        truth = held[order[1] if truth_of == "second" else order[0]][0]
        runs.add(read(first, second, *tallies), truth)
    return runs.errors()


@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("weighted", [True, False])
def test_sums_of_shared_noise_are_off_by_as_much_as_is_told(name: str, weighted: bool) -> None:
    errors = shared_runs(weighted)[name]
    assert errors.fit()
    assert abs(errors.leaning) < 5.8
    for times in (0.5, 2.0):
        assert not errors.fit(times=times), "the twin: errors that are told wrong"


@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("allow_empty", [False, True])
def test_sums_of_local_reports_are_off_by_as_much_as_is_told(name: str, allow_empty: bool) -> None:
    errors = local_runs(allow_empty)[name]
    assert errors.fit()
    assert abs(errors.leaning) < 5.8
    for times in (0.5, 2.0):
        assert not errors.fit(times=times), "the twin: errors that are told wrong"


@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("missing_in", ["first", "second"])
def test_clients_in_one_survey_only_are_allowed_for(name: str, missing_in: str) -> None:
    """What is estimated is the second survey's cohort; caution is for what only the first says."""
    errors = differing_runs(missing_in)[name]
    assert errors.fit(cautious=True)
    assert abs(errors.leaning) < 5.8


def test_the_cohort_that_is_estimated_is_not_the_firsts() -> None:
    """The twin: held against the first survey's clients, errors are larger than is told."""
    assert not differing_runs("first", truth_of="first")["positives"].fit(cautious=True)


def test_weighted_sums_know_the_area_better_than_cells_do() -> None:
    """The same epsilon: the one counter that ROC AUC depends on, against cells alone."""
    weighted, cells = shared_runs(True)["area"], shared_runs(False)["area"]
    assert weighted.told.mean() < 0.8 * cells.told.mean()
    assert np.square(weighted.off).mean() < np.square(cells.off).mean()
