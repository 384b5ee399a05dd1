"""The grid of two models' scores: a joint cell is just a cell.

A row that has two scores lies in one cell of the first model's grid and in one of the second's.
The two are numbered as one, row by row, and the middle of that numbered cell stands for the pair
of scores from then on: mechanisms, reports, secure aggregation and the ledger see one score.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedassay.checks import require_type, shown
from fedassay.errors import FileInvalid, LabelInvalid, SettingInvalid
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.files import Fields
from fedassay.grid import Grid
from fedassay.grid_rules import MAX_CELLS, GridRule, RuleKind

MOST_NAME = 40
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")

Names = tuple[str, str]


def _one_cell() -> Grid:
    return Grid.uniform(1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairGrid(Grid):
    """Cells of label x first model's cell x second model's cell, numbered row by row.

    >>> grid = PairGrid.of(("old", "new"), Grid.uniform(2), Grid.uniform(3))
    >>> grid.cells
    6
    >>> both = grid.examples(Examples([0, 1], [0.4, 0.9]), Examples([0, 1], [0.1, 0.5]))
    >>> grid.locate(both.scores).tolist()
    [0, 4]
    """

    names: Names = ("a", "b")
    """What the two models are called."""
    first: Grid = field(default_factory=_one_cell)
    second: Grid = field(default_factory=_one_cell)

    def __post_init__(self) -> None:
        Grid.__post_init__(self)
        check_names(self.names)
        for grid in (self.first, self.second):
            if type(grid) is not Grid:
                raise SettingInvalid(
                    f"a pair is of two grids of scores; found {shown(grid)}. "
                    "Use PairGrid.of(names, first, second)."
                )
        if self.cells != self.first.cells * self.second.cells:
            raise SettingInvalid(
                f"a pair of {self.first.cells} and {self.second.cells} cells has "
                f"{self.first.cells * self.second.cells} of them; found {self.cells}. "
                "Use PairGrid.of(names, first, second)."
            )
        object.__setattr__(self, "_hash", hash((self.names, self.first, self.second)))

    @classmethod
    def of(cls, names: Names, first: Grid, second: Grid) -> "PairGrid":
        """The grid of all pairs of two grids' cells."""
        for grid in (first, second):
            require_type(grid, Grid, "a model's grid", "Use Grid.uniform(cells).")
        cells = first.cells * second.cells
        if cells > MAX_CELLS:
            raise SettingInvalid(
                f"a pair of grids has at most {MAX_CELLS:,} cells together; found {cells:,}. "
                "Use coarser grids."
            )
        rule = GridRule(RuleKind.UNIFORM, cells)
        return cls(rule.edges(), rule, names=names, first=first, second=second)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PairGrid)
            and self.names == other.names
            and self.first == other.first
            and self.second == other.second
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<PairGrid: {self.first.cells:,} x {self.second.cells:,} cells>"

    def examples(self, first: Examples, second: Examples) -> Examples:
        """The rows with one score for both: the middle of the joint cell.

        The two must be of the same rows, in the same order: they have the same labels.
        """
        if len(first) != len(second):
            raise LabelInvalid(
                f"both models score the same rows; found {len(first):,} scores of "
                f"{self.names[0]} and {len(second):,} of {self.names[1]}. Pass columns of the "
                "same table."
            )
        if not np.array_equal(first.labels, second.labels):
            raise LabelInvalid(
                "both models score the same rows, with the same labels; found labels that differ "
                "(values withheld). Pass columns of the same table."
            )
        place = self.first.locate(first.scores) * self.second.cells
        place = place + self.second.locate(second.scores)
        codes: FloatArray = (place + 0.5) / self.cells
        return Examples(first.labels, codes)

    def count(self, examples: Examples) -> IntArray:
        """Count rows per label and joint cell; rows with one score of their own are refused.

        Whoever forgot the second model would otherwise count the first one's scores as pairs.
        """
        require_type(examples, Examples, "what is counted", "Pass Examples(y, s).", withhold=True)
        middle = (self.locate(examples.scores) + 0.5) / self.cells
        if not np.array_equal(middle, examples.scores):
            raise SettingInvalid(
                f"this survey asks for the scores of two models, {self.names[0]} and "
                f"{self.names[1]}; found rows with one (values withheld). Pass both: "
                "--score NAME=COL for each, or scores by the models' names."
            )
        return Grid.count(self, examples)

    def to_json(self) -> dict[str, Any]:
        """Both grids, and what the models are called."""
        return {
            "kind": "pair",
            "names": list(self.names),
            "first": self.first.to_json(),
            "second": self.second.to_json(),
        }


def grid_from_json(fields: Fields) -> Grid:
    """Rebuild a grid, or a pair of them, from untrusted JSON."""
    if fields.text("kind") != "pair":
        return Grid.from_json(fields)
    fields.only("kind", "names", "first", "second")
    names = fields.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileInvalid('"names" must list what the two models are called.')
    first, second = (Grid.from_json(fields.inside(name)) for name in ("first", "second"))
    return PairGrid.of(tuple(names), first, second)


def check_names(names: object) -> None:
    """Raise unless two models have names of their own that fit into a metric's name.

    >>> check_names(("old", "new"))
    >>> check_names(("old", "old"))
    Traceback (most recent call last):
    fedassay.errors.SettingInvalid: two models have two names; found 'old' twice. Rename one.
    """
    if not isinstance(names, tuple) or len(names) != 2:
        count = len(names) if isinstance(names, tuple | list) else 1
        raise SettingInvalid(
            f"two models are compared on the same rows; found {count}. Name two scores, or compare "
            "more than two pair by pair."
        )
    for name in names:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise SettingInvalid(
                f"a model's name has 1 to {MOST_NAME} letters, digits, dots, dashes or "
                f"underscores; found {shown(name)}. Rename it."
            )
    if names[0] == names[1]:
        raise SettingInvalid(f"two models have two names; found {names[0]!r} twice. Rename one.")
