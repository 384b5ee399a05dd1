"""Thresholds that reach a goal: a wanted recall or precision, or the best F1."""

from dataclasses import dataclass

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.curves import above_edges, require_classes
from fedassay.metrics.thresholds import f1, precision, recall


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """A threshold on an edge of the histogram, with what it achieves there."""

    threshold: float
    precision: Estimate
    recall: Estimate
    f1: Estimate


def threshold_for_recall(histogram: ScoreHistogram, wanted: float) -> ThresholdChoice:
    """The highest threshold whose recall reaches what is wanted.

    >>> from fedassay.grid import Grid
    >>> grid = Grid.uniform(10)
    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], grid=grid)
    >>> threshold_for_recall(h, 1.0).threshold
    0.5
    """
    _check_share(wanted, "recall")
    require_classes(histogram)
    tpr = (histogram.total_positives - histogram.cumulative[1]) / histogram.total_positives
    return _choice(histogram, int(np.flatnonzero(tpr >= wanted - 1e-12).max(initial=0)))


def threshold_for_precision(histogram: ScoreHistogram, wanted: float) -> ThresholdChoice:
    """The lowest threshold whose precision reaches what is wanted: most recall at that price.

    >>> from fedassay.grid import Grid
    >>> grid = Grid.uniform(10)
    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], grid=grid)
    >>> threshold_for_precision(h, 1.0).threshold
    0.3
    """
    _check_share(wanted, "precision")
    require_classes(histogram)
    above = above_edges(histogram, np.arange(histogram.buckets))
    called = above.sum(axis=0)
    share = np.divide(above[1], called, out=np.zeros_like(called), where=called > 0.0)
    reached = np.flatnonzero(share >= wanted - 1e-12)
    if len(reached) == 0:
        raise SettingInvalid(
            f"no threshold reaches precision {wanted:g}; the best is {share.max():.4g}. "
            "Ask for less, or improve the model."
        )
    return _choice(histogram, int(reached[0]))


def threshold_for_f1(histogram: ScoreHistogram) -> ThresholdChoice:
    """The edge with the largest F1.

    >>> from fedassay.grid import Grid
    >>> grid = Grid.uniform(10)
    >>> h = ScoreHistogram.from_scores([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], grid=grid)
    >>> threshold_for_f1(h).f1.value
    1.0
    """
    require_classes(histogram)
    above = above_edges(histogram, np.arange(histogram.buckets))
    bottom = above.sum(axis=0) + histogram.total_positives
    score = np.divide(2.0 * above[1], bottom, out=np.zeros_like(bottom), where=bottom > 0.0)
    return _choice(histogram, int(np.argmax(score)))


def _choice(histogram: ScoreHistogram, edge: int) -> ThresholdChoice:
    threshold = float(histogram.edges[edge])
    return ThresholdChoice(
        threshold,
        precision(histogram, threshold),
        recall(histogram, threshold),
        f1(histogram, threshold),
    )


def _check_share(wanted: float, name: str) -> None:
    if not 0.0 < wanted <= 1.0:
        raise SettingInvalid(f"the wanted {name} must lie in (0, 1]; found {wanted}.")
