"""What the page's slider computes from: confusion counts at many thresholds, with their noise.

Every figure at a threshold is a function of the four confusion counts, so that its interval needs
no more than those counts, the covariance that privacy noise gives them (tp, fp, fn, tn: ten
numbers), and the standard deviation that not knowing where in a bucket scores lie gives to the
negatives and the positives above the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedassay.estimate import normal_quantile
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.confusion import confusion
from fedassay.metrics.delta_method import CLEAR_OF_NOISE

MOST_WANTED = 200
"""With even steps and quantiles that is 861 thresholds at most, which a page can carry."""
_EVEN_STEPS = 500
_QUANTILES = 80
_UPPER = np.triu_indices(4)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ThresholdTable:
    """Counts and errors at rising thresholds, from which every figure at them follows."""

    thresholds: tuple[float, ...]
    named: int
    """How many of the thresholds that were asked for are among them."""
    totals: FloatArray
    """Negatives and positives."""
    below: FloatArray
    """Negatives and positives at or below each threshold, label x threshold."""
    spread: FloatArray
    """Standard deviations of those from binning, label x threshold."""
    chance: FloatArray
    """The part of them that is the luck of single rows."""
    hidden: FloatArray
    """The same with lumps that no bucket has shown."""
    lowest: FloatArray
    """Fewest that can lie above each threshold, wherever they lie in its bucket; and most."""
    highest: FloatArray
    noise: FloatArray | None
    """Noise covariance of tp, fp, fn, tn, threshold x 10 (upper triangle, by rows)."""

    def to_json(self) -> dict[str, Any]:
        """What the page holds."""
        return {
            "z": normal_quantile(0.975),
            "clear": CLEAR_OF_NOISE,
            "thresholds": list(self.thresholds),
            "totals": _numbers(self.totals, 17),
            "below": [_numbers(row, 17) for row in self.below],
            "spread": [_numbers(row) for row in self.spread],
            "chance": [_numbers(row) for row in self.chance],
            "hidden": [_numbers(row) for row in self.hidden],
            "lowest": [_numbers(row) for row in self.lowest],
            "highest": [_numbers(row) for row in self.highest],
            "noise": None if self.noise is None else [_numbers(row) for row in self.noise],
        }


def threshold_table(histogram: ScoreHistogram, wanted: Sequence[float]) -> ThresholdTable:
    """Ask the library for counts and errors at the thresholds that the page offers."""
    kept = _some(sorted(set(wanted)), MOST_WANTED)
    thresholds = offered_thresholds(histogram, kept)
    below, spread, chance, noise = [], [], [], []
    hidden, lowest, highest = [], [], []
    for threshold in thresholds:
        at = confusion(histogram, threshold)
        _, _, fn, tn = at.counts
        below.append((tn, fn))
        spread.append(at.spread)
        chance.append(at.chance)
        hidden.append(at.hidden)
        lowest.append(at.lowest)
        highest.append(at.highest)
        if not histogram.noise.is_zero:
            noise.append(at.noise[_UPPER])
    return ThresholdTable(
        thresholds=tuple(thresholds),
        named=len(kept),
        totals=histogram.cumulative[:, -1],
        below=np.array(below).T,
        spread=np.array(spread).T,
        chance=np.array(chance).T,
        hidden=np.array(hidden).T,
        lowest=np.array(lowest).T,
        highest=np.array(highest).T,
        noise=np.array(noise) if noise else None,
    )


def offered_thresholds(histogram: ScoreHistogram, wanted: Sequence[float]) -> list[float]:
    """Even steps, those that were asked for, and more of them where the scores lie.

    Those are quantiles of either class with two digits, counted from the nearer end.

    >>> h = ScoreHistogram.from_scores([0, 0, 1], [0.0012, 0.0031, 0.002])
    >>> offered_thresholds(h, [0.12345])[:4]
    [0.0, 0.0012, 0.002, 0.0031]
    """
    steps = {step / _EVEN_STEPS for step in range(_EVEN_STEPS + 1)}
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    for row in histogram.cumulative:
        rising = np.maximum.accumulate(row)
        if rising[-1] > 0.0:
            places = np.searchsorted(rising, shares * rising[-1])
            steps |= {_rounded(float(edge)) for edge in histogram.edges[places]}
    return sorted(steps | set(wanted))


def _rounded(score: float) -> float:
    """A score with two digits, counted from 0 or from 1."""
    if score <= 0.5:
        return float(f"{score:.2g}")
    return float(f"{1.0 - float(f'{1.0 - score:.2g}'):.12g}")


def _some(sorted_values: list[float], most: int) -> list[float]:
    """At most so many, from the first to the last."""
    if len(sorted_values) <= most:
        return sorted_values
    places = np.linspace(0, len(sorted_values) - 1, most).round().astype(int)
    return [sorted_values[place] for place in places]


def _numbers(row: FloatArray, digits: int = 15) -> list[float | int]:
    """Floats as JSON numbers with so many digits; whole ones without a point, which is shorter."""
    return [
        int(number) if float(number).is_integer() else float(f"{number:.{digits}g}")
        for number in row
    ]
