"""What scores may look like before anybody has counted them: the planner's model."""

from functools import lru_cache
from math import erfc, log, sqrt
from statistics import NormalDist

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram

_POINTS = 2**12


def from_reference(
    reference: Examples | FloatArray, *, examples: float, positive_rate: float | None
) -> ScoreHistogram:
    """Expected counts if clients' scores are distributed as the reference's.

    Without labels the scores are taken for probabilities.

    >>> reference = Examples([0, 0, 1], [0.1, 0.4, 0.8])
    >>> from_reference(reference, examples=300, positive_rate=None).total_positives
    100.0
    """
    grid = Grid.fine(_POINTS)
    if isinstance(reference, Examples):
        counts = _counts_of(reference)
    else:
        labels = np.zeros(len(reference), dtype=np.uint8)
        total = grid.count(Examples(labels, reference))[0]
        middle = 0.5 * (grid.edges[1:] + grid.edges[:-1])
        counts = np.stack([total * (1.0 - middle), total * middle])
    sums = counts.sum(axis=1)
    if not sums.all():
        raise SettingInvalid("a reference needs both classes; found one only. Use a larger sample.")
    rate = sums[1] / sums.sum() if positive_rate is None else positive_rate
    shares = np.array([[1.0 - rate], [rate]]) * examples / sums[:, None]
    return ScoreHistogram(grid.edges, counts * shares)


@lru_cache(maxsize=6)
def _counts_of(reference: Examples) -> FloatArray:
    return Grid.fine(_POINTS).count(reference).astype(np.float64)


def binormal(
    *, examples: float, positive_rate: float, auc: float, shift: float = 0.0
) -> ScoreHistogram:
    """Expected counts of a classifier whose log-odds are normal in each class.

    It is calibrated, or its log-odds are all too large by `shift`: far below 0 scores crowd
    near 0 however common positives are.

    >>> round(binormal(examples=100, positive_rate=0.3, auc=0.8).total_positives)
    30
    """
    if not 0.5 < auc < 1.0:
        raise SettingInvalid(f"an assumed AUC must lie between 0.5 and 1; found {auc}.")
    totals = np.array([[examples * (1.0 - positive_rate)], [examples * positive_rate]])
    edges, shares = _binormal_shares(positive_rate, auc, shift)
    return ScoreHistogram(edges, shares * totals)


@lru_cache(maxsize=8)
def _binormal_shares(
    positive_rate: float, auc: float, shift: float
) -> tuple[FloatArray, FloatArray]:
    """Edges, and each class's share between them, label x cell: a plan asks for several sizes."""
    separation = sqrt(2.0) * NormalDist().inv_cdf(auc)
    grid = Grid.fine(_POINTS)
    inner = grid.edges[1:-1]
    # With z normal around 0 or `separation`, log-odds = offset + separation z.
    offset = log(positive_rate / (1.0 - positive_rate)) - separation**2 / 2.0 + shift
    z = (np.log(inner) - np.log1p(-inner) - offset) / separation
    below = np.stack([_normal_below(z), _normal_below(z - separation)])
    below = np.concatenate([np.zeros((2, 1)), below, np.ones((2, 1))], axis=1)
    return grid.edges, np.diff(below, axis=1)


def _normal_below(z: FloatArray) -> FloatArray:
    """The standard normal distribution function.

    Of a few thousand points: one by one is quicker than to load a library for it.
    """
    return np.array([0.5 * erfc(each) for each in (z / -sqrt(2.0)).tolist()])


def on_grid(model: ScoreHistogram, grid: Grid) -> FloatArray:
    """The model's expected counts on another grid, label x cell.

    >>> on_grid(binormal(examples=100, positive_rate=0.3, auc=0.8), Grid.uniform(4)).shape
    (2, 4)
    """
    below = np.stack([np.interp(grid.edges, model.edges, row) for row in model.cumulative])
    return np.diff(below, axis=1)
