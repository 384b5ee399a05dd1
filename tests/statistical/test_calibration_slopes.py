"""The paper's calibration error falls with the clients as its theorems say."""

import numpy as np
import pytest
from experiments.calibration_slopes import REGIMES, Regime, measure

from tests.laws import full

# Seeds are fixed: once it passes it raises no false alarm. Over other seeds the fitted slopes
# vary by less than 0.02.
TOLERANCE = 0.06
BOUNDS = {"-1/3": -1.0 / 3.0, "-1/4": -1.0 / 4.0}


def falls_as_fast(regime: Regime, *, buckets: int | None = None) -> bool:
    """Whether the error's exponent reaches the bound's; it may be better."""
    found = measure(regime, trials=full(20, 3), seed=900, buckets=buckets)
    assert np.isfinite(found.distances).all()
    slope = found.of(found.distances, regime.counts)
    return slope < BOUNDS[regime.theory] + TOLERANCE


@pytest.mark.statistical
@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.name)
def test_errors_fall_as_the_theorems_say(regime: Regime) -> None:
    assert falls_as_fast(regime)


@pytest.mark.statistical
@pytest.mark.parametrize("regime", REGIMES[:2], ids=lambda regime: regime.name)
def test_a_number_of_buckets_that_does_not_grow_is_caught(regime: Regime) -> None:
    assert not falls_as_fast(regime, buckets=8)
