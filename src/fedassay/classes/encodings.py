"""What a client counts of an example with many probabilities: ordinary surveys of two labels.

Every part of a question about classes is a `Survey` as any other, over examples with a label 0 or
1 and a score: its mechanism, its report, its ledger entry and its tally know nothing of classes.
One example is one example in every part, so that a part costs what its survey says.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from fedassay.classes.rows import ClassRows
from fedassay.classes.temperature import rounded_slopes
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.randomness import Randomness
from fedassay.survey import Survey


class PartKind(Enum):
    """What a part counts."""

    CLASS = "class"
    """One class against the rest: a row is positive if it is of that class."""
    OWN = "own"
    """The probability of the row's own class, with which class that is: all positives at once."""
    TOP = "top"
    """Whether the most probable class is right, by its probability."""
    CONFUSION = "confusion"
    """The row's class and the most probable one."""
    TEMPERATURE = "temperature"
    """The slope of the row's log loss, rounded, at a temperature that it draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One survey of a question about classes, and who answers it."""

    kind: PartKind
    survey: Survey
    number: int = 0
    """The class, where the part is about one."""
    client_fraction: Fraction | None = None
    """The share of units that answer, each exactly one part; None where all answer."""


def part_examples(part: Part, rows: ClassRows, *, randomness: Randomness) -> Examples:
    """The examples that a part's survey counts: one for each row.

    Guarantee: one row is one example, whatever is drawn.

    >>> from fedassay.planning.build import build_survey
    >>> from fedassay.randomness import SystemRandomness
    >>> from fedassay.planning.request import SurveyRequest
    >>> from fedassay.hierarchy import Hierarchy
    >>> rows = ClassRows([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]], [0, 1, 2])
    >>> survey = build_survey(SurveyRequest(), Grid.nested(8), Hierarchy.flat(8))
    >>> part = Part(kind=PartKind.CLASS, survey=survey, number=2)
    >>> examples = part_examples(part, rows, randomness=SystemRandomness())
    >>> examples.labels.tolist(), examples.scores.tolist()
    ([0, 1], [0.1, 0.4])
    """
    match part.kind:
        case PartKind.CLASS:
            return rows.one_vs_rest(part.number)
        case PartKind.OWN:
            own = rows.scores[np.arange(len(rows)), rows.labels]
            return Examples(np.ones(len(rows)), side_by_side(rows.labels, own, rows.classes))
        case PartKind.TOP:
            return rows.top_label()
        case PartKind.CONFUSION:
            pairs = rows.labels * rows.classes + rows.predicted
            return Examples(np.zeros(len(rows)), (pairs + 0.5) / rows.classes**2)
        case PartKind.TEMPERATURE:
            return rounded_slopes(rows, randomness=randomness)


def own_grid(grid: Grid, classes: int) -> Grid:
    """The grid of each class beside that of the next, on [0, 1].

    >>> own_grid(Grid.uniform(2), 2).edges.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    places = (np.arange(classes)[:, None] + grid.edges[None, 1:]) / classes
    return Grid.explicit(np.append(0.0, places.ravel()))


def side_by_side(numbers: IntArray, scores: FloatArray, classes: int) -> FloatArray:
    """Scores of class k in (k / K, (k + 1) / K], so that none falls among another's cells.

    >>> side_by_side(np.array([0, 1, 1]), np.array([1.0, 0.0, 0.5]), 2).tolist()
    [0.5, 0.5000000000000001, 0.75]
    """
    least = np.where(numbers > 0, np.nextafter(numbers / classes, 1.0), 0.0)
    placed: FloatArray = np.clip((numbers + scores) / classes, least, (numbers + 1) / classes)
    return placed
