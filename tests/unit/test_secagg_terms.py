"""Terms that a client refuses, and the graph they stand for, by numbers written out by hand."""

from dataclasses import replace

import pytest

from fedassay.client import OPEN_POLICY
from fedassay.errors import SurveyRefused, TermsRefused
from fedassay.secagg import Terms
from tests.secagg import RANDOM, flat

NO_LIMIT = OPEN_POLICY


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


def test_terms_withstand_no_fewer_colluders_than_the_client_asks_for() -> None:
    survey = flat(minimum=9, colluders=4)
    terms = Terms.of(survey, randomness=RANDOM)
    terms.check(survey, replace(OPEN_POLICY, colluders=4))
    lowered = flat(minimum=9, colluders=3)
    with pytest.raises(SurveyRefused, match="withstands 3"):
        Terms.of(lowered, randomness=RANDOM).check(lowered, replace(OPEN_POLICY, colluders=4))
