"""Rows with one probability for each class, checked once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from fedassay.checks import shown
from fedassay.errors import (
    ColumnMissing,
    ColumnTypeInvalid,
    LabelInvalid,
    NoRows,
    ScoreOutOfRange,
    SettingInvalid,
    ValueMissing,
)
from fedassay.examples import Examples, FloatArray, IntArray

MOST_CLASSES = 1000
SUM_TOLERANCE = 1e-3
"""How far from 1 a row's probabilities may sum up: four decimals, or 32 bits, stay within."""
_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class ClassRows:
    """Rows with a label among the classes, and a probability for each of them.

    Making one checks raw labels and probabilities; messages withhold their values.

    >>> rows = ClassRows(["a", "c"], [[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]], ["a", "b", "c"])
    >>> rows.labels.tolist(), rows.predicted.tolist()
    ([0, 2], [0, 1])
    """

    names: tuple[str, ...]
    labels: IntArray
    """The number of each row's class."""
    scores: FloatArray
    """Row x class."""

    def __init__(
        self, y_true: npt.ArrayLike, y_scores: npt.ArrayLike, names: Sequence[object]
    ) -> None:
        called = checked_names(names)
        scores = _checked_probabilities(y_scores, len(called))
        labels = _checked_labels(y_true, called)
        if len(labels) != len(scores):
            raise LabelInvalid(
                f"there must be one label for each row of probabilities; found {len(labels)} "
                f"labels and {len(scores)} rows. Pass columns of the same table."
            )
        if not len(labels):
            raise NoRows(
                "at least one row is needed; found none. Check the file and any filter applied "
                "before it."
            )
        for name, value in (("names", called), ("labels", labels), ("scores", scores)):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<ClassRows: {len(self):,} rows of {self.classes:,} classes>"

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, index: IntArray) -> "ClassRows":
        """Some of these rows, by position; they were checked before."""
        chosen = object.__new__(ClassRows)
        for name, value in (
            ("names", self.names),
            ("labels", self.labels[index]),
            ("scores", self.scores[index]),
        ):
            object.__setattr__(chosen, name, value)
        return chosen

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.names)

    @property
    def predicted(self) -> IntArray:
        """The number of the most probable class, of equals the first."""
        top: IntArray = self.scores.argmax(axis=1)
        return top

    def one_vs_rest(self, number: int) -> Examples:
        """One class as the positive one."""
        return Examples(self.labels == number, self.scores[:, number])

    def top_label(self) -> Examples:
        """Whether the most probable class is right, by its probability."""
        return Examples(self.predicted == self.labels, self.scores.max(axis=1))


def checked_names(names: Sequence[object]) -> tuple[str, ...]:
    """The classes' names as texts: three or more, and no two alike.

    >>> checked_names([0, 1, 2])
    ('0', '1', '2')
    """
    called = tuple(_as_name(name) for name in names)
    if len(called) == 1:
        raise SettingInvalid(
            "a probability is needed for each of three classes or more; found one class. One "
            "score of a binary classifier is read with --score COL (fedassay.simulate)."
        )
    if len(called) == 2:
        raise SettingInvalid(
            "more than two classes are needed; found two, which one score describes at half the "
            "cost. Use that of the second class: --score COL (fedassay.simulate)."
        )
    if not 3 <= len(called) <= MOST_CLASSES:
        raise SettingInvalid(
            f"there are from 3 to {MOST_CLASSES:,} classes; found {len(called):,}. Every example "
            "is heard on all of them, and beyond that even the exact figures drown in their own "
            "number: join rare classes first."
        )
    repeated = len(called) - len(set(called))
    if repeated:
        raise SettingInvalid(
            f"classes must have different names; {repeated} of {len(called)} repeat another. "
            "Rename them."
        )
    return called


def names_of_columns(columns: Sequence[str], pattern: str | None = None) -> tuple[str, ...]:
    """Classes by the suffix of their columns: what a pattern's star stands for, or what differs.

    >>> names_of_columns(["p0", "p1", "p10"]), names_of_columns(["p_cat", "p_car", "p_dog"])
    (('0', '1', '10'), ('cat', 'car', 'dog'))
    >>> names_of_columns(["score_a", "score_b"], "score_*")
    ('a', 'b')
    """
    if pattern is not None and pattern.count("*") == 1:
        before, after = pattern.split("*")
        return tuple(name[len(before) : len(name) - len(after) or None] for name in columns)
    numbered = [_NUMBERED.fullmatch(name) for name in columns]
    if len({match[1] if match else None for match in numbered}) == 1 and all(numbered):
        return tuple(match[2] for match in numbered if match)
    least, most = min(columns), max(columns)
    shared = least[: next((i for i, c in enumerate(least) if c != most[i : i + 1]), len(least))]
    cut = max((shared.rfind(mark) for mark in "_.-/: "), default=-1) + 1
    return tuple(name[cut:] for name in columns)


