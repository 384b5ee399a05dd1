"""Does the noise keep its promise? Exactly from the pmf, and by sampling the real path.

Every sampled test would fail by chance at most once in a million (`FALSE_ALARM`), and its
stream is fixed; the same checks must reject each planted bug.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from fedassay import Examples, Grid, Hierarchy, Survey, Tally, Unit
from fedassay.client import make_answer
from fedassay.examples import ScoredClients
from fedassay.level_policy import EveryLevel, LevelPolicy, OneLevel
from fedassay.mechanisms import Polya, Privacy, UnitKind
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import Randomness, SimulatedRandomness
from fedassay.simulation.simulate import tally_clients, tally_each_client
from fedassay.tally import TallyBuilder
from fedassay.wire import decode
from tests.laws import (
    FALSE_ALARM,
    IntArray,
    chi_square,
    discrete_laplace,
    epsilon_at_least,
    full,
    polya_difference,
    same_law,
    true_epsilon,
)
from tests.surveys import cohort_of

pytestmark = pytest.mark.statistical

STEPS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0)


# --- From the exact pmf -------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_the_oracle_for_shape_one_is_the_discrete_laplace(step: float) -> None:
    k = np.arange(-int(30 / step), int(30 / step) + 1)
    np.testing.assert_allclose(polya_difference(1.0, step)(k), discrete_laplace(step)(k), rtol=1e-9)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("minimum", "colluders"), [(2, 0), (2, 1), (5, 2), (10, 0), (100, 30)])
def test_epsilon_holds_for_every_number_of_survivors(
    step: float, minimum: int, colluders: int
) -> None:
    shares = Polya(Fraction(str(step)), 1, minimum - colluders).noise_shares
    for survivors in (minimum, minimum + 1, 2 * minimum, 10 * minimum):
        for knowing in {0, colluders // 2, colluders}:
            spent = true_epsilon((survivors - knowing) / shares, step)
            assert spent <= step + 1e-9


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("shares", [2, 3, 10, 100, 1000])
def test_one_missing_noise_share_raises_epsilon(step: float, shares: int) -> None:
    assert true_epsilon((shares - 1) / shares, step) > step * (1 + 1e-5)


@pytest.mark.parametrize(
    ("step", "arrived", "spent"),
    [
        (1.0, 0.9, 1.10),
        (1.0, 0.7, 1.34),
        (1.0, 0.5, 1.68),
        (1.0, 0.3, 2.19),
        (0.1, 0.9, 0.146),
        (0.1, 0.7, 0.305),
        (0.1, 0.5, 0.606),
    ],
)
def test_missing_noise_costs_what_the_design_says(
    step: float, arrived: float, spent: float
) -> None:
    assert true_epsilon(arrived, step) == pytest.approx(spent, rel=0.01)


# --- The sampler, through make_answer, encode, decode and tally ---------------------------


@dataclass(frozen=True)
class Cohorts:
    """How the noise of whole tallies is sampled."""

    epsilon: Fraction = Fraction(2)
    sensitivity: int = 1
    clients: int = 4
    minimum: int = 4


def noise_of_tallies(
    make: Callable[[Fraction, int, int], Polya], counters: int, how: Cohorts
) -> dict[str, IntArray]:
    """What tallies have beyond the true counts, by label and by whether the cell is empty."""
    found: dict[str, list[IntArray]] = {}
    cells = min(-(-counters // 2), 2**17)
    unit = Unit() if how.sensitivity == 1 else Unit(UnitKind.CLIENT, how.sensitivity)
    survey = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(make(how.epsilon, how.sensitivity, how.minimum),),
        unit=unit,
        minimum_reports=how.minimum,
    )
    # A client's own share of a survey that holds one example of each label in every other cell
    # is far beyond any sensitivity; noise does not look at counts, so it may be.
    counts = np.zeros((2, cells), dtype=np.int64)
    counts[:, ::2] = 1
    if how.sensitivity > 1:
        counts[:] = 0
        counts[0, : how.sensitivity] = 1
    randomness = SimulatedRandomness(20)
    drawn = 0
    while drawn < counters:
        builder = TallyBuilder(Tally.zero(survey), survey)
        for _ in range(how.clients):
            sent = make_answer(survey, counts, randomness=randomness).to_bytes()
            builder.add(decode(sent, survey))
        noise = builder.tally().per_level(survey)[0] - how.clients * counts
        for label, name in enumerate(("negatives", "positives")):
            for kind, chosen in (("empty", counts[label] == 0), ("filled", counts[label] > 0)):
                if chosen.sum() > 100:
                    found.setdefault(f"{kind} {name}", []).append(noise[label, chosen])
        drawn += 2 * cells
    return {name: np.concatenate(parts) for name, parts in found.items()}


def misfit(
    make: Callable[[Fraction, int, int], Polya], counters: int, how: Cohorts | None = None
) -> float:
    """The smallest p-value over kinds of cells, of sums against the discrete Laplace."""
    chosen = how or Cohorts()
    law = discrete_laplace(float(chosen.epsilon) / chosen.sensitivity)
    groups = noise_of_tallies(make, counters, chosen)
    return min(len(groups) * chi_square(noise, law) for noise in groups.values())


def test_summed_shares_are_discrete_laplace() -> None:
    # False alarms: 1e-6. Counters: 1e7, or 1e5 in the ordinary run.
    assert misfit(Polya, full(10_000_000, 100_000)) > FALSE_ALARM


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), [("1/10", 1), ("1", 1), ("7/2", 1), ("5", 3), ("1/3", 2)]
)
def test_summed_shares_are_discrete_laplace_at_any_step(epsilon: str, sensitivity: int) -> None:
    # False alarms: 1e-6 each. Counters: 200,000, or 10,000 in the ordinary run.
    how = Cohorts(Fraction(epsilon), sensitivity, clients=3, minimum=3)
    assert misfit(Polya, full(200_000, 10_000), how) > FALSE_ALARM


def test_a_single_share_has_its_own_law() -> None:
    # False alarms: 1e-6. Counters: 1e7, or 1e6 in the ordinary run: shares are sparse.
    mechanism = Polya(Fraction(1, 2), 1, 50)
    law = polya_difference(1 / 50, 0.5)
    drawn = mechanism.noise(full(10_000_000, 1_000_000), randomness=SimulatedRandomness(3))
    assert chi_square(drawn, law) > FALSE_ALARM
    # The twin: a share sized for 45 clients.
    assert chi_square(drawn, polya_difference(1 / 45, 0.5)) < FALSE_ALARM


# --- Planted bugs -------------------------------------------------------------------------


class OffByTwo(Polya):
    """Takes the sensitivity for half of what it is."""

    @property
    def step(self) -> Fraction:
        return 2 * self.epsilon / self.sensitivity


class OneSign(Polya):
    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        noise: IntArray = np.abs(Polya.noise(self, size, randomness=randomness))
        return noise


class FloatNoise(Polya):
    """Continuous Laplace noise, rounded: its support is right, its law is not."""

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        generator = np.random.default_rng(int.from_bytes(randomness.bytes(8), "little"))
        gamma = generator.gamma(1 / self.noise_shares, 1 / float(self.step), (2, size))
        rounded: IntArray = np.rint(gamma[0] - gamma[1]).astype(np.int64)
        return rounded


class SameStream(Polya):
    """Every client draws from the same seed."""

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        return Polya.noise(self, size, randomness=SimulatedRandomness(1))


class OneLabel(Polya):
    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        noisy = Polya.share(self, counts, randomness=randomness)
        noisy[0] = counts[0]
        return noisy


class SkipsEmpty(Polya):
    def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
        return np.where(counts == 0, 0, Polya.share(self, counts, randomness=randomness))


class SmallCandidates(Polya):
    """Forgets the k = 1 + Geometric: jumps of zero count for nothing."""

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        dice = Dice(randomness)
        x_top, x_bottom = self.step.numerator, self.step.denominator
        rate = Fraction(2 * size, self.noise_shares) / self.step
        noise = np.zeros(size, dtype=np.int64)
        for _ in range(dice.poisson(rate.numerator, rate.denominator)):
            jump = dice.geometric_exp(x_top, x_bottom)
            if jump and dice.bernoulli(1, jump):
                noise[dice.below(size)] += jump if dice.bits(1) else -jump
        return noise


BUGS = [OffByTwo, OneSign, FloatNoise, SameStream, OneLabel, SkipsEmpty, SmallCandidates]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_does_not_fit(bug: type[Polya]) -> None:
    # Counters: 20,000, a fifth of what the ordinary run gives the real mechanism.
    assert misfit(bug, 20_000) < FALSE_ALARM


def test_shares_for_more_clients_than_report_do_not_fit() -> None:
    assert misfit(Polya, 20_000, Cohorts(clients=7, minimum=10)) < FALSE_ALARM


@dataclass(frozen=True, slots=True)
class Fractional(Polya):
    """Float shares that nobody rounds."""

    def noise(self, size: int, *, randomness: Randomness) -> IntArray:
        generator = np.random.default_rng(int.from_bytes(randomness.bytes(8), "little"))
        return generator.laplace(0, 1, size)  # type: ignore[return-value]  # floats, as the planted bug has them


def is_integral(mechanism: Polya) -> bool:
    shared = mechanism.share(np.ones((2, 50), dtype=np.int64), randomness=SimulatedRandomness(1))
    return shared.dtype == np.int64


def test_shares_are_integers() -> None:
    assert is_integral(Polya(Fraction(1), 1, 2))
    assert not is_integral(Fractional(Fraction(1), 1, 2))


# --- An audit: how well can one tell whether an example was there? ------------------------

TINY = Grid.uniform(4)
CELL = (1, 2)


def tiny_survey(
    make: Callable[[Fraction, int, int], Polya] = Polya,
    *,
    epsilon: Fraction = Fraction(1),
    minimum: int = 3,
    levels: int = 1,
) -> Survey:
    hierarchy = Hierarchy.flat(4) if levels == 1 else Hierarchy(4, (2, 2))
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=TINY,
        hierarchy=hierarchy,
        mechanisms=tuple(make(epsilon / levels, 1, minimum) for _ in range(levels)),
        minimum_reports=minimum,
    )


def neighbours() -> tuple[IntArray, IntArray]:
    """A client with one example, in a cell where nobody else has any, and without it."""
    without = np.zeros((2, 4), dtype=np.int64)
    with_it = without.copy()
    with_it[CELL] = 1
    return with_it, without


def looks_present(survey: Survey, levels: tuple[IntArray, ...]) -> IntArray:
    """The best guess that the example was there, for arrays (... x label x cell)."""
    cell = [int(survey.hierarchy.cell_of(np.array(CELL[1]), i)) for i in range(len(levels))]
    seen = [counts[..., CELL[0], cell[i]] >= 1 for i, counts in enumerate(levels)]
    found: IntArray = np.logical_and.reduce(seen)
    return found


def audit_clients(survey: Survey, runs: int, *, arrived: int) -> float:
    """A lower bound on epsilon from reports made, encoded, decoded and tallied one by one."""
    randomness = SimulatedRandomness(77)
    hits = []
    empty = np.zeros((2, 4), dtype=np.int64)
    for target in neighbours():
        seen = 0
        for _ in range(runs):
            builder = TallyBuilder(Tally.zero(survey), survey)
            for counts in (target, *[empty] * (arrived - 1)):
                sent = make_answer(survey, counts, randomness=randomness).to_bytes()
                builder.add(decode(sent, survey))
            seen += bool(looks_present(survey, builder.tally().per_level(survey)))
        hits.append(seen)
    return epsilon_at_least((hits[0], hits[1]), runs)


def audit_cohort(survey: Survey, runs: int, *, arrived: int) -> float:
    """The same from the cohort sampler."""
    generator = np.random.default_rng(78)
    hits = []
    for counts in neighbours():
        levels = tuple(
            mechanism.cohort(
                np.repeat(survey.hierarchy.at_level(counts, i)[None], runs, axis=0),
                reports=arrived,
                generator=generator,
            )
            for i, mechanism in enumerate(survey.mechanisms)
        )
        hits.append(int(looks_present(survey, levels).sum()))
    return epsilon_at_least((hits[0], hits[1]), runs)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("epsilon", ["1/2", "1", "2"])
def test_a_million_runs_find_almost_all_of_epsilon_and_no_more(epsilon: str, levels: int) -> None:
    # The bound exceeds the truth once in 1e6. Runs: 1e6 for each neighbour, or 200,000.
    claim = Fraction(epsilon)
    found = audit_cohort(
        tiny_survey(epsilon=claim, levels=levels), full(1_000_000, 200_000), arrived=3
    )
    assert 0.85 <= found / float(claim) <= 1.0


@pytest.mark.parametrize("levels", [1, 2])
def test_reports_of_real_clients_show_no_more_than_epsilon(levels: int) -> None:
    # The bound exceeds the truth once in 1e6. Runs: 50,000 for each neighbour, or 2,000.
    found = audit_clients(tiny_survey(levels=levels), full(50_000, 2_000), arrived=3)
    assert full(85, 50) / 100 <= found <= 1.0


@pytest.mark.parametrize("bug", [OffByTwo, SkipsEmpty])
def test_the_audit_convicts_planted_bugs(bug: type[Polya]) -> None:
    # Runs: 1,000 for each neighbour, half of what the real mechanism gets.
    assert audit_clients(tiny_survey(bug), 1_000, arrived=3) > 1.0


def test_the_audit_convicts_noise_on_one_label_only() -> None:
    class OtherLabel(OneLabel):
        def share(self, counts: IntArray, *, randomness: Randomness) -> IntArray:
            flipped = OneLabel.share(self, counts[::-1].copy(), randomness=randomness)
            return flipped[::-1].copy()

    assert audit_clients(tiny_survey(OtherLabel), 1_000, arrived=3) > 1.0


def test_the_audit_convicts_shares_for_more_clients_than_report() -> None:
    # Half of the noise arrives: epsilon is 1.68 instead of 1.
    survey = tiny_survey(minimum=6)
    assert audit_cohort(survey, 200_000, arrived=3) > 1.0
    assert audit_cohort(survey, 200_000, arrived=6) <= 1.0


# --- Simulated cohorts have the law of real ones ------------------------------------------

EXAMPLES = Examples([0, 1, 1, 0, 1, 0, 0, 1, 0, 0], [0.1, 0.9, 0.6, 0.3, 0.6] * 2)
CLIENT_OF_ROW = [0, 0, 0, 0, 1, 1, 1, 2, 3, 4]


@dataclass(frozen=True)
class Case:
    levels: LevelPolicy
    unit: Unit
    cohort: ScoredClients


BATCHES = OneLevel((Fraction(1, 3), Fraction(2, 3)))
CASES = {
    "every level": Case(EveryLevel(), Unit(), cohort_of(EXAMPLES)),
    "one level": Case(BATCHES, Unit(), cohort_of(EXAMPLES)),
    "clients": Case(EveryLevel(), Unit(UnitKind.CLIENT, 2), cohort_of(EXAMPLES, CLIENT_OF_ROW)),
    "clients, one level": Case(
        BATCHES, Unit(UnitKind.CLIENT, 2), cohort_of(EXAMPLES, CLIENT_OF_ROW)
    ),
}


def survey_of(case: Case, *, shares: int = 4) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=TINY,
        hierarchy=Hierarchy(4, (2, 2)),
        mechanisms=tuple(Polya(Fraction(3, 2), case.unit.sensitivity, shares) for _ in range(2)),
        level_policy=case.levels,
        unit=case.unit,
        minimum_reports=shares,
    )


def tallies(
    sampler: Callable[..., Tally], survey: Survey, cohort: ScoredClients, runs: int
) -> IntArray:
    """Counters, reports per level and sums of squares of many tallies, run x figure."""
    randomness = SimulatedRandomness(len(sampler.__name__))
    rows = []
    for _ in range(runs):
        tally = sampler(survey, cohort, randomness=randomness)
        counters = tally.counters
        reports = tally.reports
        rows.append([*counters, *reports, counters.sum(), counters[:4].sum(), counters @ counters])
    return np.array(rows, dtype=np.int64)


def differ(left: IntArray, right: IntArray) -> float:
    """The smallest p-value over figures, corrected for their number."""
    values = [same_law(a, b) for a, b in zip(left.T, right.T, strict=True)]
    return len(values) * min(values)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_simulated_cohort_has_the_law_of_summed_reports(case: Case) -> None:
    # False alarms: 1e-6. Runs of each: 20,000, or 1,000 in the ordinary run.
    survey, runs = survey_of(case), full(20_000, 1_000)
    real = tallies(tally_each_client, survey, case.cohort, runs)
    simulated = tallies(tally_clients, survey, case.cohort, runs)
    assert differ(real, simulated) > FALSE_ALARM


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_cohort_with_other_shares_differs(case: Case) -> None:
    # The twin of the test above: noise sized for two clients instead of four.
    survey, wrong = survey_of(case), survey_of(case, shares=2)
    real = tallies(tally_each_client, survey, case.cohort, 1_000)
    simulated = tallies(tally_clients, wrong, case.cohort, 1_000)
    assert differ(real, simulated) < FALSE_ALARM
