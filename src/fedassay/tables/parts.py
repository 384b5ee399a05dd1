"""A table of many files counted part by part, in any order, by any number of workers.

A part is a file, or some row groups of a large Parquet file. What one worker counts of a part is a
`PartCount`; they add up in any order to what one reader counts of the whole table, and rules that
hold for the whole table (one coding of labels) are checked on the sum. What is wrong with a part
travels as a value, not as an exception: a scheduler would try again what cannot succeed.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from operator import add
from os import PathLike, cpu_count
from pathlib import Path
from threading import Lock

import numpy as np

from fedassay.errors import FedassayError, FileInvalid, SettingInvalid
from fedassay.examples import IntArray
from fedassay.extras import needed_for
from fedassay.patient_rows import limits_patients
from fedassay.survey import Survey
from fedassay.survey_cells import count_rows
from fedassay.tables.columns import Columns, columns_of_pair
from fedassay.tables.groups import columns_for
from fedassay.tables.reading import count_survey_file, survey_batches
from fedassay.tables.sources import Progress, is_csv, reading
from fedassay.tables.split_rows import splits_rows
from fedassay.tables.values import LabelReader

PART_ROWS = 2**22
"""Row groups of a Parquet file are gathered until a part has about so many rows."""
_THREAD_ROWS = 2**20
"""Threads cost less to start than tasks of a cluster."""
_MOST_THREADS = 8
_WHOLE_BYTES = 2**23
"""Smaller files are one part, without a look at their row groups."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """A file, or some row groups of it, and its place in the order of all parts."""

    number: int
    path: Path
    row_groups: tuple[int, ...] | None = None
    """None for all of the file."""


@dataclass(frozen=True, slots=True, eq=False)
class PartCount:
    """Rows of some parts counted, and what a rule for the whole table must know of them."""

    counts: IntArray
    labels: frozenset[object] = frozenset()
    """Label values that decide on the coding; they stay with the rows' owner."""
    trouble: tuple[int, FedassayError] | None = None
    """What is wrong, and the number of the part: of several the first."""

    def __add__(self, other: "PartCount") -> "PartCount":
        troubles = [each for each in (self.trouble, other.trouble) if each is not None]
        first = min(troubles, key=lambda each: each[0], default=None)
        return PartCount(self.counts + other.counts, self.labels | other.labels, first)

    def checked(self, columns: Columns) -> IntArray:
        """The counts of a whole table, or what is wrong with it as an error."""
        if self.trouble is not None:
            raise self.trouble[1]
        coding = LabelReader(columns)
        coding.include(self.labels)
        coding.finish()
        return self.counts


@dataclass(frozen=True, slots=True)
class PartCounter:
    """Counts parts in a survey's cells; travels to workers, and reads nothing before it is called.

    >>> import fedassay
    >>> counter = PartCounter(fedassay.new_survey(smallest_cell=0, height=1), Columns())
    >>> counter.none.counts.tolist()
    [[0, 0], [0, 0]]
    """

    survey: Survey
    columns: Columns

    @classmethod
    def of(cls, survey: Survey, columns: Columns) -> "PartCounter":
        """The counter for a survey whose counts add up over parts; others are refused."""
        if limits_patients(survey) or splits_rows(survey):
            whose = f"protects {survey.unit}" if limits_patients(survey) else "asks each row once"
            raise SettingInvalid(
                f"this survey {whose}, which takes all rows of a table at once; parts are counted "
                "one by one. Answer from one file, without --engine."
            )
        return cls(survey, columns_for(survey, columns_of_pair(survey, columns)))

    @property
    def none(self) -> PartCount:
        """What there is in no part at all."""
        return PartCount(np.zeros((2, self.survey.leaves), dtype=np.int64))

    def __call__(self, part: TablePart) -> PartCount:
        """Count one part, in memory that does not grow with its rows."""
        counts, coding = self.none.counts, LabelReader(self.columns)
        batches = survey_batches(
            part.path, self.columns, self.survey, row_groups=part.row_groups, coding=coding
        )
        try:
            for examples in batches:
                counts += count_rows(self.survey, examples)
        except FedassayError as error:
            return replace(self.none, trouble=(part.number, error))
        return PartCount(counts, coding.seen)

    def total(self, counted: Iterable[PartCount]) -> IntArray:
        """The counts of a whole table, from those of its parts."""
        return reduce(add, counted, self.none).checked(self.columns)


def table_parts(
    paths: Iterable[str | PathLike[str]], *, part_rows: int | None = None
) -> list[TablePart]:
    """The parts of a table: of files, and of all tables in folders, by name.

    Names that begin with a dot or an underscore are what other programs leave beside tables.
    """
    rows = PART_ROWS if part_rows is None else part_rows
    files = [file for path in paths for file in _files(Path(path))]
    pieces = [piece for file in files for piece in _pieces(file, rows)]
    return [TablePart(number, *piece) for number, piece in enumerate(pieces)]


def count_in_threads(
    path: Path, columns: Columns, survey: Survey, *, progress: Progress | None = None
) -> IntArray:
    """As `reading.count_survey_file`, with the row groups of a large Parquet file side by side.

    Memory does not grow with rows: each thread holds one batch, and one sum.
    """
    parts = table_parts([path], part_rows=_THREAD_ROWS) if path.is_file() else []
    threads = min(cpu_count() or 1, len(parts), _MOST_THREADS)
    if threads < 2:
        return count_survey_file(path, columns, survey, progress=progress)
    counter, todo, turn = PartCounter.of(survey, columns), iter(parts), Lock()

    def work() -> PartCount:
        total = counter.none
        while total.trouble is None:
            with turn:
                part = next(todo, None)
            if part is None:
                break
            counted = counter(part)
            total += counted
            with turn:
                if progress is not None:
                    progress(int(counted.counts.sum()))
        return total

    with ThreadPoolExecutor(threads) as pool:
        counted = [each.result() for each in [pool.submit(work) for _ in range(threads)]]
    try:
        return counter.total(counted)
    except FedassayError:
        # What is wrong is told by one reader, which knows how many rows lie before it.
        return count_survey_file(path, columns, survey)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        is_csv(path)
        return [path]
    found = [
        each
        for each in sorted(path.rglob("*"))
        if each.is_file() and not each.name.startswith((".", "_"))
    ]
    if not found:
        raise FileInvalid(
            f"{path}: this folder holds no table. Pass one with .parquet or .csv files."
        )
    for each in found:
        is_csv(each)
    return found


def _pieces(path: Path, part_rows: int) -> Iterator[tuple[Path, tuple[int, ...] | None]]:
    """A file as a whole, or its row groups in runs of about so many rows."""
    with reading(path):
        if is_csv(path) or path.stat().st_size < _WHOLE_BYTES:
            yield path, None
            return
        with needed_for("tables"):
            import pyarrow.parquet as pq

        found = pq.read_metadata(path)
        rows = [found.row_group(group).num_rows for group in range(found.num_row_groups)]
    runs: dict[int, list[int]] = {}
    for group, before in enumerate(accumulate(rows[:-1], initial=0)):
        runs.setdefault(before // part_rows, []).append(group)
    for run in runs.values():
        yield path, tuple(run)
