"""Forecasts follow from counts by hand: how many reports, and what their noise adds up to."""

from dataclasses import replace
from fractions import Fraction
from math import exp, inf

import numpy as np
import pytest
from scipy.stats import norm

from fedassay import DecodeOptions, Examples, Grid, Hierarchy, Privacy, SurveyRequest
from fedassay.mechanisms import Unit, UnitKind
from fedassay.planning.build import build_survey
from fedassay.planning.forecast import (
    Cause,
    ErrorForecast,
    expected_examples,
    expected_histogram,
    expected_reports,
    forecast,
    forecast_one,
    model_for,
)
from fedassay.planning.request import LevelChoice

FULL = SurveyRequest(clients=1000, positive_rate=0.3, auc=0.8)


def noisy(**changes: object) -> SurveyRequest:
    settings = {
        "privacy": Privacy.DISTRIBUTED,
        "epsilon": Fraction(1, 2),
        "dropouts": Fraction(0),
    }
    return replace(FULL, **(settings | changes))  # type: ignore[arg-type]  # settings by name


@pytest.mark.parametrize(
    ("request_", "reports", "examples"),
    [
        (SurveyRequest(clients=20, examples=500), 20, 500.0),
        (SurveyRequest(clients=20), 20, 20.0),
        (SurveyRequest(minimum_reports=7), 7, 7.0),
        (SurveyRequest(privacy=Privacy.LOCAL, clients=20, examples=500), 500, 500.0),
        (
            SurveyRequest(
                privacy=Privacy.LOCAL, clients=20, examples=500, unit=Unit(UnitKind.CLIENT, 1)
            ),
            20,
            500.0,
        ),
    ],
)
def test_there_is_a_report_of_every_client_or_of_every_example(
    request_: SurveyRequest, reports: int, examples: float
) -> None:
    assert expected_reports(request_) == reports
    assert expected_examples(request_) == examples


def test_a_flat_surveys_noise_is_discrete_laplace_in_every_cell() -> None:
    survey = build_survey(noisy(), Grid.uniform(4), Hierarchy.flat(4))
    expected = expected_histogram(survey, model_for(FULL), clients=1000)
    a = exp(-0.5)
    weights = np.array([[1.0, 0.0, -2.0, 0.0], [0.0, 3.0, 0.0, 0.0]])
    assert expected.noise.variance(weights) == pytest.approx((1 + 4 + 9) * 2 * a / (1 - a) ** 2)


def test_more_reports_than_noise_is_sized_for_bring_more_noise() -> None:
    request = noisy(dropouts=Fraction(1, 2))
    survey = build_survey(request, Grid.uniform(4), Hierarchy.flat(4))
    expected = expected_histogram(survey, model_for(FULL), clients=1000)
    a, weights = exp(-0.5), np.eye(2, 4)
    # 1,000 shares of noise where 500 are enough: twice the variance.
    assert expected.noise.variance(weights) == pytest.approx(2 * 2 * 2 * a / (1 - a) ** 2)


def test_a_batch_of_a_quarter_has_its_noise_16_times_and_varies_by_whom_it_got() -> None:
    """The top level alone, in a contrast that is 0 on average: no total to be known or not."""
    request = noisy(levels=LevelChoice.BATCHES, minimum_reports=250)
    quarters = (Fraction(1, 4), Fraction(3, 4))
    survey = build_survey(request, Grid.uniform(4), Hierarchy(4, (2, 2)), quarters)
    expected = expected_histogram(
        survey, model_for(FULL), clients=1000, decode_options=DecodeOptions(reconcile=False)
    )
    low, high = expected.counts[0, :2].sum(), expected.counts[1, :2].sum()
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [-low / high, -low / high, 0.0, 0.0]])
    a = exp(-0.5)
    laplace = 2 * a / (1 - a) ** 2
    # Of 1,000 clients 250 report: counts are multiplied by 4, and a count c that is drawn with
    # probability 1/4 then varies by 16 c (1/4) (3/4).
    by_hand = (16 * laplace + 3 * np.array([low, high])) @ np.array([1.0, (low / high) ** 2])
    assert expected.noise.variance(weights) == pytest.approx(by_hand)


def test_an_answer_comes_with_the_interval_that_it_will_have() -> None:
    survey = build_survey(noisy(), Grid.uniform(4), Hierarchy.flat(4))
    told = forecast_one(survey, model_for(FULL), metric="accuracy@0.5", clients=1000)
    # On an edge there is no binning: a proportion of 1,000, and noise.
    sd = np.hypot(told.noise_sd, told.sampling_sd)
    assert told.sampling_sd == pytest.approx(
        np.sqrt(told.value * (1 - told.value) / 1000), rel=0.01
    )
    assert told.half_width == pytest.approx(float(norm.ppf(0.975)) * sd, rel=0.01)
    assert told.binning_bias == pytest.approx(0.0, abs=1e-9)


def test_the_bias_is_the_estimates_distance_from_the_models_own_value() -> None:
    """Where a tenth is apart inside one cell, precision above its middle is 1 and looks even.

    Half of that cell's 50 negatives seem to lie above it, beside 475 positives.
    """
    labels = np.arange(1000) % 2
    away = np.where(np.arange(1000) < 100, 0.05, 0.4)
    reference = Examples(labels, np.where(labels == 1, 0.5 + away, 0.5 - away))
    request = replace(FULL, reference=reference, positive_rate=None, auc=None, smallest_cell=0)
    survey = build_survey(request, Grid.uniform(3), Hierarchy.flat(3))
    options = DecodeOptions(smooth=False)
    told = forecast(survey, model_for(request), clients=1000, decode_options=options)
    assert told["precision@0.5"].binning_bias == pytest.approx(475 / 500 - 1.0, abs=1e-3)
    assert told["accuracy@0.5"].value == pytest.approx(1.0)


def test_without_an_answer_privacy_is_to_blame_and_nothing_is_promised() -> None:
    lacking = ErrorForecast(
        value=0.5,
        noise_sd=inf,
        sampling_sd=0.01,
        binning_bound=inf,
        binning_sd=inf,
        binning_bias=0.0,
        half_width=inf,
        reason="drowned",
    )
    assert not lacking.is_available
    assert lacking.dominates is Cause.PRIVACY
    assert lacking.error_quantile() == inf
    survey = build_survey(
        noisy(clients=2, epsilon=Fraction(1, 100)), Grid.uniform(4), Hierarchy.flat(4)
    )
    drowned = forecast(survey, model_for(replace(FULL, clients=2)), clients=2)
    assert not drowned["roc_auc"].is_available
