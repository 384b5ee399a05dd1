"""Which columns of a table hold what, and how they are written."""

from dataclasses import dataclass, field
from math import isfinite

from fedassay.errors import SettingInvalid

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
        wanted = (self.score, self.label, self.client, self.patient, self.time, self.group)
        return list(dict.fromkeys(name for name in wanted if name is not None))
