"""ROC curves as polylines, and the area between two: the *area error* of arXiv 2510.04979."""

from dataclasses import dataclass

import numpy as np

from fedassay.examples import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """True against false positive rate, both rising from 0 to 1."""

    fpr: FloatArray
    tpr: FloatArray

    @classmethod
    def through(cls, fpr: FloatArray, tpr: FloatArray) -> "RocCurve":
        """The curve through noisy points: within the square, in order, from corner to corner."""
        x, y = np.clip(fpr, 0.0, 1.0), np.clip(tpr, 0.0, 1.0)
        order = np.lexsort((y, x))
        x = np.concatenate([[0.0], x[order], [1.0]])
        y = np.maximum.accumulate(np.concatenate([[0.0], y[order], [1.0]]))
        return cls(x, y)

    @classmethod
    def of_counts(cls, counts: FloatArray | IntArray) -> "RocCurve":
        """The curve of counts by label x ascending score, ties as slanted lines."""
        above = np.cumsum(counts[:, ::-1], axis=1) / counts.sum(axis=1, keepdims=True)
        return cls(*np.concatenate([np.zeros((2, 1)), above], axis=1))

    @property
    def area(self) -> float:
        """The area below it, by trapezes."""
        return float(np.trapezoid(self.tpr, self.fpr))

    def limits(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Heights just left and just right of places, which differ where it rises upright."""
        first = np.clip(np.searchsorted(self.fpr, x, side="left"), 1, len(self.fpr) - 1)
        last = np.clip(np.searchsorted(self.fpr, x, side="right"), 1, len(self.fpr) - 1)
        return self._between(first, x), self._between(last, x)

    def _between(self, end: IntArray, x: FloatArray) -> FloatArray:
        """On the line that ends at a point; its own end where that line is upright."""
        width = self.fpr[end] - self.fpr[end - 1]
        share = np.divide(x - self.fpr[end - 1], width, out=np.ones_like(x), where=width > 0.0)
        height: FloatArray = self.tpr[end - 1] + share * (self.tpr[end] - self.tpr[end - 1])
        return height


class Distances:
    """Areas between one curve of many corners and others of few, its own work done once."""

    def __init__(self, curve: RocCurve) -> None:
        self._curve = curve
        self._places = np.unique(curve.fpr)
        self._limits = curve.limits(self._places)

    def to(self, other: RocCurve) -> float:
        """The area between the two, over false positive rates from 0 to 1."""
        new = np.setdiff1d(other.fpr, self._places)
        at = np.searchsorted(self._places, new)
        places = np.insert(self._places, at, new)
        left, right = (
            np.insert(known, at, more)
            for known, more in zip(self._limits, self._curve.limits(new), strict=True)
        )
        other_left, other_right = other.limits(places)
        start, end = (right - other_right)[:-1], (left - other_left)[1:]
        both = np.abs(start) + np.abs(end)
        squares = np.divide(start**2 + end**2, both, out=np.zeros_like(both), where=both > 0.0)
        # A difference that changes sign within a piece leaves two triangles.
        mean = np.where(start * end < 0.0, squares, both) / 2.0
        return float(np.diff(places) @ mean)


def area_error(one: RocCurve, other: RocCurve) -> float:
    """The area between two curves, over false positive rates from 0 to 1."""
    return Distances(one).to(other)
