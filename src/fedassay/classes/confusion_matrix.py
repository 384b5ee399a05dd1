"""Who is taken for whom: counts of the true class by the most probable one."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fedassay.classes.one_vs_rest import ClassTables
from fedassay.classes.published_parts import ConfusionTally
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

    Guarantee: of exact sums no count below the smallest cell is published, nor one that follows
    from others (`published_parts.hidden_cells`).
    """
    histogram = tables.confusion
    if isinstance(histogram, NotEnoughData):
        return histogram
    classes, seen = len(tables.names), tables.seen
    total = float(histogram.counts[0].sum()) if seen is None else seen.total
    shares = tuple(
        tuple(
            _share(histogram, place * classes + column, total)
            if seen is None or not seen.hidden[place, column]
            else _hidden(seen, place, tables.smallest_cell)
            for column in range(classes)
        )
        for place in range(classes)
    )
    return ConfusionMatrix(tables.names, shares, total)


def _hidden(seen: ConfusionTally, row: int, smallest: int) -> NotEnoughData:
    together, cells = int(seen.together[row]), int(seen.hidden[row].sum())
    shown = f"{cells} of this row are {together:,} together"
    return NotEnoughData(
        reason=f"no count below {smallest:,} is published; "
        f"{'this class is withheld' if together < 0 else shown}. Wait for more rows, or lower the "
        "smallest cell knowingly."
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
