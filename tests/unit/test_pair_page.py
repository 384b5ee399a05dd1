"""The page about two models on the same rows: which figure stands where."""

import re
from pathlib import Path

import pytest

import fedassay
from fedassay.errors import SettingInvalid
from fedassay.report.pair_page import pair_page
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


def test_an_assessment_file_of_two_models_has_a_page_too(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "pair.json")
    path = fedassay.write_report(tmp_path / "pair.json", tmp_path / "page.html", title="a < b")
    text = path.read_text()
    assert "a &lt; b" in text
    assert 'id="reclassification"' in text
    calibrator = fedassay.simulate(LABELS, FIRST, seed=0).calibrate("sigmoid")
    with pytest.raises(SettingInvalid, match="page of one model"):
        fedassay.write_report(FOUND, tmp_path / "page.html", calibrator=calibrator)
