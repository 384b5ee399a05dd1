"""Scored tables in CSV and Parquet files, read in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedassay.errors import ScoreOutOfRange, SettingInvalid, ValueMissing
from fedassay.examples import (
    MOST_NAMED,
    Examples,
    FloatArray,
    IntArray,
    ScoredClients,
    checked_scores,
    client_names,
)
from fedassay.extras import needed_for
from fedassay.grid import Grid
from fedassay.patient_rows import check_patients, limited_rows
from fedassay.randomness import Randomness
from fedassay.survey import Survey
from fedassay.survey_cells import count_rows
from fedassay.tables.columns import Columns
from fedassay.tables.groups import GroupColumn, columns_for, group_codes
from fedassay.tables.names import require_columns
from fedassay.tables.patients import PatientColumns
from fedassay.tables.sources import Progress, batches, column_names, row_count
from fedassay.tables.values import LabelReader, scores, text

__all__ = [
    "Columns",
    "Progress",
    "checked_batches",
    "count_file",
    "count_patients_file",
    "count_survey_file",
    "read_both",
    "read_clients",
    "read_reference",
    "row_count",
]


def read_clients(
    path: Path, columns: Columns, *, progress: Progress | None = None
) -> ScoredClients:
    """Read a whole table."""
    labels, values, names = [], [], []
    people, grouping = PatientColumns(path, columns), GroupColumn(columns.group)
    for batch, examples in checked_batches(path, columns, progress):
        people.add(batch)
        grouping.add(batch)
        labels.append(examples.labels)
        values.append(examples.scores)
        if columns.client is not None:
            names.append(text(batch, columns.client))
    everything = Examples(
        np.concatenate([np.zeros(0, np.uint8), *labels]), np.concatenate([np.zeros(0), *values])
    ).require_rows()
    groups = grouping.groups()
    if groups is not None:
        everything = everything.in_groups(grouping.codes(groups))
    patients, times = people.patients(), people.times()
    if columns.client is None:
        return ScoredClients(everything, None, len(everything), (), patients, times, groups)
    codes, clients, called = _client_codes(names)
    return ScoredClients(everything, codes, clients, called, patients, times, groups)


def read_both(
    path: Path, columns: Columns, *, progress: Progress | None = None
) -> tuple[ScoredClients, Examples]:
    """Read a whole table that two models scored: with the first's scores, and with the second's."""
    if columns.second is None:
        raise SettingInvalid(
            "two models' scores are in two columns; found one. Name both (--score a=COL --score "
            "b=COL)."
        )
    one = replace(columns, second=None, models=None)
    first = read_clients(path, one, progress=progress)
    other = replace(one, score=columns.second, client=None, patient=None, time=None)
    return first, read_clients(path, other).examples


def read_reference(path: Path, columns: Columns) -> Examples | FloatArray:
    """Scores of a public reference, with labels if the file has that column."""
    if columns.label in column_names(path, columns):
        return read_clients(path, replace(columns, client=None)).examples
    require_columns(path, columns, [columns.score])
    values = [np.zeros(0)]
    for batch in batches(path, columns, [columns.score]):
        try:
            values.append(checked_scores(scores(batch, columns)))
        except ScoreOutOfRange as error:
            raise _out_of_range(path, columns, sum(map(len, values))) from error
        except ValueMissing as error:
            raise _missing(path, columns, [columns.score]) from error
    return np.concatenate(values)


def count_file(
    path: Path, columns: Columns, grid: Grid, *, progress: Progress | None = None
) -> IntArray:
    """Count a table's examples per label and cell, in memory that does not grow with its rows.

    A table without rows counts as zeros: that a client holds nothing is its own affair.
    """
    counts = np.zeros((2, grid.cells), dtype=np.int64)
    for _, examples in checked_batches(path, columns, progress):
        counts += grid.count(examples)
    return counts


def count_survey_file(
    path: Path, columns: Columns, survey: Survey, *, progress: Progress | None = None
) -> IntArray:
    """As `count_file`, in a survey's cells, which are the grid's for each of its groups."""
    if survey.groups is None:
        return count_file(path, columns_for(survey, columns), survey.grid, progress=progress)
    counts = np.zeros((2, survey.leaves), dtype=np.int64)
    for examples in survey_batches(path, columns, survey, progress):
        counts += count_rows(survey, examples)
    return counts


def survey_batches(
    path: Path,
    columns: Columns,
    survey: Survey,
    progress: Progress | None = None,
    *,
    row_groups: Sequence[int] | None = None,
    coding: LabelReader | None = None,
) -> Iterator[Examples]:
    """A table's examples batch by batch, with the groups that a survey tells apart.

    Of a Parquet file some row groups, where they are named; whoever reads a table in parts
    gives the reader of labels too, and checks their coding over all of it.
    """
    asked = columns_for(survey, columns)
    found = checked_batches(path, asked, progress, row_groups=row_groups, coding=coding)
    for batch, examples in found:
        if survey.groups is None or asked.group is None:
            yield examples
        else:
            yield examples.in_groups(group_codes(batch, asked.group, survey.groups))


def count_patients_file(
    path: Path,
    columns: Columns,
    survey: Survey,
    *,
    randomness: Randomness,
    progress: Progress | None = None,
) -> tuple[IntArray, int]:
    """Counts per label and cell of the rows that the unit lets count, and how many they are.

    Guarantee: see `patient_rows.kept_rows`. Whose rows they are is needed at once, so that
    scores, labels and patients of all rows are held: some 40 bytes a row.
    """
    check_patients(
        survey, has_patients=columns.patient is not None, has_times=columns.time is not None
    )
    asked = columns_for(survey, columns)
    found = PatientColumns(path, asked)
    labels, scores, codes = [np.zeros(0, np.uint8)], [np.zeros(0)], [np.zeros(0, np.int64)]
    for batch, examples in checked_batches(path, asked, progress):
        found.add(batch)
        labels.append(examples.labels)
        scores.append(examples.scores)
        if survey.groups is not None and asked.group is not None:
            codes.append(group_codes(batch, asked.group, survey.groups))
    rows = Examples(np.concatenate(labels), np.concatenate(scores))
    kept = limited_rows(
        survey,
        rows if survey.groups is None else rows.in_groups(np.concatenate(codes)),
        patients=found.patients(),
        times=found.times(),
        randomness=randomness,
    )
    return count_rows(survey, kept), len(kept)


def checked_batches(
    path: Path,
    columns: Columns,
    progress: Progress | None,
    *,
    row_groups: Sequence[int] | None = None,
    coding: LabelReader | None = None,
) -> Iterator[tuple[Any, Examples]]:
    """Batches with their examples; the label coding must be one over the whole file."""
    require_columns(path, columns, columns.names)
    reader, rows = LabelReader(columns) if coding is None else coding, 0
    for batch in batches(path, columns, columns.names, row_groups=row_groups):
        try:
            examples = _examples(reader.read(batch), batch, columns)
        except ScoreOutOfRange as error:
            raise _out_of_range(path, columns, rows) from error
        except ValueMissing as error:
            named = [columns.score, columns.second, columns.label]
            raise _missing(path, columns, [name for name in named if name is not None]) from error
        yield batch, examples
        rows += batch.num_rows
        if progress is not None:
            progress(batch.num_rows)
    if coding is None:
        reader.finish()


def _examples(labels: Any, batch: Any, columns: Columns) -> Examples:
    """A batch's labels and scores; two models' scores as the joint cell that they lie in."""
    first = Examples(labels, scores(batch, columns))
    if columns.second is None or columns.pair is None:
        return first
    of_second = replace(columns, score=columns.second)
    return columns.pair.examples(first, Examples(labels, scores(batch, of_second)))


def _out_of_range(path: Path, columns: Columns, rows_before: int) -> ScoreOutOfRange:
    """What to say of a score that is too large or negative, and in which part of the file."""
    where = f" after row {rows_before:,}" if rows_before else ""
    return ScoreOutOfRange(
        f'{path}: scores must lie in [0, {columns.scale:g}]; some in column "{columns.score}"'
        f"{where} do not (values withheld). Map scores to probabilities first; percentages are "
        "read with --scale 100."
    )


def _missing(path: Path, columns: Columns, names: list[str]) -> ValueMissing:
    """How many values a file lacks, counted over all of it."""
    with needed_for("tables"):
        import pyarrow as pa
        import pyarrow.compute as pc

    rows, lacking = 0, dict.fromkeys(names, 0)
    for batch in batches(path, columns, list(lacking)):
        rows += batch.num_rows
        for name in lacking:
            column = batch.column(name)
            gaps = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
            lacking[name] += pc.sum(gaps).as_py() or 0
    told = " and ".join(f'{gaps:,} in column "{name}"' for name, gaps in lacking.items() if gaps)
    return ValueMissing(
        f"{path}: every row needs a score and a label; of {rows:,} rows, {told} are missing "
        "(empty or NaN). Drop these rows, or fill them in, first."
    )


def _client_codes(names: list[Any]) -> tuple[IntArray, int, tuple[str, ...]]:
    with needed_for("tables"):
        import pyarrow as pa

    encoded = pa.chunked_array(names).combine_chunks().dictionary_encode(null_encoding="encode")
    clients = len(encoded.dictionary)
    listed = encoded.dictionary.to_pylist() if clients <= MOST_NAMED else []
    return np.from_dlpack(encoded.indices).astype(np.int64), clients, client_names(listed)
