"""Does a site that adds the whole noise keep its promise, whatever others do?

Exactly from the pmf, and by sampling the real path. Every sampled test would fail by chance at
most once in a million (`FALSE_ALARM`), and its stream is fixed; the same checks must reject each
planted bug.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from fedassay import Examples, Grid, Hierarchy, Survey, Tally, Unit
from fedassay.client import make_answer
from fedassay.decoding import DecodeOptions, decode
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Keep, Polya, Privacy, UnitKind
from fedassay.patient_rows import limited_rows
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import design_survey
from fedassay.randomness import Randomness, SimulatedRandomness
from fedassay.simulation.simulate import tally_clients, tally_each_client
from fedassay.survey_json import survey_from_json
from fedassay.tally import TallyBuilder
from fedassay.wire import decode as read_report
from tests.laws import (
    FALSE_ALARM,
    FloatArray,
    IntArray,
    chi_square,
    discrete_laplace,
    epsilon_at_least,
    fits_spread,
    full,
    polya_difference,
    same_law,
)

pytestmark = pytest.mark.statistical

Make = Callable[[Fraction, int, int], Polya]
PATIENT = Unit(UnitKind.PATIENT, 2)


def site_survey(
    make: Make = Polya,
    *,
    epsilon: Fraction = Fraction(1),
    cells: int = 4,
    fanouts: tuple[int, ...] = (4,),
    unit: Unit | None = None,
) -> Survey:
    unit = unit or Unit()
    hierarchy = Hierarchy(cells, fanouts)
    part = epsilon / hierarchy.levels
    return Survey(
        privacy=Privacy.SITE,
        grid=Grid.uniform(cells),
        hierarchy=hierarchy,
        mechanisms=tuple(make(part, unit.sensitivity, 1) for _ in fanouts),
        unit=unit,
        minimum_reports=1,
    )


# --- From the exact pmf -------------------------------------------------------------------


def loss(survey: Survey, moved: IntArray) -> float:
    """The largest log ratio of a report's probability when leaf counts move, by brute force.

    Counters are independent given the counts, so that the log ratios of single counters add up.
    """
    total = 0.0
    for level, mechanism in enumerate(survey.mechanisms):
        assert isinstance(mechanism, Polya)
        pmf = discrete_laplace(float(mechanism.step))
        values = np.arange(-60, 61)
        for shift in survey.hierarchy.at_level(moved, level).ravel().tolist():
            ratios = np.log(pmf(values)) - np.log(pmf(values - shift))
            total += float(np.abs(ratios).max())
    return total


def one_row(cells: int) -> Iterator[IntArray]:
    for place in product(range(2), range(cells)):
        moved = np.zeros((2, cells), dtype=np.int64)
        moved[place] = 1
        yield moved


@pytest.mark.parametrize("fanouts", [(4,), (2, 2)])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_one_report_alone_keeps_the_whole_epsilon(epsilon: str, fanouts: tuple[int, ...]) -> None:
    survey = site_survey(epsilon=Fraction(epsilon), fanouts=fanouts)
    worst = max(loss(survey, moved) for moved in one_row(4))
    assert worst == pytest.approx(float(Fraction(epsilon)), rel=1e-9)


def test_a_survey_that_the_planner_makes_and_a_file_carries_keeps_its_epsilon() -> None:
    request = SurveyRequest(
        privacy=Privacy.SITE, epsilon=Fraction(1, 2), clients=8, examples=40_000
    )
    made = design_survey(request).survey
    survey = survey_from_json(made.to_json())
    moved = np.zeros((2, survey.grid.cells), dtype=np.int64)
    moved[1, survey.grid.cells // 3] = 1
    assert loss(survey, moved) <= 0.5 + 1e-9


def output_laws(survey: Survey, kept: list[IntArray]) -> FloatArray:
    """The exact probability of every output in a box, averaged over what may be kept."""
    (mechanism,) = survey.mechanisms
    assert isinstance(mechanism, Polya)
    pmf, values = discrete_laplace(float(mechanism.step)), np.arange(-7, 8)
    found = np.zeros((len(values),) * 4)
    for counts in kept:
        laws = [pmf(values - count) for count in counts.ravel().tolist()]
        found += np.einsum("a,b,c,d->abcd", *laws) / len(kept)
    return found


def kept_counts(rows: list[tuple[int, int]], most: int) -> list[IntArray]:
    """The counts of every set of rows that a patient may be left with."""
    found = []
    for chosen in combinations(rows, min(most, len(rows))):
        counts = np.zeros((2, 2), dtype=np.int64)
        for label, cell in chosen:
            counts[label, cell] += 1
        found.append(counts)
    return found


PATIENTS = [
    [(0, 0)] * 5,
    [(0, 0), (0, 1), (1, 0), (1, 1), (1, 1)],
    [(1, 1), (1, 0), (1, 0)],
    [(0, 1)],
]


@pytest.mark.parametrize("rows", PATIENTS)
def test_a_patient_of_any_rows_moves_every_output_by_at_most_its_epsilon(
    rows: list[tuple[int, int]],
) -> None:
    survey = site_survey(cells=2, fanouts=(2,), unit=PATIENT)
    nobody = output_laws(survey, [np.zeros((2, 2), dtype=np.int64)])
    with_it = output_laws(survey, kept_counts(rows, PATIENT.max_examples))
    assert np.abs(np.log(with_it / nobody)).max() <= 1.0 + 1e-9
    # The twins: a row more than the sensitivity was told of, and no limit at all.
    if len(rows) > 2:
        beyond = output_laws(survey, kept_counts(rows, 3))
        assert np.abs(np.log(beyond / nobody)).max() > 1.4


@pytest.mark.parametrize("keep", Keep)
def test_what_a_site_counts_of_a_patient_is_one_of_those_sets(keep: Keep) -> None:
    survey = site_survey(cells=2, fanouts=(2,), unit=Unit(UnitKind.PATIENT, 2, keep))
    rows = PATIENTS[1]
    allowed = {counts.tobytes() for counts in kept_counts(rows, 2)}
    labels, cells = zip(*rows, strict=True)
    examples = Examples(labels, (np.array(cells) + 0.5) / 2)
    seen = set()
    randomness = SimulatedRandomness(5)
    for _ in range(200):
        kept = limited_rows(
            survey,
            examples,
            patients=np.zeros(5, dtype=np.int64),
            times=np.array([3.0, 1.0, 5.0, 4.0, 2.0]),
            randomness=randomness,
        )
        seen.add(survey.grid.count(kept).tobytes())
    if keep is Keep.RANDOM:
        # Each of ten sets is missed by 200 draws with probability 0.9^200 = 7e-10.
        assert seen == allowed
    else:
        latest = np.array([[0, 0], [1, 1]], dtype=np.int64)
        assert seen == {latest.tobytes()}


# --- The sampler, through make_answer, the wire and the tally ------------------------------


def noise_by_site(make: Make, *, sites: int, epsilon: Fraction) -> dict[str, IntArray]:
    """What every site's kept counters have beyond its counts, and their sum's."""
    cells = full(50_000, 2_500)
    survey = site_survey(make, epsilon=epsilon, cells=cells, fanouts=(cells,))
    counts = np.zeros((2, cells), dtype=np.int64)
    counts[:, ::2] = 3
    randomness = SimulatedRandomness(21)
    builder = TallyBuilder(Tally.zero(survey), survey)
    for number in range(sites):
        sent = make_answer(survey, counts, randomness=randomness).to_bytes()
        builder.add(read_report(sent, survey), name=f"site {number}")
    tally = builder.tally()
    found = {name: own - counts.ravel() for name, own in tally.sites.items()}
    return found | {"sum": tally.counters - sites * counts.ravel()}


def misfit(make: Make) -> float:
    """The smallest p-value: of each site against the whole noise, and of their sum against three.

    The sum has its law only if the sites draw by themselves.
    """
    found = noise_by_site(make, sites=3, epsilon=Fraction(1))
    laws = {name: discrete_laplace(1.0) for name in found} | {"sum": polya_difference(3.0, 1.0)}
    assert len(found) == 4
    return min(4 * chi_square(noise, laws[name]) for name, noise in found.items())


def test_every_site_adds_the_whole_discrete_laplace_noise_of_its_own() -> None:
    # False alarms: 1e-6. Counters: 5,000 of each of three sites.
    assert misfit(Polya) > FALSE_ALARM


class HalfSensitivity(Polya):
    """Noise for half of what a row moves."""

    @property
    def step(self) -> Fraction:
        return 2 * self.epsilon / self.sensitivity


class SharedNoise(Polya):
    """All sites add the same noise: whoever knows one site's takes it from the others'."""

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        return Polya.noise(self, size, randomness=SimulatedRandomness(1))


class AShareOnly(Polya):
    """A third of the noise, as if the others added the rest."""

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        shared = Polya(self.epsilon, self.sensitivity, 3)
        return Polya.noise(shared, size, randomness=randomness)


class SkipsEmpty(Polya):
    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        return np.where(counts == 0, 0, Polya.share(self, counts, randomness=randomness))


BUGS = [HalfSensitivity, SharedNoise, AShareOnly, SkipsEmpty]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_does_not_fit(bug: type[Polya]) -> None:
    assert misfit(bug) < FALSE_ALARM


def test_a_simulation_draws_each_site_as_the_sites_themselves_do() -> None:
    # False alarms: 1e-6. Counters: 2,000 of each of two sites, either way.
    survey = site_survey(epsilon=Fraction(1), cells=1000, fanouts=(1000,))
    rows = Examples(np.zeros(400, dtype=int), np.full(400, 0.5))
    cohort = ScoredClients(rows, np.arange(400, dtype=np.int64) % 2, 2, ("north", "south"))
    at_once = tally_clients(survey, cohort, randomness=SimulatedRandomness(3))
    each = tally_each_client(survey, cohort, randomness=SimulatedRandomness(4))
    counts = survey.grid.count(rows).ravel() // 2
    for name in ("north", "south"):
        left, right = (tally.sites[name] - counts for tally in (at_once, each))
        assert same_law(left, right) > FALSE_ALARM / 2
        assert chi_square(left, discrete_laplace(1.0)) > FALSE_ALARM / 2
    # The twin: sites that share one noise between them.
    half = Polya(Fraction(1), 1, 2).noise(2000, randomness=SimulatedRandomness(5))
    assert same_law(at_once.sites["north"] - counts, half) < FALSE_ALARM


def test_the_error_that_is_told_grows_with_the_number_of_sites() -> None:
    """Of the count of positives: S sites have the noise of S; a false alarm of 1e-6."""
    survey = site_survey(epsilon=Fraction(1, 2), fanouts=(2, 2))
    counts = np.full((2, 4), 500, dtype=np.int64)
    for sites in (1, 9):
        errors, told = [], []
        for seed in range(full(2_000, 300)):
            generator = np.random.default_rng((sites, seed))
            noisy = [
                mechanism.cohort(
                    survey.hierarchy.at_level(counts, level), reports=sites, generator=generator
                )
                for level, mechanism in enumerate(survey.mechanisms)
            ]
            counters = np.concatenate([level.ravel() for level in noisy])
            tally = Tally(survey.fingerprint, (sites,) * 2, counters)
            decoded = decode(survey, tally, decode_options=DecodeOptions())
            errors.append(decoded.total_positives - 2000.0)
            functional = np.stack([np.zeros(4), np.ones(4)])
            told.append(float(decoded.noise.variance(functional)) ** 0.5)
        assert fits_spread(errors, told, kurtosis=6.0)
        # The twins: one site's noise told for nine, and nine sites' for one.
        wrong = 3.0 if sites == 1 else 1 / 3
        assert not fits_spread(errors, np.array(told) * wrong, kurtosis=6.0)


# --- An audit: how well does a site's own report tell whether a row was there? --------------


def audit(make: Make, runs: int) -> float:
    """A lower bound on epsilon from single counters, all that others know being of no use.

    Counters have noise of their own, so that one report of many cells is as many trials.
    """
    survey = site_survey(make, epsilon=Fraction(1), cells=runs, fanouts=(runs,))
    randomness, hits = SimulatedRandomness(9), []
    for held in (1, 0):
        counts = np.zeros((2, runs), dtype=np.int64)
        counts[1] = held
        sent = make_answer(survey, counts, randomness=randomness).to_bytes()
        tally = Tally.of(survey, [read_report(sent, survey)])
        hits.append(int((tally.per_level(survey)[0][1] >= 1).sum()))
    return epsilon_at_least((hits[0], hits[1]), runs)


def test_an_audit_of_single_reports_finds_no_more_than_epsilon_and_nearly_all_of_it() -> None:
    # Wrong with probability 1e-6, by the bound's own rate.
    runs = full(100_000, 8_000)
    assert 0.6 < audit(Polya, runs) <= 1.0
    assert audit(HalfSensitivity, runs) > 1.0
    assert audit(AShareOnly, runs) > 1.0
