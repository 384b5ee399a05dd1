"""Sites' histograms added up: all rows as one sample."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.noise import NoiseModel


@dataclass(frozen=True, slots=True, eq=False)
class SummedNoise:
    """The noise of counts that are sums over sites, each with its own."""

    parts: tuple[NoiseModel, ...]

    @property
    def is_zero(self) -> bool:
        """Whether no site added any."""
        return all(part.is_zero for part in self.parts)

    def variance(self, weights: FloatArray) -> float:
        """Variances of independent noise add up."""
        return sum(part.variance(weights) for part in self.parts)

    def covariances(self, weights: FloatArray) -> FloatArray:
        """Covariances of independent noise add up."""
        table: FloatArray = np.sum([part.covariances(weights) for part in self.parts], axis=0)
        return table

    @property
    def local_epsilon(self) -> float | None:
        """That of the first site that has one."""
        return next((part.local_epsilon for part in self.parts if part.local_epsilon), None)

    def reports_for(self, growth: float) -> float:
        """As for the site that needs the most."""
        return max(part.reports_for(growth) for part in self.parts)


def pooled_histogram(histograms: Iterable[ScoreHistogram]) -> ScoreHistogram:
    """All sites' rows in one histogram; the sites must have counted in the same cells.

    >>> one = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[3.0, 1.0], [1.0, 3.0]]))
    >>> pooled_histogram([one, one]).counts.tolist()
    [[6.0, 2.0], [2.0, 6.0]]
    """
    each = list(histograms)
    if not each:
        raise SettingInvalid("there must be a site to pool; found none. Pass their histograms.")
    for histogram in each:
        require_histogram(histogram)
        if not np.array_equal(histogram.edges, each[0].edges):
            raise SettingInvalid(
                "sites must have counted in the same cells to be added up; found other edges. Let "
                "all sites answer one survey."
            )
    return ScoreHistogram(
        each[0].edges,
        np.sum([histogram.counts for histogram in each], axis=0),
        SummedNoise(tuple(histogram.noise for histogram in each)),
        each[0].smooth,
    )
