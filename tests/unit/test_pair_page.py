"""The page about two models on the same rows: which figure stands where."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay.errors import SettingInvalid
from fedassay.report.pair_page import pair_page
from fedassay.simulation.pairs import SimulatedPair
from tests.unit.test_paired import scored

LABELS, FIRST, SECOND = scored(4_000, 1)
FOUND = fedassay.simulate(LABELS, {"old": FIRST, "new": SECOND}, seed=0, thresholds=(0.5,))
NOISY = fedassay.simulate(
    LABELS, {"old": FIRST, "new": SECOND}, privacy="local", epsilon=5, seed=0, thresholds=(0.5,)
)
PAGE = pair_page(FOUND)


def cells(page: str, name: str, called: str) -> list[str]:
    """The cells of one row of a section."""
    (found,) = re.findall(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    (row,) = re.findall(rf"<tr><th[^>]*>{re.escape(called)}</th>(.*?)</tr>", found)
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_the_first_models_figure_stands_first_and_the_difference_is_it_less_the_second() -> None:
    old, new = (FOUND[f"recall[{name}]@0.5"].value for name in ("old", "new"))
    found = cells(PAGE, "differences", "Recall (sensitivity) at 0.5")
    assert [float(text) for text in found[:2]] == pytest.approx([old, new], abs=1e-3)
    assert float(found[2].split()[0]) == pytest.approx(old - new, abs=1e-3)
    by_itself = cells(PAGE, "models", "Recall (sensitivity) at 0.5")
    assert [float(text.split()[0]) for text in by_itself] == pytest.approx([old, new], abs=1e-3)


def test_rows_that_only_one_model_flags_stand_under_its_name() -> None:
    above = FIRST > 0.5, SECOND > 0.5
    (head,) = re.findall(r"Above 0\.5 by which model</caption><thead>(.*?)</thead>", PAGE)
    assert re.sub(r"<[^>]*>", " ", head).split() == [
        "rows", "neither", "new", "only", "old", "only", "both",
    ]  # fmt: skip
    found = [int(text.replace(",", "")) for text in cells(PAGE, "reclassification", "positives")]
    both = LABELS == 1
    truth = [
        int((both & (above[0] == one) & (above[1] == other)).sum())
        for one, other in ((False, False), (False, True), (True, False), (True, True))
    ]
    # Exact sums are published in cells of ten rows, which a threshold may cut.
    assert found == pytest.approx(truth, abs=12)


def test_noisy_counts_have_intervals_and_two_curves_are_drawn() -> None:
    page = pair_page(NOISY)
    assert re.fullmatch(r"-?[\d,]+ \(-?[\d,]+ to -?[\d,]+\)", cells(page, "reclassification", "positives")[1])  # fmt: skip # noqa: E501
    (figure,) = re.findall(r'<svg id="roc-both".*?</svg>', page, re.DOTALL)
    assert len(re.findall(r'<path d="[^"]+" class="line( second)?"', figure)) == 2
    assert len(re.findall(r'class="band', figure)) == 2


def test_models_alike_cannot_be_told_apart_in_words() -> None:
    labels, first, second = scored(2_000, 7, gap=0.0)
    same = fedassay.simulate(labels, {"a": first, "b": second}, seed=0)
    assert "a and b cannot be told apart in ROC AUC" in pair_page(same)
    assert "old is above new in ROC AUC" in PAGE


def without_positives() -> SimulatedPair:
    """What a federation finds in which no client has a positive."""
    found = fedassay.simulate(
        LABELS, {"old": FIRST, "new": SECOND}, seed=0, thresholds=(0.5,), smallest_cell=0
    )
    levels = [np.stack([each[0], 0 * each[1]]) for each in found.tally.per_level(found.survey)]
    counters = np.concatenate([each.ravel() for each in levels])
    return replace(found, tally=replace(found.tally, counters=counters))


def test_without_positives_what_can_be_said_is_and_the_rest_says_why() -> None:
    found = without_positives()
    page = pair_page(found)
    lacking = "there must be positives to divide by; the tally has 0"
    assert f"ROC AUC cannot be compared: {lacking}" in page
    assert f"There are no curves: {lacking}" in page
    assert 'id="roc-both"' not in page
    shown = cells(page, "differences", "ROC AUC")
    assert shown[2:] == ["not enough data", "–"]
    # Half the rows are left, of which specificity speaks; it is drawn beside what else there is.
    assert 'id="paired-differences"' in page
    old = float(cells(page, "differences", "Specificity at 0.5")[0])
    assert old == pytest.approx((FIRST[LABELS == 0] <= 0.5).mean(), abs=1e-3)


def test_where_there_is_nothing_but_noise_nothing_is_drawn() -> None:
    found = fedassay.simulate(
        LABELS[:60],
        {"old": FIRST[:60], "new": SECOND[:60]},
        privacy="distributed",
        epsilon=0.001,
        seed=0,
        thresholds=(0.5,),
    )
    assert not any(each.is_available for each in found.differences().values())
    page = pair_page(found)
    assert 'id="paired-differences"' not in page
    assert "cannot be compared" in page


def test_a_threshold_at_which_no_joint_cell_ends_has_no_table() -> None:
    page = pair_page(replace(FOUND, thresholds=(0.123456,)))
    (shown,) = re.findall(r'<section id="reclassification".*?</section>', page, re.DOTALL)
    assert "At 0.123456: no joint cell ends at 0.123456 for both models" in shown
    assert "<table" not in shown


def test_an_assessment_file_of_two_models_has_a_page_too(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "pair.json")
    path = fedassay.write_report(tmp_path / "pair.json", tmp_path / "page.html", title="a < b")
    text = path.read_text()
    assert "a &lt; b" in text
    assert 'id="reclassification"' in text
    calibrator = fedassay.simulate(LABELS, FIRST, seed=0).calibrate("sigmoid")
    with pytest.raises(SettingInvalid, match="page of one model"):
        fedassay.write_report(FOUND, tmp_path / "page.html", calibrator=calibrator)
