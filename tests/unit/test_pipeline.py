"""How a pipeline's errors follow from those of its surveys."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from fedassay import Privacy, SurveyRequest
from fedassay.planning.forecast import forecast_one, model_for
from fedassay.planning.pipeline import (
    PipelineStep,
    _error,
    _Errors,
    _splits,
    _Splitter,
    plan_pipeline,
)

# Two-sided at 5 %, seen in 80 of 100.
REACH = float(norm.ppf(0.975) + norm.ppf(0.8))


def test_a_change_is_seen_through_the_errors_of_both_surveys() -> None:
    errors = _Errors(error_quantile=0.5, standard_error=0.003, gaps=0.25)
    # 3 and 4 thousandths are 5 together.
    assert _error(PipelineStep.MONITORING, errors, 0.004) == pytest.approx(REACH * 0.005)
    # Without an evaluation before, it is compared with one like itself.
    assert _error(PipelineStep.MONITORING, errors, 0.0) == pytest.approx(REACH * 0.003 * 2**0.5)


def test_each_step_has_an_error_of_its_own() -> None:
    errors = _Errors(error_quantile=0.5, standard_error=0.003, gaps=0.25)
    assert _error(PipelineStep.CALIBRATION, errors, 0.004) == 0.25
    assert _error(PipelineStep.EVALUATION, errors, 0.004) == 0.5


def test_monitoring_is_compared_with_the_evaluation_before_it() -> None:
    request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(4), clients=100_000, height=2)
    plan = plan_pipeline(
        request,
        [PipelineStep.EVALUATION, PipelineStep.MONITORING],
        weights={PipelineStep.EVALUATION: 3.0},
        generator=np.random.default_rng(0),
        progress=lambda _: None,
    )
    first, second = (
        forecast_one(
            step.design.survey, model_for(request), metric="roc_auc", clients=100_000
        ).standard_error
        for step in plan.stages
    )
    assert first < second
    assert plan.stages[1].error == pytest.approx(REACH * float(np.hypot(first, second)))


def test_boundaries_lost_in_noise_leave_the_later_surveys_as_they_were() -> None:
    """Of one class nothing is left, so that the next survey knows no more than the first did."""
    few = SurveyRequest(privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1, 1000), clients=20)
    many = replace(few, epsilon=Fraction(4), clients=100_000)
    for request, learns in ((few, False), (many, True)):
        later = []
        for seed in range(4):
            splitter = _Splitter(request, "roc_auc", np.random.default_rng(seed), lambda _: None)
            _, error, after = splitter.after_boundaries(Fraction(1, 4))
            assert error > 0.0
            later.append(after)
        if learns:
            assert all(each.reference is not None for each in later)
        else:
            assert any(each == request for each in later)


@pytest.mark.parametrize("parts", [0, 1, 2, 3])
def test_splits_are_all_the_ways_to_share_twenty_twentieths(parts: int) -> None:
    splits = _splits(parts)
    assert all(len(split) == parts for split in splits)
    assert all(sum(split) == 1 and min(split) >= Fraction(1, 20) for split in splits if split)
    # Stars and bars: where to put the bars among 19 gaps; nothing is shared in one way.
    assert len(set(splits)) == len(splits) == {0: 1, 1: 1, 2: 19, 3: 171}[parts]
