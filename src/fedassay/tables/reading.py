"""Scored tables in CSV and Parquet files, read in batches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.errors import (
    ColumnMissing,
    ColumnTypeInvalid,
    FileInvalid,
    LabelInvalid,
)
from fedassay.examples import (
    Examples,
    FloatArray,
    IntArray,
    ScoredClients,
    checked_scores,
)
from fedassay.grid import Grid

_BATCH_ROWS = 2**18
_BUFFER_BYTES = 2**20

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what."""

    score: str = "score"
    label: str = "label"
    client: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        wanted = (self.score, self.label, self.client)
        return list(dict.fromkeys(name for name in wanted if name is not None))


def read_clients(
    path: Path, columns: Columns, *, progress: Progress | None = None
) -> ScoredClients:
    """Read a whole table."""
    labels, scores, names = [], [], []
    for batch, examples in _checked_batches(path, columns, progress):
        labels.append(examples.labels)
        scores.append(examples.scores)
        if columns.client is not None:
            names.append(_text(batch, columns.client))
    everything = Examples.of(
        np.concatenate([np.zeros(0, np.uint8), *labels]), np.concatenate([np.zeros(0), *scores])
    ).require_rows()
    if columns.client is None:
        return ScoredClients(everything, None, len(everything))
    codes, clients = _client_codes(names)
    return ScoredClients(everything, codes, clients)


def read_reference(path: Path, columns: Columns) -> Examples | FloatArray:
    """Scores of a public reference, with labels if the file has that column."""
    if columns.label in column_names(path):
        return read_clients(path, Columns(columns.score, columns.label)).examples
    scores = [
        checked_scores(numbers(batch, columns.score))
        for batch in _batches(path, [columns.score], None)
    ]
    return np.concatenate([np.zeros(0), *scores])


def count_file(
    path: Path, columns: Columns, grid: Grid, *, progress: Progress | None = None
) -> IntArray:
    """Count a table's examples per label and cell, in memory that does not grow with its rows.

    A table without rows counts as zeros: that a client holds nothing is its own affair.
    """
    counts = np.zeros((2, grid.cells), dtype=np.int64)
    for _, examples in _checked_batches(path, columns, progress):
        counts += grid.count(examples)
    return counts


def row_count(path: Path) -> int | None:
    """How many rows a file has, where its format tells without reading it."""
    if is_csv(path):
        return None
    import pyarrow.parquet as pq

    with reading(path):
        return int(pq.read_metadata(path).num_rows)


def _checked_batches(
    path: Path, columns: Columns, progress: Progress | None
) -> Iterator[tuple[Any, Examples]]:
    """Batches with their examples; the label coding must be one over the whole file."""
    seen: set[int] = set()
    for batch in _batches(path, columns.names, progress):
        labels = numbers(batch, columns.label)
        if labels.dtype.kind != "b" and len(labels):
            seen.update(value for value in (-1, 0) if (labels == value).any())
        if seen == {-1, 0}:
            raise LabelInvalid(
                "labels must use one coding, {0, 1} or {-1, 1}; found 0, and -1 too. "
                "Map the column to two classes first."
            )
        yield batch, Examples.of(labels, numbers(batch, columns.score))


def _batches(path: Path, names: list[str], progress: Progress | None) -> Iterator[Any]:
    require_columns(path, names)
    with reading(path):
        for batch in _csv_batches(path, names) if is_csv(path) else _parquet_batches(path, names):
            yield batch
            if progress is not None:
                progress(batch.num_rows)


def _parquet_batches(path: Path, names: list[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # By default pyarrow fetches whole files, or whole row groups, ahead of decoding them.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
        yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=names)


def _csv_batches(path: Path, names: list[str]) -> Iterator[Any]:
    from pyarrow import csv

    options = csv.ConvertOptions(include_columns=names)
    with csv.open_csv(path, convert_options=options) as reader:
        yield from reader


def column_names(path: Path) -> list[str]:
    """The names of a table's columns, in order."""
    with reading(path):
        if is_csv(path):
            from pyarrow import csv

            with csv.open_csv(path) as reader:
                return list(reader.schema.names)
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)


def require_columns(path: Path, names: list[str]) -> None:
    """Raise `ColumnMissing` with a hint unless all these columns are there, once each."""
    present = column_names(path)
    for name in names:
        if present.count(name) > 1:
            raise FileInvalid(
                f'{path}: column "{name}" is there {present.count(name)} times. Rename the others.'
            )
        if name not in present:
            if any(_is_number(other) for other in present):
                raise ColumnMissing(
                    f'{path}: there is no column "{name}", and the first row holds numbers '
                    "(withheld), not names. Add a first row with column names."
                )
            close = get_close_matches(name, present, n=1, cutoff=0.5)
            hint = f'Did you mean "{close[0]}"?' if close else f"It has: {_listed(present)}."
            raise ColumnMissing(f'{path}: there is no column "{name}". {hint}')


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file into one line that withholds its values."""
    import pyarrow as pa

    try:
        if path.is_dir():
            raise FileInvalid(f"{path}: this is a folder. Pass one CSV or Parquet file.")
        yield
    except pa.ArrowInvalid as error:
        raise FileInvalid(
            f"{path}: not a readable {'CSV' if is_csv(path) else 'Parquet'} table, or a column "
            "changes its type on the way (values withheld). Check the file, or save it as Parquet."
        ) from error
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "I/O error"
        raise FileInvalid(f"{path}: cannot be read ({reason}). Check the path.") from error


def is_csv(path: Path) -> bool:
    """Whether a table's name says CSV, or else Parquet; other names are errors."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".parquet", ".pq"):
        return False
    if ".csv" in suffixes:
        return True
    raise FileInvalid(
        f"{path}: tables are .csv, .csv.gz or .parquet files. Rename or convert the file."
    )


def numbers(batch: Any, name: str) -> npt.NDArray[np.generic]:
    """A column of numbers or booleans; nulls become NaN."""
    import pyarrow as pa

    column = batch.column(name)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if pa.types.is_null(kind):
            return np.full(batch.num_rows, np.nan)
        raise ColumnTypeInvalid(
            f'column "{name}" must hold numbers or booleans; found type {kind}. '
            "Convert the column first."
        )
    if pa.types.is_boolean(kind) and column.null_count:
        column = column.cast("int8")
    values: npt.NDArray[np.generic] = column.to_numpy(zero_copy_only=False)
    return values


def _text(batch: Any, name: str) -> Any:
    import pyarrow as pa

    column = batch.column(name)
    try:
        return column.cast("string")
    except pa.ArrowException as error:
        raise ColumnTypeInvalid(
            f'column "{name}" must hold names or numbers of clients; found type {column.type} '
            "(values withheld). Convert the column first."
        ) from error


def _client_codes(names: list[Any]) -> tuple[IntArray, int]:
    import pyarrow as pa

    encoded = pa.chunked_array(names).combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
