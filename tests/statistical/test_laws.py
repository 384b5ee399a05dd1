"""Statistical checks that other tests lean on see what they say they see, from both sides."""

import numpy as np
import pytest

from tests.laws import fits_spread

pytestmark = pytest.mark.statistical

DRAWS, TIMES = 300, 200


@pytest.mark.parametrize("seed", range(TIMES // 40))
def test_errors_of_the_size_that_is_told_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for sd in (0.001, 7.0):
        assert fits_spread(rng.normal(0.0, sd, DRAWS), np.full(DRAWS, sd), false_alarm=1e-8)


@pytest.mark.parametrize("factor", [1 / 1.49, 1.54])
def test_errors_told_half_as_much_again_or_less_are_seen_in_999_of_1000(factor: float) -> None:
    """Of 200 tests one may miss it: three would happen less than once in 800 times."""
    rng = np.random.default_rng(5)
    missed = sum(
        fits_spread(rng.normal(0.0, 1.0, DRAWS), np.full(DRAWS, factor), false_alarm=1e-8)
        for _ in range(TIMES)
    )
    assert missed <= 2


def test_caution_widens_what_may_be_and_not_what_must_be() -> None:
    rng = np.random.default_rng(6)
    errors, ones = rng.normal(0.0, 1.0, DRAWS), np.ones(DRAWS)
    # A caution ten times as large as the error is no fault, and hides no noise told too large.
    assert fits_spread(errors, ones, extra=10.0 * ones)
    assert not fits_spread(errors, 2.0 * ones, extra=10.0 * ones)
    # Errors that caution accounts for are no fault either.
    assert fits_spread(errors, 0.1 * ones, extra=ones)
    assert not fits_spread(errors, 0.1 * ones, extra=0.1 * ones)


def test_a_known_error_has_the_spread_about_nil_not_about_its_mean() -> None:
    assert not fits_spread(np.full(DRAWS, 2.0), np.ones(DRAWS))
    assert not fits_spread(np.zeros(DRAWS), np.ones(DRAWS))
