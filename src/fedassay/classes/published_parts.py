"""What of exact sums about classes is published: whole classes, and cells of the confusion matrix.

Every part but the confusion matrix is merged as any exact survey (`fedassay.published`). What
differs is that parts are about the same rows, so that what one leaves out another may tell:

- rows of all classes add up to all rows. Classes with too few rows are withheld, and as many more,
  the smallest first, as it takes that those withheld hold enough together, or no row at all;
- a row of the confusion matrix adds up to its class, and its diagonal to what the most probable
  class gets right. Small counts of a row are one sum, and so are those of the diagonal and those
  beside it: more cells are hidden until each such sum holds enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.classes.class_survey import ClassSurvey
from fedassay.classes.encodings import Part, PartKind
from fedassay.errors import FileInvalid, TooFewRows
from fedassay.estimate import NotEnoughData
from fedassay.examples import IntArray
from fedassay.files import Fields
from fedassay.published import MergedTally, published, published_from_json, published_json
from fedassay.tally import Tally

Flags = npt.NDArray[np.bool_]
PartTally = Tally | NotEnoughData
"""What is known of a part: its sums, or why they are withheld."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConfusionTally(Tally):
    """Counts of the true class by the most probable one, those that may not be seen left out."""

    hidden: Flags = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    """Class x class; the counters of hidden cells are 0."""
    together: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Of each row, the sum of its hidden counts; -1 where the whole class is withheld."""
    rest: int = 0
    """Rows of all withheld classes together."""

    @property
    def total(self) -> float:
        """How many rows there are."""
        return float(self.counters.sum() + np.maximum(self.together, 0).sum() + self.rest)


def published_parts(survey: ClassSurvey, tallies: Sequence[PartTally]) -> tuple[PartTally, ...]:
    """All parts as they may be published; what was published before stays as it is.

    Guarantee: of exact sums with a smallest cell, no count and no difference of counts of all
    parts together is of fewer rows.
    """
    done = (MergedTally, ConfusionTally, NotEnoughData)
    if not survey.smallest_cell or any(isinstance(each, done) for each in tallies):
        return tuple(tallies)
    smallest = survey.smallest_cell
    rows = _rows_of_classes(survey, tallies)
    withheld = withheld_classes(rows, smallest)
    found: list[PartTally] = []
    for part, tally in zip(survey.parts, tallies, strict=True):
        if not isinstance(tally, Tally):
            continue
        if part.kind is PartKind.CONFUSION:
            found.append(_published_confusion(tally, withheld, smallest))
        elif part.kind is PartKind.CLASS and withheld[part.number]:
            found.append(_withheld_class(rows, part.number, smallest))
        else:
            try:
                found.append(published(part.survey, tally))
            except TooFewRows as error:
                found.append(NotEnoughData(reason=str(error)))
    return tuple(found)


def withheld_classes(rows: IntArray, smallest: int) -> Flags:
    """Which classes are withheld: too few rows, and more until those together have enough.

    That no row at all is of a class withholds no other: it is told.

    >>> withheld_classes(np.array([50, 3, 20, 400]), 10).tolist()
    [False, True, True, False]
    >>> withheld_classes(np.array([50, 0, 20, 400]), 10).tolist()
    [False, True, False, False]
    """
    total = int(rows.sum())
    withheld: Flags = (rows < smallest) | (total - rows < smallest)
    for number in np.argsort(rows, kind="stable"):
        if not 0 < rows[withheld].sum() < smallest:
            break
        withheld[number] = True
    return withheld


def hidden_cells(counts: IntArray, withheld: Flags, smallest: int) -> Flags:
    """Which counts of a confusion matrix are hidden: of rows, of the diagonal, and beside it.

    >>> counts = np.array([[90, 20, 30], [3, 80, 40], [20, 30, 70]])
    >>> hidden_cells(counts, np.zeros(3, dtype=np.bool_), 10).astype(int).tolist()
    [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    """
    classes = len(counts)
    hidden: Flags = (counts < smallest) | withheld[:, None]
    places = np.arange(classes * classes).reshape(classes, classes)
    diagonal = np.eye(classes, dtype=np.bool_)
    # A class without rows has zeros everywhere, which hide nothing of others.
    occurs = counts.sum(axis=1)[:, None] > 0
    groups = [*places[~withheld], places[diagonal & occurs], places[~diagonal & occurs]]
    # What is hidden for one group may leave another with too little: over again, until none has.
    while any(_hide_more(counts.ravel(), hidden, group, smallest) for group in groups):
        pass
    return hidden


def _hide_more(counts: IntArray, hidden: Flags, group: IntArray, smallest: int) -> bool:
    """Hide cells of a group, the smallest first, until those hidden hold enough together."""
    inside = hidden.flat[group]
    together = int(counts[group[inside]].sum())
    if not inside.any() or together >= smallest:
        return False
    left = group[~inside]
    for place in left[np.argsort(counts[left], kind="stable")]:
        hidden.flat[place] = True
        together += int(counts[place])
        if together >= smallest:
            break
    return len(left) > 0


def _rows_of_classes(survey: ClassSurvey, tallies: Sequence[PartTally]) -> IntArray:
    """How many rows each class has, by its own part."""
    rows = np.zeros(len(survey.names), dtype=np.int64)
    for part, tally in zip(survey.parts, tallies, strict=True):
        if part.kind is PartKind.CLASS and isinstance(tally, Tally):
            rows[part.number] = tally.per_level(part.survey)[0][1].sum()
    return rows


def _withheld_class(rows: IntArray, number: int, smallest: int) -> NotEnoughData:
    if rows[number] == 0 and not rows[withheld_classes(rows, smallest)].any():
        # That those withheld have no row is told by all others' sum.
        return NotEnoughData(
            reason="no row is of this class: it never occurs. Wait for one, or leave its column "
            "out and divide each row by its sum."
        )
    why = (
        f"it has fewer than {smallest:,} rows, or all but so few"
        if rows[number] < smallest or rows.sum() - rows[number] < smallest
        else "another class has too few rows, which this one's would tell"
    )
    return NotEnoughData(
        reason=f"no count below {smallest:,} is published, and this class is withheld: {why}. Wait "
        "for more rows, or lower the smallest cell knowingly."
    )


def _published_confusion(tally: Tally, withheld: Flags, smallest: int) -> PartTally:
    classes = len(withheld)
    counts = tally.counters[: classes * classes].reshape(classes, classes)
    right = int(np.trace(counts))
    rest = int(counts[withheld].sum())
    enough = min(right, int(counts.sum()) - right) >= smallest
    if withheld.all() or not enough:
        return NotEnoughData(
            reason=f"no count below {smallest:,} is published; the confusion matrix has fewer rows "
            "that are right, or that are wrong, or all are of one class. Wait for more rows."
        )
    hidden = hidden_cells(counts, withheld, smallest)
    shown = np.where(hidden, 0, counts)
    together = np.where(withheld, -1, (counts - shown).sum(axis=1))
    return ConfusionTally(
        tally.fingerprint,
        tally.reports,
        np.concatenate([shown.ravel(), np.zeros(classes * classes, np.int64)]),
        hidden=hidden,
        together=together,
        rest=rest,
    )


def part_json(tally: PartTally) -> dict[str, Any]:
    """A part's sums as a file holds them, or why they are withheld."""
    if isinstance(tally, NotEnoughData):
        return {"withheld": tally.reason}
    if isinstance(tally, ConfusionTally):
        return {
            "reports": list(tally.reports),
            "counters": tally.counters.tolist(),
            "hidden": np.flatnonzero(tally.hidden).tolist(),
            "together": tally.together.tolist(),
            "rest": tally.rest,
        }
    return published_json(tally)


def part_from_json(fields: Fields, part: Part, smallest: int, where: str) -> PartTally:
    """Rebuild a part's sums from untrusted JSON; a smaller count than promised is refused."""
    if smallest and fields.has("withheld"):
        fields.only("withheld")
        return NotEnoughData(reason=fields.text("withheld")[:1000])
    if smallest and part.kind is PartKind.CONFUSION:
        return _confusion_from_json(fields, part, smallest, where)
    known = ("kept", "sites")
    fields.only("reports", "counters", *(name for name in known if fields.has(name)))
    return published_from_json(fields, part.survey, where)


def _confusion_from_json(fields: Fields, part: Part, smallest: int, where: str) -> ConfusionTally:
    fields.only("reports", "counters", "hidden", "together", "rest")
    cells = part.survey.grid.cells
    classes = round(cells**0.5)
    counters = np.array(fields.integers("counters", 2 * cells), np.int64)
    places = np.array(fields.integers("hidden", cells), np.int64)
    together = np.array(fields.integers("together", classes), np.int64)
    rest = fields.integer("rest", 0, 2**31)
    fits = len(counters) == 2 * cells and len(together) == classes
    fits = fits and bool(((places >= 0) & (places < cells)).all()) and bool(together.min() >= -1)
    hidden = np.zeros(cells, dtype=np.bool_)
    if fits:
        hidden[places] = True
        shown = counters[:cells][~hidden]
        rows = hidden.reshape(classes, classes)
        fits = not counters[cells:].any() and not counters[:cells][hidden].any()
        fits = fits and bool((shown >= smallest).all())
        fits = fits and bool((together[rows.any(axis=1) & (together >= 0)] >= smallest).all())
        fits = fits and (rest == 0 or (rest >= smallest and bool((together < 0).any())))
    if not fits:
        raise FileInvalid(
            f"{where}: each count of the confusion matrix is at least {smallest}, the survey's "
            "smallest cell, or hidden; found other ones. Make the file again with fedassay tally."
        )
    whole = Tally.checked(
        part.survey,
        reports=fields.integers("reports", part.survey.hierarchy.levels),
        counters=counters,
        where=where,
    )
    return ConfusionTally(
        whole.fingerprint,
        whole.reports,
        counters,
        hidden=hidden.reshape(classes, classes),
        together=together,
        rest=rest,
    )
