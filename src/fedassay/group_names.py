"""Groups of rows: which values of a column a survey tells apart.

An example is in one group, so that cells of group x score are cells like any others: one example
moves one of them, and one epsilon serves all groups.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_type
from fedassay.errors import SettingInvalid
from fedassay.files import Fields

MOST_GROUPS = 100
"""Of one column. More would be a key, and single people."""
MOST_GROUP_NAME = 200
"""Letters of a group's name."""
MISSING = "(missing)"
"""Rows that say nothing."""
UNKNOWN = "(unknown)"
"""Rows with a value that the survey does not name."""


@dataclass(frozen=True, slots=True)
class GroupNames:
    """A column, and those of its values that are told apart; all other rows are counted too.

    >>> groups = GroupNames("sex", ("F", "M"))
    >>> groups.parts
    ('F', 'M', '(missing)', '(unknown)')
    >>> groups.codes(["M", None, "F", "X"]).tolist()
    [1, 2, 0, 3]
    """

    column: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        require_type(self.column, str, "the column of groups", "Pass its name.")
        require_type(self.names, tuple, "names of groups", 'Write them as ("F", "M").')
        if not 0 < len(self.column) <= MOST_GROUP_NAME:
            raise SettingInvalid(
                f"a column of groups has a name of 1 to {MOST_GROUP_NAME} letters; this has not."
            )
        check_group_count(self.column, len(self.names))
        given: tuple[Any, ...] = self.names
        fits = all(
            isinstance(name, str)
            and 0 < len(name) <= MOST_GROUP_NAME
            and name == name.strip()
            and name not in (MISSING, UNKNOWN)
            for name in given
        )
        if not self.names or not fits or len(set(self.names)) < len(self.names):
            raise SettingInvalid(
                f"groups are named once each, by 1 to {MOST_GROUP_NAME} letters without blanks "
                f"around them, and not {MISSING} or {UNKNOWN}; found other names. Name one or more."
            )

    @classmethod
    def of(cls, column: str, values: Iterable[object]) -> "GroupNames":
        """All values of a column, in the order of their names.

        >>> GroupNames.of("ward", [2, 10, None, 2]).names
        ('2', '10')
        """
        found = {name for name in map(group_name, values) if name}
        check_group_count(column, len(found))
        if not found:
            raise SettingInvalid(
                f'a column of groups says which group a row is in; every row of "{column}" is '
                "empty. Name another column."
            )
        return cls(column, tuple(sorted(found, key=_in_order)))

    @property
    def parts(self) -> tuple[str, ...]:
        """All parts of the rows, those without a group of their own last."""
        return (*self.names, MISSING, UNKNOWN)

    def codes(self, values: Sequence[object]) -> npt.NDArray[np.int64]:
        """The number of the part that each value is in."""
        known: dict[str, int] = {name: place for place, name in enumerate(self.names)}
        known[""] = len(self.names)
        other = len(self.names) + 1
        return np.array([known.get(group_name(value), other) for value in values], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """What a survey's file says of it."""
        return {"column": self.column, "names": list(self.names)}

    @classmethod
    def from_json(cls, fields: Fields) -> "GroupNames":
        """Read what a stranger may have written."""
        fields.only("column", "names")
        listed = fields.get("names")
        return cls(fields.text("column"), tuple(listed) if isinstance(listed, list) else ())


def group_name(value: object) -> str:
    """What a value of a column is called, the same from files and arrays; nothing if it is missing.

    >>> [group_name(value) for value in (" F ", 1, 1.0, 2.5, True, None, float("nan"))]
    ['F', '1', '1', '2.5', 'true', '', '']
    """
    # Only what is missing differs from itself.
    if value is None or value != value:  # noqa: PLR0124
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()[:MOST_GROUP_NAME].strip()


def check_group_count(column: str, count: int) -> None:
    """Raise unless a column has as few values as groups may be."""
    if count > MOST_GROUPS:
        raise SettingInvalid(
            f'a column of groups has at most {MOST_GROUPS} values; "{column[:40]}" has {count:,}. '
            "Each group needs rows enough of its own: bring values together first (age in bands, "
            "places in regions)."
        )


def _in_order(name: str) -> tuple[float, str]:
    """Numbers by size, then texts."""
    try:
        return float(name), name
    except ValueError:
        return float("inf"), name
