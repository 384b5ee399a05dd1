"""How far noise takes a slope and an intercept, where a curve is steep and where it is not."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from fedassay.estimate import Estimate
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics import calibration_intercept, calibration_slope
from fedassay.noise import DenseNoise

TRIALS = 300
FALSE_ALARMS = 1e-6


def _table(slope: float, noise_sd: float, draws: int) -> tuple[ScoreHistogram, list[FloatArray]]:
    """Narrow buckets of log-odds with 400 rows each, labels by a line through 0; noisy counts."""
    odds = np.linspace(-6.0, 6.0, 41)
    edges = np.concatenate([[0.0], 1.0 / (1.0 + np.exp(-odds)), [1.0]])
    middle = np.concatenate([[-6.1], 0.5 * (odds[1:] + odds[:-1]), [6.1]])
    rate = 1.0 / (1.0 + np.exp(-slope * middle))
    rows = np.where(np.abs(middle) < 6.0, 400.0, 0.0)
    counts = rows * np.stack([1.0 - rate, rate])
    noise = DenseNoise(noise_sd**2 * np.eye(counts.size))
    generator = np.random.default_rng(11)
    noisy = [counts + generator.normal(0.0, noise_sd, counts.shape) for _ in range(draws)]
    return ScoreHistogram(edges, counts, noise), noisy


def _held(estimates: list[Estimate], truth: float) -> int:
    ends = [each.interval(population=False) for each in estimates]
    return sum(low <= truth <= high for low, high in ends)


def test_noise_that_bends_a_slope_is_in_its_interval() -> None:
    plain, noisy = _table(2.5, 40.0, TRIALS)
    truth = calibration_slope(ScoreHistogram(plain.edges, plain.counts)).value
    read = [calibration_slope(ScoreHistogram(plain.edges, each, plain.noise)) for each in noisy]
    answers = [each for each in read if each.is_available]
    assert len(answers) >= 0.5 * TRIALS
    assert _held(answers, truth) >= binom.ppf(FALSE_ALARMS, len(answers), 0.93)


@pytest.mark.parametrize("figure", [calibration_slope, calibration_intercept])
def test_where_a_curve_hardly_bends_noise_is_that_of_first_order(
    figure: Callable[[ScoreHistogram], Estimate],
) -> None:
    plain, noisy = _table(0.8, 4.0, TRIALS)
    read = [figure(ScoreHistogram(plain.edges, each, plain.noise)) for each in noisy]
    spread = np.std([each.value for each in read])
    # Of 300 draws a standard deviation is right to 4 %; six times that is rarer than 1 in 10^6.
    assert np.median([each.noise_sd for each in read]) == pytest.approx(spread, rel=0.25)
