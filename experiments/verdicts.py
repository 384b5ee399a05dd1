"""Whether intervals hold as often as they say and are no wider than needed, cell by cell."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from scipy.stats import binom, chi2

from experiments.crowded import is_asked
from fedassay.examples import FloatArray
from fedassay.metrics.named import AT_GOAL, CALIBRATION

ANSWERED, NOT_ENOUGH, TOO_COARSE = 0.0, 1.0, 2.0
AT_LEAST = 0.93
"""What 95 % intervals must hold."""
AT_MOST = 1.5
"""How much wider than an oracle's they may be."""
FALSE_ALARMS = 0.01
"""The chance that any cell of a page is called too low, or any too wide, by luck alone."""
NEVER_WIDE = 5e-5
"""A half-width that no shown digit is lost by: never called too wide."""
FEWEST = 20
"""Answers that a spread is measured from."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """What came out of a table in a setting: trial x metric x column."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "outcome",
        "value",
        "rows_low",
        "rows_high",
        "population_low",
        "population_high",
        "bound",
        "rows",
        "population",
    )

    table: str
    setting: str
    names: tuple[str, ...]
    values: FloatArray

    def column(self, name: str, metric: str) -> FloatArray:
        """One column of one metric, by trial."""
        place = self.COLUMNS.index(name)
        column: FloatArray = self.values[:, self.names.index(metric), place]
        return column


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one table in one setting, for the rows or the population."""

    table: str
    setting: str
    metric: str
    whose: str
    trials: int
    not_enough: int
    too_coarse: int
    answers: int
    held: int
    half_width: float
    """The median."""
    oracle: float
    """1.96 times the spread of the errors around their mean; at a threshold that was not asked
    for, and what the cell around it may hide: whoever reads the same grid knows no more."""
    bias: float
    hidden: float
    """The median of the most that cells may hide."""
    within: int
    """How many errors are no larger than 1.5 times the oracle's half-width."""

    @property
    def family(self) -> str:
        """The metric without its threshold."""
        return self.metric if _is_goal(self.metric) else self.metric.partition("@")[0]

    @property
    def kind(self) -> str:
        """Whether the survey was made for the metric's threshold."""
        return _kind(self.table, self.metric)

    @property
    def share(self) -> float:
        """How often the interval held the value, of those that there were."""
        return self.held / self.answers if self.answers else np.nan

    @property
    def width(self) -> float:
        """The median half-width over the oracle's."""
        return self.half_width / self.oracle if self.oracle > _ROUNDING else np.nan

    @property
    def chance(self) -> float:
        """Of holding so rarely by bad luck, where 93 % is true."""
        return float(binom.cdf(self.held, self.answers, AT_LEAST))

    def is_low(self, cells: int) -> bool:
        """Below 93 % beyond luck, by Bonferroni's rule over so many cells."""
        return self.answers > 0 and self.chance < FALSE_ALARMS / cells

    def is_wide(self, cells: int) -> bool:
        """More than 1.5 times as wide as an oracle's beyond luck, and visibly so.

        The luck is that of a standard deviation of so many normal errors. Where no trial errs
        by anything, as with no rows above a threshold, an oracle knows what nobody can, and
        nothing is said.
        """
        if self.answers < FEWEST or not self.width > AT_MOST:
            return False
        freedom = self.answers - 1
        luck = sqrt(freedom / float(chi2.ppf(FALSE_ALARMS / cells, freedom)))
        return self.half_width > NEVER_WIDE and self.width > AT_MOST * luck

    def is_needed(self, cells: int) -> bool:
        """Whether intervals of 1.5 times the oracle's, around the same values, would be too low.

        Then the mean error, which the oracle knows and nobody else, is most of the width.
        """
        return float(binom.cdf(self.within, self.answers, AT_LEAST)) < FALSE_ALARMS / cells

    @property
    def is_hidden(self) -> bool:
        """Whether who knows bias and noise, but not where rows lie inside cells, needs as much."""
        return self.half_width <= AT_MOST * float(np.hypot(self.oracle, self.hidden))


def _is_goal(metric: str) -> bool:
    return metric.startswith(tuple(AT_GOAL))


def _kind(table: str, metric: str) -> str:
    _, at, label = metric.partition("@")
    if _is_goal(metric):
        return "at a wanted rate"
    if not at:
        return "of calibration" if metric in CALIBRATION else "without a threshold"
    return f"at {'an asked' if is_asked(table, label) else 'another'} threshold"


def cell_of(trials: Trials, metric: str, whose: str) -> Cell | None:
    """Judge one metric for the rows or the population; None where neither has a value."""
    truth = trials.column(whose, metric)
    known = np.isfinite(truth)
    if not known.any():
        return None
    outcome = trials.column("outcome", metric)[known]
    there = known & (trials.column("outcome", metric) == ANSWERED)
    value = trials.column("value", metric)[there]
    low, high = (trials.column(f"{whose}_{end}", metric)[there] for end in ("low", "high"))
    error = value - truth[there]
    enough = len(error) >= 2
    hidden = float(np.median(trials.column("bound", metric)[there])) if enough else np.nan
    unasked = hidden if "another" in _kind(trials.table, metric) else 0.0
    oracle = float(np.hypot(1.96 * np.std(error, ddof=1), unasked)) if enough else np.nan
    return Cell(
        trials.table,
        trials.setting,
        metric,
        whose,
        trials=len(outcome),
        not_enough=int((outcome == NOT_ENOUGH).sum()),
        too_coarse=int((outcome == TOO_COARSE).sum()),
        answers=len(error),
        held=int(((low - _ROUNDING <= truth[there]) & (truth[there] <= high + _ROUNDING)).sum()),
        half_width=float(np.median(high - low) / 2.0) if enough else np.nan,
        oracle=oracle,
        bias=float(np.mean(error)) if enough else np.nan,
        hidden=hidden,
        within=int((np.abs(error) <= AT_MOST * oracle).sum()),
    )


def all_cells(found: list[Trials], metrics: list[str] | None = None) -> list[Cell]:
    """Every metric of every table and setting, for the rows and for the population."""
    cells = [
        cell_of(trials, metric, whose)
        for trials in found
        for metric in trials.names
        if not metrics or metric in metrics or metric.partition("@")[0] in metrics
        for whose in ("rows", "population")
    ]
    return [cell for cell in cells if cell is not None]
