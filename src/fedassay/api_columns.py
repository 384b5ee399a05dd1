"""Columns as the door takes them: lists, arrays, columns of frames, or their names in a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import shown, unknown
from fedassay.errors import ColumnMissing, ColumnTypeInvalid, SettingInvalid, ValueMissing
from fedassay.examples import FloatArray, IntArray
from fedassay.extras import needed_for
from fedassay.group_names import GroupNames
from fedassay.tables.values import numbers

Column = npt.ArrayLike
"""A list, an array, a column of a frame; or its name, where a table is given."""


def column(values: Column, data: Any, what: str) -> npt.NDArray[np.generic]:
    """One column of numbers: as given, or by name out of a table."""
    if data is None:
        if isinstance(values, str):
            raise SettingInvalid(
                f"{what} names a column, but there is no table; found {shown(values)}. "
                "Pass the table as data=, or the column itself."
            )
        return _numbers_of(values, what)
    return _from_table(data, name_of(values, what), what)


def name_of(value: object, what: str) -> str:
    """The name of a column, where a table is given."""
    if isinstance(value, str):
        return value
    raise SettingInvalid(
        f"with data=, {what} is the name of one of its columns; found {shown(type(value))}. "
        "Pass names with data=, or columns without it."
    )


def _from_table(data: Any, name: str, what: str) -> npt.NDArray[np.generic]:
    names = column_names(data)
    if name not in names:
        raise ColumnMissing(unknown(name, names[:20], "a column of the table"))
    if isinstance(data, Mapping) or not hasattr(data, "column_names"):
        return _numbers_of(data[name], what)
    batches = data.select([name]).to_batches()
    return np.concatenate([np.zeros(0), *(numbers(batch, name) for batch in batches)])


def column_names(data: Any) -> list[str]:
    """The names of a table's columns: of a mapping, a pandas or polars frame, an Arrow table."""
    if isinstance(data, Mapping):
        return list(data)
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if names is None or not hasattr(data, "__getitem__"):
        raise SettingInvalid(
            "data is a path, a frame of pandas or polars, a mapping of columns, or any table with "
            f"__arrow_c_stream__; found {type(data).__name__}. Convert it first."
        )
    return [str(name) for name in names]


def as_table(data: Any) -> Any:
    """A table whose columns can be taken by name; what only streams is gathered by pyarrow."""
    streams = hasattr(data, "__arrow_c_stream__")
    if not streams or hasattr(data, "columns") or hasattr(data, "column_names"):
        return data
    with needed_for("tables that stream Arrow data"):
        import pyarrow as pa

    return pa.table(data)


def _numbers_of(values: Any, what: str) -> npt.NDArray[np.generic]:
    """A column as numbers or booleans; what is missing becomes NaN."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ColumnTypeInvalid(
            f"{what} must be one column of numbers; found rows of different lengths. "
            "Pass a list, an array or a column of a table."
        ) from error
    if array.dtype != object or not hasattr(values, "to_numpy"):
        return array
    # Nullable columns of pandas come as objects; missing values are NaN in numbers.
    try:
        return np.asarray(values.to_numpy(dtype="float64", na_value=np.nan))
    except (TypeError, ValueError):
        return array


def client_codes(clients: Column, data: Any) -> tuple[IntArray, list[object]]:
    """The number of each row's client, in order of appearance, and what each is called.

    >>> client_codes(["b", "a", "b"], None)
    (array([0, 1, 0]), ['b', 'a'])
    """
    listed = _listed(clients, data, "clients")
    array = np.asarray(listed)
    if array.dtype.kind in "iubSU":
        _, first, codes = np.unique(array, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[codes], array[np.sort(first)].tolist()
    # Names and missing ones of any kind: all missing ones are one client, as in files.
    place: dict[object, int] = {}
    numbered = [place.setdefault(None if item != item else item, len(place)) for item in listed]  # noqa: PLR0124
    return np.array(numbered, dtype=np.int64), list(place)


def patient_codes(patients: Column, data: Any) -> IntArray:
    """The number of each row's patient; raises `ValueMissing` where a row has none.

    >>> patient_codes(["p7", "p9", "p7"], None)
    array([0, 1, 0])
    """
    listed = _listed(patients, data, "patients")
    _require_values(listed, "patient")
    return client_codes(listed, None)[0]


def groups_of(group: Column, data: Any) -> GroupNames:
    """All groups of a column, by name; an array without a name is called "group".

    >>> groups_of(["b", None, "a"], None).parts
    ('a', 'b', '(missing)', '(unknown)')
    """
    _, values = client_codes(group, data)
    return GroupNames.of(name_of(group, "group") if data is not None else "group", values)


def group_codes(group: Column, data: Any, groups: GroupNames) -> IntArray:
    """The number of each row's part.

    >>> group_codes(["b", None, "a"], None, GroupNames("group", ("a",)))
    array([2, 1, 0])
    """
    codes, values = client_codes(group, data)
    parts: IntArray = groups.codes(values)[codes]
    return parts


def time_numbers(times: Column, data: Any) -> FloatArray:
    """When each row was, as numbers that rise with time; raises `ValueMissing` where one is not.

    >>> time_numbers(["2026-01-01", "2025-12-31"], None)
    array([1.7672256e+15, 1.7671392e+15])
    """
    listed = _listed(times, data, "times")
    _require_values(listed, "time")
    array = np.asarray(listed)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    try:
        return array.astype("datetime64[us]").astype(np.int64).astype(np.float64)
    except (ValueError, TypeError) as error:
        raise ColumnTypeInvalid(
            "times must be numbers, dates or texts such as 2026-03-31; found something else "
            "(values withheld). Convert the column first."
        ) from error


def _require_values(listed: Any, what: str) -> None:
    """Raise `ValueMissing` where a row has none: None, NaN, NaT or an empty text."""
    # Only what is missing differs from itself.
    missing = sum(item is None or item != item or item == "" for item in listed)  # noqa: PLR0124
    if missing:
        raise ValueMissing(
            f"where patients are protected every row needs a {what}; {missing:,} of "
            f"{len(listed):,} are missing (empty or NaN). Drop these rows, or fill them in, first."
        )


def _listed(values: Column, data: Any, what: str) -> Any:
    """A column of names or numbers, as given or by name out of a table."""
    if data is not None:
        name = name_of(values, what)
        names = column_names(data)
        if name not in names:
            raise ColumnMissing(unknown(name, names[:20], "a column of the table"))
        values = data[name]
    elif isinstance(values, str):
        column(values, None, what)
    found: Any = values
    listed = found.to_pylist() if hasattr(found, "to_pylist") else _array_of(found)
    if np.ndim(listed) != 1:
        raise ColumnTypeInvalid(
            f"{what} must be one column of names or numbers; found {np.ndim(listed)} dimensions. "
            "Pass one name for each row."
        )
    return listed


def _array_of(values: Any) -> npt.NDArray[np.generic]:
    """An array in which a missing name among texts, NaN, is not the text "nan"."""
    array = np.asarray(values)
    if array.dtype.kind == "U" and any(item != item for item in values):  # noqa: PLR0124
        return np.asarray(values, dtype=object)
    return array
