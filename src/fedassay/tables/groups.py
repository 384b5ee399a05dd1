"""Which group each row of a table is in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedassay.examples import IntArray
from fedassay.extras import needed_for
from fedassay.group_names import GroupNames
from fedassay.survey import Survey
from fedassay.tables.columns import Columns
from fedassay.tables.values import decoded


def columns_for(survey: Survey, columns: Columns) -> Columns:
    """The columns that a survey asks of, its groups' included where nobody named another."""
    if survey.groups is None:
        return replace(columns, group=None)
    return replace(columns, group=columns.group or survey.groups.column)


def group_codes(batch: Any, column: str, groups: GroupNames) -> IntArray:
    """The number of each row's part."""
    numbers, values = _encoded(batch, column)
    codes: IntArray = groups.codes(values)[numbers]
    return codes


class GroupColumn:
    """Collects which group each row is in, batch by batch, where nobody named the groups."""

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._batches: list[tuple[IntArray, Sequence[object]]] = []

    def add(self, batch: Any) -> None:
        """Keep what a batch says."""
        if self._column is not None:
            self._batches.append(_encoded(batch, self._column))

    def groups(self) -> GroupNames | None:
        """All values that there are; raises `SettingInvalid` where they are too many."""
        if self._column is None:
            return None
        return GroupNames.of(self._column, [each for _, seen in self._batches for each in seen])

    def codes(self, groups: GroupNames) -> IntArray:
        """The number of each row's part."""
        parts = [groups.codes(values)[numbers] for numbers, values in self._batches]
        return np.concatenate([np.zeros(0, np.int64), *parts])


def _encoded(batch: Any, column: str) -> tuple[IntArray, Sequence[object]]:
    """Each row's value by its number among those that there are."""
    with needed_for("tables"):
        import pyarrow as pa

    values = decoded(batch.column(column))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), [None]
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.from_dlpack(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()
