"""Rows that were given a score of 0 or 1 whatever their label, inside a wide bucket next to it.

Of a class that contradicts an end, positives next to 0, fewer are there the nearer it is, and
rarer among the others. Where it towers in the end bucket, and is commoner than beside it or
much of its class, it was heaped there: by a default for what was not scored, or by a tree's
leaf. In a cell too wide to tower it is a heap if it is far commoner than beside. Then nothing is
known of its distance from the end.
"""

import numpy as np

from fedassay.histogram import ScoreHistogram
from fedassay.metrics.range_noise import CLEAR, range_noise
from fedassay.ties import AT_THE_END, FEWEST_TIED

_TOWERS = 1.0 / 3.0
# So much of a class next to the end that it contradicts is no tail of it.
_MUCH = 0.1
_LIKELY = 2.0
_WIDE = 0.01
# A class that contradicts an end is rarer there than beside it, if its scores say anything.
_FAR = 1.5


def heaped_share(histogram: ScoreHistogram, end: int) -> float:
    """The part of the contradicting class's rows next to 0 or 1 that nothing beside explains.

    0 where it thins out towards the end, and where noise may have made the difference.

    >>> edges = np.array([0.0, 0.02, 0.05, 1.0])
    >>> heaped = np.array([[30000.0, 4000.0, 5000.0], [740.0, 20.0, 900.0]])
    >>> round(heaped_share(ScoreHistogram(edges, heaped), 0), 2)
    0.96
    >>> thin = np.array([[30000.0, 4000.0, 5000.0], [20.0, 40.0, 1600.0]])
    >>> heaped_share(ScoreHistogram(edges, thin), 0)
    0.0
    """
    filled = np.flatnonzero((histogram.counts > 0.0).any(axis=0))
    here, step = (0, 1) if end == 0 else (histogram.buckets - 1, -1)
    others = filled[filled != here]
    if histogram.widths[here] <= AT_THE_END or not len(others):
        return 0.0
    beside, label = int(others[0] if step > 0 else others[-1]), 1 - end
    own, other = float(histogram.counts[label, here]), float(histogram.counts[end, here])
    own_beside, other_beside = histogram.counts[[label, end], beside].clip(min=0.0).tolist()
    wider = 2.0 * float(histogram.widths[here] / histogram.widths[beside])
    spike, noise = own - wider * own_beside, range_noise(histogram)
    sds = [
        noise.sd(each, at, at + 1) for each, at in ((label, here), (label, beside), (end, beside))
    ]
    is_much = own > _MUCH * float(histogram.counts[label].sum())
    # Beside one that noise hides nothing is rarer.
    is_commoner = own * max(other_beside, sds[2]) > own_beside * max(other, 0.0)
    towers = spike > max(_TOWERS * own, FEWEST_TIED + CLEAR * (sds[0] + wider * sds[1]))
    share = spike / own if towers and (is_commoner or is_much) else 0.0
    if noise.is_zero or histogram.widths[here] < _WIDE:
        return share
    # No tower in so wide a bucket, but far commoner than a deviation of noise beside would make it:
    # then all of it may be a heap. Exact counts have those in buckets of their own.
    rate = own / max(own + max(other, 0.0), 1.0)
    rate_beside = (own_beside + sds[1]) / max(own_beside + other_beside, 1.0)
    is_seen = own > FEWEST_TIED + _LIKELY * sds[0]
    return 1.0 if is_seen and rate > _FAR * rate_beside else share
