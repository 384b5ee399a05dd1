"""What people pass to the door, turned into the library's values or refused."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from fedassay.api_columns import column
from fedassay.assessment import ASSESSMENT_FORMATS, Assessment
from fedassay.checks import choice, require_thresholds, require_whole, shown, unknown
from fedassay.errors import (
    FileInvalid,
    SettingInvalid,
)
from fedassay.estimate_json import estimates_json
from fedassay.examples import (
    Examples,
    FloatArray,
    checked_scores,
)
from fedassay.files import as_path, parse_fraction, read_json
from fedassay.group_names import GroupNames, group_name
from fedassay.mechanisms import Keep, Privacy, Unit, UnitKind
from fedassay.planning.boundaries import reference_from
from fedassay.planning.request import LevelChoice, Preset, Steps, SurveyRequest
from fedassay.report.material import ReportDetails
from fedassay.tables.reading import Columns, read_reference

Number = int | float | Fraction | Decimal | str


_FRACTIONS = {
    "dropouts": "the share of dropouts",
    "delta": "delta",
    "largest_local_epsilon": "the largest local epsilon",
}


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
    keep: Keep | str
    """Which rows of a patient count: "random" or "latest"."""
    minimum_reports: int
    dropouts: Number
    """Share of the clients that may stay away, where minimum_reports is left open."""
    positive_rate: float
    auc: float
    allow_empty: bool
    level_by_hash: bool
    delta: Number  # under shuffled privacy: the chance that epsilon says nothing about
    largest_local_epsilon: Number
    """Under shuffled privacy: the most that a report may cost alone (5)."""
    sum_only: bool
    """Under site privacy: whether nobody may see more than the sum over sites all the same."""
    site_moments: bool
    """Under secure privacy: whether sites add up moments of their metrics; their spread shows."""
    model_digest: str
    groups: GroupNames | Mapping[str, Sequence[object]]
    """Groups that are told apart: {"sex": ["F", "M"]}."""


class ReportWords(TypedDict, total=False):
    """What only people know of an assessment; all may be left out."""

    title: str
    model: str
    outcome: str
    population: str
    period: str
    invited: int | None


class NewSurveySettings(SurveySettings, total=False):
    """What a new survey may be told besides."""

    after: Assessment | str | Path
    """The assessment of a first survey, or its file: makes the second one."""
    paired: bool | Sequence[str]  # of two models on the same rows; or what these are called


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
    unit = as_unit(
        asked.pop("unit", UnitKind.EXAMPLE),
        asked.pop("max_examples", 1),
        asked.pop("keep", Keep.RANDOM),
    )
    if "budget" in asked:
        asked["budget"] = as_shares(asked["budget"])
    for name, what in _FRACTIONS.items():
        if name in asked:
            asked[name] = as_fraction(asked[name], what)
    if "reference" in asked:
        asked["reference"] = as_reference(asked["reference"], is_simulated=is_simulated)
    if "groups" in asked:
        asked["groups"] = as_groups(asked["groups"])
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


def as_unit(unit: UnitKind | Unit | str, max_examples: int, keep: Keep | str = Keep.RANDOM) -> Unit:
    """The unit of privacy from its name."""
    if isinstance(unit, Unit):
        return unit
    most = require_whole(max_examples, "max_examples", 1)
    return Unit(choice(UnitKind, unit, "unit"), most, choice(Keep, keep, "keep"))


def as_groups(groups: GroupNames | Mapping[str, Sequence[object]]) -> GroupNames:
    """The one column that tells groups apart, with its values.

    >>> as_groups({"sex": ["F", "M"]})
    GroupNames(column='sex', names=('F', 'M'))
    """
    if isinstance(groups, GroupNames):
        return groups
    given: Any = groups
    if not isinstance(given, Mapping) or len(given) != 1:
        raise SettingInvalid(
            'a survey tells the groups of one column apart: {"sex": ["F", "M"]}; found '
            f"{shown(groups)}. An example is in one group of each column: a second column is "
            "another survey with an epsilon of its own, or one with both columns' values joined."
        )
    ((name, values),) = groups.items()
    if isinstance(values, str):
        raise SettingInvalid(f"groups are a list of values; found {shown(values)}. Write [...].")
    return GroupNames(name, tuple(map(group_name, values)))


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


def as_details(words: ReportWords) -> ReportDetails:
    """What people say of an assessment, by names that a page has a place for."""
    for name in words:
        if name not in ReportWords.__annotations__:
            raise SettingInvalid(unknown(name, ReportWords.__annotations__, "what a page is told"))
    return ReportDetails(**words)


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
