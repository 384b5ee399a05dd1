"""Calibrators of many classes give probabilities, and less calibration error."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fedassay.calibration.calibrator import Calibrator, Method
from fedassay.classes.held_out_rows import calibration_figures, held_out_classes
from fedassay.classes.multi_calibrators import (
    ClassCalibrator,
    ClassMethod,
    calibrate_cohort,
    calibration_survey,
)
from fedassay.classes.tallies import ClassCohort
from fedassay.mechanisms import Privacy, Unit, UnitKind
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from tests.class_rows import drawn_rows

ROWS = drawn_rows(16_000, (3.0, 2.0, 1.0), sharpness=2.0)
SECURE = SurveyRequest(clients=len(ROWS), smallest_cell=0)


@pytest.mark.parametrize("method", ClassMethod)
def test_a_calibrator_gives_probabilities_with_less_error(method: ClassMethod) -> None:
    (tested,) = held_out_classes(SECURE, ClassCohort.of(ROWS), seed=0, methods=[method])
    assert tested.after["ece/classwise"] < 0.25 * tested.before["ece/classwise"]
    assert tested.after["log_loss"] < tested.before["log_loss"]
    told = tested.calibrator.predict_proba(ROWS.scores[:100])
    assert told.sum(axis=1) == pytest.approx(np.ones(100))
    assert (told >= 0.0).all()


def test_vector_scaling_of_a_class_is_platts_sigmoid_against_the_rest() -> None:
    made = calibrate_cohort(
        SECURE, ClassCohort.of(ROWS), ClassMethod.VECTOR, randomness=SimulatedRandomness(0)
    )
    scores = np.clip(ROWS.scores[:, 1], 1e-9, 1 - 1e-9)
    odds = np.log(scores / (1 - scores))[:, None]
    platt = LogisticRegression(C=1e9).fit(odds, ROWS.labels == 1)
    wanted = platt.predict_proba(odds)[:, 1]
    assert made.maps[1].predict(ROWS.scores[:, 1]) == pytest.approx(wanted, abs=0.01)


def test_a_row_whose_maps_all_give_nothing_keeps_its_probabilities() -> None:
    nothing = Calibrator(Method.ISOTONIC, np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    made = ClassCalibrator(("a", "b", "c"), ClassMethod.FEDBBQ, (nothing,) * 3)
    assert made.predict_proba([[0.5, 0.3, 0.2]]).tolist() == [[0.5, 0.3, 0.2]]


@pytest.mark.parametrize("method", ClassMethod)
@pytest.mark.parametrize("privacy", [Privacy.DISTRIBUTED, Privacy.LOCAL])
def test_a_method_spends_exactly_epsilon_on_a_client(method: ClassMethod, privacy: Privacy) -> None:
    unit = Unit(UnitKind.CLIENT, 4)
    request = SurveyRequest(
        privacy=privacy, epsilon=Fraction(2), clients=5000, unit=unit, dropouts=Fraction(0)
    )
    survey = calibration_survey(request, ROWS.names, method)
    assert survey.epsilon == 2
    assert survey.guarantee.unit == unit


def test_a_class_that_noise_hides_keeps_its_probabilities_and_is_named() -> None:
    rows = drawn_rows(3000, (5.0, 3.0, 0.02))
    request = SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(2), clients=3000, dropouts=Fraction(0)
    )
    made = calibrate_cohort(
        request, ClassCohort.of(rows), ClassMethod.FEDBBQ, randomness=SimulatedRandomness(0)
    )
    assert made.reason.startswith("left as they are: ")
    assert made.maps[2].method is Method.NONE


def test_figures_after_calibration_are_those_of_the_predictions() -> None:
    found = calibration_figures(ROWS, np.full((len(ROWS), 3), 1 / 3))
    assert found["log_loss"] == pytest.approx(np.log(3))
    assert found["brier"] == pytest.approx(2 / 3)
