"""Errors at thresholds as far as a grid alone decides them, for all surveys on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedassay.estimate import REACH, Estimate, NotEnoughData
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import CLEAR_OF_NOISE, SPECK

# Precision, recall and accuracy as ratios of sums of true and false positives and negatives.
_TOPS = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
_BOTTOMS = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
# With a spread beyond this there is no figure, and its error is that spread, whatever the bias.
_TOO_COARSE = 1.0 / (3.0 * REACH)
_NIL = 1e-12

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RatesOnGrid:
    """Precision, recall and accuracy at thresholds, whatever the levels and their noise."""

    sums: FloatArray
    """Model x 2 figures x label x cell: how each moves with the counts, then its denominators."""
    sizes: FloatArray
    """Model x figure: the denominators."""
    biases: FloatArray
    is_known: BoolArray
    """Whether the model itself has the figure."""
    on_edge: BoolArray
    """By figure: on an edge nothing is hidden, inside a cell the spread is still to come."""

    @classmethod
    def of(
        cls,
        histograms: Sequence[ScoreHistogram],
        thresholds: Sequence[float],
        truths: Sequence[Sequence[Estimate]],
    ) -> "RatesOnGrid":
        """For each model's expected counts on one grid, without noise, and its true values."""
        parts = [[_at(histogram, each) for each in thresholds] for histogram in histograms]
        slopes, bottoms, sizes, values = (
            np.array([np.concatenate([at[part] for at in model]) for model in parts])
            for part in range(4)
        )
        known = np.array([[not isinstance(t, NotEnoughData) for t in model] for model in truths])
        true = np.array([[each.value for each in model] for model in truths])
        edges = histograms[0].edges[1:]
        return cls(
            sums=np.concatenate([slopes, bottoms], axis=1),
            sizes=sizes,
            biases=np.where(known, values - true, 0.0),
            is_known=known,
            on_edge=np.repeat([each in edges for each in thresholds], len(_TOPS)),
        )

    @property
    def is_exact(self) -> bool:
        """Whether all thresholds lie on edges: the least errors are the errors then."""
        return bool(self.on_edge.all())

    def least_errors(self, variances: FloatArray) -> FloatArray:
        """Model x figure, from the variances of `sums`: what cells hide is not in them yet."""
        sds = np.sqrt(variances)
        noise, of_sizes = np.split(sds, 2, axis=1)
        errors = np.hypot(noise, self.biases)
        coarse = np.hypot(noise, _TOO_COARSE)
        errors = np.where(self.on_edge, errors, np.minimum(errors, coarse)) + _NIL
        is_told = (self.sizes > SPECK) & (self.sizes >= CLEAR_OF_NOISE * of_sizes)
        least: FloatArray = np.where(is_told & self.is_known, errors, 1.0)
        return least


def _at(
    histogram: ScoreHistogram, threshold: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Slopes and denominators as weights of the counts, and denominators and values, by figure."""
    below, bucket, part = histogram.below(threshold)
    above = 1.0 - histogram.shares_below(bucket, part)
    (fp, tp), (tn, fn) = histogram.cumulative[:, -1] - below, below
    counts = np.array([tp, fp, fn, tn])
    sizes = _BOTTOMS @ counts
    divisors = np.where(sizes > 0.0, sizes, 1.0)
    values = (_TOPS @ counts) / divisors
    slopes = (_TOPS - values[:, np.newaxis] * _BOTTOMS) / divisors[:, np.newaxis]
    return _weights(slopes, above), _weights(_BOTTOMS, above), sizes, values


def _weights(slopes: FloatArray, above: FloatArray) -> FloatArray:
    """Sums over confusion counts as weights of all counts: figure x label x cell."""
    if_above, if_below = slopes[:, [1, 0], np.newaxis], slopes[:, [3, 2], np.newaxis]
    weights: FloatArray = if_below + (if_above - if_below) * above
    return weights
