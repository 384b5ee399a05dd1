"""Leaves that hold far more than their neighbours, or a guess, have: scores that many share."""

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.histogram import ScoreHistogram
from fedassay.noise import DenseNoise

_LIKELY = 3.0
_BESIDE = 4
_LUMPY = 0.25
_SEEN, _HARDLY = 2.0, 0.05
# A threshold may be any number: beside a leaf of 1e-310 others are wider than squares can say.
_WIDEST = 2.0**300


def towers_of(leaves: ScoreHistogram) -> IntArray:
    """Leaves that hold far more than either neighbour: tied scores.

    That is more than twice its count, or what twice its density makes if that is more, of both
    labels together and by three standard deviations; or by as many more than twice the mean of the
    next four, too, which noise hides less. Scores that crowd fill leaves that grow from one to the
    next; a smooth curve follows those.
    """
    if not isinstance(leaves.noise, DenseNoise) or leaves.buckets < 2:
        return np.zeros(0, np.int64)
    held, covariance = leaves.counts.sum(axis=0), leaves.noise.of_both_labels()
    variance = np.maximum(np.diag(covariance), 0.0)  # rounding may take one below
    towers = held > _LIKELY * np.sqrt(variance)
    for side in (-1, 1):
        beyond = [np.eye(leaves.buckets) - _beside(leaves, side, each) for each in (1, _BESIDE)]
        more = np.stack([each @ held for each in beyond])
        squares = [((each @ covariance) * each).sum(axis=1) for each in beyond]
        is_clear = more > _LIKELY * np.sqrt(np.maximum(squares, 0.0))
        towers &= (more[0] > 0.0) & is_clear.any(axis=0)
    return np.flatnonzero(towers)


def ends_alone(leaves: ScoreHistogram, cuts: IntArray) -> IntArray:
    """The first and the last leaf, where each is a cell by itself and somebody is in it for sure.

    Beside a counter of its own leaves are noise: what is in it need not tower over that.
    """
    alone = np.diff(np.append(cuts, leaves.buckets))[[0, -1]] == 1
    ends = np.array([0, leaves.buckets - 1])
    if not isinstance(leaves.noise, DenseNoise):
        return np.zeros(0, np.int64)
    sd = np.sqrt(np.maximum(np.diag(leaves.noise.of_both_labels()), 0.0))[ends]
    found: IntArray = ends[alone & (leaves.counts.sum(axis=0)[ends] > _LIKELY * sd)]
    return found


def with_seen(guess: FloatArray, cells: ScoreHistogram, cuts: IntArray) -> FloatArray:
    """A guess of all leaves, and what counters show for sure in cells where it has hardly anybody.

    Logarithms do not come back from nobody: what a first survey's noise took to 0 would stay there,
    however many a second one counts.
    """
    if not isinstance(cells.noise, DenseNoise):
        return guess
    sd = np.sqrt(np.maximum(np.diag(cells.noise.of_both_labels()), 0.0))
    held, guessed = cells.counts.sum(axis=0), np.add.reduceat(guess.sum(axis=0), cuts)
    is_missed = (held > _SEEN * sd) & (guessed < _HARDLY * held)
    sizes = np.diff(np.append(cuts, guess.shape[1]))
    shown = np.where(is_missed, np.maximum(cells.counts, 0.0), 0.0) / sizes
    return np.maximum(guess, np.repeat(shown, sizes, axis=1))


def _beside(leaves: ScoreHistogram, side: int, number: int) -> FloatArray:
    """Twice the mean of so many neighbours on a side, leaf x leaf, as wide as the leaf itself.

    Beyond an end is nobody: there the neighbours on the other side stand for both.
    """
    own, last = np.arange(leaves.buckets), leaves.buckets - 1
    weights = np.zeros((leaves.buckets, leaves.buckets))
    number = min(number, last)
    for step in range(1, number + 1):
        beside = np.abs(own + side * step)
        beside = last - np.abs(last - beside)
        times = np.clip(leaves.widths / leaves.widths[beside], 1.0, _WIDEST)
        weights[own, beside] += 2.0 / number * times
    return weights


def is_lumpy(leaves: ScoreHistogram, towers: IntArray) -> bool:
    """Whether so many rows are in towers between the ends that noise will hide more of them.

    The highest is left out: one score that many share does not make others likely.
    """
    inside = towers[(towers > 0) & (towers < leaves.buckets - 1)]
    held = leaves.counts[:, inside].sum(axis=0)
    highest = float(held.max(initial=0.0))
    return bool(held.sum() - highest > _LUMPY * (leaves.total - highest))
