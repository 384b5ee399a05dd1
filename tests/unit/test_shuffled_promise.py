"""The promise of shuffled reports and the local epsilon that keeps it."""

from fractions import Fraction
from functools import partial

import pytest

from fedassay.errors import SettingInvalid
from fedassay.files import Fields
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.shuffled_promise import ShuffledPromise, largest_local, largest_locals
from fedassay.mechanisms.shuffling import shuffled_delta

PROMISE = ShuffledPromise(Fraction(1), Fraction(1, 10**8))


def response(epsilon: Fraction) -> RandomizedResponse:
    return RandomizedResponse(epsilon, 8)


@pytest.mark.parametrize("make", [UnaryEncoding, response])
@pytest.mark.parametrize("reports", [50, 700, 3000])
def test_the_largest_local_epsilon_keeps_the_promise_and_a_larger_one_does_not(
    make: type[UnaryEncoding], reports: int
) -> None:
    found = largest_local(make, PROMISE, reports=reports, cap=Fraction(8))
    allowed = float(PROMISE.delta)
    kept = shuffled_delta(make(found).blanket, 1.0, reports, least=1e-12)
    broken = shuffled_delta(make(found + Fraction(1, 10)).blanket, 1.0, reports, least=1e-12)
    assert kept <= allowed < broken


@pytest.mark.parametrize("reports", [1, 300, 3000, 10**5])
def test_searches_side_by_side_find_what_each_finds_alone(reports: int) -> None:
    makes = [partial(RandomizedResponse, cells=cells) for cells in (1, 3, 12, 100)]
    together = largest_locals(makes, PROMISE, reports=[reports] * 4, cap=Fraction(5))
    apart = [largest_local(make, PROMISE, reports=reports, cap=Fraction(5)) for make in makes]
    assert together == apart
    # Else one number would do for all of them.
    assert len(set(together)) == (4 if 300 <= reports <= 3000 else 1)


def test_crowds_of_different_sizes_are_searched_side_by_side_as_alone() -> None:
    make, cap = partial(RandomizedResponse, cells=12), Fraction(5)
    sizes = [3000, 1, 300, 1000, 10**5]
    together = largest_locals([make] * 5, PROMISE, reports=sizes, cap=cap)
    apart = [largest_local(make, PROMISE, reports=size, cap=cap) for size in sizes]
    assert together == apart
    assert len(set(together)) == 5


def test_a_cap_holds_and_a_lone_report_has_the_epsilon_of_the_promise() -> None:
    many, cap = 10**6, Fraction(9, 2)
    assert largest_local(UnaryEncoding, PROMISE, reports=many, cap=cap) == cap
    assert largest_local(UnaryEncoding, PROMISE, reports=1, cap=cap) == 1
    assert largest_local(UnaryEncoding, PROMISE, reports=1, cap=Fraction(1, 2)) == Fraction(1, 2)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(2), Fraction(1, 10**20)])
def test_a_delta_of_zero_or_one_is_refused(delta: Fraction) -> None:
    with pytest.raises(SettingInvalid, match="delta must lie between 0 and 1"):
        ShuffledPromise(Fraction(1), delta)


def test_a_promise_reads_back_from_json() -> None:
    assert ShuffledPromise.from_json(Fields(PROMISE.to_json(), "a survey")) == PROMISE
