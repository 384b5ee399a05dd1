"""The grid: which leaf cell a score falls into."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.checks import (
    require_number,
    require_thresholds,
    require_type,
    require_whole,
)
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.examples import (
    Examples,
    FloatArray,
    IntArray,
    checked_scores,
)
from fedassay.files import Fields
from fedassay.grid_rules import EPS, MAX_CELLS, GridRule, RuleKind
from fedassay.grid_table import CellCounter, cells_of, count_by_search
from fedassay.grid_warp import ISOLATION, balanced_weights, warped_edges
from fedassay.nesting import MOST_SMALLEST_CELL, divided_cells, mass_of, nested_edges

MAX_EXPLICIT_EDGES = 2**16 + 1
_FEW_ROWS = 2**13


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grid:
    """Leaf cells (lo, hi] over [0, 1]; the first cell also holds 0.

    A threshold that is an edge is exact, because the classifier says 1 when
    the score is above it (`sec:defs`).

    >>> Grid.uniform(4).locate([0.0, 0.25, 0.26, 1.0]).tolist()
    [0, 0, 1, 3]
    """

    edges: FloatArray
    rule: GridRule | None = None
    """What most of the edges were made by, if anything: files name it instead of them."""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            edges = np.array(self.edges, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise SettingInvalid(
                "grid edges must be numbers from 0 to 1; found something else. "
                "Use Grid.uniform(cells), or pass a list of numbers."
            ) from error
        if self.rule is not None:
            require_type(self.rule, GridRule, "a grid's rule", "Use Grid.by_rule.")
        _check_edges(edges)
        edges.flags.writeable = False
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "_hash", hash((edges.tobytes(), self.rule)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Grid)
            and self.rule == other.rule
            and np.array_equal(self.edges, other.edges)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        rule = "by edges" if self.rule is None else self.rule.kind.value
        return f"<Grid: {self.cells:,} cells, {rule}>"

    @property
    def cells(self) -> int:
        """The number of leaf cells."""
        return len(self.edges) - 1

    @classmethod
    def by_rule(cls, rule: GridRule) -> "Grid":
        """The edges that a rule makes."""
        require_type(rule, GridRule, "a grid's rule", "Use Grid.uniform(cells).")
        return cls(rule.edges(), rule)

    @classmethod
    def uniform(cls, cells: int) -> "Grid":
        """Cells of equal width, as in the paper (`app:scorehist`, 2^h segments)."""
        return cls.by_rule(GridRule(RuleKind.UNIFORM, cells))

    @classmethod
    def cubic(cls, cells: int) -> "Grid":
        """Edges 3u^2 - 2u^3 at equal steps of u: finer towards 0 and 1, where scores pile up.

        Differs: the paper cuts [0, 1] evenly. Without a reference this shape loses several
        times less to binning on skewed scores (docs/adr/0004-arcsine-grid.md,
        docs/adr/0012-grids-by-rule.md).
        """
        return cls.by_rule(GridRule(RuleKind.CUBIC, cells))

    @classmethod
    def fine(cls, cells: int = 2**14) -> "Grid":
        """Equal widths, then 64 cells per octave towards 0 and 1, down to 2^-40.

        For sums without noise, where cells cost nothing: scores that crowd at an end are
        told apart to about 1 % of their distance from it, and scores of exactly 0 and 1
        keep cells of their own, as log loss needs it (docs/adr/0016-octave-axis.md).
        """
        return cls.by_rule(GridRule(RuleKind.FINE, cells))

    @classmethod
    def octaves(cls, parts: int) -> "Grid":
        """Each octave from 2^-40 to 1/2 in equal parts, mirrored at 1: nearly even in log-odds.

        Where it is not known whether scores crowd at 1e-6 or spread over [0, 1]: every
        octave of odds has as many cells. 78 for each part, and one for either end.

        >>> Grid.octaves(1).edges[[0, 1, 2, 39, 40, 41, -1]].tolist()
        [0.0, 9.094947017729282e-13, 1.8189894035458565e-12, 0.25, 0.5, 0.75, 1.0]
        """
        return cls.by_rule(GridRule.octaves(parts))

    @classmethod
    def explicit(cls, edges: npt.ArrayLike) -> "Grid":
        """Edges as given, from 0 to 1."""
        return cls(edges)  # type: ignore[arg-type]  # the constructor converts and checks

    @classmethod
    def given_classifier(cls, threshold: float) -> "Grid":
        """Two cells split at the threshold: the paper's warm-up, exact (`sec:pramain`)."""
        if not 0.0 < require_number(threshold, "a threshold") < 1.0:
            raise SettingInvalid(
                f"a given classifier's threshold must lie inside (0, 1); found {threshold}. "
                "At 0 or 1 every score falls on one side."
            )
        return cls(np.array([0.0, threshold, 1.0]))

    @classmethod
    def warped(
        cls, reference: npt.ArrayLike, cells: int, *, labels: npt.ArrayLike | None = None
    ) -> "Grid":
        """Cells of about equal mass in a public reference sample.

        With labels, each class makes up half of the mass, so that a rare class is
        resolved too. A value heavier than two cells gets a cell of its own, and a sample
        with few distinct values gets one cell per value: the result may have fewer
        cells than asked for, never more.
        """
        _check_cell_count(cells)
        return cls(warped_edges(reference, cells, labels))

    @classmethod
    def nested(
        cls,
        cells: int,
        *,
        reference: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        thresholds: Iterable[float] = (),
    ) -> "Grid":
        """Cells of the one nesting that exact sums are published on (`fedassay.nesting`).

        About as many in a reference sample each, as in `warped`; without one, half of them by
        width and half by octaves down to 1e-12. Thresholds of up to twelve decimals are edges, and
        scores of exactly 0 and 1 always have cells of their own.

        >>> Grid.nested(3, thresholds=[0.3]).edges[2:-2].tolist()
        [0.2, 0.3, 0.5]
        """
        given = list(thresholds)
        require_thresholds(given)
        mass = None
        if reference is not None:
            scores = checked_scores(reference)
            mass = mass_of(scores, balanced_weights(len(scores), labels))
        return cls(nested_edges(cells, mass=mass, thresholds=given))

    def with_edges_at(self, thresholds: Iterable[float]) -> "Grid":
        """Move the nearest inner edges onto the thresholds, which then are exact.

        Where no inner edge is free, one is added. Thresholds are doubles, and so are edges:
        1e-300 and 1 - 2^-53 are held exactly too.

        >>> Grid.uniform(4).with_edges_at([0.3]).edges.tolist()
        [0.0, 0.3, 0.5, 0.75, 1.0]
        """
        require_type(thresholds, Iterable, "thresholds", "Write them as [0.5].")
        given = list(thresholds)
        require_thresholds(given)
        edges = self.edges.copy()
        asked = {_held(t) for t in given if 0.0 < t < 1.0}
        wanted = sorted(asked - set(edges.tolist()))
        fixed = np.isin(edges, [*asked, 0.0, EPS, 1.0 - EPS, 1.0])
        if self.rule is None:
            # Both edges of a cell that isolates a spike stay. A rule knows of no spikes.
            narrow = np.diff(edges) <= 2.0 * ISOLATION
            fixed[1:] |= narrow
            fixed[:-1] |= narrow
        for threshold in wanted:
            place = int(np.searchsorted(edges, threshold))
            free = [i for i in (place - 1, place) if not fixed[i]]
            if free:
                nearest = min(free, key=lambda i: abs(edges[i] - threshold))
                edges[nearest], fixed[nearest] = threshold, True
            else:
                edges = np.insert(edges, place, threshold)
                fixed = np.insert(fixed, place, True)
        if len(edges) > MAX_CELLS + 1:
            raise SettingInvalid(
                f"a grid holds each threshold as an edge, and has at most {MAX_CELLS} cells; found "
                f"{len(edges) - 1} with these {len(given)} thresholds. Use a coarser grid, or "
                "fewer thresholds."
            )
        return Grid(edges, self.rule)

    def with_ends(self) -> "Grid":
        """Give scores of exactly 0 and 1 cells of their own, with what log loss clips to them.

        >>> Grid.uniform(2).with_ends().locate([0.0, 0.1, 1.0]).tolist()
        [0, 1, 3]
        """
        ends = np.array([EPS, 1.0 - EPS])
        return Grid(np.unique(np.concatenate([self.edges, ends])), self.rule)

    def to_json(self) -> dict[str, Any]:
        """The rule with the edges that it lacks or has too many of, or all edges."""
        if self.rule is None:
            return {"kind": "edges", "edges": self.edges.tolist()}
        made = self.rule.edges()
        content: dict[str, Any] = {"kind": self.rule.kind.value, "cells": self.rule.cells}
        if np.array_equal(made, self.edges):
            return content
        without = np.flatnonzero(_is_missing(made, self.edges)).tolist()
        added = self.edges[_is_missing(self.edges, made)].tolist()
        return content | {"without": without, "with": added}

    @classmethod
    def from_json(cls, fields: Fields) -> "Grid":
        """Rebuild a grid from untrusted JSON."""
        kind = fields.text("kind")
        if kind == "edges":
            fields.only("kind", "edges")
            return cls.explicit(fields.numbers("edges", MAX_EXPLICIT_EDGES))
        kinds = {rule.value: rule for rule in RuleKind}
        if kind not in kinds:
            raise FileInvalid(
                f"a grid is one of {', '.join([*kinds, 'edges'])}; found {kind[:40]!r}. "
                "Use the fedassay version that wrote the survey."
            )
        rule = GridRule(kinds[kind], fields.integer("cells", 1, MAX_CELLS))
        if not fields.has("without", "with"):
            fields.only("kind", "cells")
            return cls.by_rule(rule)
        fields.only("kind", "cells", "without", "with")
        made = rule.edges()
        without = fields.integers("without", MAX_EXPLICIT_EDGES)
        if not all(0 < index < len(made) - 1 for index in without):
            raise FileInvalid('"without" must name inner edges by their number; it does not.')
        added = fields.numbers("with", MAX_EXPLICIT_EDGES)
        return cls(np.unique(np.concatenate([np.delete(made, without), added])), rule)

    def locate(self, scores: npt.ArrayLike) -> IntArray:
        """The cell of each score; one outside [0, 1] raises `ScoreOutOfRange`."""
        return cells_of(self.edges, checked_scores(scores))

    def count(self, examples: Examples) -> IntArray:
        """Count examples per label and cell; rows 0 and 1 are negatives and positives.

        >>> Grid.uniform(2).count(Examples([0, 1, 1], [0.2, 0.62, 1.0])).tolist()
        [[1, 0], [0, 2]]

        Many rows are counted by tables, which `grid_table` explains.
        """
        require_type(examples, Examples, "what is counted", "Pass Examples(y, s).", withhold=True)
        if len(examples) <= _FEW_ROWS:
            return count_by_search(self.edges, examples.scores, examples.labels)
        return _counter(self).count(examples.scores, examples.labels)


