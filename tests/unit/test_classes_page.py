"""The page about more than two classes: which figure stands where."""

import re
from pathlib import Path

import numpy as np
import pytest

import fedassay
from fedassay.classes.exact_figures import exact_confusion
from fedassay.errors import SettingInvalid
from fedassay.report.classes_page import classes_page
from tests.class_rows import drawn_rows

ROWS = drawn_rows(2000, (4.0, 2.0, 1.0))
NAMES = ("early", "late", "<lost>")
FOUND = fedassay.simulate_classes(
    np.array(NAMES)[ROWS.labels], ROWS.scores, classes=NAMES, smallest_cell=0, seed=0
)
PAGE = classes_page(FOUND)


def cells(name: str, called: str, page: str = PAGE) -> list[str]:
    """The cells of one row of a section."""
    (found,) = re.findall(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    (row,) = re.findall(
        rf"<tr><th[^>]*>(?:<bdi>)?{called}(?:</bdi>|<small>).*?</th>(.*?)</tr>", found
    )
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_every_class_has_its_own_figures_and_no_name_is_markup() -> None:
    for name in NAMES:
        shown = cells("classes", name.replace("<", "&lt;").replace(">", "&gt;"))
        truth = (ROWS.labels == NAMES.index(name)).mean(), FOUND[f"roc_auc/{name}"].value
        assert [float(text.split()[0]) for text in shown[:2]] == pytest.approx(truth, abs=1e-3)
    assert "<lost>" not in PAGE


def test_the_true_class_is_a_row_and_the_most_probable_one_a_column() -> None:
    truth = 100 * exact_confusion(ROWS) / len(ROWS)
    for row, name in zip(truth, ("early", "late", "&lt;lost&gt;"), strict=True):
        assert [float(text) for text in cells("confusion", name)] == pytest.approx(row, abs=0.006)


def test_figures_of_all_classes_and_a_curve_for_each_are_there() -> None:
    value = float(cells("summary", "Accuracy")[0])
    assert value == pytest.approx((ROWS.predicted == ROWS.labels).mean(), abs=1e-3)
    assert len(re.findall(r'<svg id="reliability-\d"', PAGE)) == 4


def test_a_withheld_class_has_dashes_and_says_why() -> None:
    """Of 2,000 rows seven are of the last class, so that the next rarest is withheld with it."""
    keep = np.flatnonzero((ROWS.labels != 2) | (np.cumsum(ROWS.labels == 2) <= 7))
    rows = ROWS.rows(keep)
    found = fedassay.simulate_classes(
        np.array(NAMES)[rows.labels], rows.scores, classes=NAMES, smallest_cell=20, seed=0
    )
    page = classes_page(found)
    for name in ("late", "&lt;lost&gt;"):
        shown = cells("classes", name, page)
        assert (shown[0], shown[-1]) == ("–", "–")
        assert cells("confusion", name, page) == ["–"] * 3
    assert "it has fewer than 20 rows" in page
    assert float(cells("classes", "early", page)[0].split()[0]) == pytest.approx(
        (rows.labels == 0).mean(), abs=1e-3
    )


def test_where_every_class_is_withheld_nothing_is_drawn_and_the_page_says_so() -> None:
    """All rows but three are of one class: each has fewer than ten, or all but so few."""
    labels = np.array([0] * 57 + [1, 2, 2])
    scores = np.eye(3)[labels] * 0.7 + 0.1
    found = fedassay.simulate_classes(labels, scores, smallest_cell=10, seed=0)
    page = classes_page(found)
    assert "There is no matrix: no count below 10 is published" in page
    assert 'id="classes-roc_auc"' not in page


def test_of_very_many_classes_the_most_frequent_mistakes_are_listed() -> None:
    """Class 3 is taken for 4 thirty times, 5 for 6 twenty times; all else is right."""
    labels = np.concatenate([np.arange(21).repeat(60), [3] * 30, [5] * 20])
    taken = np.concatenate([np.arange(21).repeat(60), [4] * 30, [6] * 20])
    scores = np.eye(21)[taken] * 0.79 + 0.01
    found = fedassay.simulate_classes(labels, scores, smallest_cell=0, seed=0)
    (shown,) = re.findall(r'<section id="confusion".*?</section>', classes_page(found), re.DOTALL)
    rows = re.findall(r"<tr><th[^>]*><bdi>(.*?)</bdi></th><td><bdi>(.*?)</bdi></td>"
                      r"<td[^>]*>([0-9.]+) ", shown)  # fmt: skip
    assert rows[:2] == [
        ("3", "4", f"{100 * 30 / len(labels):.2f}"),
        ("5", "6", f"{100 * 20 / len(labels):.2f}"),
    ]


def test_an_assessment_file_of_classes_has_a_page_too(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "classes.json")
    path = fedassay.write_report(tmp_path / "classes.json", tmp_path / "page.html", model="m < 2")
    assert "m &lt; 2" in path.read_text()
    with pytest.raises(SettingInvalid, match="reported on"):
        classes_page(ROWS)  # type: ignore[arg-type]
