"""Local differential privacy holds: by enumeration with exact fractions, and by audit.

An audit draws two inputs' messages through the client's whole path and bounds epsilon from
below: the event is chosen on one half of the draws and counted on the other, and the
probabilities of both inputs get Clopper-Pearson limits at 1e-8 each. So a bound above the true
epsilon comes with probability at most 2e-8 per audit, below 1e-6 over all of them, and samples
are large enough for the bound of an honest mechanism to exceed 0.85 epsilon by five further
standard deviations. FEDASSAY_VERIFY=1 draws four times as much.

Every check has twins: planted bugs that it must catch.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from io import BytesIO
from itertools import permutations, product
from math import log

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import beta, binom

from fedassay import Law, Survey
from fedassay.client import make_answer
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import AnyMechanism, RandomizedResponse, UnaryEncoding
from fedassay.randomness import SimulatedRandomness
from fedassay.wire import Block, messages
from tests.surveys import local_survey

pytestmark = pytest.mark.statistical

VERIFY = os.environ.get("FEDASSAY_VERIFY") == "1"
DRAWS = 2_000_000 if VERIFY else 500_000
TALLIES = 20_000 if VERIFY else 2000
LIMIT = 1e-8
EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(5)]
IntArray = npt.NDArray[np.int64]


def exp_from_below(epsilon: Fraction) -> Fraction:
    """Within 1e-90 of e^epsilon, by decimals of another precision than the code's."""
    context = Context(prec=120)
    quotient = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return Fraction(context.exp(quotient)) * (1 - Fraction(1, 10**100))


# --- by enumeration -------------------------------------------------------------------------

Chances = Callable[[int], dict[tuple[int, ...], Fraction]]
"""The probability of every message, given an input: a cell, or -1 for nothing."""


def unary_chances(p: Fraction, q: Fraction, size: int) -> Chances:
    def given(hit: int) -> dict[tuple[int, ...], Fraction]:
        found = {}
        for bits in product((0, 1), repeat=size):
            chance = Fraction(1)
            for place, bit in enumerate(bits):
                one = p if place == hit else q
                chance *= one if bit else 1 - one
            found[bits] = chance
        return found

    return given


def response_chances(p: Fraction, q: Fraction, values: int) -> Chances:
    def given(hit: int) -> dict[tuple[int, ...], Fraction]:
        own = hit % values
        return {(value,): p if value == own else q for value in range(values)}

    return given


def largest_ratio(chances: Chances, inputs: list[int]) -> Fraction:
    given = {hit: chances(hit) for hit in inputs}
    for chance in given.values():
        assert sum(chance.values()) == 1
    return max(
        given[a][message] / given[b][message]
        for a, b in permutations(inputs, 2)
        for message in given[a]
    )


@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(1, 10), Fraction(7, 3), Fraction(12)])
@pytest.mark.parametrize("size", [2, 4, 6])
def test_no_unary_message_is_likelier_by_more_than_epsilon(epsilon: Fraction, size: int) -> None:
    q = UnaryEncoding(epsilon).q
    ratio = largest_ratio(unary_chances(Fraction(1, 2), q, size), [-1, *range(size)])
    assert ratio <= exp_from_below(epsilon)
    # And the budget is used, but for the rounding of q to 24 bits.
    assert ratio >= exp_from_below(epsilon) * (1 - Fraction(2, 2**24) / q)


