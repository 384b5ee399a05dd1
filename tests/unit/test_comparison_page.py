"""The comparison page as text: which figure stands where, and what the page allows itself."""

import re

import pytest

from fedassay.comparison.side_by_side import compare
from fedassay.errors import SettingInvalid
from fedassay.report.comparison_page import comparison_page
from tests.pages import assessment

PAIR = {"old": assessment("secure"), "new": assessment("site")}
PAGE = comparison_page(compare(PAIR, metrics=["roc_auc", "recall@0.5"]), title="Two & two")


def test_the_first_stands_first_and_the_difference_is_the_other_less_it() -> None:
    old, new = (each["recall@0.5"].value for each in PAIR.values())
    (row,) = re.findall(r"<tr><th[^>]*>Recall \(sensitivity\) at 0\.5</th>(.*?)</tr>", PAGE)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[:2] == [f"{old:.4f}", f"{new:.4f}"]
    assert float(cells[2].rstrip(" *")) == pytest.approx(new - old, abs=1e-4)


def test_a_page_without_a_script_allows_none() -> None:
    assert "script-src &#x27;none&#x27;" in PAGE
    assert "<script" not in PAGE
    assert "Two &amp; two" in PAGE


def test_what_each_counted_and_promised_is_there() -> None:
    for each in PAIR.values():
        assert each.survey.fingerprint.hex()[:12] in PAGE
    assert "every site adds the whole noise" in PAGE


def test_only_a_comparison_is_compared() -> None:
    with pytest.raises(SettingInvalid, match=r"fedassay\.compare makes one"):
        comparison_page(PAIR)  # type: ignore[arg-type]  # what a user may pass
