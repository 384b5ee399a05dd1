"""What the choice of a calibrator is made of: expected errors and how sure they are."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from fedassay.calibration import Method
from fedassay.calibration.auto import ExpectedError, _chosen, _crossed, _moved, expected_errors
from fedassay.calibration.isotonic import isotonic_from
from tests.bucket_rates import rates_of

RATES = [0.1, 0.3, 0.5, 0.7, 0.9]


def test_a_map_that_follows_every_bucket_is_expected_to_err_by_their_sampling_variance() -> None:
    """Stein's identity, where the map is the rates themselves: the mean of p (1 - p) / n."""
    rates = rates_of([1000] * 5, [100, 300, 500, 700, 900], scores=[0.05, 0.2, 0.4, 0.6, 0.8])
    error = expected_errors(rates)[Method.ISOTONIC]
    assert error.mean_square == pytest.approx(
        np.mean([p * (1 - p) / 1000 for p in RATES]), rel=0.02
    )
    raw = expected_errors(rates)[Method.NONE]
    distance = [(p - s) ** 2 for p, s in zip(RATES, [0.05, 0.2, 0.4, 0.6, 0.8], strict=True)]
    assert raw.mean_square == pytest.approx(
        np.mean(distance) - np.mean([p * (1 - p) / 1000 for p in RATES]), rel=1e-6
    )


def test_steins_formula_with_the_measured_slopes_is_right_on_average() -> None:
    """Against the truth, for a map between none and all of the freedom there is: 500 draws."""
    generator = np.random.default_rng(2)
    truth = np.array([0.3, 0.3, 0.3, 0.5, 0.5, 0.5, 0.7, 0.7])
    told, true = [], []
    for _ in range(500):
        rates = rates_of([400] * 8, generator.binomial(400, truth))
        predicted, slopes = _moved(rates, isotonic_from)
        square = (rates.rates - predicted) ** 2 + (2.0 * slopes - 1.0) * rates.variance
        told.append(square.mean())
        true.append(((predicted - truth) ** 2).mean())
    assert np.mean(told) == pytest.approx(np.mean(true), rel=0.2)


def test_a_difference_of_errors_varies_by_what_it_is_divided_by() -> None:
    """4,000 drawn tables: the standardised difference has a standard deviation of 1.

    Its estimate errs by 1.1 %, so 6 % off is a false alarm less than once in a million.
    """
    generator = np.random.default_rng(3)
    totals, truth = np.array([400.0, 900.0, 100.0, 2500.0]), np.array([0.2, 0.4, 0.5, 0.8])
    rates = rates_of(totals, totals * truth)
    shares = totals / totals.sum()
    first = truth + np.array([0.05, -0.02, 0.0, 0.01])
    second = truth + np.array([-0.03, 0.04, 0.1, 0.0])
    drawn = generator.normal(truth, np.sqrt(truth * (1.0 - truth) / totals), (4_000, 4))
    standardised = [
        ExpectedError(Method.BETA, float(shares @ (row - first) ** 2), first).clear_of(
            ExpectedError(Method.NONE, float(shares @ (row - second) ** 2), second), rates
        )
        for row in drawn
    ]
    assert np.std(standardised) == pytest.approx(1.0, abs=0.06)


def test_no_bucket_is_predicted_by_a_map_that_saw_it() -> None:
    generator = np.random.default_rng(5)
    positives = generator.binomial(100, np.linspace(0.1, 0.9, 30)).astype(np.float64)
    rates = rates_of([100] * 30, positives)
    predicted, slopes = _crossed(rates, isotonic_from)
    assert not slopes.any()
    for bucket in (0, 7, 22):
        other = positives.copy()
        other[bucket] = 100.0 - other[bucket]
        again, _ = _crossed(replace(rates, positives=other), isotonic_from)
        assert again[bucket] == predicted[bucket]
        # Others see it.
        assert (again != predicted).any()


def of(method: Method, mean_square: float, shift: float) -> ExpectedError:
    return ExpectedError(method, mean_square, np.full(4, 0.5 + shift))


@pytest.mark.parametrize(
    ("raw_share", "sds", "method"),
    [
        (0.5, 2.9, Method.NONE),
        (0.5, 3.1, Method.SMOOTH),
        (0.0011, 2.9, Method.NONE),
        (0.0009, 0.1, Method.SMOOTH),
    ],
)
def test_a_map_is_made_where_it_is_three_deviations_better_or_surely_needed(
    raw_share: float, sds: float, method: Method
) -> None:
    rates = rates_of([100] * 4, [50] * 4)
    # The maps differ by 0.1 everywhere, rates vary by 0.25 / 100: sd of the difference 0.005.
    sd = 2.0 * 0.1 * sqrt(0.25 / 100 / 4)
    errors = {
        Method.NONE: of(Method.NONE, sds * sd, 0.1),
        Method.SMOOTH: of(Method.SMOOTH, 0.0, 0.0),
    }
    assert _chosen(errors, rates, raw_share) is method


@pytest.mark.parametrize(("sds", "method"), [(1.9, Method.SMOOTH), (2.1, Method.ISOTONIC)])
def test_another_method_must_be_two_deviations_better_than_smooth(
    sds: float, method: Method
) -> None:
    rates = rates_of([100] * 4, [50] * 4)
    sd = 2.0 * 0.1 * sqrt(0.25 / 100 / 4)
    errors = {
        Method.NONE: of(Method.NONE, 1.0, 0.2),
        Method.SMOOTH: of(Method.SMOOTH, sds * sd, 0.1),
        Method.ISOTONIC: of(Method.ISOTONIC, 0.0, 0.0),
    }
    assert _chosen(errors, rates, 0.0) is method


def test_only_methods_that_rise_are_compared_when_ranks_must_stay() -> None:
    rates = rates_of([100] * 6, [10, 60, 20, 70, 40, 90])
    everything = {method.value for method in expected_errors(rates)}
    rising = {method.value for method in expected_errors(rates, monotone=True)}
    assert everything - rising == {"bbq"}
