"""Which levels a client reports on: shares that are whole, and one level of local reports."""

from fractions import Fraction

import pytest

from fedassay import Hierarchy
from fedassay.errors import SettingInvalid
from fedassay.level_policy import EveryLevel, LevelPolicy, OneLevel, check_local
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding

HALF = Fraction(1, 2)
TWO_LEVELS = Hierarchy(4, (2, 2))
ONE = Fraction(1)


@pytest.mark.parametrize(
    "shares",
    [
        (HALF, Fraction(1, 4)),
        (HALF, HALF, HALF),
        (Fraction(3, 2), -HALF),
        (ONE, Fraction(0)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_shares_that_are_not_positive_or_do_not_add_up_are_refused(
    shares: tuple[Fraction, ...],
) -> None:
    with pytest.raises(SettingInvalid, match="positive and add up to 1"):
        OneLevel(shares)


def test_a_share_that_no_file_can_hold_is_refused() -> None:
    odd = Fraction(1, 10**12 + 39)
    with pytest.raises(SettingInvalid, match="simple fractions"):
        OneLevel((odd, 1 - odd))


@pytest.mark.parametrize("first", [RandomizedResponse(ONE, 2), UnaryEncoding(ONE)])
def test_a_local_report_is_on_one_level_so_that_epsilon_is_spent_once(
    first: RandomizedResponse | UnaryEncoding,
) -> None:
    mechanisms = (first, UnaryEncoding(ONE))
    check_local(mechanisms, TWO_LEVELS, OneLevel((HALF, HALF)), False)
    with pytest.raises(SettingInvalid, match="a client reports on one level; found every level"):
        check_local(mechanisms, TWO_LEVELS, EveryLevel(), False)


def test_a_single_level_needs_no_shares() -> None:
    check_local((RandomizedResponse(ONE, 4),), Hierarchy.flat(4), EveryLevel(), False)


@pytest.mark.parametrize("policy", [OneLevel((HALF, HALF))])
@pytest.mark.parametrize(
    ("cells", "nothing", "empty"),
    [((2, 5), False, False), ((3, 4), False, False), ((2, 4), False, True), ((2, 4), True, False)],
)
def test_randomised_response_fits_its_level_and_whether_empty_clients_answer(
    policy: LevelPolicy, cells: tuple[int, int], nothing: bool, empty: bool
) -> None:
    mechanisms = tuple(RandomizedResponse(ONE, each, nothing=nothing) for each in cells)
    with pytest.raises(SettingInvalid, match="must fit its level"):
        check_local(mechanisms, TWO_LEVELS, policy, empty)
    fitting = tuple(RandomizedResponse(ONE, each, nothing=empty) for each in (2, 4))
    check_local(fitting, TWO_LEVELS, policy, empty)
