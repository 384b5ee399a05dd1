"""The gaps that ECE sums, over time: how far each look's are from those of all looks before it.

ECE is a sum of sizes |gap| over bins. Near 0 its error is far from normal, and chance only adds to
it, so that ECEs of two looks are not compared. Their gaps are: each has a sign, and an error that
is next to normal. With g_t the gaps of look t, m the mean of those before it and V the covariance
of g_t - m, the sum of |g_t - m| is the most by which ECE can have moved; while nothing changes its
law is that of |N(0, V)| summed over bins, which is known. What was seen, as a standard normal
figure by that law, is what a CUSUM adds up.

Bins end where the buckets of all these looks do, next to the 20 bins of ECE: a bucket across an
edge would lie in one bin by one grid and in another by the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from fedassay.calibration.bins import BinTable, bin_table
from fedassay.calibration.calibration_error import debiased_sizes
from fedassay.calibration.gap_intervals import nil_score
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import why_undefined
from fedassay.tracking.history import History

BINS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """One look's gaps per bin, observed less predicted positives as shares of all rows."""

    sizes: FloatArray
    """With their signs."""
    mass: FloatArray
    """The share of all rows in each bin."""
    covariance: FloatArray
    """Of the gaps, from sampling, privacy noise and coarse cells, bin x bin."""
    hidden: FloatArray | float = 0.0
    """What of the variances comes of coarse cells, and is the same at every look."""

    @property
    def weight(self) -> float:
        """How much a look counts in a mean: 1 over the sum of its variances."""
        return 1.0 / float(np.trace(self.covariance))


def gaps_between(histogram: ScoreHistogram, cuts: FloatArray, *, tied: bool = False) -> Gaps:
    """The gaps of bins whose ends are edges of buckets.

    `tied` allows for all rows of a bucket lying at one place in it, nobody knows which: their
    mean score then has a variance of width^2 / 12. Of one grid it is the same at every look.

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [0.25, 0.75] * 50)
    >>> gaps_between(h, np.array([0.0, 0.5, 1.0])).sizes.round(3).tolist()
    [-0.125, 0.125]
    """
    table = bin_table(histogram, bins=BINS)
    place = np.searchsorted(cuts, histogram.edges[:-1], side="right") - 1
    places = np.repeat(place[:, None], table.predictions.shape[1], axis=1)
    placed = BinTable(histogram, table.predictions, table.shares, places, len(cuts) - 1)
    hidden = placed.gap_placing
    if tied:
        inside = histogram.counts.sum(axis=0) / histogram.total * histogram.widths
        hidden = hidden + np.bincount(place, inside**2 / 12.0, len(hidden))
    covariance = placed.gap_noise_covariance + np.diag(hidden + placed.gap_sampling)
    return Gaps(placed.gaps, np.maximum(placed.mass, 0.0), covariance, hidden)


def cuts_among(edges: FloatArray) -> FloatArray:
    """Those edges that are next to the ends of ECE's bins.

    >>> cuts_among(np.array([0.0, 0.04, 0.07, 0.52, 1.0])).tolist()
    [0.0, 0.04, 0.07, 0.52, 1.0]
    """
    wanted = np.linspace(0.0, 1.0, BINS + 1)
    nearest = np.abs(edges[:, None] - wanted).argmin(axis=0)
    cuts: FloatArray = edges[np.unique(nearest)]
    return cuts


@dataclass(frozen=True, slots=True, eq=False)
class GapSeries:
    """The gaps of all looks that have some, as alarms read a series."""

    metric: ClassVar[str] = "ece"
    signs: ClassVar[tuple[float, ...]] = (1.0,)
    """Distances are far or near; which way ECE went is told by its figures."""
    times: list[str]
    histograms: list[ScoreHistogram]

    @classmethod
    def of(cls, history: History) -> "GapSeries":
        """Looks without an ECE are left out, as for other metrics."""
        read = {time: history[time].histogram() for time in history}
        known = {
            time: histogram
            for time, histogram in read.items()
            if why_undefined(histogram, np.ones_like(histogram.counts), "examples") is None
        }
        return cls(list(known), list(known.values()))

    def residuals(self, start: int) -> FloatArray:
        """How far each look's gaps are from the mean of all since `start`, as normal figures."""
        found: list[float] = []
        looks: list[Gaps] = []
        asked: tuple[FloatArray, bool] = np.zeros(0), False
        common = self.histograms[start].edges
        for number in range(start, len(self.times)):
            seen = self.histograms[start : number + 1]
            tied = asked[1] or not np.array_equal(seen[-1].edges, common)
            common = np.intersect1d(common, seen[-1].edges)
            cuts = cuts_among(common)
            if tied == asked[1] and np.array_equal(cuts, asked[0]):
                looks.append(gaps_between(seen[-1], cuts, tied=tied))
            else:
                asked = cuts, tied
                looks = [gaps_between(each, cuts, tied=tied) for each in seen]
            if len(looks) > 1:
                found.append(_distance(looks))
        return np.array(found)

    def figure(self, first: int, last: int) -> float:
        """The ECE of the mean gaps of these looks, without what chance adds."""
        some = self.histograms[first:last]
        cuts = cuts_among(reduce(np.intersect1d, [each.edges for each in some]))
        mean = _mean([gaps_between(each, cuts) for each in some])
        return float(debiased_sizes(mean.sizes, np.diag(mean.covariance), mean.mass)[0].sum())


def _distance(looks: Sequence[Gaps]) -> float:
    """A recursive residual of vectors, as in `cusum.recursive_residuals`.

    While nothing changes it is independent of those before it, where looks' covariances differ
    by a factor; and next to that where they differ otherwise.
    """
    last, mean = looks[-1], _mean(looks[:-1])
    return nil_score(last.sizes - mean.sizes, last.covariance + mean.covariance)


def _mean(looks: Sequence[Gaps]) -> Gaps:
    weights = np.array([look.weight for look in looks])
    parts = weights / weights.sum()
    return Gaps(
        parts @ np.stack([look.sizes for look in looks]),
        parts @ np.stack([look.mass for look in looks]),
        np.tensordot(parts**2, np.stack([look.covariance for look in looks]), axes=1),
    )
