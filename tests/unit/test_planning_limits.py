"""What plans, bounds and results say where there is nothing more to be had."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fedassay
from fedassay import Examples, Privacy, ScoreHistogram, SurveyRequest
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.metrics.manipulation import manipulation
from fedassay.planning.forecast import forecast_rows, no_forecast
from fedassay.planning.pipeline import PipelineStep, plan_pipeline
from fedassay.planning.scorer import Scorer
from fedassay.planning.solve import Target, rows_needed
from fedassay.planning.theory import Case, auc

EMPTY = ScoreHistogram(np.array([0.0, 1.0]), np.zeros((2, 1)))


def test_a_figure_that_will_have_no_answer_says_so() -> None:
    *_, row = forecast_rows({"f1@0.5": no_forecast("why", value=0.7)})
    assert row == ["f1@0.5", "0.7", "-", "-", "-", "no answer", "privacy"]


def test_of_many_thresholds_a_scorer_looks_at_three() -> None:
    request = SurveyRequest(
        clients=1000, thresholds=(0.1, 0.2, 0.3, 0.4, 0.5), height=3, smallest_cell=0
    )
    assert Scorer.for_request(request).thresholds == (0.2, 0.3, 0.4)


def test_the_area_without_noise_errs_by_the_square_of_buckets() -> None:
    assert auc(Case(Privacy.SECURE, 1000, buckets=50)) == pytest.approx(0.0004)


LOCAL = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(4), clients=100_000, height=3)
REFERENCE = Examples(np.array([0, 1] * 50), np.linspace(0.0, 1.0, 100))


@pytest.mark.parametrize(
    ("changes", "weights", "says"),
    [
        ({}, {PipelineStep.EVALUATION: 0.0}, "weights must be positive"),
        ({}, {PipelineStep.CALIBRATION: 1.0}, "of stages in the pipeline"),
        ({"reference": REFERENCE}, {}, "a reference already gives the boundaries"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused(
    changes: dict[str, Any], weights: dict[PipelineStep, float], says: str
) -> None:
    with pytest.raises(SettingInvalid, match=says):
        plan_pipeline(
            replace(LOCAL, **changes),
            [PipelineStep.BOUNDARIES, PipelineStep.EVALUATION],
            weights=weights,
            generator=np.random.default_rng(0),
            progress=lambda _: None,
        )


def test_an_error_that_no_number_of_rows_reaches_is_told_with_its_cause() -> None:
    request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(1), clients=100, height=3)
    with pytest.raises(TargetImpossible, match=r"no number of rows up to .* alone leaves"):
        rows_needed(request, Target("roc_auc", 1e-9))


def test_false_rows_among_none_move_a_metric_anywhere() -> None:
    moved = manipulation(EMPTY, (), rows=3)
    for name in ("roc_auc", "average_precision", "ks", "brier"):
        assert moved[name] == (0.0, 1.0)


def test_rows_that_a_client_may_not_give_are_told_in_the_headline() -> None:
    result = fedassay.simulate(
        [0, 1] * 50, np.linspace(0.0, 1.0, 100), clients=[i // 10 for i in range(100)], seed=1,
        privacy="distributed", epsilon=1, unit="client", max_examples=4,
    )  # fmt: skip
    assert (
        "Counted 40 of these rows, and left out 60 %: at most 4 of each client" in result.headline
    )


def test_rooms_are_modules_of_the_package() -> None:
    assert fedassay.__getattr__("ledger").__name__ == "fedassay.ledger"
    with pytest.raises(AttributeError, match="has no attribute 'legder'"):
        fedassay.__getattr__("legder")
