"""What people pass to the door, turned into the library's values or refused."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from fedassay.assessment import ASSESSMENT_FORMATS, Assessment, estimates_json
from fedassay.checks import choice, require_thresholds, require_whole, shown, unknown
from fedassay.errors import (
    ColumnMissing,
    ColumnTypeInvalid,
    FileInvalid,
    LabelInvalid,
    SettingInvalid,
)
from fedassay.examples import Examples, FloatArray, IntArray, ScoredClients, checked_scores
from fedassay.extras import needed_for
from fedassay.files import as_path, parse_fraction, read_json
from fedassay.mechanisms import Privacy, Unit, UnitKind
from fedassay.planning.boundaries import reference_from
from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest
from fedassay.tables.reading import Columns, read_clients, read_reference
from fedassay.tables.values import numbers

Number = int | float | Fraction | Decimal | str
Column = npt.ArrayLike
"""A list, an array, a column of a frame; or its name, where a table is given."""


class SurveySettings(TypedDict, total=False):
    """What else a survey may be told; the planner fills in what is left out."""

    preset: Preset | str
    steps: Steps | int | str
    """One survey, two that follow each other, or "auto": two where that pays."""
    levels: LevelChoice | str
    height: int
    fanout: int
    budget: Sequence[Number] | str
    """Weights of the levels, top down, such as (2, 1)."""
    buckets: int
    colluders: int
    smallest_cell: int  # of exact sums, that is published; 0 for any
    unit: UnitKind | Unit | str
    max_examples: int
    minimum_reports: int
    dropouts: Number
    """Share of the clients that may stay away, where minimum_reports is left open."""
    positive_rate: float
    auc: float
    allow_empty: bool
    level_by_hash: bool
    model_digest: str


class NewSurveySettings(SurveySettings, total=False):
    """What a new survey may be told besides."""

    after: Assessment | str | Path
    """The assessment of a first survey, or its file: makes the second one."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Labels and scores as the door takes them: columns, or names of columns in `data`."""

    y_true: Column
    y_score: Column
    data: Any = None

    @property
    def path(self) -> Path | None:
        """The file that holds the table, where `data` names one."""
        return as_path(self.data) if isinstance(self.data, str | os.PathLike) else None

    @property
    def columns(self) -> Columns:
        """The names of the columns."""
        return Columns(_name(self.y_score, "y_score"), _name(self.y_true, "y_true"))

    def examples(self) -> Examples:
        """The rows, checked."""
        if self.path is not None:
            return read_clients(self.path, self.columns).examples
        labels = column(self.y_true, self.data, "y_true")
        return Examples(labels, column(self.y_score, self.data, "y_score")).require_rows()

    def scored_clients(self, clients: Column | None) -> ScoredClients:
        """The rows with the client that holds each."""
        if self.path is not None:
            names = self.columns
            owner = None if clients is None else _name(clients, "clients")
            return read_clients(self.path, Columns(names.score, names.label, owner))
        examples = self.examples()
        if clients is None:
            return ScoredClients(examples, None, len(examples))
        codes, count = client_codes(clients, self.data)
        if len(codes) != len(examples):
            raise LabelInvalid(
                f"there must be one client per row; found {len(codes)} clients and "
                f"{len(examples)} rows. Pass columns of the same table."
            )
        return ScoredClients(examples, codes, count)


def survey_request(
    settings: Mapping[str, Any],
    *,
    privacy: Privacy | str,
    epsilon: Number | None,
    is_simulated: bool = False,
    **given: Any,
) -> SurveyRequest:
    """A request from friendly settings; an unknown name is refused with the list."""
    known = SurveySettings.__annotations__
    for name in settings:
        if name not in known:
            raise SettingInvalid(unknown(name, known, "a survey's setting"))
    asked = {name: value for name, value in {**settings, **given}.items() if value is not None}
    unit = as_unit(asked.pop("unit", UnitKind.EXAMPLE), asked.pop("max_examples", 1))
    if "budget" in asked:
        asked["budget"] = as_shares(asked["budget"])
    if "dropouts" in asked:
        asked["dropouts"] = as_fraction(asked["dropouts"], "the share of dropouts")
    if "reference" in asked:
        asked["reference"] = as_reference(asked["reference"], is_simulated=is_simulated)
    return SurveyRequest(
        **asked
        | {
            "privacy": choice(Privacy, privacy, "privacy"),
            "epsilon": None if epsilon is None else as_fraction(epsilon, "epsilon"),
            "preset": choice(Preset, asked.get("preset", Preset.DEFAULT), "preset"),
            "steps": as_steps(asked.get("steps", Steps.AUTO)),
            "levels": choice(LevelChoice, asked.get("levels", LevelChoice.EVERY), "levels"),
            "unit": unit,
        }
    )


