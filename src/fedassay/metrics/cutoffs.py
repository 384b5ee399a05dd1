"""The threshold above which a wanted number of examples lies, and what chance makes of it."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.interpolation import cubic
from fedassay.metrics.confusion import Confusion, confusion
from fedassay.metrics.delta_method import sampling_variance
from fedassay.ties import AT_THE_END

_HALVINGS = 60
_ROUNDING = 1e-9
# The slope of a curve is that of a chord as wide as chance moves the cutoff, and at least so
# much of the way to the nearer end.
_NEAR = 0.1
# A crowd has so much of what passes for a tie in the bucket beside it.
_A_PART = 0.25
# So much denser than the next but one, a bucket holds more than a slope does.
_STEEP = 16.0


@dataclass(frozen=True, slots=True, eq=False)
class Cutoff:
    """Where a wanted number of some examples lies above."""

    at: Confusion
    """The counts at the threshold, as read from the histogram's own counts."""
    bucket: int
    """The bucket that holds the example at which the wanted number is reached."""
    is_tied: bool
    """Whether that bucket holds many examples of one score rather than a stretch of scores."""
    wanted: float
    above: float
    """How many of these examples lie above the threshold, before any correction."""


def cutoff(
    histogram: ScoreHistogram, labels: FloatArray, wanted: float, *, reached: bool
) -> Cutoff:
    """The threshold with `wanted` examples above it; `labels` says how much each class counts.

    With `reached`, the bucket is the one of the example that makes it as many as wanted;
    without, of the first that would make it more. Noisy counts are made to rise first, to find
    the place; the counts there stay as they are.

    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[6.0, 4.0], [2.0, 8.0]]))
    >>> cutoff(h, np.array([1.0, 1.0]), 12.0, reached=True).at.threshold
    0.5
    """
    rising = histogram.monotone()
    below = labels @ rising.cumulative
    above = below[-1] - below
    slack = _ROUNDING * max(float(below[-1]), 1.0)
    enough = above >= wanted - slack if reached else above > wanted + slack
    bucket = int(np.flatnonzero(enough[:-1]).max(initial=0))
    inside = _part_above(rising, labels, bucket, wanted - float(above[bucket + 1]))
    low, high = float(rising.edges[bucket]), float(rising.edges[bucket + 1])
    threshold = min(max(high - inside * (high - low), low), high)
    at = confusion(histogram, threshold)
    tp, fp, _, _ = at.counts
    return Cutoff(
        at,
        bucket,
        _is_tied(rising, labels, bucket),
        wanted,
        float(labels[0] * fp + labels[1] * tp),
    )


def _is_tied(histogram: ScoreHistogram, labels: FloatArray, bucket: int) -> bool:
    """Whether most of a bucket is one score; next to 0 and 1 scores crowd without being one.

    Unless the bucket is so narrow that all are 0, or 1.
    """
    if bucket in (0, histogram.buckets - 1) and histogram.widths[bucket] > AT_THE_END:
        return False
    tied = float(labels @ histogram.ties[:, bucket])
    if tied <= 0.5 * float(labels @ histogram.counts[:, bucket]):
        return False
    return histogram.noise.is_zero or float(labels @ _beside(histogram, bucket)) < _A_PART * tied


def _beside(histogram: ScoreHistogram, bucket: int) -> FloatArray:
    """What lies beside a bucket and cannot be the next one's slope, per label.

    A crowd around an edge fills both buckets there, however wide; beside a tie are smooth scores,
    which may be steep.
    """
    counts = np.pad(histogram.counts, ((0, 0), (2, 2)))
    widths = np.pad(histogram.widths, 2, constant_values=1.0)
    density = _STEEP * np.maximum(counts, 0.0) / widths
    near, beyond = (bucket + 2 + step * np.array([-1, 1]) for step in (1, 2))
    beside = np.maximum(counts[:, near] - density[:, beyond] * widths[near], 0.0)
    most: FloatArray = beside.max(axis=1)
    return most


def _part_above(histogram: ScoreHistogram, labels: FloatArray, bucket: int, wanted: float) -> float:
    """Which part of a bucket, from its right end, holds so many examples."""
    counts = histogram.counts[:, bucket]
    whole = float(labels @ counts)
    if whole <= 0.0:
        return 0.0
    wanted = min(max(wanted, 0.0), whole)
    if not histogram.smooth:
        return wanted / whole
    width = histogram.widths[bucket]
    start, end = histogram.slopes[:, bucket] * width, histogram.slopes[:, bucket + 1] * width
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        held = whole - float(labels @ cubic(1.0 - middle, counts, start, end))
        low, high = (middle, high) if held < wanted else (low, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True, slots=True, eq=False)
class Chords:
    """How negatives and positives above a cutoff grow with the number wanted, per label."""

    fewer: FloatArray
    """From somewhat fewer examples to those at the cutoff."""
    more: FloatArray
    """From there to somewhat more."""

    def towards(self, rows: float) -> FloatArray:
        """The slope on the way to so many rows more, or fewer."""
        return self.more if rows > 0.0 else self.fewer


def chords(histogram: ScoreHistogram, labels: FloatArray, found: Cutoff, own: FloatArray) -> Chords:
    """The slopes of both classes on either side of a cutoff, which differ where a curve has a kink.

    `own` says how the examples above it, less their usual share, depend on the counts: how
    far chance moves that number is how wide the chords are.

    >>> counts = np.array([[80.0, 40.0], [20.0, 60.0]])
    >>> h = ScoreHistogram(np.array([0.0, 0.5, 1.0]), counts, smooth=False)
    >>> own, found = np.array([[-0.5, 0.5]] * 2), cutoff(h, np.ones(2), 100.0, reached=True)
    >>> both = chords(h, np.ones(2), found, own)
    >>> both.fewer.round(3).tolist(), both.more.round(3).tolist()
    ([0.4, 0.6], [0.8, 0.2])
    """
    total = float(labels @ histogram.cumulative[:, -1])
    sd = sqrt(histogram.noise.variance(own) + sampling_variance(histogram, own))
    reach = max(2.0 * sd, _NEAR * min(found.wanted, total - found.wanted), 1.0)
    places = [found]
    for moved in (found.wanted - reach, found.wanted + reach):
        places.append(cutoff(histogram, labels, min(max(moved, 0.0), total), reached=True))
    here, fewer, more = ((each.above, np.array(each.at.counts[1::-1])) for each in places)
    # Noise may put the middle outside, or next to an end: then one chord stands for both.
    least = _NEAR * (more[0] - fewer[0])
    if min(here[0] - fewer[0], more[0] - here[0]) <= max(least, 0.0):
        whole = _slope(fewer, more)
        return Chords(whole, whole)
    return Chords(_slope(fewer, here), _slope(here, more))


def _slope(start: tuple[float, FloatArray], end: tuple[float, FloatArray]) -> FloatArray:
    if end[0] - start[0] <= 0.0:
        return np.zeros(2)
    slope: FloatArray = (end[1] - start[1]) / (end[0] - start[0])
    return np.maximum(slope, 0.0)
