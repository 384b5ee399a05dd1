"""Curves of few parameters: weights by noise, and what is done where rates fall."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from fedassay.calibration.logit import log_odds, off_ends
from fedassay.calibration.parametric import BETA, SIGMOID, TEMPERATURE, Family, parametric_from
from fedassay.errors import SettingInvalid
from tests.bucket_rates import rates_of

SCORES = np.array([0.1, 0.25, 0.4, 0.6, 0.75, 0.9])


def test_noisy_buckets_count_as_fewer_examples() -> None:
    """Scikit-learn's logistic regression, its rows weighted by hand."""
    totals = np.full(6, 300.0)
    positives = np.array([20.0, 90.0, 80.0, 220.0, 190.0, 280.0])
    noise = np.array([0.0, 2_000.0, 0.0, 2_000.0, 0.0, 100.0])
    rates = rates_of(totals, positives, noise=noise, scores=SCORES)
    # Rising rates: 90 and 80 become 85 of 300 each, 220 and 190 become 205.
    pooled = np.array([20.0, 85.0, 85.0, 205.0, 205.0, 280.0]) / 300.0
    weights = 300.0 / (1.0 + noise / (300.0 * pooled * (1.0 - pooled)))
    share = positives / totals
    rows = np.concatenate([logit(SCORES), logit(SCORES)])[:, None]
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(
        rows, [1] * 6 + [0] * 6, np.concatenate([weights * share, weights * (1.0 - share)])
    )
    ours = parametric_from(rates, SIGMOID).parameters
    assert ours["a"] == pytest.approx(float(theirs.coef_[0, 0]), abs=1e-4)
    assert ours["b"] == pytest.approx(float(theirs.intercept_[0]), abs=1e-4)
    blind = parametric_from(rates.without_noise(), SIGMOID).parameters
    assert abs(blind["a"] - ours["a"]) > 0.01


@pytest.mark.parametrize(("family", "flat"), [(SIGMOID, 0.45), (BETA, 0.45), (TEMPERATURE, 0.5)])
def test_where_rates_fall_a_curve_is_flat(family: Family, flat: float) -> None:
    """At the mean rate, or at one half where no offset is to be had."""
    rates = rates_of([100] * 6, [90, 75, 50, 30, 15, 10], scores=SCORES)
    calibrator = parametric_from(rates, family)
    assert calibrator.is_monotone
    assert calibrator.predict(SCORES) == pytest.approx([flat] * 6, abs=1e-6)


@pytest.mark.parametrize("family", [SIGMOID, BETA, TEMPERATURE])
def test_rates_that_are_a_curve_give_its_parameters(family: Family) -> None:
    true = {"temperature": (0.7,), "sigmoid": (1.4, -0.3), "beta": (0.8, 1.5, 0.2)}
    parameters = true[family.method.value]
    match len(parameters):
        case 1:
            odds = parameters[0] * logit(SCORES)
        case 2:
            odds = parameters[0] * logit(SCORES) + parameters[1]
        case _:
            odds = parameters[0] * np.log(SCORES) - parameters[1] * np.log(1 - SCORES)
            odds = odds + parameters[2]
    rates = rates_of([1000] * 6, 1000 * expit(odds), scores=SCORES)
    calibrator = parametric_from(rates, family)
    assert list(calibrator.parameters.values()) == pytest.approx(parameters, abs=1e-4)
    # Straight lines between the curve's points are near to it, at small scores too.
    if family is SIGMOID:
        asked = np.geomspace(1e-5, 0.5, 200)
        told = calibrator.predict(asked)
        assert told == pytest.approx(expit(1.4 * logit(asked) - 0.3), rel=0.01)


def test_a_score_that_separates_the_classes_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="runs off to infinity"):
        parametric_from(rates_of([50] * 4, [0, 0, 50, 50]), SIGMOID)


def test_log_odds_are_scipys_and_finite_at_the_ends() -> None:
    shares = np.array([1e-9, 0.2, 0.5, 0.999])
    assert np.allclose(log_odds(shares), logit(shares))
    # One in a million, about: 20 ln 2 = 13.86.
    assert log_odds(off_ends(np.array([0.0, 1.0]))) == pytest.approx([-13.863, 13.863], abs=1e-3)
    assert off_ends(np.array([1e-5, 0.5])).tolist() == [1e-5, 0.5]
