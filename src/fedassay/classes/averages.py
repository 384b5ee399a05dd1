"""Figures over all classes: their mean, weighted by how common they are, pooled, summed.

All classes are of the same rows, and what two of them have in common is not in their histograms.
So sampling errors are added as if they always went together, which is at most too cautious; for
areas only those of negatives are, since no two classes share a positive. Privacy noise of
different counters is independent, and adds up in squares.
"""

from collections.abc import Sequence
from math import hypot, sqrt

import numpy as np

from fedassay.calibration.gap_intervals import SumOfSizes
from fedassay.classes.joined_counts import area_parts
from fedassay.estimate import Estimate, NotEnoughData, Shape
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram

_MOST_GAPS = 2000


def why_unknown(estimates: Sequence[Estimate], names: Sequence[str]) -> NotEnoughData | None:
    """Why there is no mean over classes, if one of them has no value.

    >>> why_unknown([Estimate(0.8), NotEnoughData(reason="no positives")], ["a", "b"]).reason
    'an average over classes needs every one; b has no value: no positives'
    """
    missing = [(n, e) for n, e in zip(names, estimates, strict=True) if not e.is_available]
    if not missing:
        return None
    name, first = missing[0]
    others = f" and {len(missing) - 1} more have" if len(missing) > 1 else " has"
    reason = first.reason if isinstance(first, NotEnoughData) else ""
    return NotEnoughData(
        reason=f"an average over classes needs every one; {name}{others} no value: {reason}"
    )


def weighted_mean(
    estimates: Sequence[Estimate], weights: FloatArray, *, sampling_sd: float | None = None
) -> Estimate:
    """The mean of figures with known weights, and its errors.

    >>> weighted_mean([Estimate(0.6, noise_sd=0.3), Estimate(0.8, noise_sd=0.4)],
    ...     np.array([0.5, 0.5]))
    <Estimate 0.700 [0.210, 1.190]>
    """
    used = [(w, e) for w, e in zip(weights.tolist(), estimates, strict=True) if w != 0.0]
    if sampling_sd is None:
        sampling_sd = sum(abs(w) * e.sampling_sd for w, e in used)
    return Estimate(
        value=sum(w * e.value for w, e in used),
        noise_sd=sqrt(sum((w * e.noise_sd) ** 2 for w, e in used)),
        sampling_sd=sampling_sd,
        binning_bound=sum(abs(w) * e.binning_bound for w, e in used),
        binning_sd=sqrt(sum((w * e.binning_sd) ** 2 for w, e in used)),
    )


def area_sampling_sd(histograms: Sequence[ScoreHistogram], weights: FloatArray) -> float:
    """The most that a weighted mean of the classes' ROC AUCs varies with the rows.

    A row is a positive of one class: positives of different classes are independent. It is a
    negative of all others, and those parts of its influence are taken to go together:
    sqrt(sum w^2 V+) + sum w sqrt(V-), by Minkowski's inequality.
    """
    parts = [area_parts(histogram) for histogram in histograms]
    apart = sqrt(sum((w**2) * p.of_positives for w, p in zip(weights, parts, strict=True)))
    together = sum(abs(w) * sqrt(p.of_negatives) for w, p in zip(weights, parts, strict=True))
    return float(apart + together)


def by_prevalence(
    estimates: Sequence[Estimate],
    shares: Sequence[Estimate],
    total: float,
    *,
    sampling_sd: float | None = None,
) -> Estimate:
    """The mean of figures weighted by how common each class is, whose shares are estimates too.

    With shares p, that sum up to 1, and mean m: sum of p^2 Var(figure) + (figure - m)^2 Var(p).
    Classes without a value count as 0 where none of theirs may be seen.
    """
    known = np.array([e.is_available for e in estimates])
    prevalence = np.array([max(share.value, 0.0) for share in shares]) * known
    weights = prevalence / prevalence.sum()
    mean = weighted_mean(estimates, weights, sampling_sd=sampling_sd)
    values = np.array([e.value if e.is_available else mean.value for e in estimates])
    off = values - mean.value
    noise = float(sum((o * s.noise_sd) ** 2 for o, s in zip(off, shares, strict=True)))
    sampled = float((weights * off**2).sum()) / total
    return Estimate(
        value=mean.value,
        noise_sd=hypot(mean.noise_sd, sqrt(noise)),
        sampling_sd=hypot(mean.sampling_sd, sqrt(sampled)),
        binning_bound=mean.binning_bound,
        binning_sd=mean.binning_sd,
    )


def as_area(estimate: Estimate) -> Estimate:
    """The same figure with an interval for areas, whose sampling ends at 0 and 1."""
    return Estimate(
        estimate.value,
        noise_sd=estimate.noise_sd,
        sampling_sd=estimate.sampling_sd,
        binning_bound=estimate.binning_bound,
        binning_sd=estimate.binning_sd,
        shape=Shape.LOGIT,
    )


def mean_of_sizes(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of calibration errors: again a sum of sizes, over the bins of all classes."""
    count = len(estimates)
    plain = weighted_mean(estimates, np.full(count, 1.0 / count))
    sizes = [each for each in estimates if isinstance(each, SumOfSizes)]
    if len(sizes) < count or sum(len(each.gaps) for each in sizes) > _MOST_GAPS:
        return plain
    gaps = np.concatenate([each.gaps for each in sizes]) / count
    noise = np.zeros((len(gaps), len(gaps)))
    first = 0
    for each in sizes:
        last = first + len(each.gaps)
        noise[first:last, first:last] = each.gap_noise / count**2
        first = last
    return SumOfSizes(
        value=plain.value,
        noise_sd=plain.noise_sd,
        sampling_sd=plain.sampling_sd,
        binning_bound=plain.binning_bound,
        binning_sd=plain.binning_sd,
        gaps=gaps,
        gap_noise=noise,
        gap_sampling=np.concatenate([each.gap_sampling for each in sizes]) / count**2,
    )
