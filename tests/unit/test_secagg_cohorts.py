"""Many cohorts for one survey: the same sum, and the survey's promise for every one of them."""

from fractions import Fraction
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from scipy.stats import hypergeom, nbinom

from fedassay import Examples, Grid, Hierarchy, Polya, Survey, SystemRandomness, Tally
from fedassay.client import OPEN_POLICY, answer
from fedassay.engines.in_process import InProcess, SimulatedSite, run_cohorts
from fedassay.errors import CountOverflow, SettingInvalid, TermsRefused
from fedassay.mechanisms import Privacy
from fedassay.secagg import Identity, Named, Roster, SecAggClient, Terms
from fedassay.secagg.cohorts import corrupt_in_a_cohort, divide, divide_roster
from fedassay.secagg.state import Stage
from tests.laws import IS_FULL
from tests.secagg import flat
from tests.surveys import cohort_of

RANDOM = SystemRandomness()
CLIENTS = 100_000 if IS_FULL else 1_000
MEMBERS = [Named(str(number)).member for number in range(1_000)]


def site(number: int, survey: Survey, leaves: Stage | None = None) -> SimulatedSite:
    rows = Examples([number % 2], [(number % 10) / 10])

    def answers():  # type: ignore[no-untyped-def]
        return answer(survey, rows, randomness=RANDOM, policy=OPEN_POLICY)

    return SimulatedSite(Named(str(number)), answers, leaves)


def test_cohorts_of_thousands_add_up_to_all_rows() -> None:
    """100,000 clients at full size: more than one cohort may have."""
    survey = flat(5, minimum=4)
    sites = {str(number): site(number, survey) for number in range(CLIENTS)}
    outcome = run_cohorts(survey, sites, cohorts=CLIENTS // 5, randomness=RANDOM)
    cells = np.zeros((2, 5), dtype=np.int64)
    # Cells are (lo, hi], and 0 is in the first.
    for number, cell in enumerate([0, 0, 0, 1, 1, 2, 2, 3, 3, 4]):
        cells[number % 2, cell] += CLIENTS // 10
    assert outcome.aborted == ()
    assert outcome.tally.reports == (CLIENTS,)
    assert outcome.tally.counters.tolist() == cells.ravel().tolist()


def test_the_engine_gives_the_same_tally_in_one_cohort_and_in_many() -> None:
    survey = flat(4, minimum=3)
    scored = cohort_of(Examples([0, 1, 1, 0] * 3, [0.1, 0.9, 0.4, 0.6] * 3))
    tallies = [InProcess(scored, RANDOM, cohorts).tally(survey) for cohorts in (1, 2, 4)]
    assert tallies[0] == tallies[1] == tallies[2]
    assert tallies[0].reports == (12,)


def test_an_aborted_cohort_reveals_nothing_and_the_others_count() -> None:
    survey = flat(5, minimum=4)
    sites = {str(number): site(number, survey) for number in range(15)}
    first = {name for name in sites if sites[name].member.member in divide_of(sites, survey)[0]}
    for name in sorted(first)[:2]:
        sites[name] = site(int(name), survey, Stage.MASKED)
    outcome = run_cohorts(survey, sites, cohorts=3, randomness=RANDOM)
    assert [set(names) for names in outcome.aborted] == [first]
    assert outcome.tally.reports == (10,)


def divide_of(sites: dict[str, SimulatedSite], survey: Survey) -> list[list[bytes]]:
    return divide([each.member.member for each in sites.values()], survey, 3)


def test_cohorts_are_a_partition_of_even_size_that_depends_on_the_survey() -> None:
    survey = flat(minimum=10)
    cohorts = divide(MEMBERS, survey, 7)
    assert sorted(member for cohort in cohorts for member in cohort) == sorted(MEMBERS)
    assert {len(cohort) for cohort in cohorts} == {142, 143}
    assert divide(MEMBERS[::-1], survey, 7) == cohorts
    assert divide(MEMBERS, flat(minimum=11), 7) != cohorts


@pytest.mark.parametrize("cohorts", [0, -1, 101, 1_000])
def test_a_cohort_below_the_surveys_minimum_is_refused(cohorts: int) -> None:
    with pytest.raises(SettingInvalid, match="Choose from 1 to 100 cohorts"):
        divide(MEMBERS, flat(minimum=10), cohorts)


def test_a_cohort_beyond_one_round_is_refused_with_how_many_it_takes() -> None:
    many = [number.to_bytes(32) for number in range(70_000)]
    with pytest.raises(SettingInvalid, match="Choose from 2 to"):
        divide(many, flat(minimum=10), 1)


def test_a_client_cannot_be_in_two_cohorts() -> None:
    with pytest.raises(SettingInvalid, match="stands twice"):
        divide([*MEMBERS, MEMBERS[0]], flat(minimum=10), 7)


def test_a_client_refuses_a_cohort_whose_noise_is_sized_for_all_cohorts() -> None:
    """Its own check: a round may not offer fewer survivors than the survey's noise is sized for."""
    survey = noisy(minimum=100)
    terms = Terms(survey.fingerprint, bytes(16), 1 + survey.hierarchy.width, 10, 0)
    with pytest.raises(TermsRefused, match="needs 100 survivors"):
        SecAggClient.start(terms, survey, Named("a"), policy=OPEN_POLICY, randomness=RANDOM)


def noisy(*, minimum: int) -> Survey:
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(2),
        hierarchy=Hierarchy.flat(2),
        mechanisms=(Polya(Fraction(1), 1, minimum),),
        minimum_reports=minimum,
    )