@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(1, 10), Fraction(7, 3), Fraction(12)])
@pytest.mark.parametrize("cells", [1, 2, 5, 12])
@pytest.mark.parametrize("nothing", [False, True])
def test_no_response_is_likelier_by_more_than_epsilon(
    epsilon: Fraction, cells: int, nothing: bool
) -> None:
    response = RandomizedResponse(epsilon, cells, nothing)
    inputs = list(range(2 * cells)) + [-1] * nothing
    values = 2 * cells + nothing
    ratio = largest_ratio(response_chances(response.p, response.q, values), inputs)
    assert ratio <= exp_from_below(epsilon)
    assert ratio >= exp_from_below(epsilon) * (1 - Fraction(1, 2**40))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_threshold_rounded_the_wrong_way_is_found_out(epsilon: Fraction) -> None:
    """The twin: one unit of 2^-24 or 2^-64 less noise exceeds epsilon, if only just."""
    q = UnaryEncoding(epsilon).q - Fraction(1, 2**24)
    assert largest_ratio(unary_chances(Fraction(1, 2), q, 4), [-1, 0, 1, 2, 3]) > (
        exp_from_below(epsilon)
    )
    p = RandomizedResponse(epsilon, 4).p + Fraction(1, 2**64)
    assert largest_ratio(response_chances(p, (1 - p) / 7, 8), list(range(8))) > (
        exp_from_below(epsilon)
    )


# --- by audit -------------------------------------------------------------------------------

Respond = Callable[[int, int], IntArray]
"""The messages of many clients with the same input, as numbers, given a seed."""


def hit_counts(survey: Survey, hit: int, clients: int) -> IntArray:
    counts = np.zeros((2, survey.grid.cells), dtype=np.int64)
    if hit >= 0:
        counts.flat[hit] = clients
    return counts


def sent_by(survey: Survey, hit: int, clients: int, seed: int) -> IntArray:
    """Messages as (level, content) in one number; they pass the wire."""
    randomness = SimulatedRandomness(seed)
    if hit >= 0:
        sent = make_answer(survey, hit_counts(survey, hit, clients), randomness=randomness)
        found = [_numbers(block) for block in _received(sent.to_bytes(), survey)]
        return np.concatenate(found)
    # Clients with nothing answer one by one; what they send is the mechanism's for -1.
    mechanism = survey.mechanisms[0]
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse)
    rows = mechanism.encode(np.full(clients, -1), 2 * survey.grid.cells, randomness=randomness)
    return _numbers(Block(survey.fingerprint, bytes(16), rows, 0))


def _received(content: bytes, survey: Survey) -> Iterator[Block]:
    for message in messages(BytesIO(content), survey):
        assert isinstance(message, Block)
        yield message


def _numbers(block: Block) -> IntArray:
    padded = np.zeros((len(block.rows), 8), dtype=np.uint8)
    padded[:, : block.rows.shape[1]] = block.rows
    content = padded.view("<i8").ravel()
    return content + (block.level << 32)


def honest(survey: Survey, draws: int = DRAWS) -> Respond:
    return lambda hit, seed: sent_by(survey, hit, draws, seed)


def epsilon_from_below(respond: Respond, inputs: list[int]) -> float:
    """The largest lower bound on epsilon over all ordered pairs of inputs."""
    drawn = {hit: respond(hit, 1000 + hit) for hit in inputs}
    return max(_bound(drawn[a], drawn[b]) for a, b in permutations(inputs, 2))


def _bound(a: IntArray, b: IntArray) -> float:
    codes = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
    half = len(a) // 2
    # Messages come grouped by level: deal them out alternately.
    shares = [
        np.bincount(part, minlength=codes.max() + 1)
        for part in (codes[: len(a)][::2], codes[len(a) :][::2],
                     codes[: len(a)][1::2], codes[len(a) :][1::2])
    ]  # fmt: skip
    order = np.argsort((shares[1] + 0.5) / (shares[0] + 0.5), kind="stable")
    found = [np.cumsum(share[order]) for share in shares]
    best = int(np.argmax(_log_ratio(found[0], found[1], half)))
    return float(_log_ratio(found[2][best], found[3][best], half))


def _log_ratio(more: npt.ArrayLike, less: npt.ArrayLike, draws: int) -> npt.NDArray[np.float64]:
    more, less = np.asarray(more), np.asarray(less)
    low = np.where(more > 0, beta.ppf(LIMIT, np.maximum(more, 1), draws - more + 1), 1e-300)
    high = np.where(less < draws, beta.isf(LIMIT, less + 1, np.maximum(draws - less, 1)), 1.0)
    ratio: npt.NDArray[np.float64] = np.log(low) - np.log(high)
    return ratio


