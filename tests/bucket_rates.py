"""Bucket rates made by hand, for tests of what is fitted to them."""

import numpy as np
import numpy.typing as npt

from fedassay.calibration.rates import BucketRates


def rates_of(
    totals: npt.ArrayLike,
    positives: npt.ArrayLike,
    *,
    noise: npt.ArrayLike = 0.0,
    scores: npt.ArrayLike | None = None,
    covariance: npt.NDArray[np.float64] | None = None,
) -> BucketRates:
    """Buckets of one piece each, by default at the middles of equal widths."""
    sizes = np.asarray(totals, dtype=np.float64)
    count = len(sizes)
    middles = (np.arange(count) + 0.5) / count
    at = middles if scores is None else np.asarray(scores, dtype=np.float64)
    return BucketRates(
        edges=np.concatenate([[0.0], 0.5 * (at[1:] + at[:-1]), [1.0]]),
        totals=sizes,
        positives=np.asarray(positives, dtype=np.float64),
        noise_variance=np.broadcast_to(np.asarray(noise, dtype=np.float64), count).copy(),
        piece_starts=np.arange(count),
        piece_scores=at,
        piece_shares=np.ones(count),
        noise_covariance=covariance,
    )
