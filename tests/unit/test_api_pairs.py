"""Two models at the door: their names, their columns, and public rows of both."""

from typing import Any

import pytest

import fedassay
from fedassay.api_pairs import as_names, as_references, paired_rows
from fedassay.api_rows import Rows
from fedassay.errors import SettingInvalid

LABELS, ONE, TWO = [0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9], [0.2, 0.4, 0.1, 0.8]


@pytest.mark.parametrize("given", ["old", 7, None])
def test_names_of_two_models_are_a_pair_of_texts(given: object) -> None:
    with pytest.raises(SettingInvalid, match=r"paired is True, or two models' names; found"):
        as_names(given)


@pytest.mark.parametrize("column", ["score", ONE])
def test_one_column_is_not_two_models(column: Any) -> None:
    with pytest.raises(SettingInvalid, match=r"found the same column twice\. Pass two"):
        paired_rows("label" if column == "score" else LABELS, {"a": column, "b": column})


@pytest.mark.parametrize("asked", [{"show_sites": True}, {"group": ["x"] * 4}])
def test_sites_and_groups_are_told_apart_of_one_model(asked: dict[str, Any]) -> None:
    with pytest.raises(SettingInvalid, match=r"told apart of one model; found two\. Drop them"):
        fedassay.simulate(LABELS, {"a": ONE, "b": TWO}, **asked)


def test_a_reference_of_two_models_comes_in_the_order_of_their_names() -> None:
    assert as_references(None, ("a", "b")) is None
    found = as_references((LABELS, {"b": TWO, "a": ONE}), ("a", "b"))
    assert found is not None
    assert [each.scores.tolist() for each in found] == [ONE, TWO]
    assert [each.labels.tolist() for each in found] == [LABELS, LABELS]


@pytest.mark.parametrize(
    "given",
    [
        (LABELS, ONE),
        (LABELS, {"a": ONE}),
        (LABELS, {"a": ONE, "c": TWO}),
        [LABELS, {"a": ONE, "b": TWO}],
        (LABELS, {"a": ONE, "b": TWO}, "more"),
    ],
)
def test_a_reference_of_other_models_is_refused(given: Any) -> None:
    with pytest.raises(SettingInvalid, match=r"scores by the names a and b\); found"):
        as_references(given, ("a", "b"))


def test_columns_of_two_models_go_by_name_in_a_file() -> None:
    rows = Rows("y", {"new": "p_new", "old": "p_old"}, data="rows.csv")
    columns = rows.columns
    assert (columns.label, columns.score, columns.second) == ("y", "p_new", "p_old")