AUDITED = {
    "oue": {"cells": 2, "kinds": "oue"},
    "grr": {"cells": 2, "kinds": "grr"},
    "oue over two levels": {"cells": 4, "fanouts": (2, 2), "kinds": "oue oue"},
    "grr then oue": {"cells": 4, "fanouts": (2, 2), "kinds": "grr oue"},
}


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("name", AUDITED)
def test_an_audit_finds_the_epsilon_that_is_claimed(name: str, epsilon: Fraction) -> None:
    survey = local_survey(epsilon, **AUDITED[name])  # type: ignore[arg-type]  # settings by name
    cells = survey.grid.cells
    # Small differences take more draws to see.
    draws = 4 * DRAWS if epsilon < 1 else DRAWS
    found = epsilon_from_below(honest(survey, draws), [0, cells - 1, 2 * cells - 1])
    print(f"{name}, epsilon {float(epsilon):g}: audit {found / float(epsilon):.3f} of the claim")  # noqa: T201
    assert 0.85 <= found / float(epsilon) <= 1.0


@pytest.mark.parametrize("kind", ["oue", "grr"])
def test_an_audit_cannot_tell_an_empty_client(kind: str) -> None:
    survey = local_survey(Fraction(1), cells=2, kinds=kind, allow_empty=True)
    assert epsilon_from_below(honest(survey), [-1, 0, 3]) <= 1.0


def test_an_audit_sees_a_label_sent_in_clear() -> None:
    survey = local_survey(Fraction(5), cells=2, kinds="oue")

    def with_label(hit: int, seed: int) -> IntArray:
        return honest(survey)(hit, seed) + (int(hit >= 2) << 40)

    assert epsilon_from_below(with_label, [0, 3]) > 5.5


def test_an_audit_sees_a_level_chosen_from_the_data() -> None:
    """Positives report on the leaves in four of five cases, and not in two of three."""
    survey = local_survey(Fraction(1), cells=4, fanouts=(2, 2), kinds="grr grr")
    tilted = replace(survey, level_policy=OneLevel((Fraction(1, 5), Fraction(4, 5))))

    def leaning(hit: int, seed: int) -> IntArray:
        return honest(tilted if hit >= 4 else survey)(hit, seed)

    assert epsilon_from_below(leaning, [0, 7]) > 1.05


def test_an_audit_sees_epsilon_spent_for_each_label() -> None:
    """One report on negatives and one on positives: replacing an example changes both."""
    survey = local_survey(Fraction(1), cells=1, kinds="grr", allow_empty=True)

    def twice(hit: int, seed: int) -> IntArray:
        negative = sent_by(survey, 0 if hit == 0 else -1, DRAWS, seed)
        positive = sent_by(survey, 1 if hit == 1 else -1, DRAWS, seed + 500)
        return negative + (positive << 8)

    assert epsilon_from_below(twice, [0, 1]) > 1.7


def test_an_audit_sees_a_budget_that_is_spent_on_every_level() -> None:
    survey = local_survey(Fraction(1), cells=2, kinds="grr")

    def both(hit: int, seed: int) -> IntArray:
        return sent_by(survey, hit, DRAWS, seed) + (sent_by(survey, hit, DRAWS, seed + 500) << 8)

    assert epsilon_from_below(both, [0, 3]) > 1.7


# --- independence of clients ----------------------------------------------------------------


def clients_are_independent(bits: npt.NDArray[np.uint8], q: float) -> bool:
    """Whether neighbours in the list of clients agree in a bit as often as strangers do.

    Bits (client x cell) of bias q agree with probability q^2 + (1-q)^2; binomial over all
    neighbours and cells, at a false alarm of 1e-8 on each side.
    """
    agree = int((bits[::2] == bits[1::2]).sum())
    law = binom(bits[::2].size, q * q + (1 - q) ** 2)
    return bool(min(law.cdf(agree), law.sf(agree - 1)) > LIMIT)


