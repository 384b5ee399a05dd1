"""Who is above a threshold by one model and not by the other."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedassay.examples import FloatArray
from fedassay.paired.pair_histogram import PairHistogram

_SIDES = ("both_below", "second_only", "first_only", "both_above")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reclassification:
    """Rows of each label by which models have them above a threshold."""

    threshold: float
    counts: FloatArray | None
    """Label x (first below, above) x (second below, above); None where no joint cell ends there."""
    noise_sd: FloatArray | None = None

    @property
    def reason(self) -> str:
        """Why there is no table, where there is none."""
        if self.counts is not None:
            return ""
        return (
            f"no joint cell ends at {self.threshold:g} for both models; name the threshold when "
            "the survey is made, or, of exact sums, gather more rows."
        )

    def to_json(self) -> dict[str, Any]:
        """The table in JSON's terms: by label, then by who is above."""
        if self.counts is None:
            return {"reason": self.reason}
        return {
            label: dict(zip(_SIDES, map(float, table.ravel()), strict=True))
            for label, table in zip(("negatives", "positives"), self.counts, strict=True)
        }

    def rows(self) -> list[list[str]]:
        """The table as people read it: label, both below, only the second, only the first, both."""
        if self.counts is None:
            return []
        return [
            [label, *(f"{count:,.0f}" for count in table.ravel())]
            for label, table in zip(("negatives", "positives"), self.counts, strict=True)
        ]


def reclassification(pair: PairHistogram, threshold: float) -> Reclassification:
    """The table at a threshold, where joint cells end there for both models."""
    row, column = (int(np.searchsorted(edges, threshold)) for edges in (pair.rows, pair.columns))
    on_edges = all(
        place < len(edges) and edges[place] == threshold
        for place, edges in ((row, pair.rows), (column, pair.columns))
    )
    if not on_edges or not 0.0 < threshold < 1.0:
        return Reclassification(threshold=threshold, counts=None)
    starts = np.array([0, row]), np.array([0, column])
    sides = np.add.reduceat(np.add.reduceat(pair.joint, starts[0], axis=1), starts[1], axis=2)
    noise_sd = np.zeros_like(sides)
    for label in (0, 1):
        for i, rows in enumerate((slice(0, row), slice(row, None))):
            for j, columns in enumerate((slice(0, column), slice(column, None))):
                weights = np.zeros_like(pair.joint)
                weights[label, rows, columns] = 1.0
                noise_sd[label, i, j] = np.sqrt(pair.noise.variance(weights.reshape(2, -1)))
    return Reclassification(threshold=threshold, counts=sides, noise_sd=noise_sd)
