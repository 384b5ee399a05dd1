"""One word of each row finds the temperature that its log loss asks for."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from fedassay.classes.multi_calibrators import ClassMethod, calibration_survey, fit_classes
from fedassay.classes.rows import ClassRows
from fedassay.classes.tallies import ClassCohort, tally_parts
from fedassay.classes.temperature import (
    SHARPNESSES,
    fitted_sharpness,
    loss_slopes,
    mean_slopes,
    rounded_slopes,
    softened,
    temperature_grid,
)
from fedassay.histogram import ScoreHistogram
from fedassay.mechanisms import Privacy
from fedassay.noise import DenseNoise
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from tests.class_rows import drawn_rows

ROWS = drawn_rows(40_000, (3.0, 2.0, 1.0), sharpness=1.7)


def best_sharpness(rows: ClassRows) -> float:
    logs = np.log(np.maximum(rows.scores, 1e-6))

    def loss(sharpness: float) -> float:
        told = softmax(sharpness * logs, axis=1)
        return float(-np.log(told[np.arange(len(rows)), rows.labels]).mean())

    return float(minimize_scalar(loss, bounds=(0.2, 4.0), method="bounded").x)


def test_softened_probabilities_are_a_softmax_of_logarithms() -> None:
    wanted = softmax(0.6 * np.log(ROWS.scores[:50]), axis=1)
    assert softened(ROWS.scores[:50], 0.6) == pytest.approx(wanted, abs=1e-6)


def test_slopes_are_derivatives_of_the_log_loss() -> None:
    few = ROWS.rows(np.arange(50))
    for sharpness in (0.5, 1.0, 2.0):
        at = [
            -np.log(softened(few.scores, sharpness + step)[np.arange(50), few.labels])
            for step in (1e-5, -1e-5)
        ]
        found = loss_slopes(few.scores, few.labels, np.full(50, sharpness))
        assert found == pytest.approx((at[0] - at[1]) / 2e-5, abs=1e-4)


def test_a_row_is_one_example_and_its_word_is_right_on_average() -> None:
    words = rounded_slopes(ROWS, randomness=SimulatedRandomness(0))
    counts = temperature_grid().count(words)
    assert counts.sum() == len(ROWS)
    means, sds = mean_slopes(ScoreHistogram(temperature_grid().edges, counts.astype(np.float64)))
    for place, sharpness in enumerate(SHARPNESSES):
        slopes = loss_slopes(ROWS.scores, ROWS.labels, np.full(len(ROWS), sharpness))
        wanted = np.clip(slopes, -4.0, 4.0).mean()
        assert abs(means[place] - wanted) < 5.5 * sds[place]
        assert 0.01 < sds[place] < 0.06


@pytest.mark.parametrize(
    ("privacy", "epsilon", "within"),
    [(Privacy.SECURE, None, 0.05), (Privacy.DISTRIBUTED, 1, 0.05), (Privacy.LOCAL, 4, 0.15)],
)
def test_the_temperature_is_that_of_the_least_log_loss(
    privacy: Privacy, epsilon: int | None, within: float
) -> None:
    request = SurveyRequest(
        privacy=privacy,
        epsilon=None if epsilon is None else Fraction(epsilon),
        clients=len(ROWS),
        dropouts=Fraction(0),
    )
    survey = calibration_survey(request, ROWS.names, ClassMethod.FEDTEMP)
    assert survey.epsilon == (None if epsilon is None else Fraction(epsilon))
    tallies = tally_parts(survey, ClassCohort.of(ROWS), randomness=SimulatedRandomness(1))
    made = fit_classes(survey, tallies, ClassMethod.FEDTEMP)
    assert made.sharpness == pytest.approx(best_sharpness(ROWS), rel=within)


def test_slopes_that_drown_in_noise_leave_probabilities_alone() -> None:
    grid = temperature_grid()
    counts = grid.count(rounded_slopes(ROWS, randomness=SimulatedRandomness(0)))
    noise = DenseNoise(np.eye(2 * grid.cells) * 1e10)
    noisy = ScoreHistogram(grid.edges, counts.astype(np.float64), noise)
    sharpness, reason = fitted_sharpness(noisy)
    assert sharpness == 1.0
    assert "left as they are" in reason


def test_a_temperature_that_noise_may_have_made_is_taken_back() -> None:
    grid = temperature_grid()
    counts = grid.count(rounded_slopes(ROWS, randomness=SimulatedRandomness(0))).astype(np.float64)
    clear = fitted_sharpness(ScoreHistogram(grid.edges, counts))[0]
    assert clear < 0.7
    # Noise of 600 on counts of some 1,000: ends still stand clear, and the crossing does not.
    generator = np.random.default_rng(2)
    found = []
    for _ in range(40):
        noisy = counts + 600.0 * generator.standard_normal(counts.shape)
        noise = DenseNoise(np.eye(2 * grid.cells) * 600.0**2)
        found.append(fitted_sharpness(ScoreHistogram(grid.edges, noisy, noise))[0])
    off = np.abs(np.log(found))
    assert np.median(off) < 0.5 * abs(np.log(clear))
