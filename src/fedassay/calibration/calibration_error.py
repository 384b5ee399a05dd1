"""Calibration error of a score, or of a calibrated one, read from a histogram."""

from math import pi, sqrt

import numpy as np

from fedassay.calibration.bins import Bins, BinTable, bin_table
from fedassay.calibration.calibrator import Calibrator
from fedassay.calibration.gap_intervals import LargestSize, SumOfSizes, folded_mean
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.delta_method import why_undefined
from fedassay.noise import is_smoothed


def ece(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
    debiased: bool = True,
) -> Estimate:
    """The expected calibration error, sum of |observed - predicted| over bins (`sec:defs`).

    The plain sum grows with sampling and privacy noise, even where all gaps are nil. Debiased,
    each gap's expected size is taken given what was seen of it and the spread of all gaps
    beyond their noise; where there is little noise both are the same. The interval is that of the
    population's ECE either way, and holds near zero too (`SumOfSizes`).

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [0.25, 0.75] * 50)
    >>> round(ece(h, debiased=False).value, 3)
    0.25
    """
    require_histogram(histogram)
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    table = bin_table(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
    sizes, slopes = _sizes(table, debiased=debiased)
    return _sum_of_sizes(table, sizes, slopes)


def ece_value(histogram: ScoreHistogram) -> float | NotEnoughData:
    """The value of the debiased `ece` without its errors, where very many are drawn.

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [0.25, 0.75] * 50)
    >>> ece_value(h) == ece(h).value
    True
    """
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    sizes, _ = _sizes(bin_table(histogram), debiased=True)
    return float(sizes.sum())


def ece_gradient(histogram: ScoreHistogram) -> FloatArray:
    """How the debiased `ece` moves with each count, label x bucket, of what is clear of noise.

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [0.25, 0.75] * 50)
    >>> abs(float((ece_gradient(h) * h.counts).sum())) < 1e-12  # twice the rows, the same figure
    True
    """
    table = bin_table(histogram, bins=20)
    _, slopes = _sizes(table, debiased=True)
    per_row = table.gradient(slopes)
    mean: float = (per_row * histogram.counts).sum() / histogram.total
    return per_row - mean


def mce(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
    debiased: bool = True,
) -> Estimate:
    """The largest calibration error of any bin that stands clear of its noise."""
    require_histogram(histogram)
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    table = bin_table(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
    sizes, slopes = _sizes(table, debiased=debiased)
    clear = table.mass > 2.0 * np.sqrt(table.gap_noise)
    rates = np.where(clear, sizes / np.where(clear, table.mass, 1.0), 0.0)
    worst = int(np.argmax(rates))
    only = np.where(np.arange(table.bins) == worst, 1.0 / np.where(clear, table.mass, 1.0), 0.0)
    plain = _estimate(table, float(rates[worst]), slopes, only * clear)
    square = table.mass[clear] ** 2
    return LargestSize(
        value=plain.value,
        noise_sd=plain.noise_sd,
        sampling_sd=plain.sampling_sd,
        rates=table.gaps[clear] / table.mass[clear],
        rate_noise=(table.gap_noise + table.gap_placing)[clear] / square,
        rate_sampling=table.gap_sampling[clear] / square,
    )


def signed_gap(histogram: ScoreHistogram, *, calibrator: Calibrator | None = None) -> Estimate:
    """The share of positives minus the mean prediction: above 0, predictions are too low."""
    require_histogram(histogram)
    undefined = why_undefined(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    table = bin_table(histogram, bins=1, calibrator=calibrator)
    ones = np.ones(table.bins)
    return _estimate(table, float(table.gaps.sum()), ones, ones)


def _sizes(table: BinTable, *, debiased: bool) -> tuple[FloatArray, FloatArray]:
    """Every gap's absolute size, and how it moves with the gap."""
    gaps = table.gaps
    if not debiased:
        return np.abs(gaps), np.sign(gaps)
    smoothed = is_smoothed(table.histogram.noise)
    variance = table.gap_sampling if smoothed else table.gap_variance
    return debiased_sizes(gaps, variance, np.maximum(table.mass, 0.0))


def debiased_sizes(
    gaps: FloatArray, variance: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Every gap's expected size given what was seen of all, and how it moves with the gap.

    >>> sizes, _ = debiased_sizes(np.array([0.1, -0.2]), np.full(2, 1e-9), np.full(2, 0.5))
    >>> sizes.round(3).tolist()
    [0.1, 0.2]
    """
    # The mean square of what gaps per example are, beyond what noise alone would make them.
    beyond = max(float((gaps**2 - variance).sum()), 0.0) / max(float((mass**2).sum()), 1e-300)
    own = mass**2 * beyond
    part = np.where(own > 0.0, own / np.where(own > 0.0, own + variance, 1.0), 0.0)
    return folded_mean(part * gaps, np.sqrt(part * variance))


def _sum_of_sizes(table: BinTable, sizes: FloatArray, slopes: FloatArray) -> Estimate:
    plain = _estimate(table, float(sizes.sum()), slopes, np.ones(table.bins))
    return SumOfSizes(
        value=plain.value,
        noise_sd=plain.noise_sd,
        sampling_sd=plain.sampling_sd,
        binning_bound=plain.binning_bound,
        binning_sd=plain.binning_sd,
        gaps=table.gaps,
        gap_noise=table.gap_noise_covariance + np.diag(table.gap_placing),
        gap_sampling=table.gap_sampling,
    )


def _estimate(table: BinTable, value: float, slopes: FloatArray, weights: FloatArray) -> Estimate:
    """Errors by the delta method; a gap near nil still varies as a folded normal does."""
    noise, sampling = table.sds(table.gradient(slopes * weights))
    folded = (1.0 - 2.0 / pi) * np.maximum(1.0 - slopes**2, 0.0) * weights**2
    counts = np.abs(table.histogram.counts).sum(axis=0)
    widest = 0.5 * np.diff(table.histogram.edges)
    return Estimate(
        value=value,
        noise_sd=sqrt(noise**2 + float(folded @ table.gap_noise)),
        sampling_sd=sqrt(sampling**2 + float(folded @ table.gap_sampling)),
        binning_bound=2.0 * float(counts @ widest) / table.histogram.total,
        binning_sd=float(sqrt(counts @ widest**2 / 3.0)) / table.histogram.total,
    )
