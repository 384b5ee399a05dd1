"""What a first survey leaves known of its leaves, and what chosen cells would add to it.

Candidates for a second survey share their cells more often than not: what is known of sums over
these is computed once for all of them.
"""

from dataclasses import dataclass, field

import numpy as np

from fedassay.cut_levels import CutLevels, PerLabel
from fedassay.examples import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class KnownLeaves:
    """The covariance K of the leaves after a first survey, label x leaf x leaf."""

    covariance: FloatArray
    _seen: dict[tuple[bool, PerLabel], FloatArray] = field(default_factory=dict)
    """R K by the cells or weights of a level: label x counter x leaf."""

    def told_by(
        self, levels: CutLevels, variances: FloatArray, known_sums: FloatArray
    ) -> FloatArray:
        """What counters take off the variances of sums, given by K times them: one for each.

        As `reconcile.News`, with the rows of the counters never written out. Counters R
        have variances V (label x counter): F' (V + R K R')^-1 F, where F = R K times the sums.
        """
        seen = np.concatenate([self._of_level(levels, each) for each in _levels(levels)], axis=1)
        whole = np.concatenate([_counted(levels, each, seen) for each in _levels(levels)], axis=-1)
        felt = np.concatenate(
            [
                _counted(levels, each, known_sums.swapaxes(1, 2)).swapaxes(1, 2)
                for each in _levels(levels)
            ],
            axis=1,
        )
        weights = 1.0 / np.sqrt(variances)[..., np.newaxis]
        whole = weights * whole * weights.swapaxes(1, 2)
        counters = np.arange(whole.shape[-1])
        whole[:, counters, counters] += 1.0
        felt = weights * felt
        less: FloatArray = np.einsum("lks,lks->s", felt, np.linalg.solve(whole, felt))
        return less

    def _of_level(self, levels: CutLevels, level: int) -> FloatArray:
        rows = levels.is_weighted(level), _rows(levels, level)
        if rows not in self._seen:
            # K is symmetric: its rows add up as its columns do.
            self._seen[rows] = _counted(levels, level, self.covariance).swapaxes(1, 2)
        return self._seen[rows]


def _levels(levels: CutLevels) -> range:
    return range(levels.levels)


def _rows(levels: CutLevels, level: int) -> PerLabel:
    if levels.weights is not None and levels.is_weighted(level):
        return levels.weights
    return levels.cuts[level]


def _counted(levels: CutLevels, level: int, values: FloatArray) -> FloatArray:
    """Values by leaf (label x any x leaf), added up as a level's counters do."""
    rows = _rows(levels, level)
    if levels.is_weighted(level):
        weighted: FloatArray = values @ np.array(rows, dtype=np.float64)[..., np.newaxis]
        return weighted
    cells = np.zeros((*values.shape[:2], levels.cells_per_level[level]))
    for label, starts in enumerate(rows):
        cells[label, :, : len(starts)] = np.add.reduceat(values[label], starts, axis=-1)
    return cells
