"""Oracles of local differential privacy: their probabilities are exact, and those in use."""

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fedassay.errors import SettingInvalid
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.grr import uniform_below, values_of
from fedassay.mechanisms.rational import round_down, round_up, scaled_exp
from fedassay.randomness import SimulatedRandomness

SCALE = 2**192

EPSILONS = [
    Fraction(1, 100),
    Fraction(1, 2),
    Fraction(1),
    Fraction(7, 3),
    Fraction(5),
    Fraction(50),
]
epsilons = st.fractions(Fraction(1, 1000), 50, max_denominator=1000)


def bounds_of_exp(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """e^epsilon from below and above, by 150 digits of another precision than the code's."""
    context = Context(prec=150)
    power = Fraction(context.exp(context.divide(Decimal(epsilon.numerator), epsilon.denominator)))
    slack = Fraction(1, 10**140)
    return power * (1 - slack), power * (1 + slack)


class Script:
    """Random bytes that were written before."""

    is_secret = False

    def __init__(self, *parts: bytes) -> None:
        self._parts: Iterator[bytes] = iter(parts)

    def bytes(self, count: int) -> bytes:
        part = next(self._parts)
        assert len(part) == count
        return part


@given(epsilons)
def test_the_power_is_below_and_close(epsilon: Fraction) -> None:
    low, high = bounds_of_exp(epsilon)
    found = Fraction(scaled_exp(epsilon), SCALE)
    assert found < low
    assert found > high * (1 - Fraction(1, 10**45))


@given(st.fractions(0, 1), st.integers(1, 64))
def test_rounding_goes_to_the_next_multiple_on_its_side(share: Fraction, bits: int) -> None:
    down, up = Fraction(round_down(share, bits), 2**bits), Fraction(round_up(share, bits), 2**bits)
    assert down <= share <= up
    assert share - down < Fraction(1, 2**bits) > up - share


@given(epsilons)
def test_other_bits_are_at_least_as_likely_as_epsilon_asks(epsilon: Fraction) -> None:
    low, high = bounds_of_exp(epsilon)
    q = UnaryEncoding(epsilon).q
    assert q >= 1 / (low + 1)
    assert q - 1 / (high + 1) <= Fraction(1, 2**24)
    assert (1 - q) / q <= low


@given(epsilons, st.integers(1, 2000), st.booleans())
def test_the_own_value_is_at_most_as_likely_as_epsilon_allows(
    epsilon: Fraction, cells: int, nothing: bool
) -> None:
    low, high = bounds_of_exp(epsilon)
    response = RandomizedResponse(epsilon, cells, nothing)
    others = 2 * cells + nothing - 1
    assert response.p <= low / (low + others)
    assert high / (high + others) - response.p <= Fraction(2, 2**64)
    assert response.p + others * response.q == 1
    assert response.p / response.q <= low


def test_the_own_bit_is_a_fair_coin() -> None:
    unary = UnaryEncoding(Fraction(1))
    # Two bytes of coins, drawn from 16 digits each; all digits zero mean no heads.
    quiet = bytes(4)
    rows = [
        unary.encode(np.array([11]), 16, randomness=Script(quiet, bytes([coin])))
        for coin in range(256)
    ]
    bits = np.unpackbits(np.concatenate(rows), axis=1, bitorder="little")
    assert bits[:, 11].sum() == 128
    # Whatever the coin, the other bits stay.
    assert not np.delete(bits, 11, axis=1).any()


def words(*values: int) -> bytes:
    return np.array(values, dtype=np.uint64).tobytes()


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_own_value_is_sent_below_the_numerator_in_use(epsilon: Fraction) -> None:
    response = RandomizedResponse(epsilon, 3)
    script = Script(
        words(0, response.numerator - 1, response.numerator, 2**64 - 1), words(1, 1, 1, 1)
    )
    sent = response.encode(np.full(4, 2), 6, randomness=script)
    assert values_of(sent).tolist() == [2, 2, 1, 1]


def test_the_others_are_every_value_but_the_own_one() -> None:
    response = RandomizedResponse(Fraction(1), 3, nothing=True)
    top = 2**64 - 1
    for own in range(-1, 6):
        script = Script(words(*[top] * 6), words(*range(6)))
        sent = response.encode(np.full(6, own), 6, randomness=script)
        assert sorted(values_of(sent).tolist()) == sorted(set(range(7)) - {own % 7})


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_a_single_client_sends_its_own_value_below_the_numerator_in_use(epsilon: Fraction) -> None:
    response = RandomizedResponse(epsilon, 3)
    for word, value in (
        (0, 2),
        (response.numerator - 1, 2),
        (response.numerator, 1),
        (2**64 - 1, 1),
    ):
        script = Script(words(word), words(1))
        sent = response.encode(np.array([2]), 6, randomness=script)
        assert (sent.shape, values_of(sent).tolist()) == ((1, 4), [value])


def test_a_single_clients_others_are_every_value_but_the_own_one() -> None:
    response = RandomizedResponse(Fraction(1), 3, nothing=True)
    ceiling = 2**64 // 6 * 6
    for own in range(-1, 6):
        scripts = [Script(words(2**64 - 1), words(ceiling), words(i)) for i in range(6)]
        sent = [response.encode(np.array([own]), 6, randomness=script) for script in scripts]
        # The first word for the other value would favour small ones, and is drawn again.
        assert sorted(int(values_of(each)[0]) for each in sent) == sorted(set(range(7)) - {own % 7})


def test_uniform_draws_reject_what_would_favour_small_values() -> None:
    ceiling = 2**64 // 5 * 5
    script = Script(words(ceiling, 7, 2**64 - 1), words(ceiling - 1, ceiling), words(4))
    # The refused words are drawn again, until they are below the last multiple of 5.
    assert uniform_below(5, 3, script).tolist() == [4, 2, 4]


def test_a_limit_of_a_power_of_two_rejects_nothing() -> None:
    assert uniform_below(4, 2, Script(words(2**64 - 1, 2))).tolist() == [3, 2]
    assert uniform_below(1, 1, Script(words(2**64 - 1))).tolist() == [0]


@given(st.integers(1, 70), st.lists(st.integers(-1, 69), max_size=40))
def test_rows_have_no_bits_past_the_end(size: int, places: list[int]) -> None:
    hits = np.minimum(np.array(places, dtype=np.int64), size - 1)
    rows = UnaryEncoding(Fraction(1)).encode(hits, size, randomness=SimulatedRandomness(3))
    assert rows.shape == (len(hits), -(-size // 8))
    assert not np.unpackbits(rows, axis=1, bitorder="little")[:, size:].any()


def test_rows_longer_than_a_chunk_are_independent_of_each_other() -> None:
    rows = UnaryEncoding(Fraction(1)).encode(
        np.full(3, -1), 2**21, randomness=SimulatedRandomness(4)
    )
    assert not np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[1], rows[2])


@pytest.mark.parametrize("hits", [[0, -1], [-1]])
def test_nothing_has_no_value_unless_the_survey_allows_it(hits: list[int]) -> None:
    with pytest.raises(SettingInvalid, match="without examples"):
        RandomizedResponse(Fraction(1), 3).encode(
            np.array(hits), 6, randomness=SimulatedRandomness(1)
        )


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(51), Fraction(1, 10**10)])
def test_an_epsilon_that_means_nothing_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(SettingInvalid):
        UnaryEncoding(epsilon)
    with pytest.raises(SettingInvalid):
        RandomizedResponse(epsilon, 4)


def test_randomised_response_needs_a_cell() -> None:
    with pytest.raises(SettingInvalid):
        RandomizedResponse(Fraction(1), 0)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize(("held", "reports"), [(0, 1000), (300, 1000), (1000, 1000)])
def test_the_law_of_a_counter_is_that_of_its_coins(
    epsilon: Fraction, held: int, reports: int
) -> None:
    """Whoever holds the value shows it with p, everybody else with q: scipy's binomials."""
    response = RandomizedResponse(epsilon, 3)
    unary = UnaryEncoding(epsilon)
    for mechanism, p, q in (
        (unary, 0.5, float(unary.q)),
        (response, float(response.p), float(response.q)),
    ):
        law = mechanism.law()
        mean = binom.mean(held, p) + binom.mean(reports - held, q)
        variance = binom.var(held, p) + binom.var(reports - held, q)
        assert law.gain * held + law.offset * reports == pytest.approx(mean)
        said = reports * law.variance_per_report + held * law.variance_per_hit
        assert said == pytest.approx(variance)
