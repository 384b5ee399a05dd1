"""A smooth curve's counts at the cuts of a second survey, held against its counters."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.metrics import flagged
from fedassay.metrics.beside_counters import Reading, beside_counters
from fedassay.metrics.confusion import confusion
from fedassay.noise import DenseNoise

TRUTH = np.array([800.0, 300.0])
COUNTERS = np.array([[400.0, 60.0], [60.0, 500.0]])
CURVE = np.array([[150.0, 30.0], [30.0, 120.0]])
DRAWS = 4_000


def readings(bias: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """A curve with all that counters know, and so much off; and the counters."""
    generator = np.random.default_rng(11)
    curves = generator.multivariate_normal(TRUTH, CURVE, DRAWS)
    counters = curves + generator.multivariate_normal(np.zeros(2), COUNTERS - CURVE, DRAWS)
    return list(zip(curves + bias, counters, strict=True))


def joined(bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors and standard deviations of what both say together, draw x count."""
    found = [
        beside_counters(Reading(curve, CURVE), Reading(counters, COUNTERS))
        for curve, counters in readings(bias)
    ]
    errors = np.array([each.counts - TRUTH for each in found])
    return errors, np.sqrt([np.diag(each.noise) for each in found])


def test_a_curve_that_is_right_is_nearly_as_good_as_alone() -> None:
    errors, sds = joined(np.zeros(2))
    assert (errors.std(axis=0) < 1.12 * np.sqrt(np.diag(CURVE))).all()
    assert (np.abs(errors) < 1.96 * sds).mean() > 0.93


@pytest.mark.parametrize("bias", [(50.0, 0.0), (0.0, -60.0), (90.0, 90.0), (200.0, 200.0)])
def test_a_curve_that_is_wrong_does_little_harm(bias: tuple[float, float]) -> None:
    alone = [
        (np.abs(curve - TRUTH) < 1.96 * np.sqrt(np.diag(CURVE)))
        for curve, _ in readings(np.array(bias))
    ]
    errors, sds = joined(np.array(bias))
    held = (np.abs(errors) < 1.96 * sds).mean(axis=0)
    assert np.mean(alone, axis=0).min() < 0.1
    assert held.min() > 0.75
    assert (np.sqrt((errors**2).mean(axis=0)) < 1.7 * np.sqrt(np.diag(COUNTERS))).all()


def test_a_curve_that_claims_no_less_noise_says_nothing() -> None:
    counters = Reading(TRUTH, COUNTERS)
    found = beside_counters(Reading(TRUTH + 5.0, 1.5 * COUNTERS), counters)
    assert found.counts.tolist() == TRUTH.tolist()
    assert found.noise.tolist() == COUNTERS.tolist()


def test_a_number_of_all_that_is_known_stays_and_is_no_direction() -> None:
    apart = np.array([[1.0, -1.0], [-1.0, 1.0]])
    counters = Reading(np.array([800.0, 200.0]), 400.0 * apart)
    found = beside_counters(Reading(np.array([770.0, 230.0]), 100.0 * apart), counters)
    # 30 are as far as chance takes a curve that errs by 10 from counters that err by 20.
    assert found.counts.tolist() == pytest.approx([774.0, 226.0], abs=1.0)
    assert found.noise.sum() == pytest.approx(0.0, abs=1e-6)


def smoothed(counts: np.ndarray, counted: np.ndarray) -> ScoreHistogram:
    """Four leaves, two cells: a curve that is sure of itself, and counters."""
    edges = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    counters = ScoreHistogram(edges[::2].copy(), counted, DenseNoise(900.0 * np.eye(4)))
    noise = DenseNoise(25.0 * np.eye(8), is_smoothed=True)
    return ScoreHistogram(edges, counts, noise, cells=np.array([0, 2, 4]), counted=counters)


def test_at_a_cut_counters_outvote_a_curve_that_they_contradict() -> None:
    curve = np.array([[4000.0, 3000.0, 1500.0, 500.0], [200.0, 300.0, 400.0, 600.0]])
    counters = np.array([[6500.0, 2500.0], [500.0, 500.0]])
    histogram = smoothed(curve, counters)
    # 3,000 are above 0.5 by the counters as by the curve; of the positives half as many.
    tp, fp, fn, tn = confusion(histogram, 0.5).counts
    assert abs(tp - 500.0) < 20.0
    assert abs(fp - 2500.0) < 20.0
    # What the curve had too many of above is not below instead.
    assert abs(fn - 500.0) < 20.0
    assert abs(tn - 6500.0) < 20.0
    assert 37.0 < confusion(histogram, 0.5).noise_sd((1.0, 1.0, 0.0, 0.0)) < 1.01 * 30 * 2**0.5


def test_between_cuts_a_curve_is_read_alone() -> None:
    curve = np.array([[4000.0, 3000.0, 1500.0, 500.0], [200.0, 300.0, 400.0, 600.0]])
    histogram = smoothed(curve, np.array([[6500.0, 2500.0], [500.0, 500.0]]))
    assert flagged(histogram, 0.75).value == pytest.approx(1000 * 1100 / 10500)
