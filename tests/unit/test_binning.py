"""Binning: rates of buckets, by hand."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.calibration import fit_binning

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


def test_a_bucket_answers_with_its_rate_and_one_without_a_size_with_its_middle() -> None:
    counts = np.array([[80.0, 30.0, -2.0, 10.0], [20.0, 10.0, 1.0, 90.0]])
    histogram = ScoreHistogram(QUARTERS, counts)
    calibrator = fit_binning(histogram, buckets=4, noise_aware=False)
    assert calibrator.predict([0.1, 0.3, 0.6, 0.9]) == pytest.approx([0.2, 0.25, 0.625, 0.9])


def test_rates_outside_0_and_1_are_cut_off() -> None:
    counts = np.array([[120.0, 50.0, 50.0, -3.0], [-5.0, 50.0, 50.0, 100.0]])
    calibrator = fit_binning(ScoreHistogram(QUARTERS, counts), buckets=4, noise_aware=False)
    assert calibrator.predict([0.1, 0.3, 0.9]).tolist() == [0.0, 0.5, 1.0]


def test_empty_buckets_join_the_next_one() -> None:
    counts = np.array([[0.0, 30.0, 0.0, 10.0], [0.0, 10.0, 0.0, 90.0]])
    calibrator = fit_binning(ScoreHistogram(QUARTERS, counts), buckets=4)
    assert calibrator.edges.tolist() == [0.0, 0.5, 1.0]
    assert calibrator.values.tolist() == [0.25, 0.9]
