"""How far a calibration curve is from the score: on average, for half, for most, at worst.

All four are of |gap|, the distance of `calibration_curve` from the score, over the examples: its
mean (the integrated calibration index of Austin and Steyerberg 2019), its median, its 90th
percentile, and its largest value. Noise only ever adds to them. What privacy noise alone would
have added is taken off; what sampling adds is not, as in other software, so that exact counts
give the figure of the rows. The interval knows of both, and begins at 0 where all may be noise.
Where noise leaves a curve with fewer nodes, quantiles and the largest value are of another curve
than that of the rows, and not told.
"""

from functools import lru_cache
from math import sqrt

import numpy as np

from fedassay.estimate import Estimate, NotEnoughData
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.calibration_curve import NODES, CalibrationCurve, calibration_curve
from fedassay.metrics.delta_method import sampling_variance
from fedassay.metrics.gap_law import Figure, GapFigure, GapLaw, figure_of
from fedassay.noise import is_smoothed

_GROUPS = 48
# A mean hardly feels that a curve has half of its nodes; quantiles and a maximum are others then.
_FEWEST = {Figure.MEAN: NODES // 2, Figure.HALF: NODES, Figure.MOST: NODES, Figure.LARGEST: NODES}


def ici(histogram: ScoreHistogram) -> Estimate:
    """The integrated calibration index: the mean of |observed - predicted| over the examples.

    >>> h = ScoreHistogram.from_scores([0, 0, 0, 1] * 50, [0.5] * 200)
    >>> round(ici(h).value, 3)
    0.25
    """
    return _estimate(histogram, Figure.MEAN)


def e50(histogram: ScoreHistogram) -> Estimate:
    """The median of |observed - predicted| over the examples.

    >>> h = ScoreHistogram.from_scores([0, 0, 0, 1] * 50, [0.5] * 200)
    >>> round(e50(h).value, 3)
    0.25
    """
    return _estimate(histogram, Figure.HALF)


def e90(histogram: ScoreHistogram) -> Estimate:
    """What |observed - predicted| is at most for nine of ten examples.

    >>> h = ScoreHistogram.from_scores([0, 0, 0, 1] * 50, [0.5] * 200)
    >>> round(e90(h).value, 3)
    0.25
    """
    return _estimate(histogram, Figure.MOST)


def emax(histogram: ScoreHistogram) -> Estimate:
    """The largest |observed - predicted| of the calibration curve.

    >>> h = ScoreHistogram.from_scores([0, 0, 0, 1] * 50, [0.5] * 200)
    >>> round(emax(h).value, 3)
    0.25
    """
    return _estimate(histogram, Figure.LARGEST)


def _estimate(histogram: ScoreHistogram, figure: Figure) -> Estimate:
    curve = calibration_curve(histogram)
    if isinstance(curve, NotEnoughData):
        return curve
    if not histogram.noise.is_zero and curve.asked < _FEWEST[figure]:
        return NotEnoughData(
            reason=f"a calibration curve with {_FEWEST[figure]} nodes must stand clear of the "
            f"privacy noise; one with {curve.asked} does, which bends less than that of the rows. "
            "Gather reports from more clients, or use a larger epsilon."
        )
    sizes = _gap_sizes(curve)
    plain = figure_of(sizes, curve.sizes, figure)
    law = _law(curve, figure, plain, sizes)
    is_exact = histogram.noise.is_zero
    part = 1.0 if is_smoothed(histogram.noise) else _beyond(curve.gaps, curve.noise)
    reach = curve.reach
    bound = float(reach.max()) if figure is not Figure.MEAN else _mean_reach(curve)
    return GapFigure(
        value=part * plain,
        noise_sd=0.0 if is_exact else float(law.drawn(curve.gaps, sampling=False).std()),
        sampling_sd=float(law.drawn(curve.gaps, noise=False).std()),
        binning_bound=bound,
        binning_sd=_placing_sd(curve, figure),
        law=law,
    )


def _placing_sd(curve: CalibrationCurve, figure: Figure) -> float:
    """What places inside buckets do to a figure; in a mean, nodes beside each other err in turn."""
    if figure is not Figure.MEAN:
        return float(np.sqrt(np.diag(curve.placing)).mean())
    signs = np.sign(curve.gaps @ curve.features)
    weights = curve.features @ (signs * curve.sizes) / curve.sizes.sum()
    return sqrt(max(float(weights @ curve.placing @ weights), 0.0))


def _mean_reach(curve: CalibrationCurve) -> float:
    return float(curve.reach @ (curve.features @ curve.sizes) / curve.sizes.sum())


# The last answers are kept, because all four figures ask for them one after the other.
@lru_cache(maxsize=1)
def _gap_sizes(curve: CalibrationCurve) -> FloatArray:
    """|gap| at every piece."""
    sizes: FloatArray = np.abs(curve.gaps @ curve.features)
    return sizes


@lru_cache(maxsize=1)
def _groups(curve: CalibrationCurve) -> tuple[FloatArray, FloatArray]:
    """Mean hats, node x group of examples, and what part of the examples each group is."""
    below = np.cumsum(curve.sizes)
    place = np.minimum((below - 0.5 * curve.sizes) / below[-1] * _GROUPS, _GROUPS - 1)
    group = place.astype(np.int64)
    masses = np.bincount(group, curve.sizes, _GROUPS)
    filled = masses > 0.0
    hats = np.stack([np.bincount(group, hat * curve.sizes, _GROUPS) for hat in curve.features])
    return hats[:, filled] / masses[filled], masses[filled] / below[-1]


def _law(curve: CalibrationCurve, figure: Figure, plain: float, sizes: FloatArray) -> GapLaw:
    """Examples in groups of equal size, and how much their sizes themselves vary."""
    histogram = curve.histogram
    weights = np.zeros((2, histogram.buckets))
    if figure is Figure.MEAN:
        weights += curve.pieced.mean((sizes - plain).reshape(1, *curve.pieced.scores.shape))
    elif figure is not Figure.LARGEST:
        inside = (sizes <= plain).astype(np.float64) - figure.value
        weights += curve.pieced.mean(inside.reshape(1, *curve.pieced.scores.shape))
    weights /= histogram.total
    return GapLaw(
        figure,
        curve.gaps,
        curve.noise + curve.placing,
        curve.sampling,
        *_groups(curve),
        sqrt(histogram.noise.variance(weights)),
        sqrt(sampling_variance(histogram, weights)),
        plain,
    )


def _beyond(gaps: FloatArray, noise: FloatArray) -> float:
    """What part of the gaps is beyond what privacy noise alone would make them."""
    if not noise.any():
        return 1.0
    sure = float(gaps @ np.linalg.pinv(noise, hermitian=True) @ gaps)
    return max(1.0 - len(gaps) / sure, 0.0) if sure > 0.0 else 0.0
