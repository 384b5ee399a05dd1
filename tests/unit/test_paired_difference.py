"""A difference of two models' figures where an error, or a figure, is nothing."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.paired.dependence import Axis, Dependence
from fedassay.paired.difference import PairedDifference, refined
from fedassay.paired.reclassification import Reclassification


@pytest.mark.parametrize(("second", "p_value"), [(0.7, 1.0), (0.6, 0.0)])
def test_without_any_error_two_figures_are_equal_or_they_are_not(
    second: float, p_value: float
) -> None:
    difference = PairedDifference(Estimate(0.7), Estimate(second))
    assert difference.p_value == p_value
    assert difference.interval() == (0.7 - second, 0.7 - second)


def test_the_reason_is_that_of_the_model_that_lacks_the_figure() -> None:
    lacking = NotEnoughData(reason="too few")
    assert PairedDifference(Estimate(0.7), lacking).reason == "too few"
    assert PairedDifference(Estimate(0.7), Estimate(0.6)).reason == ""


def test_buckets_that_are_fine_or_lumpy_are_read_as_they_are() -> None:
    fine = ScoreHistogram(np.arange(5001) / 5000, np.ones((2, 5000)))
    lumpy = ScoreHistogram(np.arange(5) / 4, np.ones((2, 4)), smooth=False)
    assert refined(fine) is fine
    assert refined(lumpy) is lumpy
    coarse = refined(ScoreHistogram(np.arange(5) / 4, np.ones((2, 4))))
    assert coarse.buckets > 4
    assert coarse.counts.sum(axis=1) == pytest.approx([4.0, 4.0])


def test_joint_counts_that_noise_took_below_nothing_tell_nothing() -> None:
    axis = Axis.of(np.array([3.0, 5.0]), np.array([0, 1]))
    assert Dependence.of(axis, axis, np.array([[1.0, -2.0], [-1.0, 1.0]])).rho == 0.0
    assert Dependence.of(axis, axis, np.array([[3.0, 0.0], [0.0, 5.0]])).rho > 0.9


def test_a_table_that_is_not_there_has_no_rows() -> None:
    assert Reclassification(threshold=0.33, counts=None).rows() == []
