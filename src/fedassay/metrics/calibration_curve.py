"""The calibration curve: how far the share of positives lies from the score, by score.

The gap, observed minus predicted, is a line between nodes and flat beyond the outer ones: with
hats h (1 at their node, 0 at the others) it is theta'h(s), and theta solves the least squares

    A theta = b,    A = sum over examples of h h',    b = sum of h (label - s).

A calibrated score has theta = 0, whatever its distribution. Nodes are at the quantiles
1/16, 3/16, ..., 15/16 of a measure that gives half to the examples and half to their s (1 - s),
what they tell about rates: where scores crowd next to 0, some nodes stay where positives are.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fedassay.estimate import NotEnoughData
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.copies import copies_of
from fedassay.metrics.crowding import crowded_sums
from fedassay.metrics.delta_method import CLEAR_OF_NOISE, why_one_class
from fedassay.metrics.log_odds import PiecedHistogram, in_pieces

NODES = 8
_SINGULAR = 1e-9


def place_nodes(scores: FloatArray, totals: FloatArray, nodes: int = NODES) -> FloatArray:
    """Where the nodes are, for so many examples at rising scores; equal ones are one.

    >>> place_nodes(np.array([0.1, 0.2, 0.7, 0.9]), np.ones(4), 2).tolist()
    [0.2, 0.7]
    """
    sizes = np.maximum(totals, 0.0)
    told = sizes * scores * (1.0 - scores)
    shares = [each / each.sum() for each in (sizes, told) if each.sum() > 0.0]
    below = np.cumsum(sum(shares) / len(shares))
    wanted = (np.arange(nodes) + 0.5) / nodes
    # Half of a sum of halves may come out a rounding below itself.
    places = np.searchsorted(below, wanted - 1e-12)
    return np.unique(scores[np.minimum(places, len(scores) - 1)])


def hats(scores: FloatArray, nodes: FloatArray) -> FloatArray:
    """How much each node counts at each score, node x score; they add up to 1.

    >>> hats(np.array([0.0, 0.3, 0.5]), np.array([0.2, 0.4])).round(2).tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
    """
    return np.stack([np.interp(scores, nodes, own) for own in np.eye(len(nodes))])


def fit_gaps(features: FloatArray, scores: FloatArray, counts: FloatArray) -> FloatArray | None:
    """The gaps at the nodes, for counts (label x score); None where nothing tells them apart.

    >>> scores, nodes = np.array([0.2, 0.6]), np.array([0.2, 0.6])
    >>> fit_gaps(hats(scores, nodes), scores, np.array([[6.0, 5.0], [4.0, 5.0]])).round(3).tolist()
    [0.2, -0.1]
    """
    return solve_gaps(*gap_equations(features, scores, counts))


def gap_equations(
    features: FloatArray, scores: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The normal equations of the gaps, which add up over scores: matrix and right side.

    >>> scores, nodes = np.array([0.2, 0.6]), np.array([0.2, 0.6])
    >>> counts = np.array([[6.0, 5.0], [4.0, 5.0]])
    >>> [each.tolist() for each in gap_equations(hats(scores, nodes), scores, counts)]
    [[[10.0, 0.0], [0.0, 10.0]], [2.0, -1.0]]
    """
    totals = counts.sum(axis=0)
    return (features * totals) @ features.T, features @ (counts[1] - totals * scores)


