"""From a metric's gradient to its errors, by the delta method."""

from math import sqrt

from fedassay.estimate import Estimate, NotEnoughData, Shape
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram


def counts_estimate(
    histogram: ScoreHistogram,
    value: float,
    gradient: FloatArray,
    *,
    binning_bound: float,
    binning_sd: float,
    shape: Shape = Shape.PLAIN,
) -> Estimate:
    """An estimate whose value moves with the counts as the gradient (label x bucket) says."""
    return Estimate(
        value=value,
        noise_sd=sqrt(histogram.noise.variance(gradient)),
        sampling_sd=sqrt(sampling_variance(histogram, gradient)),
        binning_bound=binning_bound,
        binning_sd=binning_sd,
        shape=shape,
    )


def sampling_variance(histogram: ScoreHistogram, gradient: FloatArray) -> float:
    """The variance from rows being a multinomial sample over label x bucket."""
    weighted = histogram.counts * gradient
    total = histogram.total
    mean = float(weighted.sum()) / total
    return max(float((weighted * gradient).sum()) - mean * mean * total, 0.0)


def missing_class(histogram: ScoreHistogram) -> NotEnoughData | None:
    """Why a two-class metric is undefined, if it is."""
    for name, count in (
        ("positives", histogram.total_positives),
        ("negatives", histogram.total_negatives),
    ):
        if count <= 0.0:
            return NotEnoughData(
                reason=f"both classes are needed; the tally has {count:.4g} {name}. "
                "Gather reports from more clients."
            )
    return None
