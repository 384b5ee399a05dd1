"""The difference of two models' figures on the same rows, with its paired interval."""

from dataclasses import dataclass
from functools import cached_property
from math import hypot, inf, sqrt

import numpy as np

from fedassay.calibration.calibration_error import ece
from fedassay.calibration.gap_intervals import SumOfSizes
from fedassay.estimate import (
    Estimate,
    Interval,
    NotEnoughData,
    Shape,
    check_confidence,
    normal_quantile,
    p_value_of,
    remedied,
)
from fedassay.examples import FloatArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta_method import sampling_variance
from fedassay.metrics.named import named_metric
from fedassay.paired.dependence import Axis, Dependence
from fedassay.paired.gradients import SMOOTH, metric_gradient
from fedassay.paired.pair_histogram import PairHistogram

FINER_PAIR = "Give public rows (--reference), or assess either model alone."
"""What helps where cells are too coarse: two models are asked in one step."""
_FINE = 512
_PIECES = 8
_ALIKE = 0.25
"""How far two models' errors inside cells may differ, of what they share."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The first model's figure minus the second's, of the same rows.

    Its variance is that of one row's difference, so that what both models find hard alike
    cancels; privacy noise and binning come on top.

    >>> difference = PairedDifference(Estimate(0.80), Estimate(0.79), sampling_sd=0.004)
    >>> difference.interval()
    Interval(low=0.002..., high=0.017...)
    >>> round(difference.p_value, 3)
    0.012
    """

    first: Estimate
    second: Estimate
    noise_sd: float = 0.0
    sampling_sd: float = 0.0
    binning_sd: float = 0.0
    unclear: float = 0.0
    """Of a figure's variance, the part that comes of sizes lost in noise."""

    @property
    def value(self) -> float:
        """The first minus the second."""
        return self.first.value - self.second.value

    @property
    def is_available(self) -> bool:
        """Whether both models have the figure."""
        return self.first.is_available and self.second.is_available

    @property
    def reason(self) -> str:
        """Why there is no value, where there is none."""
        lacking = (each for each in (self.first, self.second) if isinstance(each, NotEnoughData))
        return next((each.reason for each in lacking), "")

    @property
    def standard_error(self) -> float:
        """Of all three errors together."""
        return hypot(self.noise_sd, self.sampling_sd, self.binning_sd)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Cover the difference of the population's two values."""
        check_confidence(confidence)
        if not self.is_available:
            return Interval(-inf, inf)
        if self._has_own_ends:
            return self._interval_of_ends(confidence)
        half = normal_quantile(0.5 + confidence / 2.0) * self.standard_error
        return Interval(self.value - half, self.value + half)

    @property
    def _has_own_ends(self) -> bool:
        """Whether both figures' own intervals are longer on one side: of ratios, or of sizes."""
        sizes = isinstance(self.first, SumOfSizes) and isinstance(self.second, SumOfSizes)
        return sizes or self.first.shape is self.second.shape is Shape.LOG

    def _interval_of_ends(self, confidence: float) -> Interval:
        """As far as the ends of both intervals are away together, less what is shared.

        Of different rows squares of both distances add up, each side for itself (Zou and Donner
        2008); of the same rows either side is shorter as the standard error is. Sizes lost in
        noise err to one side, and do not cancel: as far as they go, distances add up themselves.
        """
        one, other = self.first.interval(confidence), self.second.interval(confidence)
        apart = hypot(
            *(
                error
                for each in (self.first, self.second)
                for error in (each.noise_sd, each.sampling_sd, each.binning_sd)
            )
        )
        shared = self.standard_error / apart if apart > 0.0 else 1.0

        def together(one: float, other: float) -> float:
            return (1.0 - self.unclear) * shared * hypot(one, other) + self.unclear * (one + other)

        below = together(self.first.value - one.low, other.high - self.second.value)
        above = together(one.high - self.first.value, self.second.value - other.low)
        return Interval(self.value - below, self.value + above)

    def told_apart(self, confidence: float = 0.95) -> bool:
        """Whether the interval leaves out that there is no difference."""
        return 0.0 not in self.interval(confidence)

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference in the population."""
        if not self.is_available:
            return 1.0
        if self.standard_error == 0.0:
            return 1.0 if self.value == 0.0 else 0.0
        if self._has_own_ends:
            return p_value_of(self.told_apart)
        with needed_for("p-values"):
            from scipy.special import ndtr

        return float(2.0 * ndtr(-abs(self.value) / self.standard_error))


class PairReader:
    """Reads differences off a pair of histograms; what all metrics share is made once."""

    def __init__(self, pair: PairHistogram, *, buckets: int | None = None) -> None:
        self.pair = pair
        self._buckets = buckets

    @cached_property
    def _fine(self) -> tuple[ScoreHistogram, ScoreHistogram]:
        return refined(self.pair.first), refined(self.pair.second)

    @cached_property
    def _dependences(self) -> tuple[Dependence, ...]:
        edges = (self.pair.rows, self.pair.columns)
        groups = [_groups(fine, of) for fine, of in zip(self._fine, edges, strict=True)]
        return tuple(
            Dependence.of(
                Axis.of(self._fine[0].counts[label], groups[0]),
                Axis.of(self._fine[1].counts[label], groups[1]),
                self.pair.joint[label],
            )
            for label in (0, 1)
        )

    def difference(self, metric: str) -> PairedDifference:
        """The first model's figure minus the second's, with its paired errors."""
        pair = self.pair
        first, second = (
            ece(each) if metric == "ece" else named_metric(each, metric, buckets=self._buckets)
            for each in (pair.first, pair.second)
        )
        if not (first.is_available and second.is_available):
            return PairedDifference(remedied(first, FINER_PAIR), remedied(second, FINER_PAIR))
        cells = metric_gradient(pair.first, metric), metric_gradient(pair.second, metric)
        noise, sampling = pair.noise_variance(*cells), self.sampling_variance(metric, cells)
        unclear = 0.0
        if metric == "ece":
            own = self._own_luck((first, second), cells)
            noise, sampling, unclear = noise + own[0], sampling + own[1], own[2]
        return PairedDifference(
            first,
            second,
            noise_sd=sqrt(max(noise, 0.0)),
            sampling_sd=sqrt(sampling),
            binning_sd=self._binning_sd(metric, first.binning_sd, second.binning_sd),
            unclear=unclear,
        )

    def _own_luck(
        self, figures: tuple[Estimate, Estimate], cells: tuple[FloatArray, FloatArray]
    ) -> tuple[float, float, float]:
        """Variances of sizes that are lost in noise, which no gradient knows, and their part.

        Of noise and of luck, of both models together; and which part of either model's own
        variance they are, at most.
        """
        sides = list(zip(figures, cells, (self.pair.first, self.pair.second), strict=True))
        noise = [each.noise_sd**2 - of.noise.variance(own) for each, own, of in sides]
        luck = [each.sampling_sd**2 - sampling_variance(of, own) for each, own, of in sides]
        parts = [
            max(one + other, 0.0) / max(each.noise_sd**2 + each.sampling_sd**2, 1e-300)
            for each, one, other in zip(figures, noise, luck, strict=True)
        ]
        both = [sum(max(more, 0.0) for more in of) for of in (noise, luck)]
        return both[0], both[1], max(parts)

    @staticmethod
    def _binning_sd(metric: str, first: float, second: float) -> float:
        """What cells hide of the difference.

        Errors of areas and squared distances have one sign in either model: a score that tells
        something orders the rows of a cell better than their counts can say. So of two models the
        errors cancel but for their difference, taken to hold to a quarter of the smaller one.
        Other figures may err to either side, and independently.
        """
        if metric in SMOOTH:
            return hypot(first - second, _ALIKE * min(first, second))
        return hypot(first, second)

    def sampling_variance(self, metric: str, cells: tuple[FloatArray, FloatArray]) -> float:
        """The sum over rows of the squared difference of both gradients.

        Of label l with n rows, DeLong's n / (n - 1) makes it unbiased. Where rows of the two
        models are different rows nothing cancels.
        """
        if metric in SMOOTH:
            fine = tuple(metric_gradient(each, metric) for each in self._fine)
        else:
            whole = (self.pair.first, self.pair.second)
            fine = tuple(
                own[:, _groups(each, of.edges)]
                for own, each, of in zip(cells, self._fine, whole, strict=True)
            )
        variance = 0.0
        for label in (0, 1):
            squares = sum(
                float((each.counts[label] * own[label] ** 2).sum())
                for own, each in zip(fine, self._fine, strict=True)
            )
            product = 0.0
            if not self.pair.is_drawn:
                product = self._dependences[label].product(fine[0][label], fine[1][label])
            total = float(self.pair.joint[label].sum())
            scale = total / max(total - 1.0, 1.0)
            variance += max(squares - 2.0 * product, 0.0) * scale
        return variance


def refined(histogram: ScoreHistogram) -> ScoreHistogram:
    """The same with every bucket cut into pieces, as the cubic has it; noise left out."""
    pieces = max(1, min(_PIECES, _FINE // histogram.buckets))
    if pieces == 1 or not histogram.smooth:
        return histogram
    edges, counts = histogram.refined(pieces)
    # A bucket may have too few numbers inside to be cut at: it stays whole.
    is_cut = np.diff(edges).reshape(-1, pieces).min(axis=1) > 0.0
    starts = np.flatnonzero(is_cut[:, np.newaxis] | (np.arange(pieces) == 0))
    return ScoreHistogram(
        np.append(edges[starts], edges[-1]),
        np.add.reduceat(counts, starts, axis=1),
        smooth=False,
    )


def _groups(fine: ScoreHistogram, edges: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.searchsorted(edges, fine.edges[1:], side="left").astype(np.int64) - 1