def solve_gaps(normal: FloatArray, right: FloatArray) -> FloatArray | None:
    """The gaps at the nodes; None where nothing tells them apart.

    >>> solve_gaps(np.array([[2.0]]), np.array([1.0])).tolist()
    [0.5]
    """
    sizes = np.sqrt(np.maximum(np.diag(normal), 0.0))
    if not (sizes > 0.0).all():
        return None
    if not np.linalg.eigvalsh(normal / sizes / sizes[:, None])[0] > _SINGULAR:
        return None
    return np.asarray(np.linalg.solve(normal, right), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """The gaps at the nodes, with what noise, sampling and binning do to them."""

    pieced: PiecedHistogram
    nodes: FloatArray
    features: FloatArray
    """Hats at every piece, node x (bucket x piece)."""
    gaps: FloatArray
    asked: int = NODES
    """How many nodes there are but for equal ones; fewer than usual where noise hides the rest."""

    @property
    def histogram(self) -> ScoreHistogram:
        """What it was fitted to."""
        return self.pieced.histogram

    @cached_property
    def sizes(self) -> FloatArray:
        """Examples at every piece, none less than 0."""
        rising = self.histogram.monotone()
        sizes: FloatArray = np.maximum(self.pieced.counts_of(rising).sum(axis=0), 0.0).ravel()
        return sizes

    @cached_property
    def _inverse(self) -> FloatArray:
        totals = self.pieced.counts.sum(axis=0).ravel()
        return np.linalg.inv((self.features * totals) @ self.features.T)

    @cached_property
    def _influence(self) -> FloatArray:
        """How each gap moves with one row more, node x label x bucket."""
        scores = self.pieced.scores.ravel()
        rest = np.stack([-scores, 1.0 - scores]) - self.gaps @ self.features
        moved = (self._inverse @ self.features)[:, None] * rest
        return self.pieced.gradients(moved.reshape(len(self.nodes), 2, *self.pieced.scores.shape))

    @cached_property
    def sampling(self) -> FloatArray:
        """Covariance of the gaps from rows being a sample."""
        flat = self._influence.reshape(len(self.nodes), -1)
        counts = self.histogram.counts.ravel()
        mean = flat @ counts
        return _positive((flat * counts) @ flat.T - np.outer(mean, mean) / self.histogram.total)

    @cached_property
    def noise(self) -> FloatArray:
        """Covariance of the gaps from privacy noise."""
        size, model = len(self.nodes), self.histogram.noise
        if model.is_zero:
            return np.zeros((size, size))
        own = [model.variance(each) for each in self._influence]
        covariance = np.diag(own)
        for i, j in zip(*np.triu_indices(size, 1), strict=True):
            both = model.variance(self._influence[i] + self._influence[j])
            covariance[i, j] = covariance[j, i] = 0.5 * (both - own[i] - own[j])
        return _positive(covariance)

    @cached_property
    def placing(self) -> FloatArray:
        """Covariance of the gaps from not knowing where in a bucket scores lie.

        A row elsewhere has another score, and counts otherwise for the nodes on either side.
        """
        histogram = self.histogram
        loose = copies_of(histogram) * np.maximum(histogram.counts, 0.0) + histogram.spikes**2
        within = [
            (loose * each).reshape(len(each), -1) @ each.reshape(len(each), -1).T / 6.0
            for each in self._over_halves
        ]
        variance = self.pieced.doubts(self.pieced.scores) ** 2
        means = self.pieced.mean(np.broadcast_to(self.pieced.scores, self.pieced.counts.shape))
        crowded = crowded_sums(histogram, lambda scores: np.stack([scores, scores]), means)
        variance = variance + crowded.sum(axis=0) ** 2
        moved = self._inverse @ self._of_buckets
        covariance: FloatArray = (moved * variance) @ moved.T + within[0] + within[1]
        return covariance

    @property
    def _over_halves(self) -> tuple[FloatArray, FloatArray]:
        """How a row's part in each gap changes over both halves of a bucket, node x label x bucket.

        Over a bucket with even scores a straight line varies by a sixth of their squares.
        """
        edges = self.histogram.edges
        places = np.stack([edges[:-1], 0.5 * (edges[:-1] + edges[1:]), edges[1:]])
        features = hats(places.ravel(), self.nodes)
        rest = np.stack([-places.ravel(), 1.0 - places.ravel()]) - self.gaps @ features
        moved = ((self._inverse @ features)[:, None] * rest).reshape(len(features), 2, 3, -1)
        return moved[:, :, 1] - moved[:, :, 0], moved[:, :, 2] - moved[:, :, 1]

    @cached_property
    def reach(self) -> FloatArray:
        """To first order, how far each gap can be, however scores lie inside the buckets."""
        counts = np.abs(self.histogram.counts).sum(axis=0)
        furthest: FloatArray = np.abs(self._inverse @ self._of_buckets) @ (
            counts * np.diff(self.histogram.edges)
        )
        return furthest

    @property
    def _of_buckets(self) -> FloatArray:
        """Mean hats of each bucket, node x bucket."""
        shape = (len(self.nodes), *self.pieced.scores.shape)
        mean: FloatArray = self.features.reshape(shape).mean(axis=-1)
        return mean


@lru_cache(maxsize=1)
def calibration_curve(histogram: ScoreHistogram) -> CalibrationCurve | NotEnoughData:
    """Fit the curve, with fewer nodes where noise leaves less to tell them from.

    The last answer is kept, because several figures ask for it one after the other.

    >>> h = ScoreHistogram.from_scores([0, 0, 0, 1] * 50, [0.5] * 200)
    >>> calibration_curve(h).gaps.round(3).tolist()
    [-0.25]
    """
    undefined = why_one_class(histogram)
    if undefined is not None:
        return undefined
    pieced = in_pieces(histogram)
    scores = pieced.scores.ravel()
    sizes = np.maximum(pieced.counts_of(histogram.monotone()).sum(axis=0), 0.0).ravel()
    for wanted in range(NODES, 0, -1):
        nodes = place_nodes(scores, sizes, wanted)
        features = hats(scores, nodes)
        gaps = fit_gaps(features, scores, pieced.counts.reshape(2, -1))
        if gaps is not None and _is_clear(pieced, features):
            return CalibrationCurve(pieced, nodes, features, gaps, wanted)
    return NotEnoughData(
        reason="a calibration curve needs a stretch of scores whose examples stand clear of the "
        "privacy noise; there is none. Gather reports from more clients, or use a larger epsilon."
    )


def _is_clear(pieced: PiecedHistogram, features: FloatArray) -> bool:
    """Whether the examples that count for each node stand clear of their noise."""
    if pieced.histogram.noise.is_zero:
        return True
    shape = (len(features), 1, *pieced.scores.shape)
    for weights in pieced.mean(features.reshape(shape)):
        size = float((weights * pieced.histogram.counts).sum())
        if not size >= CLEAR_OF_NOISE * pieced.histogram.noise.variance(weights) ** 0.5:
            return False
    return True


def _positive(covariance: FloatArray) -> FloatArray:
    """The nearest covariance: rounding may leave a variance just below 0."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    nearest: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return nearest
