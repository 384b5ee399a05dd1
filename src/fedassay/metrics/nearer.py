"""Two readings of two surveys: from the leaves, or from the cells that the second one counted."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import hypot

from fedassay.doubts import part_of_error
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram
from fedassay.noise import DenseNoise


def nearer(histogram: ScoreHistogram, figure: Callable[[ScoreHistogram], Estimate]) -> Estimate:
    """A figure from the leaves or from the cells, whichever is expected to err less.

    Inside a cell leaves have the noise of the first survey, which a figure of the log-odds
    feels most where hardly any row is; a curve through the cells has less of it, but
    may hide something. Either has its own noise and binning error: the smaller of both
    together is taken, sqrt(noise^2 + binning^2).

    >>> import numpy as np
    >>> from fedassay.metrics import prevalence
    >>> h = ScoreHistogram(np.arange(4) / 3, np.ones((2, 3)), cells=np.array([0, 1, 3]))
    >>> nearer(h, prevalence).value
    0.5
    """
    cells = histogram.by_cells()
    if cells is histogram:
        return figure(histogram)
    readings = [figure(cells), figure(histogram)]
    answers = [each for each in readings if each.is_available] or readings[:1]
    return min(answers, key=lambda each: hypot(each.noise_sd, each.binning_sd))


def beyond_cells(
    histogram: ScoreHistogram, figure: Callable[[ScoreHistogram], Estimate]
) -> Estimate:
    """A figure of smoothed counts, with what cells hide of it as far as cliffs are likely.

    A curve misses what falls off a cliff. Cells whose neighbours say how much of them is open do
    not; how likely a cliff is, the curve's own evidence says (`doubts`).

    >>> import numpy as np
    >>> from fedassay.metrics import prevalence
    >>> h = ScoreHistogram(np.arange(4) / 3, np.ones((2, 3)), cells=np.array([0, 1, 3]))
    >>> beyond_cells(h, prevalence) == prevalence(h)  # no smoothed counts
    True
    """
    found, cells = figure(histogram), _unsmoothed_cells(histogram)
    part = 1.0 if histogram.doubts is None else part_of_error(histogram.doubts.cliffs)
    if cells is None or part == 0.0:
        return found
    coarser = figure(cells)
    return replace(
        found,
        binning_sd=max(found.binning_sd, part * coarser.binning_sd),
        binning_bound=max(found.binning_bound, coarser.binning_bound),
        binning_limit=max(found.binning_limit, coarser.binning_limit),
    )


@lru_cache(maxsize=2)
def _unsmoothed_cells(histogram: ScoreHistogram) -> ScoreHistogram | None:
    """Cells read as if counts had not been smoothed; None where they were not.

    The last ones are kept, with all that one figure after the other finds out about them.
    """
    if histogram.cells is None:
        return None
    cells = histogram.counted_cells
    if not isinstance(cells.noise, DenseNoise) or not cells.noise.is_smoothed:
        return None
    return replace(cells, noise=replace(cells.noise, is_smoothed=False))
