"""What every mechanism must do; add a mechanism to MECHANISMS and it is held to this."""

from fractions import Fraction

import numpy as np
import pytest

from fedassay import Exact
from fedassay.mechanisms import (
    LocalMechanism,
    Mechanism,
    Polya,
    RandomizedResponse,
    SharingMechanism,
    UnaryEncoding,
)
from fedassay.randomness import SimulatedRandomness

CELLS = 6
CLIENTS = 4000
MECHANISMS: list[Mechanism] = [
    Exact(),
    Polya(Fraction(1), 1, CLIENTS),
    Polya(Fraction(1, 2), 3, CLIENTS // 2),
    UnaryEncoding(Fraction(1)),
    UnaryEncoding(Fraction(5)),
    RandomizedResponse(Fraction(1), CELLS),
    RandomizedResponse(Fraction(5), CELLS, nothing=True),
]


@pytest.fixture(params=MECHANISMS, ids=str)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    chosen: Mechanism = request.param
    return chosen


def one_hot(place: int) -> np.ndarray:
    counts = np.zeros((2, CELLS), dtype=np.int64)
    counts.flat[place] = 1
    return counts


def summed(mechanism: Mechanism, places: np.ndarray, *, seed: int) -> np.ndarray:
    """What arrives when each client sends its one example, by the path of its family."""
    randomness = SimulatedRandomness(seed)
    if isinstance(mechanism, LocalMechanism):
        rows = mechanism.encode(places, 2 * CELLS, randomness=randomness)
        total: np.ndarray = mechanism.sums(rows, 2 * CELLS).reshape(2, CELLS)
        return total
    assert isinstance(mechanism, SharingMechanism)
    shares = [mechanism.share(one_hot(int(place)), randomness=randomness) for place in places]
    return np.asarray(np.sum(shares, axis=0))


def test_a_mechanism_belongs_to_one_family(mechanism: Mechanism) -> None:
    assert isinstance(mechanism, LocalMechanism) != isinstance(mechanism, SharingMechanism)


def test_a_sum_is_integers_of_the_same_shape(mechanism: Mechanism) -> None:
    total = summed(mechanism, np.array([3]), seed=1)
    assert total.shape == (2, CELLS)
    assert total.dtype == np.int64


def test_a_mechanism_does_not_change_its_input(mechanism: Mechanism) -> None:
    counts, hits = one_hot(3), np.array([3])
    counts.flags.writeable = hits.flags.writeable = False
    if isinstance(mechanism, SharingMechanism):
        mechanism.share(counts, randomness=SimulatedRandomness(1))
    if isinstance(mechanism, LocalMechanism):
        mechanism.encode(hits, 2 * CELLS, randomness=SimulatedRandomness(1))
    assert counts.sum() == 1
    assert hits[0] == 3


def test_the_law_has_a_positive_gain_and_no_negative_variance(mechanism: Mechanism) -> None:
    law = mechanism.law()
    assert law.gain > 0
    assert law.variance_per_report >= 0
    # A hit may be quieter than a miss, never quieter than silence.
    assert law.variance_per_report + law.variance_per_hit >= 0


@pytest.mark.statistical
def test_summed_reports_follow_the_law(mechanism: Mechanism) -> None:
    """4,000 one-hot reports; 12 cells in reach of the mean: false alarms below 1e-6."""
    places = np.random.default_rng(8).integers(0, 2 * CELLS - 2, CLIENTS)
    truth = np.bincount(places, minlength=2 * CELLS).reshape(2, CELLS)
    check_law(mechanism, summed(mechanism, places, seed=7), truth)


@pytest.mark.statistical
def test_a_simulated_cohort_follows_the_law(mechanism: Mechanism) -> None:
    """One draw of 4,000 reports; 12 cells in reach of the mean: false alarms below 1e-6."""
    truth = np.arange(2 * CELLS, dtype=np.int64).reshape(2, CELLS) * 20
    if isinstance(mechanism, RandomizedResponse) and not mechanism.nothing:
        # Without a message for nothing, every client has an example.
        truth[1, -1] += CLIENTS - truth.sum()
    generator = np.random.default_rng(9)
    total = mechanism.cohort(truth, reports=CLIENTS, generator=generator)
    check_law(mechanism, total, truth)


@pytest.mark.statistical
def test_a_lost_report_breaks_the_law_of_an_exact_sum() -> None:
    """The twin: the same check must reject a sum with one hit missing."""
    truth = np.arange(2 * CELLS, dtype=np.int64).reshape(2, CELLS) * 20
    with pytest.raises(AssertionError):
        check_law(Exact(), truth - one_hot(5), truth)


@pytest.mark.statistical
def test_another_law_is_rejected() -> None:
    """The twin for noise: sums of one mechanism do not pass for those of another."""
    truth = np.full((2, CELLS), 20, dtype=np.int64)
    truth[1, 0] = CLIENTS - 20 * (2 * CELLS - 1)
    total = MECHANISMS[3].cohort(truth, reports=CLIENTS, generator=np.random.default_rng(3))
    for other in MECHANISMS[4:]:
        with pytest.raises(AssertionError):
            check_law(other, total, truth)


def check_law(mechanism: Mechanism, total: np.ndarray, truth: np.ndarray) -> None:
    law = mechanism.law()
    mean = law.gain * truth + law.offset * CLIENTS
    variance = CLIENTS * law.variance_per_report + truth * law.variance_per_hit
    # Discrete Laplace tails fall as exp(-sqrt(2) z): 13 sd for what 7 are to a normal law.
    error_quantile = 13 if isinstance(mechanism, Polya) else 7
    assert (np.abs(total - mean) <= error_quantile * np.sqrt(variance)).all()