def client_bits(seeds: list[int]) -> npt.NDArray[np.uint8]:
    """Bits of the cells that are nobody's: each client draws from a source of its own."""
    survey = local_survey(cells=64, kinds="oue")
    counts = hit_counts(survey, 0, 1)
    rows = []
    for seed in seeds:
        (message,) = make_answer(survey, counts, randomness=SimulatedRandomness(seed)).messages
        assert isinstance(message, Block)
        rows.append(message.rows)
    return np.unpackbits(np.concatenate(rows), axis=1, bitorder="little")[:, 1:]


def test_clients_do_not_share_their_noise() -> None:
    q = float(UnaryEncoding(Fraction(1)).q)
    assert clients_are_independent(client_bits(list(range(400))), q)


def test_a_seed_that_clients_share_is_found_out() -> None:
    """The twin; one pair in ten is enough."""
    q = float(UnaryEncoding(Fraction(1)).q)
    shared = [seed - seed % 2 if seed % 20 < 2 else seed for seed in range(400)]
    assert not clients_are_independent(client_bits(shared), q)


# --- moments --------------------------------------------------------------------------------

ORACLES: list[tuple[AnyMechanism, float, float]] = []
for each in EPSILONS:
    unary, response = UnaryEncoding(each), RandomizedResponse(each, 8)
    ORACLES += [(unary, 0.5, float(unary.q)), (response, float(response.p), float(response.q))]


@pytest.mark.parametrize(("mechanism", "p", "q"), ORACLES, ids=str)
@pytest.mark.parametrize(("reports", "hits"), [(1, 0), (1, 1), (1000, 130), (10**6, 10**6)])
def test_the_law_has_the_moments_of_two_binomials(
    mechanism: AnyMechanism, p: float, q: float, *, reports: int, hits: int
) -> None:
    assert law_fits(mechanism.law(), p, q, reports=reports, hits=hits)


def law_fits(law: Law, p: float, q: float, *, reports: int, hits: int) -> bool:
    own, others = binom(hits, p), binom(reports - hits, q)
    mean = law.gain * hits + law.offset * reports
    variance = law.variance_per_report * reports + law.variance_per_hit * hits
    return bool(
        mean == pytest.approx(own.mean() + others.mean(), rel=1e-9)
        and variance == pytest.approx(own.var() + others.var(), rel=1e-9)
    )


@pytest.mark.parametrize(("mechanism", "p", "q"), ORACLES, ids=str)
def test_a_law_with_p_and_q_swapped_is_found_out(
    mechanism: AnyMechanism, p: float, q: float
) -> None:
    assert not law_fits(mechanism.law(), q, p, reports=1000, hits=130)


def own_and_other_shares(respond: Respond, size: int) -> tuple[float, float]:
    """How often bits of the own cell, and of the other cells, are set."""
    sent = respond(1, 3)
    bits = np.stack([sent >> place & 1 for place in range(size)])
    return float(bits[1].mean()), float(np.delete(bits, 1, axis=0).mean())


def test_bits_are_set_as_often_as_the_law_says_and_swapped_ones_are_found_out() -> None:
    """500,000 reports of 4 bits; 6 standard deviations: false alarms below 1e-8."""
    survey = local_survey(Fraction(1), cells=2, kinds="oue")
    q = float(UnaryEncoding(Fraction(1)).q)

    def fits(respond: Respond) -> bool:
        own, other = own_and_other_shares(respond, 4)
        return bool(max(abs(own - 0.5), abs(other - q)) < 3 / DRAWS**0.5)

    def swapped(hit: int, seed: int) -> IntArray:
        generator = np.random.default_rng(seed)
        bits = generator.random((DRAWS, 4)) < np.where(np.arange(4) == hit, q, 0.5)
        return np.asarray((bits << np.arange(4)).sum(axis=1))

    assert fits(honest(survey))
    assert not fits(swapped)


def test_the_audit_itself_is_no_stricter_than_it_says() -> None:
    """Pure chance gives no positive bound."""
    generator = np.random.default_rng(1)
    a, b = (generator.integers(0, 16, DRAWS) for _ in range(2))
    assert _bound(a, b) < 0.0
    assert log(2) * 0.95 < _bound(a, generator.integers(0, 32, DRAWS)) < log(1e300)