def as_fraction(value: Number, name: str) -> Fraction:
    """An exact number: a float means the decimal that it is written as.

    >>> as_fraction(0.1, "epsilon"), as_fraction("1/3", "epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, str):
        return parse_fraction(value.strip(), name)
    number: object = value
    if isinstance(number, int | float | Decimal | np.integer | np.floating) and not isinstance(
        number, bool
    ):
        # A numpy number writes itself as Python's do.
        with suppress(ValueError):
            return Fraction(str(number))
    raise SettingInvalid(
        f"{name} must be a number such as 1, 0.5 or Fraction(1, 3), or a text such as "
        f'"1/3"; found {shown(value)}.'
    )


def as_shares(budget: Sequence[Number] | str) -> tuple[Fraction, ...]:
    """Weights such as (2, 1) or "2,1" as shares that add up to 1."""
    items: Iterable[Number] = budget.split(",") if isinstance(budget, str) else budget
    if not isinstance(items, Iterable):
        raise SettingInvalid(f"a budget is weights such as (2, 1); found {shown(budget)}.")
    weights = [as_fraction(item, "a share of the budget") for item in items]
    if not weights or min(weights) <= 0:
        raise SettingInvalid(
            f"shares of a budget must be positive; found {shown(budget)}. Write (2, 1)."
        )
    return tuple(weight / sum(weights) for weight in weights)


def as_unit(unit: UnitKind | Unit | str, max_examples: int) -> Unit:
    """The unit of privacy from its name."""
    if isinstance(unit, Unit):
        return unit
    return Unit(choice(UnitKind, unit, "unit"), require_whole(max_examples, "max_examples", 1))


def as_thresholds(thresholds: float | Iterable[float]) -> tuple[float, ...]:
    """Decision thresholds, each once; one alone may stand for itself."""
    if isinstance(thresholds, str | bytes | bool | None):
        raise SettingInvalid(
            f"thresholds are numbers in [0, 1]; found {shown(thresholds)}. Write [0.3, 0.5]."
        )
    given = list(thresholds) if isinstance(thresholds, Iterable) else [thresholds]
    require_thresholds(given)
    return tuple(dict.fromkeys(map(float, given)))


def as_steps(steps: Steps | int | str) -> Steps:
    """How many surveys ask for the scores: 1, 2, or "auto".

    >>> as_steps(2), as_steps("auto")
    (<Steps.TWO: '2'>, <Steps.AUTO: 'auto'>)
    """
    is_number = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
    return choice(Steps, str(steps) if is_number else steps, "steps")


def as_reference(
    reference: Any, *, columns: Columns | None = None, is_simulated: bool = False
) -> Examples | FloatArray:
    """Scores whose quantiles shape a grid: a file, rows, (labels, scores), scores, or a result.

    An earlier assessment, or its file, stands in for public scores. Exact ones are for
    simulations alone.
    """
    if is_assessment(reference):
        return reference_of(as_assessment(reference), is_simulated=is_simulated)
    if isinstance(reference, Examples):
        rows: Examples | FloatArray = reference
    elif isinstance(reference, str | os.PathLike):
        rows = read_reference(as_path(reference), Columns() if columns is None else columns)
    elif isinstance(reference, tuple) and len(reference) == 2:
        rows = Examples(*(column(each, None, "a reference") for each in reference)).require_rows()
    else:
        rows = checked_scores(column(reference, None, "a reference"))
    scores = rows.scores if isinstance(rows, Examples) else rows
    if len(scores) > 1 and scores.min() == scores.max():
        raise SettingInvalid(
            "a reference says where scores lie; all of this one are equal. "
            "Pass the scores of a model on public rows, or leave it out."
        )
    return rows


def reference_of(assessment: Assessment, *, is_simulated: bool = False) -> Examples:
    """Where an earlier assessment found the scores.

    Guarantee: post-processing of what was released, with noise or in cells of at least the
    survey's smallest; nothing more is spent. Other exact assessments are refused, except in
    simulations: a grid would publish quantiles of their rows.
    """
    if assessment.survey.is_exact and not assessment.survey.smallest_cell and not is_simulated:
        raise SettingInvalid(
            "a survey made after an exact assessment publishes quantiles of its rows; found one "
            "without noise or smallest cell. Use a differentially private one, or public scores."
        )
    return reference_from(assessment.histogram())


def is_assessment(value: object) -> bool:
    """Whether this is an assessment, or a path that is named like the file of one."""
    if isinstance(value, Assessment):
        return True
    return isinstance(value, str | os.PathLike) and as_path(value).suffix == ".json"


def as_assessment(given: Assessment | str | Path) -> Assessment:
    """An assessment, or the one in a file whose figures follow from its counters."""
    if isinstance(given, Assessment):
        return given
    if not isinstance(given, str | os.PathLike):
        raise SettingInvalid(
            f"an assessment, or a path to one, is wanted; found {shown(type(given))}. "
            "Pass what fedassay.tally_answers gave."
        )
    path = as_path(given)
    assessment = Assessment.load(path)
    written = read_json(path, ASSESSMENT_FORMATS)["estimates"]
    if not isinstance(written, dict) or not _follows(written, assessment):
        raise FileInvalid(
            f"{path}: the figures in an assessment follow from its counters; these do not. It was "
            "edited, or another version of fedassay wrote it: make it again with fedassay tally."
        )
    return assessment


def _follows(written: dict[str, Any], assessment: Assessment) -> bool:
    """Whether a file's figures are those of its counters, as far as both have them."""
    for name, fresh in estimates_json(assessment.estimates()).items():
        there = written.get(name, fresh)
        value = there.get("value") if isinstance(there, dict) else there
        if value is None or fresh["value"] is None:
            if value is not fresh["value"]:
                return False
        elif not isinstance(value, int | float) or not np.isclose(
            value, fresh["value"], rtol=1e-6, atol=1e-9
        ):
            return False
    return True


