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
from tests.laws import fits_moments

CELLS = 2400
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
    added = np.zeros((2, CELLS), dtype=np.int64)
    for place in places:
        added += mechanism.share(one_hot(int(place)), randomness=randomness)
    return added


def truth_of(examples: int) -> np.ndarray:
    """So many examples over the first two thirds of the cells, most of them in the first ones."""
    drawn = np.random.default_rng(8).beta(0.5, 1.5, examples) * (4 * CELLS // 3)
    return np.bincount(drawn.astype(np.int64), minlength=2 * CELLS).reshape(2, CELLS)


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
    """4,000 one-hot reports over 4,800 cells; rates as in `fits_moments`."""
    truth = truth_of(CLIENTS)
    places = np.random.default_rng(9).permutation(np.repeat(np.arange(2 * CELLS), truth.ravel()))
    assert follows_law(mechanism, summed(mechanism, places, seed=7), truth)


def drawn_cohort(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """One draw of 4,000 reports, half of them of clients that hold something."""
    truth = truth_of(CLIENTS // 2)
    if isinstance(mechanism, RandomizedResponse) and not mechanism.nothing:
        # Without a message for nothing, every client has an example.
        truth[1, -1] += CLIENTS - truth.sum()
    generator = np.random.default_rng(9)
    return mechanism.cohort(truth, reports=CLIENTS, generator=generator), truth


@pytest.mark.statistical
def test_a_simulated_cohort_follows_the_law(mechanism: Mechanism) -> None:
    """One draw of 4,000 reports over 4,800 cells; rates as in `fits_moments`."""
    assert follows_law(mechanism, *drawn_cohort(mechanism))


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_noise_of_another_variance_breaks_the_law(mechanism: Mechanism, factor: float) -> None:
    """The twin, from both sides: the same draw, stretched or shrunk about its mean."""
    total, truth = drawn_cohort(mechanism)
    mean = expected(mechanism, truth)
    stretched = mean + (total - mean) * np.sqrt(factor)
    is_exact = bool((stretched == total).all())
    assert is_exact == isinstance(mechanism, Exact)
    assert follows_law(mechanism, stretched, truth) == is_exact


@pytest.mark.statistical
@pytest.mark.parametrize("side", [1, -1])
def test_reports_that_lean_break_the_law(mechanism: Mechanism, side: int) -> None:
    """The twin for the mean: the smallest lean that is surely seen, 11 sd of the weighted sum."""
    total, truth = drawn_cohort(mechanism)
    spread = np.sqrt((variances(mechanism, truth) * truth**2).sum()) or 1.0
    leaning = total + side * 11.0 * spread * truth / (truth**2).sum()
    assert not follows_law(mechanism, leaning, truth)


@pytest.mark.statistical
def test_a_lost_report_breaks_the_law_of_an_exact_sum() -> None:
    """The twin: the same check must reject a sum with one hit missing."""
    truth = truth_of(CLIENTS)
    assert not follows_law(Exact(), truth - one_hot(5), truth)


@pytest.mark.statistical
def test_another_law_is_rejected() -> None:
    """The twin for noise: sums of one mechanism do not pass for those of another."""
    total, truth = drawn_cohort(MECHANISMS[3])
    for other in (*MECHANISMS[:3], *MECHANISMS[4:]):
        assert not follows_law(other, total, truth)


def expected(mechanism: Mechanism, truth: np.ndarray) -> np.ndarray:
    law = mechanism.law()
    return np.asarray(law.gain * truth + law.offset * CLIENTS)


def variances(mechanism: Mechanism, truth: np.ndarray) -> np.ndarray:
    law = mechanism.law()
    return np.asarray(CLIENTS * law.variance_per_report + truth * law.variance_per_hit)


def follows_law(mechanism: Mechanism, total: np.ndarray, truth: np.ndarray) -> bool:
    mean, variance = expected(mechanism, truth), variances(mechanism, truth)
    return fits_moments(total, mean, variance, truth.astype(np.float64))
