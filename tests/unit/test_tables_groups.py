"""Which group each row of a table is in, whatever batches and types its column comes in."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fedassay import Grid
from fedassay.group_names import GroupNames
from fedassay.tables.columns import Columns
from fedassay.tables.groups import GroupColumn, columns_for, group_codes
from tests.surveys import small_survey

SEXES = GroupNames("sex", ("F", "M"))
MISSING, UNKNOWN = 2, 3
"""The parts behind the two names."""


def batch(values: Any, kind: pa.DataType | None = None) -> Any:
    return pa.record_batch({"sex": pa.array(values, kind), "ward": ["a"] * len(values)})


def test_a_site_names_the_column_of_groups_or_takes_the_surveys() -> None:
    plain = small_survey()
    # Four cells for each of two groups, and for rows of neither and of others.
    grouped = replace(small_survey(16), grid=Grid.uniform(4), groups=SEXES)
    assert columns_for(grouped, Columns(group="gender")).group == "gender"
    assert columns_for(grouped, Columns()).group == "sex"
    assert columns_for(plain, Columns(group="gender")).group is None


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_rows_are_in_the_group_that_they_name_and_else_missing_or_unknown(
    kind: pa.DataType,
) -> None:
    values = ["M", None, "F", "D", " F ", "", "M"]
    found = group_codes(batch(values, kind), "sex", SEXES)
    assert found.tolist() == [1, MISSING, 0, UNKNOWN, 0, MISSING, 1]


def test_a_column_without_any_value_is_missing_throughout() -> None:
    assert group_codes(batch([None, None]), "sex", SEXES).tolist() == [MISSING, MISSING]


def test_a_column_in_chunks_is_one_column() -> None:
    chunks = pa.chunked_array([["M", "F"], ["F", None], []], pa.string())
    table = pa.table({"sex": chunks})
    assert group_codes(table, "sex", SEXES).tolist() == [1, 0, 0, MISSING]


def test_each_batch_has_values_of_its_own_in_any_order() -> None:
    column = GroupColumn("sex")
    for values in (["M", "F", "M"], ["D", None, "F"], ["F", "D"]):
        column.add(batch(values))
    groups = column.groups()
    assert groups is not None
    assert groups.names == ("D", "F", "M")
    assert column.codes(groups).tolist() == [2, 1, 2, 0, 3, 1, 1, 0]


def test_without_a_column_there_are_no_groups() -> None:
    column = GroupColumn(None)
    column.add(batch(["F"]))
    assert column.groups() is None
    np.testing.assert_array_equal(GroupColumn("sex").codes(SEXES), np.zeros(0, np.int64))
