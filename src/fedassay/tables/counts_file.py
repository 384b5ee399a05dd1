"""Counts that a warehouse made: a CSV file with the columns label, cell and n.

Whatever stands in it is checked against the survey before anything is charged: every cell of both
labels once, whole numbers, nothing left over. Messages name lines and rules, never a count.
"""

import csv
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import IntArray
from fedassay.files import read_bytes
from fedassay.survey import MAX_CLIENTS, Survey
from fedassay.tables.split_rows import splits_rows

COLUMNS = ("label", "cell", "n")
_BYTES_PER_CELL = 96
_WHOLE = re.compile(r"(-?[0-9]{1,15})(\.0{1,9})?")
_NOT_COUNTED = -1
_FIRST_MARK = 2**30


def edges_mark(survey: Survey) -> int:
    """A number beyond any cell that stands for a survey's edges, and for no others.

    A query may add it to its result, as a cell of no label that holds nothing.

    >>> from fedassay import new_survey
    >>> edges_mark(new_survey(privacy="site", epsilon=1, height=1))
    1429629082
    """
    digest = hashlib.sha256(survey.grid.edges.astype("<f8").tobytes()).digest()
    return _FIRST_MARK + int.from_bytes(digest[:4]) % _FIRST_MARK


def read_counts(path: Path, survey: Survey) -> IntArray:
    """Counts per label and cell of a survey's grid, from the result of `counts_query`.

    Whose cells they are is checked by `edges_mark`, where that is there.
    """
    require_plain_cells(survey)
    cells, mark = survey.grid.cells, edges_mark(survey)
    counts = np.full((2, cells), _NOT_COUNTED, dtype=np.int64)
    for line, (label, cell, n) in _lines(path, most=2 * cells + 4):
        if n < 0:
            raise FileInvalid(f"{path}: counts are 0 or more; line {line} has less. {_ASK_AGAIN}")
        if label == _NOT_COUNTED and cell >= _FIRST_MARK and cell != mark:
            raise FileInvalid(
                f"{path}: these are counts between other edges than this survey's, by line {line}. "
                "Ask with the query of this survey: fedassay sql survey.json --dialect NAME."
            )
        if _NOT_COUNTED in {label, cell}:
            if n:
                raise FileInvalid(_stray(path, label))
            continue
        if label not in (0, 1):
            raise FileInvalid(f"{path}: labels are 0 and 1; line {line} has another. {_ASK_AGAIN}")
        if not 0 <= cell < cells:
            raise FileInvalid(
                f"{path}: this survey has the cells 0 to {cells - 1:,}; line {line} has another. "
                "Ask with the query of this survey: fedassay sql survey.json --dialect NAME."
            )
        if counts[label, cell] != _NOT_COUNTED:
            raise FileInvalid(
                f"{path}: each cell of a label is counted once; line {line} has one again. "
                f"{_ASK_AGAIN}"
            )
        counts[label, cell] = n
    missing = int((counts == _NOT_COUNTED).sum())
    if missing:
        raise FileInvalid(
            f"{path}: every cell of both labels must be there, empty ones too, {2 * cells:,} in "
            f"all; {missing:,} are missing. {_ASK_AGAIN}"
        )
    if counts.sum() > MAX_CLIENTS:
        raise FileInvalid(
            f"{path}: a client counts at most {MAX_CLIENTS:,} rows; these are more. "
            "Split the table over several clients."
        )
    return counts


def require_plain_cells(survey: Survey) -> None:
    """Raise unless counts per label and cell are all that a survey needs of a table."""
    if splits_rows(survey):
        raise SettingInvalid(
            "each row answers one of these two surveys by its number in the table; counts do not "
            "say whose turn it is. Answer from the table, or make a survey with --steps 1."
        )
    if survey.leaves != survey.grid.cells or survey.pair is not None:
        raise SettingInvalid(
            "this survey has cells beside those of one score, as for groups or two models; a query "
            "counts one score. Answer from the table: fedassay answer survey.json scores.parquet."
        )


_ASK_AGAIN = "Run the query of fedassay sql again, and export its whole result."


def _stray(path: Path, label: int) -> str:
    if label == _NOT_COUNTED:
        return (
            f"{path}: labels must be 0 or 1, or booleans; some rows have another or none. Name the "
            "label of positives (fedassay sql --positive VALUE), or leave such rows out of the "
            "table that is asked."
        )
    return (
        f"{path}: scores must lie from 0 to 1; some rows have another or none. Repair the scores, "
        "or leave such rows out of the table that is asked."
    )


def _lines(path: Path, *, most: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """The file's rows with their line numbers, as whole numbers."""
    data = read_bytes(path, most=_BYTES_PER_CELL * (most + 1))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileInvalid(
            f"{path}: must be a CSV file in UTF-8; it is not. Export it so."
        ) from error
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if sorted(header) != sorted(COLUMNS):
            raise FileInvalid(
                f"{path}: the first line must name the columns label, cell and n; it does not. "
                f"{_ASK_AGAIN}"
            )
        order = [header.index(name) for name in COLUMNS]
        for row in reader:
            if not row:
                continue
            found = [_WHOLE.fullmatch(entry.strip()) for entry in row]
            if len(row) != len(COLUMNS) or None in found:
                raise FileInvalid(
                    f"{path}: every line has three whole numbers; line {reader.line_num} does "
                    f"not. {_ASK_AGAIN}"
                )
            numbers = [int(each.group(1)) for each in found if each is not None]
            yield reader.line_num, (numbers[order[0]], numbers[order[1]], numbers[order[2]])
    except csv.Error as error:
        raise FileInvalid(f"{path}: is no CSV file. {_ASK_AGAIN}") from error
