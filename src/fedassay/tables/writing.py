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
from fedassay.tables.reading import (
    Progress,
    column_names,
    is_csv,
    numbers,
    reading,
    require_columns,
)

CALIBRATED = "calibrated"
_BATCH_ROWS = 2**18


def apply_file(
    calibrator: Calibrator,
    source: Path,
    target: Path,
    *,
    score: str = "score",
    progress: Progress | None = None,
) -> int:
    """Copy a table with one more column, `calibrated`; returns the number of rows.

    All columns stay as they are; from CSV to CSV even their text does. The target appears whole
    or not at all, in memory that does not grow with the rows.
    """
    require_columns(source, [score])
    if CALIBRATED in column_names(source):
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
            for batch in _batches(source, as_text=is_target_csv):
                with reading(source):
                    extended = _with_calibrated(batch, calibrator, score)
                if writer is None:
                    writer = _writer(draft, target, extended.schema)
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


def _with_calibrated(batch: Any, calibrator: Calibrator, score: str) -> Any:
    with needed_for("tables"):
        import pyarrow as pa

    scores = batch
    if pa.types.is_string(batch.column(score).type):
        column = batch.column(score).cast("float64")
        scores = pa.RecordBatch.from_arrays([column], names=[score])
    found = calibrator.predict(numbers(scores, score))
    return batch.append_column(CALIBRATED, pa.array(found))


def _batches(path: Path, *, as_text: bool) -> Iterator[Any]:
    with reading(path):
        if is_csv(path):
            with needed_for("tables"):
                from pyarrow import csv as arrow

            types = dict.fromkeys(column_names(path), "string") if as_text else None
            options = arrow.ConvertOptions(column_types=types)
            with arrow.open_csv(path, convert_options=options) as reader:
                yield from reader
            return
        with needed_for("tables"):
            import pyarrow.parquet as pq

        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=_BATCH_ROWS)


def _writer(draft: Path, target: Path, schema: Any) -> Any:
    if not is_csv(target):
        with needed_for("tables"):
            import pyarrow.parquet as pq

        return pq.ParquetWriter(draft, schema)
    return _CsvTarget(draft, schema.names, is_packed=target.suffix.lower() == ".gz")


class _CsvTarget:
    """A CSV file with quotes only where they are needed."""

    def __init__(self, path: Path, names: list[str], *, is_packed: bool) -> None:
        opener = gzip.open if is_packed else open
        self._stream: Any = opener(path, "wt", encoding="utf-8", newline="")
        self._writer = csv.writer(self._stream, lineterminator="\n")
        self._writer.writerow(names)

    def write_batch(self, batch: Any) -> None:
        columns = [column.to_pylist() for column in batch.columns]
        self._writer.writerows(zip(*columns, strict=True))

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
