"""CSV and Parquet files as batches of columns."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedassay.errors import FileInvalid
from fedassay.extras import needed_for
from fedassay.tables.columns import Columns

BATCH_ROWS = 2**18
_BUFFER_BYTES = 2**20

Progress = Callable[[int], None]


def batches(
    path: Path,
    columns: Columns,
    names: list[str] | None,
    *,
    as_text: bool = False,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Some columns of a table, or all (None), batch by batch; CSV with its very text if asked.

    With row groups, those of a Parquet file alone.
    """
    with reading(path):
        if is_csv(path):
            yield from _csv_batches(path, columns, names, as_text=as_text)
        else:
            yield from _parquet_batches(path, names, row_groups)


def column_names(path: Path, columns: Columns) -> list[str]:
    """The names of a table's columns, in order."""
    with reading(path):
        if is_csv(path):
            with needed_for("tables"):
                from pyarrow import csv

            # Rows that do not fit matter later: names are what tells a wrong separator.
            parsing = csv.ParseOptions(
                delimiter=separator(path, columns), invalid_row_handler=lambda _: "skip"
            )
            with csv.open_csv(path, parse_options=parsing) as reader:
                return list(reader.schema.names)
        with needed_for("tables"):
            import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)


def row_count(path: Path) -> int | None:
    """How many rows a file has, where its format tells without reading it."""
    if is_csv(path):
        return None
    with reading(path):
        with needed_for("tables"):
            import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_rows)


def separator(path: Path, columns: Columns) -> str:
    """What stands between a CSV file's values."""
    if columns.separator is not None:
        return columns.separator
    if _has_suffix(path, ".tsv"):
        return "\t"
    return ";" if columns.decimal == "," else ","


def is_csv(path: Path) -> bool:
    """Whether a table's name says CSV, or else Parquet; other names are errors."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return False
    if _has_suffix(path, ".csv") or _has_suffix(path, ".tsv"):
        return True
    raise FileInvalid(
        f"{path}: tables are .csv, .tsv, .csv.gz or .parquet files. Rename or convert the file."
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file into one line that withholds its values."""
    with needed_for("tables"):
        import pyarrow as pa

    try:
        if path.is_dir():
            raise FileInvalid(f"{path}: this is a folder. Pass one CSV or Parquet file.")
        if path.exists() and path.is_file() and path.stat().st_size == 0:
            raise FileInvalid(
                f"{path}: the file is empty. Pass a table with column names and rows."
            )
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise FileInvalid(f"{path}: {_trouble(path)}") from error
    except (OSError, pa.ArrowException) as error:
        code = error.errno if isinstance(error, OSError) else None
        reason = "I/O error" if code is None else os.strerror(code)
        raise FileInvalid(f"{path}: cannot be read ({reason}). Check the path.") from error


def _trouble(path: Path) -> str:
    if not is_csv(path):
        return "not a readable Parquet table (values withheld). Check the file, or save it as CSV."
    return (
        "not a readable CSV table in UTF-8: rows differ in length, or a column changes its type on "
        "the way (values withheld). Check the file, its separator and decimal mark "
        "(--separator, --decimal), or save it as Parquet."
    )


def _has_suffix(path: Path, suffix: str) -> bool:
    return suffix in [each.lower() for each in path.suffixes]


def _parquet_batches(
    path: Path, names: list[str] | None, row_groups: Sequence[int] | None
) -> Iterator[Any]:
    with needed_for("tables"):
        import pyarrow.parquet as pq

    # By default pyarrow fetches whole files, or whole row groups, ahead of decoding them.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
        yield from file.iter_batches(
            batch_size=BATCH_ROWS,
            columns=names,
            row_groups=row_groups,
            use_threads=row_groups is None,
        )


def _csv_batches(
    path: Path, columns: Columns, names: list[str] | None, *, as_text: bool
) -> Iterator[Any]:
    with needed_for("tables"):
        from pyarrow import csv

    types = dict.fromkeys(column_names(path, columns), "string") if as_text else None
    converting = csv.ConvertOptions(
        include_columns=names, column_types=types, decimal_point=columns.decimal
    )
    parsing = csv.ParseOptions(delimiter=separator(path, columns))
    with csv.open_csv(path, convert_options=converting, parse_options=parsing) as reader:
        yield from reader
