"""Points of a figure, what one part of it measured, and the figure's file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fedassay.errors import FileInvalid
from fedassay.extras import needed_for
from fedassay.files import Fields

RESULT_FORMAT = "fedassay.reproduction/1"
_MOST = 1_000_000
_UPPER = 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place on one curve: a value for every repetition."""

    data: str
    panel: str
    """The row of the figure that it stands in."""
    curve: str
    x: float
    values: tuple[float, ...]
    spread: float
    """What its error bar shows: the standard deviation over repetitions, or over thresholds."""

    @property
    def mean(self) -> float:
        """The mean over repetitions."""
        return float(np.mean(self.values))

    @property
    def half_width(self) -> float:
        """Half of the mean's 95 % interval, by Student's t; 0 where there is one repetition."""
        if len(self.values) < 2:
            return 0.0
        with needed_for("intervals"):
            from scipy.special import stdtrit

        times = len(self.values)
        reach = float(stdtrit(times - 1, _UPPER))
        return reach * float(np.std(self.values, ddof=1)) / sqrt(times)

    def to_json(self) -> dict[str, Any]:
        """As it stands in files."""
        return {
            "data": self.data,
            "panel": self.panel,
            "curve": self.curve,
            "x": self.x,
            "values": list(self.values),
            "spread": self.spread,
        }

    @classmethod
    def from_json(cls, content: object, where: str) -> "Point":
        """Read what `to_json` wrote."""
        fields = Fields(content, where)
        fields.only("data", "panel", "curve", "x", "values", "spread")
        return cls(
            data=fields.text("data"),
            panel=fields.text("panel"),
            curve=fields.text("curve"),
            x=fields.number("x"),
            values=tuple(fields.numbers("values", _MOST)),
            spread=fields.number("spread"),
        )


def points_of(
    data: str, panel: str, values: Mapping[tuple[str, float], Sequence[float]]
) -> list[Point]:
    """Points whose error bars are the spread over repetitions; (curve, x) names each.

    >>> points_of("a", "b", {("c", 1.0): [1.0, 3.0]})[0].spread
    1.0
    """
    return [
        Point(
            data=data,
            panel=panel,
            curve=curve,
            x=float(x),
            values=tuple(map(float, found)),
            spread=float(np.std(found)),
        )
        for (curve, x), found in values.items()
    ]


def points_from(content: object, where: str) -> list[Point]:
    """Every point of a list in a file."""
    if not isinstance(content, list):
        raise FileInvalid(f'{where}: "points" must be a list. The file was changed.')
    return [Point.from_json(item, where) for item in content]
