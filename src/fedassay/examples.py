"""Scores with labels, checked once: the only place where raw data is validated."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_type, require_whole
from fedassay.errors import (
    ColumnTypeInvalid,
    LabelInvalid,
    NoRows,
    ScoreOutOfRange,
    SettingInvalid,
    ValueMissing,
)
from fedassay.group_names import GroupNames

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
LabelArray = npt.NDArray[np.uint8]
MOST_NAME = 200
"""Letters of a client's name."""
MOST_NAMED = 2**16
"""Names of more clients than this are not kept: they are devices, and not sites."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Examples:
    """Scores in [0, 1] with labels 0 or 1, as read-only arrays of equal length.

    Making one checks raw labels and scores; messages withhold their values.

    >>> examples = Examples([0, 1, 1], [0.2, 0.62, 1.0])
    >>> examples.positives, len(examples.rows(slice(2)))
    (2, 2)
    """

    labels: LabelArray
    scores: FloatArray
    groups: IntArray | None
    """The number of each row's part of `GroupNames.parts`, where rows are told apart by groups."""

    def __init__(self, y_true: npt.ArrayLike, y_score: npt.ArrayLike) -> None:
        scores = checked_scores(y_score)
        labels = checked_labels(y_true)
        if len(labels) != len(scores):
            raise LabelInvalid(
                f"there must be one label per score; found {len(labels)} labels and "
                f"{len(scores)} scores. Pass columns of the same table."
            )
        self._hold(labels, scores, None)

    def _hold(self, labels: LabelArray, scores: FloatArray, groups: IntArray | None) -> None:
        for name, column in (("labels", labels), ("scores", scores), ("groups", groups)):
            if column is not None:
                column.flags.writeable = False
            object.__setattr__(self, name, column)

    def in_groups(self, codes: IntArray) -> "Examples":
        """The same rows, each with the number of its group."""
        if len(codes) != len(self):
            raise SettingInvalid(
                f"there must be one group per row; found {len(codes)} groups and {len(self)} rows. "
                "Pass columns of the same table."
            )
        grouped = object.__new__(Examples)
        grouped._hold(self.labels, self.scores, codes.copy())
        return grouped

    def rows(self, index: slice | npt.NDArray[np.generic]) -> "Examples":
        """Some of these rows, by position or mask; they were checked before."""
        chosen = object.__new__(Examples)
        groups = None if self.groups is None else self.groups[index]
        chosen._hold(self.labels[index], self.scores[index], groups)
        return chosen

    def __repr__(self) -> str:
        return f"<Examples: {len(self):,} rows>"

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def positives(self) -> int:
        """How many labels are 1."""
        return int(np.count_nonzero(self.labels))

    def require_rows(self) -> "Examples":
        """Return self, or raise `NoRows` when there is nothing to count."""
        if len(self) == 0:
            raise NoRows(
                "at least one row is needed; found none. Check the file and any filter "
                "applied before it."
            )
        return self


@dataclass(frozen=True, slots=True, eq=False)
class ScoredClients:
    """Rows with the client that holds each; without a client column each row is one."""

    examples: Examples
    client_of_row: IntArray | None
    clients: int
    names: tuple[str, ...] = ()
    """What the clients are called, in the order of their numbers; empty where nobody said."""
    patient_of_row: IntArray | None = None
    """The number of each row's patient, where the table says whose it is."""
    time_of_row: FloatArray | None = None
    """When each row was, as numbers that rise with time."""
    groups: GroupNames | None = None
    """What the groups of the rows are called, where the rows are in groups."""

    def __post_init__(self) -> None:
        require_type(
            self.examples, Examples, "a cohort's examples", "Pass Examples(y, s).", withhold=True
        )
        require_whole(self.clients, "a cohort's clients", 0)
        if len(self.names) not in (0, self.clients):
            raise SettingInvalid(
                f"there must be one name for each of {self.clients} clients; found "
                f"{len(self.names)}. Leave names out, or name all."
            )
        rows = len(self.examples)
        for what, column in (("patient", self.patient_of_row), ("time", self.time_of_row)):
            if column is not None and len(column) != rows:
                raise SettingInvalid(
                    f"there must be one {what} for each of {rows} rows; found {len(column)}. "
                    "Pass columns of the same table."
                )
        owner: Any = self.client_of_row
        if owner is None:
            if self.clients < rows:
                raise SettingInvalid(
                    f"without a client column each of {rows} rows is a client; found "
                    f"{self.clients} clients. Say which client holds each row."
                )
            return
        fits = isinstance(owner, np.ndarray) and owner.shape == (rows,) and owner.dtype.kind in "iu"
        if not fits or (rows and not (owner.min() >= 0 and owner.max() < self.clients)):
            raise SettingInvalid(
                f"a cohort needs the number of a client, from 0 to {self.clients - 1}, for each "
                f"of {rows} rows; found something else. Number the clients from 0."
            )

    def rows(self, kept: IntArray) -> "ScoredClients":
        """Some of these rows, by number, with all clients."""
        return replace(
            self,
            examples=self.examples.rows(kept),
            client_of_row=None if self.client_of_row is None else self.client_of_row[kept],
            patient_of_row=None if self.patient_of_row is None else self.patient_of_row[kept],
            time_of_row=None if self.time_of_row is None else self.time_of_row[kept],
        )

    def names_of(self, numbers: IntArray) -> tuple[str, ...]:
        """The names of these clients, where they have names."""
        return tuple(self.names[number] for number in numbers) if self.names else ()


