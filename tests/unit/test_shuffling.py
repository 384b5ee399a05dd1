"""The bound for shuffled reports, against all that a batch can be."""

import re
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, exp
from typing import Any

import pytest

from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.shuffling import Blanket, shuffled_delta
from tests.tables import ROOT

Law = Mapping[Any, Fraction]


def response_laws(mechanism: RandomizedResponse) -> list[Law]:
    """What is sent with which probability, for each input."""
    values = range(mechanism.values)
    return [{v: mechanism.p if v == x else mechanism.q for v in values} for x in values]


def unary_laws(mechanism: UnaryEncoding, size: int, *, nothing: bool = False) -> list[Law]:
    """The same for bits, by their definition; the last input may be of who has nothing."""
    laws: list[Law] = []
    for own in [*range(size), *([-1] if nothing else [])]:
        law = {}
        for bits in product((0, 1), repeat=size):
            chance = Fraction(1)
            for place, bit in enumerate(bits):
                one = Fraction(1, 2) if place == own else mechanism.q
                chance *= one if bit else 1 - one
            law[bits] = chance
        laws.append(law)
    return laws


def batch_law(laws: list[Law]) -> dict[tuple[Any, ...], float]:
    """How likely each multiset of messages is."""
    whole: dict[tuple[Any, ...], float] = {(): 1.0}
    for law in laws:
        longer: defaultdict[tuple[Any, ...], float] = defaultdict(float)
        for sent, chance in whole.items():
            for message, more in law.items():
                longer[tuple(sorted((*sent, message)))] += chance * float(more)
        whole = longer
    return whole


def exact_delta(laws: list[Law], epsilon: float, reports: int) -> float:
    """The largest hockey-stick divergence over inputs of one client and of all others."""
    worst, inputs = 0.0, range(len(laws))
    for others in combinations_with_replacement(inputs, reports - 1):
        crowd = [laws[x] for x in others]
        batches = [batch_law([laws[x], *crowd]) for x in inputs]
        for one, other in product(batches, batches):
            worst = max(
                worst, sum(max(p - exp(epsilon) * other[batch], 0.0) for batch, p in one.items())
            )
    return worst


