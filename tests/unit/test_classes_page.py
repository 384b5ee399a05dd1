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


def cells(name: str, called: str) -> list[str]:
    """The cells of one row of a section."""
    (found,) = re.findall(rf'<section id="{name}".*?</section>', PAGE, re.DOTALL)
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


def test_an_assessment_file_of_classes_has_a_page_too(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "classes.json")
    path = fedassay.write_report(tmp_path / "classes.json", tmp_path / "page.html", model="m < 2")
    assert "m &lt; 2" in path.read_text()
    with pytest.raises(SettingInvalid, match="reported on"):
        classes_page(ROWS)  # type: ignore[arg-type]
