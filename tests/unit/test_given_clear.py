"""Ratios that answer only where noise left a divisor large: what holds of those that answer."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, norm

from fedassay import Estimate, ScoreHistogram
from fedassay.estimate import NotEnoughData
from fedassay.metrics import lr_plus, oe_ratio, precision
from fedassay.metrics.given_clear import reach_given_clear
from fedassay.noise import DenseNoise

BAR = 4.0
EDGES = np.array([0.0, 0.5, 1.0])
# Per label and bucket. 600 negatives above the threshold are 2.5 deviations of their noise.
COUNTS = np.array([[50000.0, 600.0], [3000.0, 9000.0]])
SD = 240.0
SURVEYS = 3_000
FALSE_ALARMS = 1e-6


@pytest.mark.parametrize("size", [1.8, 2.5, 3.0, 4.0, 6.0, 9.0])
def test_of_divisors_that_come_out_clear_the_end_holds_in_95_of_100(size: float) -> None:
    """By the exact law: of all that come out at `BAR` or more, as normal noise has it."""
    at = np.linspace(BAR, size + 9.0, 20_001)
    density = norm.pdf(at - size)
    held = np.array([size >= x - reach_given_clear(float(x), BAR) for x in at])
    share = float((density * held).sum() / density.sum())
    assert 0.95 - 1e-3 < share < 0.975 + 1e-3


def test_far_from_the_bar_it_is_the_usual_end() -> None:
    assert reach_given_clear(20.0, BAR) == pytest.approx(norm.isf(0.025))


def surveys(counts: np.ndarray, sds: np.ndarray) -> list[ScoreHistogram]:
    noise = DenseNoise(np.diag(sds.ravel() ** 2))
    drawn = np.random.default_rng(3).normal(counts, sds, (SURVEYS, *counts.shape))
    return [ScoreHistogram(EDGES.copy(), each, noise) for each in drawn]


def fewest(answers: int) -> int:
    """That 93 % hold is refuted below this, but for the stated chance."""
    return int(binom.ppf(FALSE_ALARMS, answers, 0.93))


@pytest.mark.parametrize(
    ("figure", "counts", "truth"),
    [
        (lr_plus, COUNTS, (9000 / 12000) / (600 / 50600)),
        (precision, np.array([[50000.0, 400.0], [3000.0, 450.0]]), 450 / 850),
    ],
    ids=["lr_plus", "precision"],
)
def test_ratios_that_answer_hold_the_rows_value(
    figure: Callable[[ScoreHistogram, float], Estimate], counts: np.ndarray, truth: float
) -> None:
    found = [figure(each, 0.5) for each in surveys(counts, np.full((2, 2), SD))]
    there = [each for each in found if not isinstance(each, NotEnoughData)]
    held = sum(truth in each.interval(population=False) for each in there)
    assert 100 < len(there) < SURVEYS / 5
    assert held >= fewest(len(there))


def test_observed_over_expected_that_answers_holds_the_rows_value() -> None:
    """Expected positives are of those above 0.5 alone: the others lie at 0."""
    edges = np.array([0.0, 1e-9, 0.999999, 1.0])
    counts = np.array([[50000.0, 0.0, 200.0], [3000.0, 0.0, 400.0]])
    sds = np.array([[SD, 0.0, 170.0], [SD, 0.0, 170.0]])
    noise = DenseNoise(np.diag(sds.ravel() ** 2))
    drawn = np.random.default_rng(5).normal(counts, sds, (SURVEYS, 2, 3))
    found = [oe_ratio(ScoreHistogram(edges.copy(), each, noise)) for each in drawn]
    there = [each for each in found if not isinstance(each, NotEnoughData)]
    held = sum(3400 / 600 in each.interval(population=False) for each in there)
    assert 100 < len(there) < SURVEYS / 5
    assert held >= fewest(len(there))
