"""Net benefit: is it better to act on a threshold than on everybody, or on nobody?

A threshold of T says that a true positive is worth (1 - T) / T false ones, so that with n
examples the net benefit is TP / n - FP / n * T / (1 - T), in true positives per example
(Vickers and Elkin 2006). Acting on everybody has P / n - N / n * T / (1 - T), on nobody 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from fedassay.checks import require_thresholds
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData, Shape
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import ConfusionCounts, confusion
from fedassay.metrics.confusion_figures import Kind, from_confusion
from fedassay.metrics.delta_method import why_undefined

_POINTS = 99


def net_benefit(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The net benefit of acting above the threshold; that of acting on nobody is 0.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> net_benefit(h, 0.2).value  # 2/4 - 1/4 * 0.2/0.8
    0.4375
    """
    return _mean_worth(histogram, threshold, lambda odds: (1.0, -odds, 0.0, 0.0))


def net_benefit_of_all(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """The net benefit of acting on everybody, for those whose odds are the threshold's.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> net_benefit_of_all(h, 0.2).value  # 2/4 - 2/4 * 0.2/0.8
    0.375
    """
    return _mean_worth(histogram, threshold, lambda odds: (1.0, -odds, 1.0, -odds))


def net_benefit_over_all(histogram: ScoreHistogram, threshold: float) -> Estimate:
    """How much more net benefit acting above the threshold has than acting on everybody.

    Both are of the same rows, so the interval is that of their difference.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> net_benefit_over_all(h, 0.2).value
    0.0625
    """
    return _mean_worth(histogram, threshold, lambda odds: (0.0, 0.0, -1.0, odds))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DecisionCurve:
    """Net benefit by threshold, beside acting on everybody; acting on nobody has 0."""

    thresholds: FloatArray
    net_benefit: tuple[Estimate, ...]
    """Against acting on nobody, which has none."""
    treat_all: tuple[Estimate, ...]
    over_all: tuple[Estimate, ...]
    """Against acting on everybody, with the interval of the difference."""

    def is_better(self, confidence: float = 0.95) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """At which thresholds acting on scores is surely better than both simple ways."""
        ends = [
            min(model.interval(confidence).low, over.interval(confidence).low)
            for model, over in zip(self.net_benefit, self.over_all, strict=True)
        ]
        return np.array([end > 0.0 for end in ends], dtype=np.bool_)


def decision_curve(
    histogram: ScoreHistogram, thresholds: Sequence[float] | None = None
) -> DecisionCurve:
    """Net benefit at many thresholds, by default 0.01 to 0.99.

    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1] * 50, [0.1, 0.4, 0.35, 0.8] * 50)
    >>> decision_curve(h, [0.2, 0.5]).is_better().tolist()
    [True, True]
    """
    points = np.arange(1, _POINTS + 1) / (_POINTS + 1) if thresholds is None else thresholds
    at = [float(threshold) for threshold in points]
    require_thresholds(at)
    if not at or max(at) >= 1.0:
        raise SettingInvalid(
            "a decision curve needs thresholds from 0 to below 1; found "
            f"{'none' if not at else max(at)}. Leave them out for 0.01 to 0.99."
        )
    return DecisionCurve(
        thresholds=np.array(at),
        net_benefit=tuple(net_benefit(histogram, threshold) for threshold in at),
        treat_all=tuple(net_benefit_of_all(histogram, threshold) for threshold in at),
        over_all=tuple(net_benefit_over_all(histogram, threshold) for threshold in at),
    )


def _mean_worth(
    histogram: ScoreHistogram, threshold: float, worth_at: Callable[[float], ConfusionCounts]
) -> Estimate:
    """The mean over examples of what each of the four kinds is worth at a threshold's odds."""
    at = confusion(histogram, threshold)
    if threshold >= 1.0:
        return NotEnoughData(
            reason="net benefit weighs a false positive by the threshold's odds, which are "
            "infinite at 1. Choose a threshold below 1."
        )
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    worth, total = worth_at(threshold / (1.0 - threshold)), histogram.total

    def mean(quad: ConfusionCounts) -> float:
        return sum(each * count for each, count in zip(worth, quad, strict=True)) / total

    value = mean(at.counts)
    slope = tuple((each - value) / total for each in worth)
    estimate = from_confusion(at, mean, slope, Kind(Shape.PLAIN))
    # Where nobody counts yet the next example may: as if there were half of one, rightly scored.
    positive, negative = (max(worth[i], worth[i + 2], key=abs) for i in (0, 1))
    rows = sum(abs(count) for each, count in zip(worth, at.counts, strict=True) if each != 0.0)
    one = sqrt(threshold * positive**2 + (1.0 - threshold) * negative**2) / total
    least = sqrt(max(1.0 - rows, 0.0) / 2.0) * one
    return replace(estimate, sampling_sd=max(estimate.sampling_sd, least))
