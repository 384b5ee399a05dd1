"""A locally private client: one report for each unit, and nothing else that tells."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binomtest, chisquare, hypergeom

from fedassay import ClientPolicy, Examples, Survey, SystemRandomness, Unit
from fedassay.client import OPEN_POLICY, answer, make_answer
from fedassay.errors import SurveyRefused
from fedassay.limits import at_most
from fedassay.mechanisms import UnitKind
from fedassay.mechanisms.grr import values_of
from fedassay.mechanisms.sampling import Dice
from fedassay.randomness import SimulatedRandomness
from fedassay.wire import Block
from tests.surveys import local_survey

FALSE_ALARM = 1e-8
TWO_LEVELS = local_survey(Fraction(5), cells=8, fanouts=(2, 4), kinds="grr grr")
Order = Callable[[Survey, npt.NDArray[np.int64], int], npt.NDArray[np.int64]]


def counts_of(cells: int, **held: int) -> npt.NDArray[np.int64]:
    """Counts by label and cell: `n3=5` for five negatives in cell 3."""
    counts = np.zeros((2, cells), dtype=np.int64)
    for place, number in held.items():
        counts["np".index(place[0]), int(place[1:])] = number
    return counts


def blocks_of(survey: Survey, counts: npt.NDArray[np.int64], seed: int) -> list[Block]:
    messages = make_answer(survey, counts, randomness=SimulatedRandomness(seed)).messages
    blocks = [message for message in messages if isinstance(message, Block)]
    assert len(blocks) == len(messages)
    return blocks


def test_a_client_sends_one_report_for_each_example() -> None:
    counts = counts_of(8, n0=20, p7=37)
    assert sum(block.reports for block in blocks_of(TWO_LEVELS, counts, 1)) == 57


def test_a_client_as_the_unit_sends_one_report_whatever_it_holds() -> None:
    survey = replace(TWO_LEVELS, unit=Unit(UnitKind.CLIENT, 10))
    for seed in range(20):
        (block,) = (b for b in blocks_of(survey, counts_of(8, n0=20, p7=37), seed) if b.reports)
        assert block.reports == 1


def test_a_client_with_nothing_answers_only_where_it_may() -> None:
    nothing = Examples(np.array([], dtype=int), np.array([]))
    with pytest.raises(SurveyRefused, match="empty clients"):
        answer(TWO_LEVELS, nothing, randomness=SystemRandomness(), policy=OPEN_POLICY)
    for kinds in ("oue oue", "grr grr", "grr oue"):
        survey = local_survey(cells=8, fanouts=(2, 4), kinds=kinds, allow_empty=True)
        sent = answer(survey, nothing, randomness=SystemRandomness(), policy=OPEN_POLICY)
        one = answer(
            survey, Examples([1], [0.3]), randomness=SystemRandomness(), policy=OPEN_POLICY
        )
        assert sum(message.reports for message in sent.messages) == 1
        assert sum(message.reports for message in one.messages) == 1


def test_an_empty_client_and_one_with_an_example_send_as_many_bytes() -> None:
    survey = local_survey(cells=8, kinds="oue", allow_empty=True)
    sizes = {
        len(make_answer(survey, counts, randomness=SimulatedRandomness(seed)).to_bytes())
        for seed in range(5)
        for counts in (counts_of(8), counts_of(8, p3=1))
    }
    assert len(sizes) == 1


@pytest.mark.statistical
def test_a_subset_of_a_clients_examples_is_uniform() -> None:
    """5,000 draws of 2 of 4 examples: 6 subsets, chi-square at a false alarm of 1e-8."""
    dice, found = Dice(SimulatedRandomness(3)), Counter[tuple[int, ...]]()
    for _ in range(5000):
        kept = at_most(np.ones((2, 2), dtype=np.int64), 2, dice)
        found[tuple(kept.ravel().tolist())] += 1
    assert len(found) == 6
    assert chisquare(list(found.values())).pvalue > FALSE_ALARM


def in_order(survey: Survey, counts: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    return values_of(np.concatenate([block.rows for block in blocks_of(survey, counts, seed)]))


def sorted_order(survey: Survey, counts: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """The twin: reports in the order of the cells they came from."""
    (mechanism,) = survey.mechanisms
    hits = np.repeat(np.arange(counts.size), counts.ravel())
    encoded = mechanism.encode(  # type: ignore[union-attr]  # the survey has one
        hits, counts.size, randomness=SimulatedRandomness(seed)
    )
    return encoded.astype(int)


def early_share_is_chance(order: Order) -> bool:
    """Whether one value lies in the first half of an answer as often as by chance.

    400 examples, half of them in the last cell; hypergeometric at a false alarm of 1e-8.
    """
    survey = local_survey(Fraction(5), cells=4, kinds="grr")
    sent = order(survey, counts_of(4, n0=200, p3=200), 7)
    last = int((sent == 7).sum())
    early = hypergeom(len(sent), last, len(sent) // 2)
    seen = int((sent[: len(sent) // 2] == 7).sum())
    return bool(min(early.cdf(seen), early.sf(seen - 1)) > FALSE_ALARM)


@pytest.mark.statistical
def test_the_order_of_reports_does_not_tell_the_cells() -> None:
    assert early_share_is_chance(in_order)


@pytest.mark.statistical
def test_reports_in_sorted_order_are_found_out() -> None:
    assert not early_share_is_chance(sorted_order)


Levels = Callable[[Survey, npt.NDArray[np.int64], int], int]


def on_the_first_level(survey: Survey, counts: npt.NDArray[np.int64], seed: int) -> int:
    return sum(block.reports for block in blocks_of(survey, counts, seed) if block.level == 0)


def levels_ignore_the_data(levels: Levels) -> bool:
    """Whether any example goes to the first level with its share of one third.

    20,000 examples in each of four places; binomial at a false alarm of 1e-8.
    """
    places = (counts_of(8, n0=20_000), counts_of(8, n7=20_000), counts_of(8, p0=20_000),
              counts_of(8, p5=20_000))  # fmt: skip
    return all(
        binomtest(levels(TWO_LEVELS, counts, seed), 20_000, 1 / 3).pvalue > FALSE_ALARM
        for seed, counts in enumerate(places)
    )


@pytest.mark.statistical
def test_levels_are_drawn_without_looking_at_the_data() -> None:
    assert levels_ignore_the_data(on_the_first_level)


@pytest.mark.statistical
def test_levels_drawn_from_the_data_are_found_out() -> None:
    """The twin: positives prefer the first level a little."""

    def leaning(survey: Survey, counts: npt.NDArray[np.int64], seed: int) -> int:
        more = np.random.default_rng(seed).binomial(int(counts[1].sum()), 0.05)
        return on_the_first_level(survey, counts, seed) + int(more)

    assert not levels_ignore_the_data(leaning)


def test_a_client_refuses_what_it_should_under_local_privacy_too() -> None:
    policy = ClientPolicy(largest_epsilon=Fraction(4))
    with pytest.raises(SurveyRefused):
        answer(TWO_LEVELS, Examples([1], [0.3]), randomness=SystemRandomness(), policy=policy)
