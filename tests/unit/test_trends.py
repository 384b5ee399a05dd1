"""The trend of a history, against another way to fit a line."""

from math import log

import numpy as np
import pytest

from fedassay.estimate import NotEnoughData
from fedassay.tracking.history import History
from fedassay.tracking.trends import trend, years_of
from tests.surveys import counted

MONTHS = ("2026-01", "2026-02", "2026-04", "2026-07")


def look(positives: int) -> list[list[int]]:
    return [[1000 - positives, 0], [0, positives]]


def history(positives: list[int]) -> History:
    return History(
        {time: counted(look(each)) for time, each in zip(MONTHS, positives, strict=True)}
    )


def logits(shares: np.ndarray) -> np.ndarray:
    return np.array([log(share / (1.0 - share)) for share in shares])


def test_a_trend_is_the_line_of_weighted_least_squares() -> None:
    positives = [300, 310, 295, 330]
    shares = np.array(positives) / 1000
    days = np.array([0, 31, 90, 181]) / 365.25
    # The variance of a share's logit is 1 / (n p (1 - p)).
    weights = np.sqrt(1000 * shares * (1.0 - shares))
    (slope, level), covariance = np.polyfit(days, logits(shares), 1, w=weights, cov="unscaled")
    middle = 1.0 / (1.0 + np.exp(-(np.average(logits(shares), weights=weights**2))))
    found = trend(history(positives), "prevalence")
    assert found.value == pytest.approx(slope * middle * (1.0 - middle), rel=1e-3)
    left = weights * (logits(shares) - level - slope * days)
    more = max(float((left**2).sum()) / 2.0, 1.0)
    error = np.sqrt(covariance[0, 0] * more) * middle * (1.0 - middle)
    assert found.sampling_sd == pytest.approx(error, rel=1e-3)


def test_looks_that_lie_off_the_line_widen_its_interval() -> None:
    steady, wild = (history(each) for each in ([300, 300, 301, 301], [300, 400, 220, 390]))
    assert trend(wild, "prevalence").sampling_sd > 3.0 * trend(steady, "prevalence").sampling_sd


def test_two_looks_are_no_trend() -> None:
    two = History(dict(list(history([300, 310, 320, 330]).looks.items())[:2]))
    found = trend(two, "prevalence")
    assert isinstance(found, NotEnoughData)
    assert "a trend needs 3 looks that have the figure; found 2" in found.reason


def test_months_are_as_long_as_the_calendar_has_them() -> None:
    assert (years_of(["2026-02", "2026-03"]) * 365.25).tolist() == pytest.approx([0.0, 28.0])
    assert (years_of(["2026-02-27", "2026-03-01"]) * 365.25).tolist() == pytest.approx([0.0, 2.0])
