"""Calibration error of a score, or of a calibrated one, read from a histogram."""

from dataclasses import replace
from math import pi, sqrt

import numpy as np

from fedassay.calibration.bins import Bins, BinTable, bin_table
from fedassay.calibration.calibrator import Calibrator
from fedassay.estimate import Estimate, normal_quantile
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram
from fedassay.metrics.delta import too_few


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
    beyond their noise; where there is little noise both are the same.

    >>> h = ScoreHistogram.from_scores([0, 1] * 50, [0.25, 0.75] * 50)
    >>> round(ece(h, debiased=False).value, 3)
    0.25
    """
    undefined = too_few(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    table = bin_table(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
    sizes, slopes = _sizes(table, debiased=debiased)
    found = _estimate(table, float(sizes.sum()), slopes, np.ones(table.bins))
    return _reaching_zero(found) if debiased and _may_be_calibrated(table) else found


def mce(
    histogram: ScoreHistogram,
    *,
    bins: int = 20,
    strategy: Bins = Bins.WIDTH,
    calibrator: Calibrator | None = None,
    debiased: bool = True,
) -> Estimate:
    """The largest calibration error of any bin that stands clear of its noise."""
    undefined = too_few(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    table = bin_table(histogram, bins=bins, strategy=strategy, calibrator=calibrator)
    sizes, slopes = _sizes(table, debiased=debiased)
    clear = table.mass > 2.0 * np.sqrt(table.gap_noise)
    rates = np.where(clear, sizes / np.where(clear, table.mass, 1.0), 0.0)
    worst = int(np.argmax(rates))
    if not clear[worst]:
        return _estimate(table, 0.0, slopes, np.ones(table.bins))
    only = np.where(np.arange(table.bins) == worst, 1.0 / table.mass[worst], 0.0)
    return _estimate(table, float(rates[worst]), slopes, only)


def signed_gap(histogram: ScoreHistogram, *, calibrator: Calibrator | None = None) -> Estimate:
    """The share of positives minus the mean prediction: above 0, predictions are too low."""
    undefined = too_few(histogram, np.ones_like(histogram.counts), "examples")
    if undefined is not None:
        return undefined
    table = bin_table(histogram, bins=1, calibrator=calibrator)
    ones = np.ones(table.bins)
    return _estimate(table, float(table.gaps.sum()), ones, ones)


def _sizes(table: BinTable, *, debiased: bool) -> tuple[FloatArray, FloatArray]:
    """Every gap's absolute size, and how it moves with the gap."""
    gaps, variance = table.gaps, table.gap_variance
    if not debiased:
        return np.abs(gaps), np.sign(gaps)
    mass = np.maximum(table.mass, 0.0)
    # The mean square of what gaps per example are, beyond what noise alone would make them.
    beyond = max(float((gaps**2 - variance).sum()), 0.0) / max(float((mass**2).sum()), 1e-300)
    own = mass**2 * beyond
    part = np.where(own > 0.0, own / np.where(own > 0.0, own + variance, 1.0), 0.0)
    return folded_mean(part * gaps, np.sqrt(part * variance))


def _may_be_calibrated(table: BinTable) -> bool:
    """Whether noise alone would explain the gaps, by a chi-square test at 5 %."""
    from scipy.special import chdtrc

    known = table.gap_variance > 0.0
    square = float((table.gaps[known] ** 2 / table.gap_variance[known]).sum())
    return bool(chdtrc(int(known.sum()), square) > 0.05) if known.any() else False


def _reaching_zero(estimate: Estimate) -> Estimate:
    """The same with errors so large that the 95 % interval holds 0."""
    sd = sqrt(estimate.noise_sd**2 + estimate.sampling_sd**2)
    if sd == 0.0:
        return estimate
    growth = max(estimate.value / (normal_quantile(0.975) * sd), 1.0)
    return replace(
        estimate,
        noise_sd=growth * estimate.noise_sd,
        sampling_sd=growth * estimate.sampling_sd,
    )


def folded_mean(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of |X| for a normal X, and its derivative by the mean."""
    from scipy.special import erf

    spread = sd > 0.0
    ratio = np.where(spread, mean / np.where(spread, sd, 1.0), 0.0)
    lean = np.where(spread, erf(ratio / sqrt(2.0)), np.sign(mean))
    return sd * sqrt(2.0 / pi) * np.exp(-0.5 * ratio**2) + mean * lean, lean


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
