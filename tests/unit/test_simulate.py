"""A simulated client gives what its unit allows and reports on one level, with all of its rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import stats

from fedassay import Examples, Grid, Hierarchy, Privacy, SurveyRequest
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Unit, UnitKind
from fedassay.planning.build import build_survey
from fedassay.planning.request import LevelChoice
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import (
    _leaves_per_level,
    clients,
    limited,
    rows_counted,
    tally_clients,
)
from fedassay.survey import Survey
from tests.laws import FALSE_ALARM
from tests.surveys import cohort_of, local_survey, small_survey

LIMIT = 3
HELD = (1, 2, 3, 4, 10)


def cohort() -> ScoredClients:
    """Five clients that hold 1, 2, 3, 4 and 10 rows, in mixed order; a score says whose it is."""
    owners = np.random.default_rng(4).permutation(np.repeat(np.arange(5), HELD))
    return cohort_of(Examples(np.arange(20) % 2, (owners + 0.5) / 5), owners.tolist())


def of_clients(most: int) -> Survey:
    return replace(small_survey(), unit=Unit(UnitKind.CLIENT, most))


def test_no_client_gives_more_rows_than_its_unit_allows() -> None:
    kept = limited(of_clients(LIMIT), cohort(), randomness=SimulatedRandomness(0))
    assert kept.client_of_row is not None
    assert np.bincount(kept.client_of_row).tolist() == [1, 2, 3, 3, 3]
    # Rows stay with whom they belong to.
    assert ((kept.examples.scores * 5).astype(int) == kept.client_of_row).all()
    assert rows_counted(of_clients(LIMIT), cohort()) == 12


def test_every_row_of_a_client_is_as_likely_to_be_kept() -> None:
    """False alarms below 1e-6, by a chi-square test of 2,000 draws of 3 rows among 10."""
    examples = Examples(np.arange(10) % 2, (np.arange(10) + 0.5) / 10)
    one = ScoredClients(examples, np.zeros(10, dtype=np.int64), 1)
    randomness, survey = SimulatedRandomness(1), of_clients(LIMIT)
    times = np.zeros(10)
    for _ in range(2000):
        kept = limited(survey, one, randomness=randomness).examples.scores
        times[(kept * 10).astype(int)] += 1
    assert times.sum() == 6000
    # Without replacement they vary by 7/10 x 10/9 of a multinomial's.
    assert stats.chi2.sf(((times - 600) ** 2 / 600).sum() / (0.7 * 10 / 9), 9) > FALSE_ALARM


def test_under_local_privacy_a_client_gives_one_row_and_an_example_gives_its_own() -> None:
    survey = local_survey(Fraction(1))
    by_client = replace(survey, unit=Unit(UnitKind.CLIENT, 1))
    assert len(limited(by_client, cohort(), randomness=SimulatedRandomness(0)).examples) == 5
    tally = tally_clients(by_client, cohort(), randomness=SimulatedRandomness(0))
    assert tally.reports == (5,)
    tally = tally_clients(survey, cohort(), randomness=SimulatedRandomness(0))
    assert tally.reports == (20,)


def test_all_rows_of_a_client_are_on_its_level() -> None:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED,
        epsilon=Fraction(1),
        clients=50,
        levels=LevelChoice.BATCHES,
        unit=Unit(UnitKind.CLIENT, 4),
    )
    cells = 64
    fractions = (Fraction(1, 4), Fraction(3, 4))
    survey = build_survey(request, Grid.uniform(cells), Hierarchy(cells, (8, 8)), fractions)
    owners = np.repeat(np.arange(50), 4)
    # Client i has all of its four rows in cell i.
    examples = Examples(np.zeros(200, dtype=int), (owners + 0.5) / cells)
    many = cohort_of(examples, owners.tolist())
    generator = np.random.default_rng(2)
    first = 0
    for _ in range(40):
        leaves, reports = _leaves_per_level(survey, many, generator)
        assert sum(reports) == 50
        for counts, clients_there in zip(leaves, reports, strict=True):
            assert set(np.unique(counts)) <= {0, 4}
            assert counts.sum() == 4 * clients_there
        first += reports[0]
    # 2,000 clients, a quarter of them on the first level; both tails below 5e-7.
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 2000, 0.25)
    assert low <= first <= high


def test_clients_are_walked_through_one_by_one_with_all_of_their_rows() -> None:
    walked = [examples.scores.tolist() for examples in clients(cohort())]
    assert [len(scores) for scores in walked] == list(HELD)
    assert all(set(scores) == {(i + 0.5) / 5} for i, scores in enumerate(walked))


def test_where_each_row_is_a_client_all_of_them_count() -> None:
    rows = Examples([0, 1, 1], [0.1, 0.2, 0.9])
    alone, survey = ScoredClients(rows, None, 3), of_clients(1)
    assert rows_counted(survey, alone) == 3
    assert (
        limited(survey, alone, randomness=SimulatedRandomness(np.random.SeedSequence(0))) is alone
    )
