"""Assessments side by side, of rows whose figures are known."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import fedassay
from fedassay.comparison.side_by_side import compare
from fedassay.errors import SettingInvalid
from tests.surveys import counted

GENERATOR = np.random.default_rng(3)
LABELS = np.arange(6000) % 2
WEAK = np.clip(0.5 + 0.1 * (LABELS - 0.5) + 0.2 * GENERATOR.standard_normal(6000), 0.0, 1.0)
STRONG = np.clip(0.5 + 0.3 * (LABELS - 0.5) + 0.2 * GENERATOR.standard_normal(6000), 0.0, 1.0)


@pytest.fixture(scope="module")
def assessments() -> dict[str, fedassay.Assessment]:
    return {
        name: fedassay.simulate(LABELS, scores, seed=0, smallest_cell=0)
        for name, scores in {"old": WEAK, "new": STRONG, "again": WEAK[::-1]}.items()
    }


def test_differences_are_those_of_the_rows(assessments: dict[str, fedassay.Assessment]) -> None:
    difference = compare(assessments).differences("new")["roc_auc"]
    expected = roc_auc_score(LABELS, STRONG) - roc_auc_score(LABELS, WEAK)
    assert difference.value == pytest.approx(expected, abs=1e-4)
    assert difference.told_apart()


def test_only_metrics_that_all_have_are_compared(
    assessments: dict[str, fedassay.Assessment],
) -> None:
    other = fedassay.simulate(LABELS, WEAK, thresholds=(0.3,), seed=0, smallest_cell=0)
    comparison = compare({"old": assessments["old"], "other": other})
    assert "roc_auc" in comparison.metrics
    assert not [name for name in comparison.metrics if name.endswith(("@0.5", "@0.3"))]
    asked = compare({"old": assessments["old"], "other": other}, metrics=["recall@0.3"])
    assert asked.metrics == ("recall@0.3",)


def test_what_cannot_be_told_apart_says_how_many_it_would_take(
    assessments: dict[str, fedassay.Assessment],
) -> None:
    nearly = np.clip(WEAK + 0.002 * (LABELS - 0.5), 0.0, 1.0)
    pair = {
        "old": assessments["old"],
        "nearly": fedassay.simulate(LABELS, nearly, seed=0, smallest_cell=0),
    }
    comparison = compare(pair, metrics=["roc_auc"])
    told = comparison.verdict("nearly", "roc_auc")
    assert told.startswith("nearly and old cannot be told apart in roc_auc: they differ by 0.00")
    difference = comparison.differences("nearly")["roc_auc"]
    half = (difference.interval().high - difference.interval().low) / 2.0
    expected = 6000 * (half / difference.value) ** 2
    needed = float(told.partition("; ")[2].split()[0].replace(",", ""))
    assert needed == pytest.approx(expected, rel=0.05)


def test_json_holds_what_the_table_says(assessments: dict[str, fedassay.Assessment]) -> None:
    comparison = compare(assessments, metrics=["roc_auc", "brier"])
    content = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    told = content["differences"]["new"]["roc_auc"]
    assert told["low"] < told["value"] < told["high"]
    assert told["told_apart"] is True
    assert told["p_value"] < 1e-6
    assert f"{told['value']:.4f} *" in str(comparison)
    assert "told apart" in comparison._repr_html_()


def test_a_comparison_of_one_of_strangers_and_of_nothing_is_refused(
    assessments: dict[str, fedassay.Assessment],
) -> None:
    with pytest.raises(SettingInvalid, match="takes 2 to 50 assessments; found 1"):
        compare({"old": assessments["old"]})
    with pytest.raises(SettingInvalid, match="an assessment must be an Assessment"):
        compare({"old": assessments["old"], "new": 0.8})  # type: ignore[dict-item]  # what a user may pass
    with pytest.raises(SettingInvalid, match="needs a metric; found none"):
        compare(assessments, metrics=[])
    with pytest.raises(SettingInvalid, match="what is compared is one of new, again"):
        compare(assessments).differences("old")


def test_a_figure_that_one_of_them_lacks_is_neither_more_nor_less() -> None:
    both, one_class = counted([[3, 2], [2, 3]]), counted([[3, 2], [0, 0]])
    comparison = compare({"old": both, "new": one_class}, metrics=["roc_auc"])
    verdict = comparison.verdict("new", "roc_auc")
    assert verdict.startswith("new and old cannot be compared in roc_auc: ")
    assert [row[1:] for row in comparison.rows()][1] == ["new", "-", "-", "not enough data"]
