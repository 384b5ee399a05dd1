"""Which columns of a table hold what, and how they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite

from fedassay.checks import unknown
from fedassay.errors import SettingInvalid
from fedassay.pair_grid import Names, PairGrid, check_names
from fedassay.survey import Survey

SCORE, LABEL = "score", "label"


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what; in CSV files, what stands between and inside their values.

    >>> Columns("risk", "died", positive="yes", scale=100).names
    ['risk', 'died']
    """

    score: str = SCORE
    label: str = LABEL
    client: str | None = None
    separator: str | None = field(default=None, kw_only=True)
    """Between a CSV file's values; None is a comma, or a semicolon beside decimal commas."""
    decimal: str = field(default=".", kw_only=True)
    positive: str | None = field(default=None, kw_only=True)
    """The label of a positive, where labels are any two values; None for 0 and 1, -1 and 1."""
    patient: str | None = field(default=None, kw_only=True)
    """Whose each row is, where patients are protected."""
    time: str | None = field(default=None, kw_only=True)
    """When each row was, where the latest of a patient count."""
    group: str | None = field(default=None, kw_only=True)
    """Which group each row is in, where groups are told apart."""
    scale: float = field(default=1.0, kw_only=True)
    """The score of certainty: 100 where scores are percentages."""
    second: str | None = field(default=None, kw_only=True)
    """A second model's scores of the same rows, where two are compared."""
    models: Names | None = field(default=None, kw_only=True)
    """What the two models are called."""
    pair: PairGrid | None = field(default=None, kw_only=True)
    """The cells by which two scores are read as one."""

    def __post_init__(self) -> None:
        for name, mark in (("separator", self.separator), ("decimal mark", self.decimal)):
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
                raise SettingInvalid(
                    f"a {name} is one character, such as ; or tab; found {mark[:40]!r}."
                )
        if self.decimal.isalnum() or self.decimal == self.separator:
            raise SettingInvalid(
                "a decimal mark is neither a letter, a digit nor the separator; found "
                f"{self.decimal!r}. Such files have --separator ';' --decimal ,"
            )
        if not (isfinite(self.scale) and self.scale > 0.0):
            raise SettingInvalid(
                f"a scale must be a positive number; found {self.scale:g}. Percentages have 100."
            )

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        people = (self.client, self.patient, self.time, self.group)
        wanted = (self.score, self.second, self.label, *people)
        return list(dict.fromkeys(name for name in wanted if name is not None))


def pair_columns(columns: Columns, scores: Mapping[str, str]) -> Columns:
    """Columns with the scores of two models, by the models' names.

    >>> pair_columns(Columns(), {"old": "s1", "new": "s2"}).names
    ['s1', 's2', 'label']
    """
    names = tuple(scores)
    check_names(names)
    first, second = scores.values()
    if first == second:
        raise SettingInvalid(
            f"two models have columns of their own; found {first[:40]!r} for both. Name two "
            "columns, such as --score a=old --score b=new."
        )
    return replace(columns, score=first, second=second, models=(names[0], names[1]))


def columns_of_pair(survey: Survey, columns: Columns) -> Columns:
    """The columns that a survey reads: of one model's scores, or of the two that it names."""
    pair = survey.pair
    if pair is None and columns.second is None:
        return columns
    if pair is None:
        raise SettingInvalid(
            "this survey asks for the scores of one model; found two columns of them. Name one, "
            "or start a survey of two models (--paired)."
        )
    if columns.second is None or columns.models is None:
        wanted = " ".join(f"--score {name}=COL" for name in pair.names)
        raise SettingInvalid(
            f"this survey asks for the scores of two models, {pair.names[0]} and {pair.names[1]}; "
            f"found one column of them. Name both ({wanted})."
        )
    for name in columns.models:
        if name not in pair.names:
            raise SettingInvalid(unknown(name, pair.names, "a model of this survey"))
    named = dict(zip(columns.models, (columns.score, columns.second), strict=True))
    first, second = (named[name] for name in pair.names)
    return replace(columns, score=first, second=second, models=pair.names, pair=pair)