def chosen_columns(scores: str, present: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns that `--scores` means, and the classes that they stand for.

    >>> chosen_columns("p*", ["p0", "p1", "p2", "label"])
    (['p0', 'p1', 'p2'], ('0', '1', '2'))
    """
    if "*" in scores and "," not in scores:
        if scores.count("*") != 1:
            raise SettingInvalid(
                f"a pattern of columns has one star, where the classes differ; found {scores!r}. "
                "Write 'p*', or list the columns: p0,p1,p2."
            )
        columns = [name for name in present if fnmatchcase(name, scores)]
        if not columns:
            raise ColumnMissing(
                f"no column of the table is called like {scores!r}; there are: "
                f"{', '.join(present[:20])}. Give another pattern."
            )
        return columns, names_of_columns(columns, scores)
    columns = [name.strip() for name in scores.split(",") if name.strip()]
    missing = [name for name in columns if name not in present]
    if missing:
        raise ColumnMissing(
            f"the table has no column {missing[0]!r}; there are: {', '.join(present[:20])}. "
            "Give others to --scores."
        )
    return columns, names_of_columns(columns)


def _checked_probabilities(y_scores: npt.ArrayLike, classes: int) -> FloatArray:
    raw = np.asarray(y_scores)
    if raw.dtype.kind not in "fiub":
        raise ColumnTypeInvalid(
            f"probabilities must be numbers in [0, 1]; found type {raw.dtype}. Convert them first."
        )
    if raw.ndim != 2 or raw.shape[1] != classes:
        raise SettingInvalid(
            f"probabilities have one row for each example and one column for each of {classes} "
            f"classes; found shape {raw.shape}. Pass such a matrix."
        )
    scores = np.array(raw, dtype=np.float64)
    missing = int(np.isnan(scores).any(axis=1).sum())
    if missing:
        raise ValueMissing(
            f"every row needs a probability for each class; {missing:,} of {len(scores):,} rows "
            "lack some (empty or NaN). Drop these rows, or fill them in, first."
        )
    outside = int(((scores < 0.0) | (scores > 1.0)).any(axis=1).sum())
    if outside:
        raise ScoreOutOfRange(
            f"probabilities must lie in [0, 1]; those of {outside:,} of {len(scores):,} rows do "
            "not (values withheld). Apply softmax to logits; divide percentages by 100."
        )
    off = int((np.abs(scores.sum(axis=1) - 1.0) > SUM_TOLERANCE).sum())
    if off:
        raise ScoreOutOfRange(
            f"a row's probabilities must sum up to 1, within {SUM_TOLERANCE:g}; those of {off:,} "
            f"of {len(scores):,} rows do not (values withheld). Name all classes, or divide each "
            "row by its sum."
        )
    return scores


def _checked_labels(y_true: npt.ArrayLike, names: tuple[str, ...]) -> IntArray:
    raw = np.asarray(y_true)
    if raw.ndim != 1:
        raise LabelInvalid(
            f"labels must be one column; found {raw.ndim} dimensions. Pass one label for each row."
        )
    if raw.dtype.kind not in "fiubUO":
        raise ColumnTypeInvalid(
            f"labels must be names or numbers of classes; found type {raw.dtype}. Convert them."
        )
    missing = sum(item is None or item != item for item in raw) if raw.dtype.kind in "fO" else 0  # noqa: PLR0124
    if missing:
        raise ValueMissing(
            f"every row needs a label; {missing:,} of {len(raw):,} are missing (empty or NaN). "
            "Drop these rows, or fill them in, first."
        )
    place = {name: number for number, name in enumerate(names)}
    plain = raw.astype(str) if raw.dtype.kind == "O" else raw
    values, rows = np.unique(plain, return_inverse=True)
    known = np.array([place.get(_as_name(value), -1) for value in values.tolist()], dtype=np.int64)
    labels = known[rows]
    outside = int((labels < 0).sum())
    if outside:
        raise LabelInvalid(
            f"labels must be among the {len(names)} classes {_listed(names)}; {outside:,} of "
            f"{len(labels):,} are not (values withheld). Give a column for every class, or drop "
            "these rows."
        )
    return labels


def _as_name(value: object) -> str:
    """A class as it is called: 2 and 2.0 and "2" are one."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool | int | float | np.generic):
        text = str(value.item() if isinstance(value, np.generic) else value)
    else:
        raise SettingInvalid(
            f"a class is called by a text or a number; found {shown(type(value))}. Rename it."
        )
    return text[:-2] if re.fullmatch(r"-?\d+\.0", text) else text


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