def column(values: Column, data: Any, what: str) -> npt.NDArray[np.generic]:
    """One column of numbers: as given, or by name out of a table."""
    if data is None:
        if isinstance(values, str):
            raise SettingInvalid(
                f"{what} names a column, but there is no table; found {shown(values)}. "
                "Pass the table as data=, or the column itself."
            )
        return _numbers_of(values, what)
    return _from_table(data, _name(values, what), what)


def _name(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    raise SettingInvalid(
        f"with data=, {what} is the name of one of its columns; found {shown(type(value))}. "
        "Pass names with data=, or columns without it."
    )


def _from_table(data: Any, name: str, what: str) -> npt.NDArray[np.generic]:
    names = _column_names(data)
    if name not in names:
        raise ColumnMissing(unknown(name, names[:20], "a column of the table"))
    if isinstance(data, Mapping) or not hasattr(data, "column_names"):
        return _numbers_of(data[name], what)
    batches = data.select([name]).to_batches()
    return np.concatenate([np.zeros(0), *(numbers(batch, name) for batch in batches)])


def _column_names(data: Any) -> list[str]:
    """The names of a table's columns: of a mapping, a pandas or polars frame, an Arrow table."""
    if isinstance(data, Mapping):
        return list(data)
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if names is None or not hasattr(data, "__getitem__"):
        raise SettingInvalid(
            "data is a path, a frame of pandas or polars, a mapping of columns, or any table with "
            f"__arrow_c_stream__; found {type(data).__name__}. Convert it first."
        )
    return [str(name) for name in names]


def as_table(data: Any) -> Any:
    """A table whose columns can be taken by name; what only streams is gathered by pyarrow."""
    streams = hasattr(data, "__arrow_c_stream__")
    if not streams or hasattr(data, "columns") or hasattr(data, "column_names"):
        return data
    with needed_for("tables that stream Arrow data"):
        import pyarrow as pa

    return pa.table(data)


def _numbers_of(values: Any, what: str) -> npt.NDArray[np.generic]:
    """A column as numbers or booleans; what is missing becomes NaN."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ColumnTypeInvalid(
            f"{what} must be one column of numbers; found rows of different lengths. "
            "Pass a list, an array or a column of a table."
        ) from error
    if array.dtype != object or not hasattr(values, "to_numpy"):
        return array
    # Nullable columns of pandas come as objects; missing values are NaN in numbers.
    try:
        return np.asarray(values.to_numpy(dtype="float64", na_value=np.nan))
    except (TypeError, ValueError):
        return array


def client_codes(clients: Column, data: Any) -> tuple[IntArray, int]:
    """The number of each row's client, in order of appearance, and how many there are.

    >>> client_codes(["b", "a", "b"], None)
    (array([0, 1, 0]), 2)
    """
    if data is not None:
        name = _name(clients, "clients")
        names = _column_names(data)
        if name not in names:
            raise ColumnMissing(unknown(name, names[:20], "a column of the table"))
        values = data[name]
    else:
        if isinstance(clients, str):
            column(clients, None, "clients")
        values = clients
    listed = values.to_pylist() if hasattr(values, "to_pylist") else np.asarray(values)
    if np.ndim(listed) != 1:
        raise ColumnTypeInvalid(
            f"clients must be one column of names or numbers; found {np.ndim(listed)} dimensions. "
            "Pass one name for each row."
        )
    array = np.asarray(listed)
    if array.dtype.kind in "iubSU":
        _, first, codes = np.unique(array, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[codes], len(first)
    # Names and missing ones of any kind: all missing ones are one client, as in files.
    place: dict[object, int] = {}
    numbered = [place.setdefault(None if item != item else item, len(place)) for item in listed]  # noqa: PLR0124
    return np.array(numbered, dtype=np.int64), len(place)
