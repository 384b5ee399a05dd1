"""Requirements as people write them."""

import pytest

from fedassay.comparison.requirement import Requirement
from fedassay.errors import SettingInvalid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("roc_auc >= 0.80", Requirement("roc_auc", 0.8)),
        ("roc_auc>.8", Requirement("roc_auc", 0.8)),
        ("  brier <= 1e-1 ", Requirement("brier", 0.1, at_least=False)),
        ("precision@0.50 ≥ 0.7", Requirement("precision@0.5", 0.7)),
        ("recall@specificity=0.9 >= 0.6", Requirement("recall@specificity=0.9", 0.6)),
        ("calibration_in_the_large < -0.1", Requirement("calibration_in_the_large", -0.1, False)),
    ],
)
def test_a_requirement_is_read_as_it_is_meant(text: str, expected: Requirement) -> None:
    assert Requirement.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "roc_auc",
        "roc_auc = 0.8",
        "roc_auc >= high",
        "0.8 <= roc_auc",
        "roc_auc >= 0.8 >= 1",
        "roc_auc >= nan",
        "x" * 300 + " >= 1",
    ],
)
def test_what_is_no_requirement_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingInvalid, match=r"found|NaN"):
        Requirement.parse(text)


def test_an_unknown_metric_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingInvalid, match="a metric is one of roc_auc"):
        Requirement.parse("auroc >= 0.8")
