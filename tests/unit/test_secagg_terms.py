"""Terms that a client refuses, and the graph they stand for, by numbers written out by hand."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from fedassay import Grid, Hierarchy, Polya, Survey
from fedassay.client import OPEN_POLICY
from fedassay.errors import CountOverflow, SurveyRefused, TermsRefused
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy
from fedassay.secagg import Terms
from fedassay.secagg.terms import as_words
from tests.secagg import RANDOM, flat

NO_LIMIT = OPEN_POLICY


def noisy_levels(*, by_hash: bool, share: Fraction = Fraction(1, 2), minimum: int = 2) -> Survey:
    """Two levels, of which each client reports on one."""
    return Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy(4, (2, 2)),
        mechanisms=(Polya(Fraction(1), 1, minimum),) * 2,
        minimum_reports=minimum,
        level_policy=OneLevel((share, 1 - share), by_hash=by_hash),
    )


def test_terms_withstand_no_fewer_colluders_than_the_survey() -> None:
    survey = flat(minimum=9, colluders=4)
    terms = Terms.of(survey, randomness=RANDOM)
    assert terms.colluders == 4
    terms.check(survey, NO_LIMIT)
    for fewer in (0, 3):
        with pytest.raises(TermsRefused, match=f"withstands 4 colluders.* 9 and {fewer}"):
            replace(terms, colluders=fewer).check(survey, NO_LIMIT)


def test_terms_ask_for_no_fewer_survivors_than_the_survey() -> None:
    survey = flat(minimum=9, colluders=4)
    terms = Terms.of(survey, randomness=RANDOM)
    with pytest.raises(TermsRefused, match="needs 9 survivors"):
        replace(terms, minimum=8).check(survey, NO_LIMIT)
    replace(terms, minimum=10).check(survey, NO_LIMIT)


def test_colluders_do_not_count_towards_the_crowd_that_hides_a_client() -> None:
    # The survey's own crowd is large enough; what the terms leave of it, 9 - 7, is not.
    survey = flat(minimum=9)
    terms = replace(Terms.of(survey, randomness=RANDOM), colluders=7)
    five = replace(OPEN_POLICY, smallest_cohort=5)
    with pytest.raises(TermsRefused, match=r"hides only among 5 honest ones.* guarantees 2"):
        terms.check(survey, five)
    replace(terms, colluders=4).check(survey, five)


@pytest.mark.parametrize(
    ("clients", "colluders", "quorum", "threshold"),
    [
        # One in twenty is corrupt in every round: 5 of 100; (100 + 5) / 2 + 1 and (99 + 5) / 2 + 1.
        (100, 0, 53, 53),
        # Colluders and the corrupt share are one promise, the larger of the two.
        (100, 4, 53, 53),
        (100, 20, 61, 60),
        (39, 0, 21, 20),
        (40, 0, 22, 21),
    ],
)
def test_every_round_withstands_one_corrupt_client_in_twenty(
    clients: int, colluders: int, quorum: int, threshold: int
) -> None:
    survey = flat(minimum=max(2, colluders + 2), colluders=colluders)
    graph = Terms.of(survey, randomness=RANDOM).graph(clients)
    assert (graph.degree, graph.quorum, graph.threshold) == (clients - 1, quorum, threshold)


def test_a_client_accepts_no_smaller_corrupt_share() -> None:
    survey = flat()
    terms = Terms.of(survey, randomness=RANDOM)
    assert terms.corrupt_permille == 50
    with pytest.raises(TermsRefused, match="withstands 50 corrupt clients in a thousand"):
        replace(terms, corrupt_permille=49).check(survey, NO_LIMIT)


@pytest.mark.parametrize("clients", [2, 3, 1000, 65_536])
def test_the_largest_counters_of_all_clients_together_do_not_wrap(clients: int) -> None:
    limit = (2**31 - 1) // clients
    for value in (limit, -limit):
        words = as_words(np.array([value, 0]), clients)
        total = words * np.uint32(clients)
        assert total.view(np.int32).tolist() == [clients * value, 0]
    for value in (limit + 1, -limit - 1):
        with pytest.raises(CountOverflow, match="value withheld"):
            as_words(np.array([0, value]), clients)


def test_levels_from_a_public_hash_are_refused() -> None:
    secret = noisy_levels(by_hash=False)
    Terms.of(secret, randomness=RANDOM).check(secret, NO_LIMIT)
    with pytest.raises(TermsRefused, match="a client's level is its secret"):
        Terms.of(noisy_levels(by_hash=True), randomness=RANDOM)


@pytest.mark.parametrize(("share", "minimum"), [(Fraction(1, 2), 100), (Fraction(1, 8), 30)])
def test_enough_clients_are_left_for_every_level(share: Fraction, minimum: int) -> None:
    """By scipy: the fewest of whom 30 or 100 draw the rarest level but once in 2^40 rounds."""
    survey = noisy_levels(by_hash=False, share=share, minimum=minimum)
    needed = Terms.of(survey, randomness=RANDOM).minimum
    rare = float(min(share, 1 - share))
    assert stats.binom.cdf(minimum - 1, needed, rare) <= 2.0**-40
    assert stats.binom.cdf(minimum - 1, needed - 1, rare) > 2.0**-40


def test_terms_withstand_no_fewer_colluders_than_the_client_asks_for() -> None:
    survey = flat(minimum=9, colluders=4)
    terms = Terms.of(survey, randomness=RANDOM)
    terms.check(survey, replace(OPEN_POLICY, colluders=4))
    lowered = flat(minimum=9, colluders=3)
    with pytest.raises(SurveyRefused, match="withstands 3"):
        Terms.of(lowered, randomness=RANDOM).check(lowered, replace(OPEN_POLICY, colluders=4))
