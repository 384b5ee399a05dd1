"""An assessment of two models: what is asked by name, shown, tracked, and read from files."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay import Examples, Grid, Hierarchy
from fedassay.decoding import DecodeOptions
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import ScoredClients
from fedassay.mechanisms import Exact, Privacy
from fedassay.pair_grid import PairGrid
from fedassay.paired.assessment import PairedAssessment
from fedassay.paired.published import asked_groups, published_pair
from fedassay.planning.pair_search import design_pair
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.pairs import PairedClients, assess_pair
from fedassay.survey import Survey
from fedassay.tally import Tally

# Above 0.5: of the negatives 1 by both, 1 by the second; of the positives 2 by both, 1 by each.
LABELS = [0, 0, 0, 0, 1, 1, 1, 1]
ONE = [0.1, 0.3, 0.2, 0.9, 0.8, 0.7, 0.9, 0.4]
TWO = [0.2, 0.1, 0.7, 0.6, 0.9, 0.6, 0.2, 0.8]


@cache
def found(smallest_cell: int = 0, copies: int = 1) -> PairedAssessment:
    design = design_pair(SurveyRequest(clients=8 * copies, smallest_cell=smallest_cell))
    labels, one, two = LABELS * copies, ONE * copies, TWO * copies
    clients = PairedClients(
        ScoredClients(Examples(labels, one), None, len(labels)), Examples(labels, two)
    )
    randomness = SimulatedRandomness(np.random.SeedSequence(0))
    return assess_pair(design, clients, thresholds=(0.5,), randomness=randomness)


@cache
def of_one_label() -> PairedAssessment:
    survey = found().survey
    counts = np.array(survey.hierarchy.width * [0])
    return PairedAssessment(survey, Tally(survey.fingerprint, (8, 8, 8), counts), DecodeOptions())


def test_figures_and_models_go_by_name() -> None:
    result = found()
    assert result["recall[a]@0.5"].value == pytest.approx(0.75)
    assert result["recall[b]@0.5"].value == pytest.approx(0.75)
    assert list(result) == list(result.estimates())
    assert result.histogram("b").total == 8
    with pytest.raises(SettingInvalid, match=r"a metric"):
        result["recall@0.5"]
    with pytest.raises(SettingInvalid, match=r"a model"):
        result.histogram("c")


def test_a_tracker_gets_flat_numbers_under_names_that_it_accepts() -> None:
    flat = found().to_dict()
    assert flat["reports"] == flat["examples"] == 8.0
    assert flat["specificity_a_at_0.5"] == pytest.approx(3 / 4)
    assert flat["specificity_b_at_0.5"] == pytest.approx(2 / 4)
    assert flat["specificity_at_0.5_difference"] == pytest.approx(1 / 4)
    for name in ("specificity_a_at_0.5", "specificity_at_0.5_difference"):
        assert flat[f"{name}_low"] <= flat[name] <= flat[f"{name}_high"]
    assert not [name for name in flat if set(name) & set("[]@=")]


def test_what_a_notebook_shows_has_headline_table_and_footnote() -> None:
    html, text = found()._repr_html_(), str(found())
    assert html.count("<table") == 1
    assert "* can be told apart" in html
    assert "8 reports" in html
    assert "* can be told apart" in text
    assert repr(found()).startswith("<PairedAssessment: 8 reports, ")
    # Neither, only the second, only the first, both.
    assert found().reclassification(0.5).rows() == [
        ["negatives", "2", "1", "0", "1"],
        ["positives", "0", "1", "1", "2"],
    ]
    assert found().reclassification(0.5).reason == ""


def test_below_the_minimum_nothing_is_decoded_and_both_texts_say_so() -> None:
    survey = replace(found().survey, minimum_reports=9)
    counters = found().tally.counters
    tally = Tally(survey.fingerprint, found().tally.reports, counters)
    waiting = PairedAssessment(survey, tally, DecodeOptions())
    assert str(waiting).startswith("8 reports; nothing is decoded below 9 on every level.")
    assert "nothing is decoded below 9" in waiting._repr_html_()
    assert "<table" not in waiting._repr_html_()


def test_figures_that_neither_model_has_are_dashes_and_differences_without_bounds() -> None:
    nothing = of_one_label()
    assert ["-", "-", "-", "not enough data", ""] in [row[1:] for row in nothing.rows()]
    assert "roc_auc_a" not in nothing.to_dict()
    difference = nothing.differences()["roc_auc"]
    assert difference.reason != ""
    assert difference.interval() == (-np.inf, np.inf)
    assert difference.p_value == 1.0


def test_cells_too_coarse_for_two_models_are_told_with_what_helps_them() -> None:
    """All scores in the first cells: a second step does not go with two models."""
    labels = np.arange(6_000) % 2
    scores = 0.001 * (labels + np.random.default_rng(0).random(6_000))
    both = {"a": scores, "b": scores[::-1].copy()}
    crowded = fedassay.simulate(labels, both, privacy="local", epsilon=4, seed=1)
    reasons = [crowded.differences()["roc_auc"].reason]
    reasons += [getattr(crowded[f"roc_auc[{name}]"], "reason", "") for name in "ab"]
    for reason in reasons:
        assert "--steps" not in reason
        assert "Give public rows (--reference), or assess either model alone." in reason


def test_a_file_reads_back_with_all_its_cells_where_any_count_may_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "pair.json"
    found().save(path)
    again = PairedAssessment.load(path)
    assert again.tally.counters.tolist() == found().tally.counters.tolist()
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"thresholds": [1.5]}))
    with pytest.raises(FileInvalid, match=r"thresholds must lie in \[0, 1\]"):
        PairedAssessment.load(path)


def test_published_cells_of_two_models_do_not_add_up() -> None:
    result = found(10, 40)
    merged = published_pair(result.survey, result.tally)
    with pytest.raises(SettingInvalid, match=r"Add tallies before they are published"):
        merged + result.tally


def test_joint_cells_without_margins_are_asked_one_by_one() -> None:
    grid = PairGrid.of(("a", "b"), Grid.uniform(2), Grid.uniform(3))
    survey = Survey(
        privacy=Privacy.SECURE, grid=grid, hierarchy=Hierarchy.flat(6), mechanisms=(Exact(),)
    )
    assert asked_groups(survey) == (2, 3)