def client_names(values: Iterable[object]) -> tuple[str, ...]:
    """What clients are called, from the values of a column: short, and each name once.

    >>> client_names(["north", 7, "7", None])
    ('north', '7', '7 (2)', '(no name)')
    """
    names: dict[str, None] = {}
    for value in values:
        plain = "(no name)" if value is None else str(value)[:MOST_NAME] or "(no name)"
        name, times = plain, 1
        while name in names:
            times += 1
            name = f"{plain[: MOST_NAME - 12]} ({times})"
        names[name] = None
    return tuple(names)


def checked_scores(y_score: npt.ArrayLike) -> FloatArray:
    """Return scores as float64 in [0, 1], or say which item breaks the rule."""
    raw = _one_column(y_score, "scores")
    if raw.dtype.kind not in "fiub":
        raise ColumnTypeInvalid(
            f"scores must be numbers in [0, 1]; found type {raw.dtype}. Convert the column first."
        )
    scores = np.array(raw, dtype=np.float64)
    # A comparison with NaN is false, so this one test also finds NaN.
    if len(scores) and not (scores.min() >= 0.0 and scores.max() <= 1.0):
        _require_values(scores, "score")
        wrong = ~((scores >= 0.0) & (scores <= 1.0))
        first = int(np.argmax(wrong))
        raise ScoreOutOfRange(
            f"scores must lie in [0, 1]; item {first + 1} of {len(scores)} does not, "
            f"{int(np.count_nonzero(wrong))} in all (values withheld). "
            "Divide percentages by 100; map other scores to probabilities first."
        )
    return scores


def checked_labels(y_true: npt.ArrayLike) -> LabelArray:
    """Return labels as 0 or 1, or say which item is neither."""
    raw = _one_column(y_true, "labels")
    if raw.dtype.kind == "b":
        return raw.astype(np.uint8)
    if raw.dtype.kind not in "fiu":
        raise ColumnTypeInvalid(
            "labels must be {0, 1}, {-1, 1} or booleans; found type "
            f"{raw.dtype}. Convert the column first."
        )
    if raw.dtype.kind in "iu" and len(raw) and raw.min() >= 0 and raw.max() <= 1:
        small: LabelArray = raw.astype(np.uint8)
        return small
    ones = raw == 1
    zeros = raw == 0
    minus = raw == -1
    known = ones | zeros | minus
    if not known.all():
        _require_values(raw, "label")
        first = int(np.argmin(known))
        raise LabelInvalid(
            f"labels must be {{0, 1}}, {{-1, 1}} or booleans; item {first + 1} of {len(raw)} is "
            "none of these (value withheld). Map the column to two classes first."
        )
    if zeros.any() and minus.any():
        raise LabelInvalid(
            "labels must use one coding, {0, 1} or {-1, 1}; found 0, and -1 too. "
            "Map the column to two classes first."
        )
    labels: LabelArray = ones.astype(np.uint8)
    return labels


def _one_column(values: npt.ArrayLike, what: str) -> npt.NDArray[np.generic]:
    try:
        raw = np.asarray(values)
    except ValueError as error:
        raise ColumnTypeInvalid(
            f"{what} must be one column of numbers; found rows of different lengths. "
            "Pass a list, an array or a column of a table."
        ) from error
    if raw.ndim == 0:
        raise ColumnTypeInvalid(
            f"{what} must be one column of numbers; found a single {type(values).__name__}. "
            "Pass a list, an array or a column of a table."
        )
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != 1:
        raise ColumnTypeInvalid(
            f"{what} must be one column; found an array with {raw.ndim} dimensions. "
            "For predict_proba output, pass the positive class: proba[:, 1]."
        )
    return raw


def _require_values(values: npt.NDArray[np.generic], what: str) -> None:
    """Raise `ValueMissing` where numbers are NaN, which is how tables leave a value out."""
    missing = np.isnan(values.astype(np.float64))
    if missing.any():
        raise ValueMissing(
            f"every row needs a {what}; {int(np.count_nonzero(missing)):,} of {len(values):,} are "
            "missing (NaN). Drop these rows, or fill them in, first."
        )
