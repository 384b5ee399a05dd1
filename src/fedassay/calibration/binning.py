"""Calibration by the positive rates of equi-depth buckets."""

from math import sqrt

import numpy as np

from fedassay.calibration.calibrator import Calibrator, Interpolation, Method
from fedassay.calibration.rates import bucket_rates, require_classes
from fedassay.errors import SettingInvalid
from fedassay.histogram import ScoreHistogram


def bucket_guideline(examples: float, *, local_epsilon: float | None = None) -> int:
    """How many buckets balance their width against their noise.

    M^(1/3) for exact sums and distributed privacy (`thm:calib:secagg`, `thm:calib:dp`);
    sqrt(epsilon M^(1/2)) for local privacy.

    >>> bucket_guideline(1_000_000), bucket_guideline(1_000_000, local_epsilon=1.0)
    (100, 32)
    """
    if not examples > 0.0:
        raise SettingInvalid(f"the number of examples must be positive; found {examples}.")
    wanted = examples ** (1 / 3) if local_epsilon is None else sqrt(local_epsilon * sqrt(examples))
    return max(round(wanted), 1)


def fit_binning(
    histogram: ScoreHistogram,
    *,
    buckets: int | None = None,
    noise_aware: bool = True,
) -> Calibrator:
    """Every score becomes the positive rate of its bucket (`sec:calibration`).

    Without `buckets`, their number follows the theorems' guideline for the examples and for the
    noise that the histogram carries. With `noise_aware`, buckets whose size is not clear of the
    privacy noise join their neighbours; without, one without a size keeps its middle score.
    """
    require_classes(histogram)
    local_epsilon = histogram.noise.local_epsilon
    if buckets is None:
        buckets = bucket_guideline(histogram.total, local_epsilon=local_epsilon)
    deep = histogram.equi_depth(buckets)
    if noise_aware:
        merged = bucket_rates(deep)
        edges, rates = merged.edges, merged.rates
    else:
        edges, sizes = deep.edges, deep.counts.sum(axis=0)
        middle = 0.5 * (edges[1:] + edges[:-1])
        rates = np.where(sizes > 0.0, deep.positives / np.where(sizes > 0.0, sizes, 1.0), middle)
    # A calibrator answers with a probability; noisy rates may not be one.
    return Calibrator(Method.BINNING, edges, np.clip(rates, 0.0, 1.0), Interpolation.STEP)