def loss(honest: int, noise_shares: int, epsilon: float = 1.0) -> float:
    """The largest log ratio between a cohort's sum and the same with a row more, by brute force.

    So many honest clients each add the difference of two negative binomials of 1/noise_shares.
    """
    alpha = exp(-epsilon)
    counts = np.arange(600)
    one = nbinom.pmf(counts, honest / noise_shares, 1 - alpha)
    noise = np.convolve(one, one[::-1])[560:639]
    return float(max(abs(log(a / b)) for a, b in pairwise(noise)))


def test_every_cohorts_sum_keeps_epsilon_where_noise_is_sized_for_one() -> None:
    """Ten cohorts of 100 clients: each sum that the server sees has the whole noise."""
    assert loss(honest=100, noise_shares=100) == pytest.approx(1.0, abs=1e-9)
    assert loss(honest=120, noise_shares=100) < 1.0


def test_noise_sized_for_all_cohorts_would_not_protect_a_cohorts_sum() -> None:
    """The twin: the total has its noise, and each of the ten sums that make it up too little."""
    assert loss(honest=1_000, noise_shares=1_000) == pytest.approx(1.0, abs=1e-9)
    assert loss(honest=100, noise_shares=1_000) > 2.5


@pytest.mark.parametrize(
    ("clients", "corrupt", "cohorts"), [(100_000, 1_000, 100), (1_000, 50, 10), (400, 4, 2)]
)
def test_no_cohort_has_more_corrupt_clients_but_once_in_2_to_40(
    clients: int, corrupt: int, cohorts: int
) -> None:
    most = corrupt_in_a_cohort(clients, corrupt, cohorts)
    draws = -(-clients // cohorts)
    allowed = 2.0**-80 / cohorts
    assert hypergeom.sf(most, clients, corrupt, draws) <= allowed * (1 + 1e-6)
    if most:
        assert hypergeom.sf(most - 1, clients, corrupt, draws) > allowed * (1 - 1e-6)


def test_all_corrupt_clients_may_be_in_one_cohort_where_they_are_few() -> None:
    assert corrupt_in_a_cohort(100, 2, 10) == 2
    assert corrupt_in_a_cohort(100, 0, 10) == 0
    for bad in [(10, 11, 1), (10, -1, 1), (10, 0, 0), (10, 0, 11)]:
        with pytest.raises(SettingInvalid):
            corrupt_in_a_cohort(*bad)


def test_a_site_computes_its_cohorts_roster_from_the_one_that_all_hold() -> None:
    keys = [Identity.generate().public for _ in range(12)]
    roster = Roster.of((f"site {i}", key) for i, key in enumerate(keys))
    parts = divide_roster(roster, flat(minimum=3), 3)
    assert [len(part.keys) for part in parts] == [4, 4, 4]
    assert {key for part in parts for key in part.keys} == set(keys)
    for part in parts:
        for name, key in zip(part.names, part.keys, strict=True):
            assert roster.names[roster.index(key)] == name


def test_a_sum_over_cohorts_that_passes_the_largest_is_refused() -> None:
    survey = flat(2)
    half = Tally(survey.fingerprint, (9,), np.array([2**30, 0, 0, 0]))
    with pytest.raises(CountOverflow, match="below 2\\^31"):
        half + half
