"""Requests that cannot be kept are refused, and shared noise is sized for those that come."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedassay import Privacy, SurveyRequest
from fedassay.errors import SettingInvalid
from fedassay.planning.open_settings import check_request
from fedassay.planning.request import Preset

DISTRIBUTED: dict[str, Any] = {"privacy": Privacy.DISTRIBUTED, "epsilon": Fraction(1)}
LOCAL: dict[str, Any] = {"privacy": Privacy.LOCAL, "epsilon": Fraction(1)}
SITE: dict[str, Any] = {"privacy": Privacy.SITE, "epsilon": Fraction(1)}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"clients": 10, "height": 0}, "height"),
        ({"clients": 10, "height": 21}, "height"),
        ({"clients": 10, "height": 2, "fanout": 1}, "fan-out"),
        ({"clients": 10, "fanout": 4}, "needs a height"),
        ({"clients": 10, "dropouts": Fraction(1)}, "dropouts"),
        ({"clients": 10, "dropouts": Fraction(-1, 10)}, "dropouts"),
        ({"clients": 10, "preset": Preset.PAPER, "reference": np.array([0.1, 0.9])}, "uniform"),
        ({"minimum_reports": 0}, "minimum_reports"),
        ({"clients": 0}, "clients"),
        ({"clients": 10, "examples": 0}, "examples"),
        ({"clients": 10, "positive_rate": 0.0}, "positive rate"),
        ({"clients": 10, "positive_rate": 1.0}, "positive rate"),
        ({"clients": 10, "auc": 0.5}, "AUC"),
        ({"clients": 10, "buckets": 0}, "buckets"),
        ({"clients": 10, "thresholds": (0.5, 1.5)}, "threshold"),
        ({"clients": 10, "epsilon": Fraction(1)}, "exact sums spend no epsilon"),
        ({"clients": 10, "privacy": Privacy.LOCAL}, "needs an epsilon"),
        ({"clients": 10, "colluders": 1, **LOCAL}, "colluders do not go"),
        (DISTRIBUTED, "neither minimum_reports nor"),
        ({"clients": 1, **DISTRIBUTED}, "at least 2"),
        ({"clients": 10, "minimum_reports": 1, **DISTRIBUTED}, "at least 2"),
        ({"clients": 10, "colluders": 10, **DISTRIBUTED}, "colluders must be fewer"),
        ({"clients": 10, "minimum_reports": 5, "colluders": 5, **DISTRIBUTED}, "must be fewer"),
        ({"clients": 10, "minimum_reports": 11, **DISTRIBUTED}, "must not exceed"),
        ({"clients": 10, "sum_only": True}, "sum_only goes with site privacy"),
        ({"clients": 10, "allow_empty": True, **SITE}, "allow_empty does not go with it"),
        ({"clients": 10, "smallest_cell": 10, **LOCAL}, "a smallest cell is for exact sums"),
        ({"clients": 10, "smallest_cell": 10, "height": 2}, "a height does not go with it"),
        ({"clients": 10, "preset": Preset.PAPER, "smallest_cell": 9}, "the paper preset does not"),
    ],
)
def test_a_request_that_cannot_be_kept_is_refused(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingInvalid, match=words):
        check_request(SurveyRequest(**request_))


@pytest.mark.parametrize(
    "request_",
    [
        {"clients": 1, "height": 20, "fanout": 2, "smallest_cell": 0},
        {"clients": 1, "dropouts": Fraction(99, 100)},
        {"smallest_cell": 2**20},
        {"smallest_cell": 1, **DISTRIBUTED, "clients": 2},
        {"clients": 2, **DISTRIBUTED},
        {"clients": 10, "minimum_reports": 10, "colluders": 9, **DISTRIBUTED},
        {"clients": 1, **LOCAL},
        {"clients": 10, "thresholds": (0.0, 1.0), "buckets": 1},
    ],
)
def test_requests_at_the_very_limits_are_kept(request_: dict[str, Any]) -> None:
    check_request(SurveyRequest(**request_))


@pytest.mark.parametrize(
    ("request_", "fewest"),
    [
        ({"clients": 1000}, 900),
        ({"clients": 15}, 13),
        ({"clients": 1000, "dropouts": Fraction(0)}, 1000),
        ({"clients": 1000, "minimum_reports": 500}, 500),
        # Those who tell each other's noise do not hide anybody: one more is needed.
        ({"clients": 100, "dropouts": Fraction(1, 2), "colluders": 70}, 71),
        ({"clients": 2, "dropouts": Fraction(1, 2)}, 2),
    ],
)
def test_shared_noise_is_sized_for_the_fewest_that_may_come(
    request_: dict[str, Any], fewest: int
) -> None:
    assert SurveyRequest(**request_).fewest_reports == fewest
