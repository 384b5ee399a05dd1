"""A calibrator over a whole table, batch by batch."""

import csv
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedassay.calibration import Calibrator
from fedassay.errors import FileInvalid
from fedassay.extras import needed_for
from fedassay.tables.columns import Columns
from fedassay.tables.names import require_columns
from fedassay.tables.sources import Progress, batches, column_names, is_csv, reading, separator
from fedassay.tables.values import scores

CALIBRATED = "calibrated"


def apply_file(
    calibrator: Calibrator,
    source: Path,
    target: Path,
    columns: Columns,
    *,
    progress: Progress | None = None,
) -> int:
    """Copy a table with one more column, `calibrated`; returns the number of rows.

    All columns stay as they are; from CSV to CSV even their text does. The target appears whole
    or not at all, in memory that does not grow with the rows.
    """
    require_columns(source, columns, [columns.score])
    if CALIBRATED in column_names(source, columns):
        raise FileInvalid(
            f'{source}: there is a column "{CALIBRATED}" already. Rename it, or apply the '
            "calibrator to the original table."
        )
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    is_target_csv = is_csv(target)
    rows = 0
    with _removed_on_error(draft, target):
        writer = None
        try:
            # From CSV to CSV columns travel as text, so that 007 stays 007.
            for batch in batches(source, columns, None, as_text=is_target_csv):
                with reading(source):
                    extended = _with_calibrated(batch, calibrator, columns)
                if writer is None:
                    writer = _writer(draft, target, extended.schema, columns)
                writer.write_batch(extended)
                rows += batch.num_rows
                if progress is not None:
                    progress(batch.num_rows)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise FileInvalid(f"{source}: the table has no rows. Pass one with scores.")
        draft.replace(target)
    return rows


def _with_calibrated(batch: Any, calibrator: Calibrator, columns: Columns) -> Any:
    with needed_for("tables"):
        import pyarrow as pa
        import pyarrow.compute as pc

    scored = batch
    if pa.types.is_string(batch.column(columns.score).type):
        text = pc.utf8_trim_whitespace(batch.column(columns.score))
        column = pc.if_else(pc.equal(text, ""), None, text)
        column = pc.replace_substring(column, columns.decimal, ".").cast("float64")
        scored = pa.RecordBatch.from_arrays([column], names=[columns.score])
    probabilities = calibrator.predict(scores(scored, columns))
    return batch.append_column(CALIBRATED, pa.array(probabilities))


def _writer(draft: Path, target: Path, schema: Any, columns: Columns) -> Any:
    if not is_csv(target):
        with needed_for("tables"):
            import pyarrow.parquet as pq

        return pq.ParquetWriter(draft, schema)
    return _CsvTarget(draft, schema.names, columns, target)


class _CsvTarget:
    """A CSV file with quotes only where they are needed, in the notation of its source."""

    def __init__(self, draft: Path, names: list[str], columns: Columns, target: Path) -> None:
        opener = gzip.open if target.suffix.lower() == ".gz" else open
        self._stream: Any = opener(draft, "wt", encoding="utf-8", newline="")
        self._decimal = columns.decimal
        self._writer = csv.writer(
            self._stream, delimiter=separator(target, columns), lineterminator="\n"
        )
        self._writer.writerow(names)

    def write_batch(self, batch: Any) -> None:
        values = [column.to_pylist() for column in batch.columns]
        if self._decimal != ".":
            values = [[self._written(value) for value in column] for column in values]
        self._writer.writerows(zip(*values, strict=True))

    def _written(self, value: object) -> object:
        return repr(value).replace(".", self._decimal) if isinstance(value, float) else value

    def close(self) -> None:
        self._stream.close()


@contextmanager
def _removed_on_error(draft: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise FileInvalid(
            f"{target}: cannot be written ({error.strerror}). Choose a folder you may write to."
        ) from error
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
