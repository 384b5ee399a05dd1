"""Names of groups: values of a column, the same from files and from arrays."""

import numpy as np
import pytest

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields
from fedassay.group_names import GroupNames, group_name

MOST_GROUPS = 100


def test_every_row_is_in_exactly_one_part() -> None:
    groups = GroupNames("sex", ("F", "M"))
    values = ["F", "M", " M ", "", None, float("nan"), "X", 7]
    assert groups.codes(values).tolist() == [0, 1, 1, 2, 2, 2, 3, 3]
    assert groups.parts == ("F", "M", "(missing)", "(unknown)")


def test_numbers_and_truths_have_one_name_whatever_their_type() -> None:
    assert {group_name(each) for each in (1, 1.0, np.int8(1), np.float32(1), "1")} == {"1"}
    assert {group_name(each) for each in (True, np.True_, "true")} == {"true"}


def test_groups_come_in_the_order_of_their_names_and_numbers_by_size() -> None:
    assert GroupNames.of("ward", [10, 9, "b", "a", None]).names == ("9", "10", "a", "b")


def test_a_column_of_fifty_thousand_values_is_refused_in_a_sentence() -> None:
    with pytest.raises(SettingInvalid, match=r'at most 100 values; "id" has 50,000\. Each group'):
        GroupNames.of("id", range(50_000))
    assert len(GroupNames.of("id", range(MOST_GROUPS)).names) == MOST_GROUPS


@pytest.mark.parametrize(
    "names", [(), ("",), ("F", "F"), ("(missing)",), ("(unknown)",), (" F",), ("x" * 201,), (1,)]
)
def test_names_that_cannot_be_told_apart_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(SettingInvalid, match="groups are named once each"):
        GroupNames("sex", names)


def test_a_column_without_any_value_is_refused() -> None:
    with pytest.raises(SettingInvalid, match='every row of "sex" is empty'):
        GroupNames.of("sex", [None, "", float("nan")])


def test_files_hold_names_and_nothing_else() -> None:
    groups = GroupNames("sex", ("F", "M"))
    assert GroupNames.from_json(Fields(groups.to_json(), "here")) == groups
    with pytest.raises(FileInvalid):
        GroupNames.from_json(Fields({**groups.to_json(), "more": 1}, "here"))
    with pytest.raises(SettingInvalid):
        GroupNames.from_json(Fields({"column": "sex", "names": [["F"]]}, "here"))


@pytest.mark.parametrize("column", ["", "x" * 201])
def test_a_column_of_groups_has_a_name_of_bearable_length(column: str) -> None:
    with pytest.raises(SettingInvalid, match=r"a name of 1 to 200 letters"):
        GroupNames(column, ("F", "M"))
