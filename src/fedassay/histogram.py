"""The score histogram: positives and negatives per bucket, with their noise."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedassay.checks import require_thresholds, require_type, require_whole, shown
from fedassay.doubts import Doubts
from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, FloatArray, IntArray
from fedassay.grid import Grid
from fedassay.interpolation import cubic, monotone_slopes, nearest_rising
from fedassay.noise import NoiseModel, NoNoise, is_smoothed, merged
from fedassay.presentation import html_text
from fedassay.ties import AT_THE_END, but_far_flung, far_flung_in, spikes_of, tails_in, ties_of

_ROUNDING = 1.0 + 1e-12
_NARROW, _FAR = 2.0**-10, 16.0
_SMALL_PART = 2.0**-4
_AT_AN_END = 1e-9
# Counts per width stay finite for edges as close as 1e-310.
_NARROWEST = 2.0**-900


@dataclass(frozen=True, eq=False, repr=False)
class ScoreHistogram:
    """Counts of negatives and positives per bucket (lo, hi], as decoded.

    Counts may be fractional or negative when they carry privacy noise; nothing here
    clips them. With `smooth`, counts within a bucket are interpolated by a monotone
    cubic through the cumulative counts; without, evenly, as in the paper (`eq:histauc`).
    """

    edges: FloatArray
    counts: FloatArray
    """Label x bucket: row 0 negatives, row 1 positives."""
    noise: NoiseModel = field(default_factory=NoNoise)
    smooth: bool = True
    cells: IntArray | None = None
    """Positions of the edges between which examples were counted, ends included, where buckets
    inside are known from less; None where all are known alike."""
    counted: "ScoreHistogram | None" = None
    """The same buckets as counters alone have them, where counts were smoothed."""
    doubts: Doubts | None = None
    """What those counters say against smoothed counts."""

    def __post_init__(self) -> None:
        for name in ("edges", "counts"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                raise SettingInvalid(
                    f"a histogram's {name} must be a numpy array of float64; found "
                    f"{type(array).__name__}. Use ScoreHistogram.from_scores(y, s), or "
                    "np.asarray(..., dtype=float)."
                )
        if self.edges.ndim != 1 or len(self.edges) < 2 or not (np.diff(self.edges) > 0.0).all():
            raise SettingInvalid(
                "a histogram's edges must rise strictly in one row of two or more; these do not. "
                "Sort them and drop repeats."
            )
        if not (self.edges[0] >= 0.0 and self.edges[-1] <= 1.0):
            raise SettingInvalid(
                f"a histogram's edges must lie in [0, 1]; found {self.edges[0]:g} to "
                f"{self.edges[-1]:g}. Map scores to [0, 1] first."
            )
        require_type(self.smooth, bool, "whether a histogram is smooth", "Pass True or False.")
        if not (hasattr(self.noise, "is_zero") and callable(getattr(self.noise, "variance", None))):
            raise SettingInvalid(
                f"a histogram's noise must be a NoiseModel; found {shown(self.noise)}. "
                "Leave it out for exact counts."
            )
        if self.counts.shape != (2, len(self.edges) - 1):
            raise SettingInvalid(
                f"a histogram with {len(self.edges)} edges needs counts of shape "
                f"(2, {len(self.edges) - 1}); found {self.counts.shape}."
            )
        if not np.isfinite(self.counts).all():
            raise SettingInvalid(
                "a histogram's counts must be finite; found infinite or missing ones. "
                "Leave them out."
            )
        for name in ("edges", "counts"):
            # A view of its own: the caller's array stays writeable.
            frozen = getattr(self, name).view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def __str__(self) -> str:
        noise = "exact" if self.noise.is_zero else "with privacy noise"
        return (
            f"{self.total:,.0f} examples, {self.total_positives:,.0f} positive, in "
            f"{self.buckets:,} buckets, {noise}"
        )

    def __repr__(self) -> str:
        return f"<ScoreHistogram: {self}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    @classmethod
    def from_scores(
        cls, y_true: npt.ArrayLike, y_score: npt.ArrayLike, *, grid: Grid | None = None
    ) -> "ScoreHistogram":
        """The histogram of rows at hand; by default on a fine grid.

        >>> ScoreHistogram.from_scores([0, 1, 1], [0.2, 0.62, 1.0]).total
        3.0
        """
        chosen = Grid.fine() if grid is None else grid
        require_type(chosen, Grid, "a histogram's grid", "Write Grid.uniform(cells).")
        examples = Examples(y_true, y_score).require_rows()
        return cls(chosen.edges, chosen.count(examples).astype(np.float64))

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self.edges) - 1

    @property
    def negatives(self) -> FloatArray:
        """Negatives per bucket."""
        row: FloatArray = self.counts[0]
        return row

    @property
    def positives(self) -> FloatArray:
        """Positives per bucket."""
        row: FloatArray = self.counts[1]
        return row

    @cached_property
    def total_negatives(self) -> float:
        """N, all negatives."""
        return float(self.counts[0].sum())

    @cached_property
    def total_positives(self) -> float:
        """P, all positives."""
        return float(self.counts[1].sum())

    @property
    def total(self) -> float:
        """M = P + N."""
        return self.total_negatives + self.total_positives

    @cached_property
    def widths(self) -> FloatArray:
        """The width of every bucket."""
        return np.maximum(np.diff(self.edges), _NARROWEST)

    @cached_property
    def cumulative(self) -> FloatArray:
        """Counts at or below each edge, label x edge, from 0 at the left end."""
        below = np.zeros((2, self.buckets + 1))
        np.cumsum(self.counts, axis=1, out=below[:, 1:])
        return below

    @cached_property
    def slopes(self) -> FloatArray:
        """Derivative of the interpolated cumulative counts at each edge, label x edge."""
        return monotone_slopes(self.widths, self.counts, self.heaps)

    @cached_property
    def heaps(self) -> tuple[bool, bool]:
        """Whether exact counts have scores of exactly 0, or of 1, in a bucket of their own.

        Their density says nothing about where those beside them lie.

        >>> edges = np.array([0.0, 2.0**-52, 0.5, 1.0])
        >>> ScoreHistogram(edges, np.full((2, 3), 9.0)).heaps
        (True, False)
        """
        if not self.noise.is_zero or self.buckets == 1:
            return False, False
        is_heap = self.holds_an_end & (self.counts[:, [0, -1]].sum(axis=0) >= 1.0)
        return bool(is_heap[0]), bool(is_heap[1])

    @cached_property
    def holds_an_end(self) -> npt.NDArray[np.bool_]:
        """Whether scores in the first bucket are as good as 0, and in the last as good as 1.

        Of exact counts the tail of the rows beside is not: `tails_in` says how that is known.
        """
        reaches = np.array([self.edges[0] == 0.0, self.edges[-1] == 1.0])
        holds: npt.NDArray[np.bool_] = reaches & (self.widths[[0, -1]] <= AT_THE_END)
        return holds & ~tails_in(self.counts, self.edges) if self.noise.is_zero else holds

    @property
    def stretch(self) -> range:
        """The buckets that are no heaps."""
        return range(int(self.heaps[0]), self.buckets - int(self.heaps[1]))

    @cached_property
    def spikes(self) -> FloatArray:
        """Counts beyond what the neighbouring buckets' densities can explain, label x bucket.

        Between spikes a well-behaved distribution is smooth (`def:wellbehaved`); what
        lies in a spike may sit anywhere in its bucket.
        """
        return spikes_of(self.counts, self.widths)

    @cached_property
    def is_narrow(self) -> npt.NDArray[np.bool_]:
        """Which buckets are too narrow for many rows of more than one score.

        Near 0 and 1 scores crowd on a logarithmic axis: there a bucket is narrow when it is a
        small part of its distance from the end, or when it ends where scores are as good as 0.
        """
        middle = 0.5 * (self.edges[:-1] + self.edges[1:])
        from_end = np.minimum(middle, 1.0 - middle)
        is_narrow = (self.widths <= _NARROW) & (self.widths <= _SMALL_PART * from_end)
        is_narrow[[0, -1]] |= self.widths[[0, -1]] <= _AT_AN_END
        return is_narrow

    @cached_property
    def is_far_flung(self) -> npt.NDArray[np.bool_]:
        """Which buckets hold scores as good as 0 or 1 that are orders of magnitude apart.

        To a density they are narrow, and to log-odds as wide as all others together.

        >>> edges = np.array([0.0, 2.0**-52, 2.0**-40, 0.5, 1.0])
        >>> ScoreHistogram(edges, np.ones((2, 4))).is_far_flung.tolist()
        [False, True, False, False]
        """
        low, high = self.edges[:-1], self.edges[1:]
        ends = [(low, high), (1.0 - high, 1.0 - low)]
        return np.logical_or(
            *((near > 0.0) & (near * _FAR < far) & (far <= AT_THE_END) for near, far in ends)
        )

    @cached_property
    def ties(self) -> FloatArray:
        """Spikes in buckets too narrow for anything but one score, label x bucket.

        Fewer than eight of a class may have met by chance, unless rows are so few that nobody else
        would be there.
        """
        ties = ties_of(self.spikes, self.total * self.widths, self.is_narrow)
        return but_far_flung(ties, self.counts, self.edges)

    @cached_property
    def far_flung(self) -> FloatArray:
        """The part of the first and of the last bucket's rows that are not at 0 and 1 themselves.

        `far_flung_in` says how that is known.
        """
        return far_flung_in(self.counts, self.edges)

    def below(self, threshold: float) -> tuple[FloatArray, int, float]:
        """Interpolated counts at or below a threshold, its bucket, and how far into it.

        A threshold on an edge gives the exact cumulative count and a fraction of 0.
        """
        require_thresholds([threshold])
        bucket = int(np.searchsorted(self.edges, threshold, side="right")) - 1
        if bucket >= self.buckets:
            return self.cumulative[:, -1], self.buckets - 1, 1.0
        width = self.widths[bucket]
        part = (threshold - self.edges[bucket]) / width
        start = self.cumulative[:, bucket]
        if part == 0.0:
            return start, bucket, 0.0
        if not self.smooth:
            return start + part * self.counts[:, bucket], bucket, part
        inside = cubic(
            part,
            self.counts[:, bucket],
            self.slopes[:, bucket] * width,
            self.slopes[:, bucket + 1] * width,
        )
        return start + inside, bucket, part

    def shares_below(self, bucket: int, part: float) -> FloatArray:
        """How the counts below a point inside a bucket move with each count, label x bucket.

        With a smooth histogram the neighbours' counts bend the curve inside the bucket. The
        interpolation scales with the counts, so shares x counts give `below` again.
        """
        shares = np.zeros_like(self.counts)
        shares[:, :bucket] = 1.0
        shares[:, bucket] = part
        if not self.smooth or self.buckets < 2 or not 0.0 < part < 1.0:
            return shares
        # Slopes at a bucket's edges depend on the bucket and its two neighbours.
        first, last = max(bucket - 1, 0), min(bucket + 2, self.buckets)
        nudged = np.repeat(self.counts[:, None, first:last], last - first, axis=1)
        size = np.abs(self.counts[:, first:last]).max(axis=1)
        step = 1e-6 * np.where(size > 0.0, size, 1.0)
        steps = np.eye(last - first) * step[:, None, None]
        both = np.stack([nudged + steps, nudged - steps])
        above, below = self._inside(both, slice(first, last), bucket, part)
        shares[:, first:last] = (above - below) / (2.0 * step[:, None])
        shares[:, first:bucket] += 1.0
        return shares

    def _inside(self, counts: FloatArray, window: slice, bucket: int, part: float) -> FloatArray:
        """Interpolated counts below a part of a bucket, for other counts around it."""
        widths, (first, last) = self.widths[window], self.heaps
        heaps = first and window.start == 0, last and window.stop == self.buckets
        slopes, at = monotone_slopes(widths, counts, heaps), bucket - window.start
        width = widths[at]
        return cubic(part, counts[..., at], slopes[..., at] * width, slopes[..., at + 1] * width)

    def parts(self, pieces: int) -> FloatArray:
        """Interpolated counts of equal pieces of every bucket: label x bucket x piece."""
        at = np.arange(pieces + 1) / pieces
        start = (self.slopes[:, :-1] * self.widths)[..., None]
        end = (self.slopes[:, 1:] * self.widths)[..., None]
        return np.diff(cubic(at, self.counts[..., None], start, end), axis=-1)

    def refined(self, pieces: int) -> tuple[FloatArray, FloatArray]:
        """Edges and interpolated counts with every bucket cut into equal pieces."""
        at = np.arange(pieces) / pieces
        edges = (self.edges[:-1, None] + at * self.widths[:, None]).ravel()
        return np.append(edges, self.edges[-1]), self.parts(pieces).reshape(2, -1)

    def monotone(self) -> "ScoreHistogram":
        """The nearest histogram without negative counts, for curves and calibration.

        Least squares on the cumulative counts, so prefix sums move little. It is biased
        where noise was large: the metrics do not use it. Exact counts come back as they are.
        """
        return self if self.noise.is_zero else self._rising

    @cached_property
    def _rising(self) -> "ScoreHistogram":
        rows = [
            np.diff(np.clip(nearest_rising(row[1:]), 0.0, None), prepend=0.0)
            for row in self.cumulative
        ]
        return ScoreHistogram(self.edges, np.stack(rows), self.noise, self.smooth)

    def merge(self, boundaries: IntArray) -> "ScoreHistogram":
        """Sum neighbouring buckets; boundaries are positions of edges to keep, ends included."""
        starts = boundaries[:-1]
        return ScoreHistogram(
            edges=self.edges[boundaries],
            counts=np.add.reduceat(self.counts, starts, axis=1),
            noise=merged(self.noise, np.diff(boundaries)),
            smooth=self.smooth,
        )

    def by_cells(self) -> "ScoreHistogram":
        """The buckets that were counted as such, for figures that are not linear in counts.

        Counts that were smoothed inside those are read as they are.

        >>> h = ScoreHistogram(np.arange(4) / 3, np.ones((2, 3)), cells=np.array([0, 1, 3]))
        >>> h.by_cells().counts.tolist()
        [[1.0, 2.0], [1.0, 2.0]]
        """
        return self if is_smoothed(self.noise) else self.counted_cells

    @cached_property
    def counted_cells(self) -> "ScoreHistogram":
        """The buckets that were counted as such, smoothed inside or not."""
        return self if self.cells is None else self.merge(self.cells)

    def equi_depth(self, buckets: int) -> "ScoreHistogram":
        """The paper's quantile buckets (`eq:quanthist`), found on this histogram's edges.

        A bucket holds at most M/B examples and is at most 1/B wide, as in the proof of
        `thm:aucbetter`; a single cell beyond that is a bucket of its own. So there may be
        more than B buckets, though O(B).

        >>> h = ScoreHistogram.from_scores([0, 1] * 50, [i / 100 for i in range(100)])
        >>> h.equi_depth(10).counts.sum(axis=0).max()
        np.float64(10.0)
        """
        require_whole(buckets, "buckets", 1)
        share = self.total / buckets
        below = np.maximum.accumulate(self.cumulative.sum(axis=0))
        kept = [0]
        while kept[-1] < self.buckets:
            here = kept[-1]
            by_depth = np.searchsorted(below, below[here] + share * _ROUNDING, side="right") - 1
            furthest = (self.edges[here] + 1.0 / buckets) * _ROUNDING
            by_width = np.searchsorted(self.edges, furthest, side="right") - 1
            kept.append(max(here + 1, int(min(by_depth, by_width))))
        return self.merge(np.array(kept))


def require_histogram(histogram: object) -> None:
    """Raise unless a metric or a calibrator is given a histogram.

    >>> require_histogram(ScoreHistogram.from_scores([0, 1], [0.2, 0.7]))
    """
    remedy = "Use ScoreHistogram.from_scores(y, s), or an assessment's histogram()."
    require_type(
        histogram, ScoreHistogram, "what metrics and calibrators read", remedy, withhold=True
    )
