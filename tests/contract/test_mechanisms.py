"""What every mechanism must do; add a mechanism to MECHANISMS and it is held to this."""

import numpy as np
import pytest

from fedassay import Exact
from fedassay.mechanisms import Mechanism
from fedassay.randomness import SimulatedRandomness

MECHANISMS: list[Mechanism] = [Exact()]
CELLS = 6
CLIENTS = 4000


@pytest.fixture(params=MECHANISMS, ids=lambda mechanism: mechanism.kind)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    chosen: Mechanism = request.param
    return chosen


def one_hot(place: int) -> np.ndarray:
    counts = np.zeros((2, CELLS), dtype=np.int64)
    counts.flat[place] = 1
    return counts


def test_a_share_is_integers_of_the_same_shape(mechanism: Mechanism) -> None:
    share = mechanism.share(one_hot(3), randomness=SimulatedRandomness(1))
    assert share.shape == (2, CELLS)
    assert share.dtype == np.int64


def test_a_share_does_not_change_its_input(mechanism: Mechanism) -> None:
    counts = one_hot(3)
    counts.flags.writeable = False
    mechanism.share(counts, randomness=SimulatedRandomness(1))
    assert counts.sum() == 1


def test_the_law_has_a_positive_gain_and_no_negative_variance(mechanism: Mechanism) -> None:
    law = mechanism.law()
    assert law.gain > 0
    assert law.variance_per_report >= 0
    assert law.variance_per_hit >= 0


@pytest.mark.statistical
def test_summed_shares_follow_the_law(mechanism: Mechanism) -> None:
    """4,000 one-hot reports; 12 cells within 6 sd of the mean: false alarms below 1e-6."""
    randomness = SimulatedRandomness(7)
    places = np.random.default_rng(8).integers(0, 2 * CELLS - 2, CLIENTS)
    truth = np.bincount(places, minlength=2 * CELLS).reshape(2, CELLS)
    total = sum(mechanism.share(one_hot(int(place)), randomness=randomness) for place in places)
    check_law(mechanism, np.asarray(total), truth)


@pytest.mark.statistical
def test_a_simulated_cohort_follows_the_law(mechanism: Mechanism) -> None:
    """One draw of 4,000 reports; 12 cells within 6 sd of the mean: false alarms below 1e-6."""
    truth = np.arange(2 * CELLS, dtype=np.int64).reshape(2, CELLS) * 20
    generator = np.random.default_rng(9)
    total = mechanism.cohort(truth, reports=CLIENTS, generator=generator)
    check_law(mechanism, total, truth)


@pytest.mark.statistical
def test_a_lost_report_breaks_the_law_of_an_exact_sum() -> None:
    """The twin: the same check must reject a sum with one hit missing."""
    truth = np.arange(2 * CELLS, dtype=np.int64).reshape(2, CELLS) * 20
    with pytest.raises(AssertionError):
        check_law(Exact(), truth - one_hot(5), truth)


def check_law(mechanism: Mechanism, total: np.ndarray, truth: np.ndarray) -> None:
    law = mechanism.law()
    mean = law.gain * truth + law.offset * CLIENTS
    variance = CLIENTS * law.variance_per_report + truth * law.variance_per_hit
    assert (np.abs(total - mean) <= 6 * np.sqrt(variance)).all()
