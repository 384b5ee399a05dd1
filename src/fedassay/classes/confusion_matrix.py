"""Who is taken for whom: counts of the true class by the most probable one."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fedassay.classes.one_vs_rest import ClassTables
from fedassay.estimate import Estimate, NotEnoughData, Shape
from fedassay.estimate_json import estimate_json
from fedassay.histogram import ScoreHistogram


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConfusionMatrix:
    """Shares of all rows, true class x most probable class, each with its errors."""

    names: tuple[str, ...]
    shares: tuple[tuple[Estimate, ...], ...]
    total: float
    """How many rows there are, as counted."""

    def __repr__(self) -> str:
        return f"<ConfusionMatrix: {len(self.names)} classes>"

    def to_json(self) -> dict[str, Any]:
        """Classes, and a row of shares for each true one."""
        rows = [[estimate_json(share) for share in row] for row in self.shares]
        return {"classes": list(self.names), "total": self.total, "shares": rows}


def confusion_matrix(tables: ClassTables) -> ConfusionMatrix | NotEnoughData:
    """The matrix, or why there is none.

    Guarantee: of exact sums no count below the smallest cell is published: in each row such
    counts, zeros too, are one sum with the next larger ones until it holds enough.
    """
    histogram = tables.confusion
    if isinstance(histogram, NotEnoughData):
        return histogram
    classes = len(tables.names)
    total = float(histogram.counts[0].sum())
    counts = histogram.counts[0].reshape(classes, classes)
    hidden = [_hidden(row, tables.smallest_cell) for row in counts]
    shares = tuple(
        tuple(
            _merged(row, own, tables.smallest_cell)
            if own[column]
            else _share(histogram, place * classes + column, total)
            for column in range(classes)
        )
        for place, (row, own) in enumerate(zip(counts, hidden, strict=True))
    )
    return ConfusionMatrix(tables.names, shares, total)


def _hidden(row: Any, smallest: int) -> Any:
    """Which counts of a row are published as one sum: those below the smallest, and enough more."""
    hidden = (row < smallest) if smallest else np.zeros(len(row), dtype=bool)
    for place in np.argsort(row, kind="stable"):
        if not hidden.any() or row[hidden].sum() >= smallest:
            break
        hidden[place] = True
    return hidden


def _merged(row: Any, hidden: Any, smallest: int) -> NotEnoughData:
    together = float(row[hidden].sum())
    shown = f"{together:.0f}" if together >= smallest else f"fewer than {smallest}"
    return NotEnoughData(
        reason=f"no count below {smallest:,} is published; {int(hidden.sum())} of this row are "
        f"{shown} together. Wait for more rows, or lower the smallest cell knowingly."
    )


def _share(histogram: ScoreHistogram, place: int, total: float) -> Estimate:
    share = float(histogram.counts[0, place]) / total
    gradient = np.zeros_like(histogram.counts)
    gradient[0] = -share / total
    gradient[0, place] += 1.0 / total
    return Estimate(
        value=share,
        noise_sd=sqrt(histogram.noise.variance(gradient)),
        sampling_sd=sqrt(max(share * (1.0 - share), 0.0) / total),
        shape=Shape.SCORE if share >= 0.0 else Shape.PLAIN,
        trials=total,
    )