COIN, SILENT = RandomizedResponse(Fraction(2), 1), RandomizedResponse(Fraction(2), 1, nothing=True)
CELLS, BITS = RandomizedResponse(Fraction(3), 2), UnaryEncoding(Fraction(2))
CASES = {
    "one cell": (COIN, response_laws(COIN), 8),
    "nothing said": (SILENT, response_laws(SILENT), 7),
    "two cells": (CELLS, response_laws(CELLS), 6),
    "bits": (BITS, unary_laws(BITS, 2), 5),
    "bits or nothing": (BITS, unary_laws(BITS, 2, nothing=True), 4),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_no_batch_tells_more_than_the_bound_and_the_bound_is_near(
    case: str, epsilon: float
) -> None:
    mechanism, laws, most = CASES[case]
    for reports in range(2, most + 1):
        exact = exact_delta(laws, epsilon, reports)
        bound = shuffled_delta(mechanism.blanket, epsilon, reports, least=1e-9)
        assert exact <= bound
        # Inputs of the others that say nothing else make it tight for responses; of bits, two
        # that exclude each other are hidden better than the bound knows.
        assert bound <= (1.2 if isinstance(mechanism, RandomizedResponse) else 3.4) * exact


def exact_blanket_delta(blanket: Blanket, epsilon: float, others: int) -> float:
    """The bound's own formula for a response, summed over all numbers, in exact fractions."""
    share, hit, grows = blanket.share, blanket.hit, Fraction(exp(epsilon))
    total = Fraction(0)
    for crowd in range(others + 1):
        chance = comb(others, crowd) * share**crowd * (1 - share) ** (others - crowd)
        n = crowd + 1
        for a in range(n + 1):
            for b in range(n - a + 1):
                if blanket.says_one:
                    law = comb(n, a) * comb(n - a, b) * hit ** (a + b)
                    law *= (1 - 2 * hit) ** (n - a - b)
                    total += chance * law * _positive(share, hit, grows, n, (a, b))
            for b in range(n + 1):
                if not blanket.says_one:
                    law = comb(n, a) * comb(n, b) * hit ** (a + b) * (1 - hit) ** (2 * n - a - b)
                    total += chance * law * _positive(share, hit, grows, n, (a, b))
    return float(total)


def _positive(
    share: Fraction, hit: Fraction, grows: Fraction, n: int, counts: tuple[int, int]
) -> Fraction:
    mine, yours = (share + (1 - share) * count / (hit * n) for count in counts)
    return max(mine - grows * yours, Fraction(0))


@pytest.mark.parametrize("says_one", [True, False])
@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_sums_in_floating_point_are_above_the_exact_ones_and_not_far_above(
    says_one: bool, share: Fraction
) -> None:
    blanket = Blanket(share, Fraction(1, 5), says_one)
    exact = exact_blanket_delta(blanket, 0.5, 9)
    bound = shuffled_delta(blanket, 0.5, 10, least=1e-9)
    assert exact <= bound <= 1.35 * exact + 1e-9


def test_more_reports_and_a_larger_epsilon_need_a_smaller_delta() -> None:
    blanket = UnaryEncoding(Fraction(4)).blanket
    by_reports = [shuffled_delta(blanket, 0.5, n, least=1e-12) for n in (2, 20, 200, 2000, 20000)]
    by_epsilon = [shuffled_delta(blanket, e, 300, least=1e-12) for e in (0.1, 0.5, 1.0, 2.0, 3.0)]
    assert by_reports == sorted(by_reports, reverse=True)
    assert by_epsilon == sorted(by_epsilon, reverse=True)


@pytest.mark.parametrize("cells", [1, 4, 64])
@pytest.mark.parametrize("reports", [1, 30, 1000, 40_000])
def test_a_coarse_bound_is_never_below_the_fine_one(cells: int, reports: int) -> None:
    for mechanism in (RandomizedResponse(Fraction(4), cells), UnaryEncoding(Fraction(4))):
        fine, coarse = (
            shuffled_delta(mechanism.blanket, 0.5, reports, least=1e-10, enough=enough)
            for enough in (0.0, 1.0)
        )
        assert fine <= coarse * (1.0 + 1e-9)


def test_one_report_alone_is_as_private_as_its_mechanism() -> None:
    mechanism = RandomizedResponse(Fraction(2), 3)
    alone = float(mechanism.p) - exp(0.7) * float(mechanism.q)
    bound = shuffled_delta(mechanism.blanket, 0.7, 1, least=1e-12)
    assert bound == pytest.approx(alone, rel=1e-5)
    assert bound >= alone


@pytest.mark.parametrize("says_one", [True, False])
def test_reports_that_never_depend_on_their_input_tell_nothing(says_one: bool) -> None:
    """Only what is left out of the sums is in the bound."""
    blanket = Blanket(Fraction(1), Fraction(1, 4), says_one)
    for reports in (1, 2, 100):
        assert shuffled_delta(blanket, 0.01, reports, least=1e-9) <= 1e-9


def test_a_blanket_counted_with_too_many_reports_misses_what_batches_tell() -> None:
    mechanism, laws, reports = CASES["two cells"]
    wrong = shuffled_delta(mechanism.blanket, 0.4, 2 * reports, least=1e-9)
    assert wrong < exact_delta(laws, 0.4, reports)


def test_very_many_reports_are_counted_as_many_and_take_no_longer() -> None:
    blanket = RandomizedResponse(Fraction(5), 8).blanket
    assert shuffled_delta(blanket, 0.05, 2**31, least=1e-10) < 1e-8


def test_the_page_says_what_the_bound_says_of_reports_of_epsilon_five() -> None:
    page = (ROOT / "docs" / "threat-model-shuffled.md").read_text("utf-8")
    lines = re.findall(
        r"^\| ([0-9,]+) \| [0-9.]+ \| ([0-9.]+) \| ([0-9.]+) \|$", page, re.MULTILINE
    )
    assert len(lines) == 3
    for reports, *said in lines:
        for mechanism, epsilon in zip(
            (RandomizedResponse(Fraction(5), 16), UnaryEncoding(Fraction(5))), said, strict=True
        ):
            count = int(reports.replace(",", ""))
            # Two digits: what is said is within half of the last one.
            below, above = (
                shuffled_delta(mechanism.blanket, float(epsilon) + half, count, least=1e-10)
                for half in (-0.0051, 0.0051)
            )
            assert above <= 1e-8 < below
