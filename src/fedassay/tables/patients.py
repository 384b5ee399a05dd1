"""Whose each row of a table is, and when it was, where patients are protected."""

from pathlib import Path
from typing import Any

import numpy as np

from fedassay.errors import ValueMissing
from fedassay.examples import FloatArray, IntArray
from fedassay.extras import needed_for
from fedassay.tables.columns import Columns
from fedassay.tables.values import moments, text


class PatientColumns:
    """Collects whose each row is, and when it was, batch by batch."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._columns = path, columns
        self._patients: list[Any] = []
        self._times = [np.zeros(0)]

    def add(self, batch: Any) -> None:
        """Keep what a batch says."""
        if self._columns.patient is not None:
            self._patients.append(_named(batch, self._columns.patient))
        if self._columns.time is not None:
            self._times.append(np.asarray(moments(batch, self._columns.time), np.float64))

    def patients(self) -> IntArray | None:
        """The number of each row's patient; raises `ValueMissing` where one has none."""
        if self._columns.patient is None:
            return None
        with needed_for("tables"):
            import pyarrow as pa
            import pyarrow.compute as pc

        names = pa.chunked_array(self._patients, pa.string()).combine_chunks()
        blank = pc.or_kleene(pc.is_null(names), pc.equal(pc.utf8_trim_whitespace(names), ""))
        self._require(pc.sum(blank).as_py() or 0, len(names), self._columns.patient, "patient")
        return np.from_dlpack(names.dictionary_encode().indices).astype(np.int64)

    def times(self) -> FloatArray | None:
        """When each row was; raises `ValueMissing` where that is not said."""
        if self._columns.time is None:
            return None
        times = np.concatenate(self._times)
        self._require(int(np.isnan(times).sum()), len(times), self._columns.time, "time")
        return times

    def _require(self, missing: int, rows: int, column: str, what: str) -> None:
        if missing:
            raise ValueMissing(
                f"{self._path}: where patients are protected every row needs a {what}; of {rows:,} "
                f'rows, {missing:,} in column "{column}" are missing (empty or NaN). Drop these '
                "rows, or fill them in, first."
            )


def _named(batch: Any, name: str) -> Any:
    """Names of patients as text; a number that is none is a missing one."""
    with needed_for("tables"):
        import pyarrow as pa
        import pyarrow.compute as pc

    column = batch.column(name)
    names = text(batch, name)
    if not pa.types.is_floating(column.type):
        return names
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.string()), names)
