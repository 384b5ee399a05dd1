"""Columns by name: what is missing, what could be meant, and names that are values in truth."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fedassay.errors import ColumnMissing, FileInvalid
from fedassay.extras import needed_for
from fedassay.tables.columns import LABEL, SCORE, Columns
from fedassay.tables.sources import batches, column_names, is_csv, separator

_SHOWN = 20
_LONGEST = 40
# Numbers in any notation, dates, times, and what stands for a missing one.
_VALUE = re.compile(
    r"[-+.,' %:/0-9]*[0-9][-+.,' %:/0-9]*(e[-+]?[0-9]+|t[0-9:.+z]+)?|[-+]?inf|nan|null|true|false",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The columns to read, and what to tell people where they were chosen by content."""

    columns: Columns
    note: str = ""


def require_columns(path: Path, columns: Columns, names: list[str]) -> None:
    """Raise `ColumnMissing` with a remedy unless all these columns are there, once each."""
    present = column_names(path, columns)
    for name in names:
        if present.count(name) > 1:
            raise FileInvalid(
                f'{path}: column "{name}" is there {present.count(name)} times. Rename the others.'
            )
        if name not in present:
            raise ColumnMissing(_missing(path, columns, present, name))


def choose_columns(
    path: Path, columns: Columns, *, unnamed: Collection[str], optional: Collection[str] = ()
) -> Choice:
    """Find the columns that nobody named, by content, where only one can be meant.

    `unnamed` and `optional` hold "score" or "label" or both. Scores are the only column of
    numbers in [0, scale] with more than two values, labels the only column with two.
    """
    present = column_names(path, columns)
    wanted = [name for name in (SCORE, LABEL) if name in unnamed and name not in present]
    is_odd = len(set(present)) < len(present) or _looks_like_values(present)
    if not wanted or is_odd or _other_separator(path, columns, present):
        return Choice(columns)
    named = {columns.client, columns.patient, columns.time, columns.group}
    named |= {columns.score} if SCORE not in wanted else set()
    named |= {columns.label} if LABEL not in wanted else set()
    contents = _contents(path, columns, [name for name in present if name not in named])
    taken: dict[str, str] = {}
    for what in wanted:
        fitting = [name for name, content in contents.items() if what == content.could_be]
        if len(fitting) == 1:
            taken[what] = fitting[0]
        elif what not in optional:
            could_be = f"these could be it: {listed(fitting)}" if fitting else "none looks like it"
            raise ColumnMissing(
                f'{path}: there is no column "{what}", and {could_be}. It has: {listed(present)}. '
                f"Name the column of the {what}s (--{what} COL)."
            )
    if not taken:
        return Choice(columns)
    options = " and ".join(f"--{what}" for what in taken)
    note = " and ".join(f'{what}s from column "{name}"' for what, name in taken.items())
    return Choice(
        replace(
            columns,
            score=taken.get(SCORE, columns.score),
            label=taken.get(LABEL, columns.label),
        ),
        f"{path}: took {note}; no other fits. Name others with {options}.",
    )


def listed(names: list[str]) -> str:
    """Names of columns, unless they look like values, which stay with their owner."""
    if _looks_like_values(names):
        return f"{len(names)} columns (names withheld: some look like values)"
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..." for name in names]
    return ", ".join(shown[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _missing(path: Path, columns: Columns, present: list[str], name: str) -> str:
    start = f'{path}: there is no column "{name}"'
    if _looks_like_values(present):
        return (
            f"{start}, and the first row holds values (withheld), not names. Add a first row with "
            "column names."
        )
    if mark := _other_separator(path, columns, present):
        shown = "tab" if mark == "\t" else f"'{mark}'"
        return (
            f"{start}: the whole line is one column. Save it with commas, or try "
            f"--separator {shown}."
        )
    close = get_close_matches(name, present, n=1, cutoff=0.75)
    meant = f' Did you mean "{close[0]}"?' if close else ""
    names = {columns.score: "score", columns.label: "label", columns.client: "client"}
    return (
        f"{start}.{meant} It has: {listed(present)}. "
        f"Name the column of the {names.get(name, 'score')}s (--{names.get(name, 'score')} COL)."
    )


def _other_separator(path: Path, columns: Columns, present: list[str]) -> str:
    """What seems to separate a file whose separator leaves it in one column; or nothing."""
    if len(present) > 1 or not is_csv(path):
        return ""
    used = separator(path, columns)
    return next((mark for mark in ";\t|," if mark != used and mark in present[0]), "")


def _looks_like_values(names: list[str]) -> bool:
    """Whether the first row of a file is data: then its names are values of a row."""
    # A wrong separator leaves a whole row in one name.
    return any(_is_value(part) for name in names for part in (name, *re.split(r"[;,\t|]", name)))


def _is_value(name: str) -> bool:
    return _VALUE.fullmatch(name.strip().strip("\"'")) is not None


@dataclass(slots=True)
class _Content:
    """What a column holds, as far as it matters: its range, and up to three distinct values."""

    in_range: bool = True
    distinct: tuple[object, ...] = ()

    @property
    def could_be(self) -> str | None:
        if len(self.distinct) == 2:
            return LABEL
        return SCORE if self.in_range and len(self.distinct) > 2 else None

    def add(self, column: Any, scale: float) -> None:
        with needed_for("tables"):
            import pyarrow as pa
            import pyarrow.compute as pc

        column = column.drop_null()
        if pa.types.is_floating(column.type):
            column = column.filter(pc.invert(pc.is_nan(column)))
        if len(self.distinct) < 3:
            distinct = dict.fromkeys((*self.distinct, *column.unique()[:3].to_pylist()))
            self.distinct = tuple(distinct)[:3]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            self.in_range = self.in_range and len(column) == 0
        elif self.in_range and len(column):
            ends = pc.min_max(column).as_py()
            self.in_range = ends["min"] >= 0 and ends["max"] <= scale


def _contents(path: Path, columns: Columns, names: list[str]) -> dict[str, _Content]:
    with needed_for("tables"):
        import pyarrow as pa

    contents = {name: _Content() for name in names}
    for batch in batches(path, columns, names) if names else ():
        for name in names:
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            if pa.types.is_nested(column.type):
                contents.pop(name, None)
            else:
                contents[name].add(column, columns.scale)
    return contents
