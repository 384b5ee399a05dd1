"""Columns as arrays: scores on their scale, labels in one coding over a whole file."""

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.errors import ColumnTypeInvalid, LabelInvalid, SettingInvalid
from fedassay.extras import needed_for
from fedassay.tables.columns import Columns

_Array = npt.NDArray[np.generic]


def scores(batch: Any, columns: Columns) -> _Array:
    """The scores of a batch, divided by their scale; missing ones are NaN."""
    values = numbers(batch, columns.score)
    return values if columns.scale == 1.0 else np.asarray(values, np.float64) / columns.scale


def numbers(batch: Any, name: str) -> _Array:
    """A column of numbers or booleans; nulls become NaN."""
    with needed_for("tables"):
        import pyarrow as pa

    column = decoded(batch.column(name))
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(batch.num_rows, np.nan)
    if pa.types.is_decimal(kind):
        column = _nearest(column)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise ColumnTypeInvalid(
            f'column "{name}" must hold numbers or booleans; found type {kind}. Convert the column '
            "first; decimal commas are read with --decimal , and labels such as yes and no with "
            "--positive VALUE."
        )
    # Not to_numpy, fill_null or scalar, which import pandas where that is installed.
    if column.null_count:
        values = np.full(len(column), np.nan)
        # Whole numbers up to 2^53 stay exact; nothing larger is a score or a label.
        present = column.drop_null().cast("float64", safe=False)
        values[_truths(column.is_valid())] = np.from_dlpack(present)
        return values
    return _truths(column) if pa.types.is_boolean(column.type) else np.from_dlpack(column)


class LabelReader:
    """Labels batch by batch; over the whole file they must have one coding."""

    def __init__(self, columns: Columns) -> None:
        self._name = columns.label
        self._positive = columns.positive
        self._seen: set[object] = set()

    def read(self, batch: Any) -> _Array:
        """A batch's labels as numbers or booleans; missing ones are NaN."""
        if self._positive is not None:
            return self._compare(decoded(batch.column(self._name)), self._positive)
        labels = numbers(batch, self._name)
        if labels.dtype.kind != "b" and len(labels):
            self.include({value for value in (-1, 0) if (labels == value).any()})
        return labels

    @property
    def seen(self) -> frozenset[object]:
        """The values that decide on the coding: two at most."""
        return frozenset(self._seen)

    def include(self, seen: Collection[object]) -> None:
        """Take in values of this or another part of the table; raises where codings mix."""
        self._seen.update(seen)
        if self._positive is None and self._seen == {-1, 0}:
            raise LabelInvalid(
                "labels must use one coding, {0, 1} or {-1, 1}; found 0, and -1 too. "
                "Map the column to two classes, or name the positive one: --positive VALUE."
            )
        if len(self._seen) > 2:
            raise LabelInvalid(
                f'column "{self._name}" must hold two values, one of them for positives; found '
                "more (withheld). Map the column to two classes first."
            )

    def finish(self) -> None:
        """Raise, at the file's end, if the label of positives is none of the two there are."""
        if self._positive is not None and len(self._seen) == 2 and not self._seen_positive:
            raise LabelInvalid(
                f'column "{self._name}" has two values, and {self._positive!r} is neither (values '
                "withheld). Give the one that marks a positive: --positive VALUE."
            )

    @property
    def _seen_positive(self) -> bool:
        return any(_is_same(value, self._positive or "") for value in self._seen)

    def _compare(self, column: Any, positive: str) -> _Array:
        with needed_for("tables"):
            import pyarrow as pa

        kind = column.type
        if pa.types.is_decimal(kind):
            column = _nearest(column)
        elif pa.types.is_nested(kind) or pa.types.is_temporal(kind) or pa.types.is_binary(kind):
            raise ColumnTypeInvalid(
                f'column "{self._name}" must hold text, numbers or booleans; found type {kind}. '
                "Convert it first."
            )
        present = column.drop_null()
        if pa.types.is_floating(present.type):
            with needed_for("tables"):
                import pyarrow.compute as pc

            present = present.filter(pc.invert(pc.is_nan(present)))
        values = present.unique()[:3]
        self.include(values.to_pylist())
        labels = np.full(len(column), np.nan)
        for value in values:
            labels[_where(column, value)] = float(_is_same(value.as_py(), positive))
        return labels


def _is_same(value: object, text: str) -> bool:
    """Whether a value is what somebody typed: 1 and 1.0 are, and True and true."""
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    try:
        return float(str(value)) == float(text)
    except ValueError as error:
        raise SettingInvalid(
            f"the labels are numbers, and {text[:40]!r} is none. Give the number of a positive: "
            "--positive 1"
        ) from error


def _where(column: Any, value: Any) -> npt.NDArray[np.bool_]:
    """Where a column has one of its values; nulls are nowhere."""
    with needed_for("tables"):
        import pyarrow.compute as pc

    # In Kleene's logic unknown and false is false.
    return _truths(pc.and_kleene(pc.equal(column, value), column.is_valid()))


def _truths(column: Any) -> npt.NDArray[np.bool_]:
    """A column of booleans without nulls."""
    return np.from_dlpack(column.cast("uint8")).view(np.bool_)


def moments(batch: Any, name: str) -> _Array:
    """When each row was, as numbers that rise with time; missing ones are NaN."""
    with needed_for("tables"):
        import pyarrow as pa

    column = decoded(batch.column(name))
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return numbers(batch, name)
    try:
        counted = column.cast(pa.timestamp("us")).cast("int64")
    except pa.ArrowException as error:
        raise ColumnTypeInvalid(
            f'column "{name}" must hold times: numbers, dates or texts such as 2026-03-31; found '
            f"type {kind} (values withheld). Convert the column first."
        ) from error
    when = np.full(len(counted), np.nan)
    # Microseconds below 2^53 are exact: times from 1684 to 2255.
    when[_truths(counted.is_valid())] = np.from_dlpack(counted.drop_null())
    return when


def text(batch: Any, name: str) -> Any:
    """A column of names, of clients or patients."""
    with needed_for("tables"):
        import pyarrow as pa

    column = decoded(batch.column(name))
    try:
        return column.cast("string")
    except pa.ArrowException as error:
        raise ColumnTypeInvalid(
            f'column "{name}" must hold names or numbers; found type {column.type} '
            "(values withheld). Convert the column first."
        ) from error


def _nearest(column: Any) -> Any:
    """Decimals as the nearest numbers; pyarrow itself makes 0.6 a 0.6000000000000001."""
    return column.cast("string").cast("float64")


def decoded(column: Any) -> Any:
    """A column of categories as the values they stand for."""
    with needed_for("tables"):
        import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
