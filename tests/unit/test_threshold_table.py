"""What the page's script computes from the counts in it is what the library gives."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from fedassay import Estimate, ScoreHistogram, metrics
from fedassay.examples import FloatArray
from fedassay.report.threshold_table import offered_thresholds, threshold_table
from tests.node import SCRIPTS, run_node
from tests.pages import KINDS, assessment

MOST_WANTED = 200

EXACT = 1e-9
Metric = Callable[[ScoreHistogram, float], Estimate]


def count(name: str) -> Metric:
    return lambda histogram, threshold: metrics.confusion_counts(histogram, threshold)[name]


LIBRARY: dict[str, Metric] = {
    "recall": metrics.recall,
    "specificity": metrics.specificity,
    "precision": metrics.precision,
    "npv": metrics.npv,
    "f1": metrics.f1,
    "accuracy": metrics.accuracy,
    "net_benefit": metrics.net_benefit,
    "over_all": metrics.net_benefit_over_all,
    "all": metrics.net_benefit_of_all,
    "flagged": metrics.flagged,
    **{name: count(name) for name in ("tp", "fp", "fn", "tn")},
}


def computed(content: dict[str, Any]) -> list[dict[str, dict[str, Any]]]:
    """The script's figures at every threshold of a data block."""
    script = files("fedassay.report") / "metrics.js"
    done = run_node(SCRIPTS / "page_figures.mjs", script, given=json.dumps(content))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, dict[str, Any]]] = json.loads(done.stdout)
    return found


@cache
def of_script(privacy: str, *, crowded: bool) -> list[tuple[float, dict[str, dict[str, Any]]]]:
    result = assessment(privacy, crowded=crowded)
    table = threshold_table(result.histogram(), result.thresholds)
    pairs = list(zip(table.thresholds, computed(table.to_json()), strict=True))
    places = np.linspace(0, len(pairs) - 1, 50).round().astype(int)
    return [pairs[place] for place in places]


def compared(
    histogram: ScoreHistogram, found_at: Iterable[tuple[float, dict[str, dict[str, Any]]]]
) -> int:
    """How many figures the script has, all of them as the library has them."""
    available = 0
    for threshold, figures in found_at:
        assert set(figures) == set(LIBRARY)
        for name, metric in LIBRARY.items():
            expected, found = metric(histogram, threshold), figures[name]
            assert (found["value"] is not None) == expected.is_available, (name, threshold)
            if not expected.is_available:
                continue
            available += 1
            wanted = (expected.value, *expected.interval())
            near = EXACT * max(1.0, *map(abs, wanted))
            for end, value in zip(("value", "low", "high"), wanted, strict=True):
                assert found[end] == pytest.approx(value, abs=near, rel=0.0), (name, threshold)
    return available


@pytest.mark.parametrize(("privacy", "crowded"), KINDS)
def test_the_script_gives_the_librarys_values_and_intervals(privacy: str, crowded: bool) -> None:
    histogram = assessment(privacy, crowded=crowded).histogram()
    assert compared(histogram, of_script(privacy, crowded=crowded)) > 200


COARSE = {
    "a third of the scale": (
        np.arange(7) / 6,
        [[34, 101, 261, 45, 424, 20], [93, 212, 63, 18, 14, 27]],
    ),
    "half of it": (np.array([0.0, 0.02, 0.2, 0.54, 1.0]), [[154, 440, 930, 0], [3, 1, 6, 55]]),
    "most of both in a cell": (
        np.array([0.0, 0.01, 0.02, 0.9, 0.95, 1.0]),
        [[400, 200, 9000, 20, 1], [2, 3, 150, 30, 20]],
    ),
}


@pytest.mark.parametrize(("edges", "counts"), COARSE.values(), ids=COARSE)
def test_the_script_tells_no_more_than_the_library_where_cells_hide(
    edges: FloatArray, counts: list[list[int]]
) -> None:
    histogram = ScoreHistogram(edges, np.array(counts, dtype=float))
    inside = np.concatenate([edges[:-1] + part * np.diff(edges) for part in (0.1, 0.4, 0.6, 0.9)])
    table = threshold_table(histogram, inside.tolist())
    figures = computed(table.to_json())
    assert "too coarse" in {each.get("kind") for at in figures for each in at.values()}
    assert compared(histogram, zip(table.thresholds, figures, strict=True)) > 200


def test_a_script_that_forgets_the_noise_is_seen() -> None:
    result = assessment("distributed")
    table = threshold_table(result.histogram(), result.thresholds).to_json()
    with_noise, without = computed(table), computed({**table, "noise": None})
    place = table["thresholds"].index(0.3)
    widths = [
        each[place]["recall"]["high"] - each[place]["recall"]["low"]
        for each in (with_noise, without)
    ]
    assert widths[0] > widths[1] * 1.0001


def test_every_threshold_that_was_asked_for_is_offered() -> None:
    histogram = assessment("secure").histogram()
    offered = offered_thresholds(histogram, [0.123456, 0.9999])
    assert {0.123456, 0.9999, 0.0, 1.0, 0.5} <= set(offered)
    assert offered == sorted(set(offered))


def test_more_thresholds_are_offered_where_scores_crowd() -> None:
    scores = np.random.default_rng(1).beta(0.4, 12.0, 500)
    histogram = ScoreHistogram.from_scores([0, 1] * 250, scores)
    offered = np.array(offered_thresholds(histogram, []))
    between = (offered > 0.0) & (offered < 0.002)
    assert between.sum() >= 5


def test_of_thousands_of_thresholds_some_are_kept_and_counted() -> None:
    histogram = assessment("distributed").histogram()
    wanted = (np.arange(5000) + 0.5) / 5000
    table = threshold_table(histogram, wanted.tolist())
    assert table.named == MOST_WANTED
    assert len(set(table.thresholds) & set(wanted.tolist())) == MOST_WANTED
    assert {wanted[0], wanted[-1]} <= set(table.thresholds)
