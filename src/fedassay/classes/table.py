"""Rows of many classes read from CSV and Parquet files."""

from pathlib import Path
from typing import Any

import numpy as np

from fedassay.classes.rows import ClassRows, chosen_columns
from fedassay.classes.tallies import ClassCohort
from fedassay.errors import ValueMissing
from fedassay.examples import MOST_NAMED, client_names
from fedassay.extras import needed_for
from fedassay.tables.columns import Columns
from fedassay.tables.names import require_columns
from fedassay.tables.patients import PatientColumns
from fedassay.tables.sources import Progress, batches, column_names
from fedassay.tables.values import numbers, text


def read_class_cohort(
    path: Path,
    scores: str,
    columns: Columns,
    *,
    classes: tuple[str, ...] | None = None,
    progress: Progress | None = None,
) -> ClassCohort:
    """Read a whole table; `scores` is a pattern of columns such as p*, or a list of them."""
    wanted, suffixes = chosen_columns(scores, column_names(path, columns))
    others = [name for name in columns.names if name != columns.score]
    names = list(dict.fromkeys([*wanted, *others]))
    require_columns(path, columns, others)
    people = PatientColumns(path, columns)
    matrices: list[Any] = [np.zeros((0, len(wanted)))]
    labels: list[Any] = []
    held: list[Any] = []
    for batch in batches(path, columns, names):
        people.add(batch)
        matrices.append(
            np.stack([np.asarray(numbers(batch, each), np.float64) for each in wanted], axis=1)
        )
        labels.append(text(batch, columns.label))
        if columns.client is not None:
            held.append(text(batch, columns.client))
        if progress is not None:
            progress(batch.num_rows)
    codes, called = _coded(labels)
    if None in called:
        missing = int((codes == called.index(None)).sum())
        raise ValueMissing(
            f"{path}: every row needs a label; {missing:,} of {len(codes):,} in column "
            f'"{columns.label}" are missing. Drop these rows, or fill them in, first.'
        )
    raw = np.array(called, dtype=object)[codes] if len(codes) else np.zeros(0)
    rows = ClassRows(raw, np.concatenate(matrices) / columns.scale, classes or suffixes)
    patients, times = people.patients(), people.times()
    if columns.client is None:
        return ClassCohort.of(rows, patient_of_row=patients, time_of_row=times)
    owners, owned_by = _coded(held)
    kept = client_names(owned_by) if len(owned_by) <= MOST_NAMED else ()
    return ClassCohort.of(rows, owners, names=kept, patient_of_row=patients, time_of_row=times)


def _coded(chunks: list[Any]) -> tuple[Any, list[Any]]:
    """The number of each value, in order of appearance, and the values."""
    with needed_for("tables"):
        import pyarrow as pa

    if not chunks:
        return np.zeros(0, dtype=np.int64), []
    encoded = pa.chunked_array(chunks).combine_chunks().dictionary_encode(null_encoding="encode")
    return np.from_dlpack(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()