@lru_cache(maxsize=8)
def _counter(grid: Grid) -> CellCounter:
    return CellCounter.of(grid.edges)


def _is_missing(values: FloatArray, edges: FloatArray) -> npt.NDArray[np.bool_]:
    """Which values, all in [0, 1], are not among rising edges from 0 to 1."""
    missing: npt.NDArray[np.bool_] = edges[np.searchsorted(edges, values)] != values
    return missing


def _held(threshold: float) -> float:
    """An exact threshold, such as a fraction, as the double that an edge can be."""
    held = float(threshold)
    if not 0.0 < held < 1.0:
        raise SettingInvalid(
            f"a threshold inside (0, 1) must be one as a double too, as scores are; found one that "
            f"rounds to {held:g}. Use {held:g} itself, or one further inside."
        )
    return held


def check_smallest_cell(smallest: int, grid: Grid, levels: int, spends_epsilon: bool) -> None:
    """Raise unless cells can be merged: by the one nesting, where sums are exact and flat.

    >>> check_smallest_cell(10, Grid.nested(8), 1, False)
    """
    if smallest == 0:
        return
    require_whole(smallest, "a survey's smallest cell, or 0 for none,", 2, MOST_SMALLEST_CELL)
    if spends_epsilon:
        raise SettingInvalid(
            "a smallest cell is for exact sums; found one where noise protects single rows. "
            "Leave it out."
        )
    if levels != 1:
        raise SettingInvalid(
            f"exact sums with a smallest cell are asked on one level; found {levels}. Leave the "
            "height out, or switch the smallest cell off knowingly (smallest_cell=0, "
            "--smallest-cell 0)."
        )
    divided_cells(grid.edges)


def _check_cell_count(cells: int) -> None:
    require_whole(cells, "a grid's cells", 1, MAX_CELLS)


def _check_edges(edges: FloatArray) -> None:
    if edges.ndim != 1 or not 2 <= len(edges) <= MAX_CELLS + 1:
        raise SettingInvalid(
            f"a grid needs between 2 and {MAX_CELLS + 1} edges in one row; found shape "
            f"{edges.shape}."
        )
    if edges[0] != 0.0 or edges[-1] != 1.0:
        raise SettingInvalid(
            f"grid edges must run from 0 to 1; found {edges[0]} to {edges[-1]}. Add the ends."
        )
    if not (edges[:-1] < edges[1:]).all():
        raise SettingInvalid(
            "grid edges must increase strictly and be finite; found equal, falling or missing "
            "ones. Sort them and drop repeats."
        )
