"""From a tally of two models to their histograms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedassay.decoding import (
    DecodeOptions,
    debiased,
    level_variance,
    require_enough,
    tree_noise,
)
from fedassay.examples import FloatArray
from fedassay.hierarchy import Hierarchy
from fedassay.histogram import ScoreHistogram
from fedassay.level_policy import OneLevel
from fedassay.noise import NoiseModel, NoNoise, TreeNoise
from fedassay.paired.pair_histogram import PairHistogram, margins_of
from fedassay.paired.published import (
    joint_edges,
    margin_edges,
    pair_of,
    published_pair,
)
from fedassay.reconcile import reconcile
from fedassay.survey import Survey
from fedassay.tally import Tally


def decode_pair(survey: Survey, tally: Tally, *, decode_options: DecodeOptions) -> PairHistogram:
    """Debias the counters of both margins and of the joint cells, and carry the noise along.

    Guarantee: post-processing only. Below the survey's minimum nothing is decoded, and of exact
    sums nothing below its smallest cell.
    """
    tally.require(survey)
    require_enough(survey, tally)
    if survey.is_exact:
        seen = published_pair(survey, tally)
        counts = [level.astype(np.float64) for level in seen.per_level(survey)]
        places = Places(margin_edges(survey, seen), joint_edges(survey, seen))
        return assembled(survey, places, counts, None, smooth=decode_options.smooth)
    clients = tally.clients(survey)
    levels = range(survey.hierarchy.levels)
    values = [debiased(survey, tally, level, clients=clients) for level in levels]
    places = Places(margin_edges(survey, tally), joint_edges(survey, tally))
    variances = level_variances(survey, values, clients=clients, reports=tally.reports)
    if survey.total_is_known:
        # Every report is one example: the noise must not change how many there are.
        values = [
            reconcile(Hierarchy.flat(level.shape[1]), (level,), (spread,), total=float(clients))
            for level, spread in zip(values, variances, strict=True)
        ]
        variances = level_variances(survey, values, clients=clients, reports=tally.reports)
    return assembled(survey, places, values, variances, smooth=decode_options.smooth)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Between which scores counts lie, of both margins and of both sides of the joint cells."""

    margins: tuple[FloatArray, FloatArray]
    joint: tuple[FloatArray, FloatArray]


def level_variances(
    survey: Survey, values: Sequence[FloatArray], *, clients: float, reports: Sequence[float]
) -> list[FloatArray]:
    """The variance of every level's debiased counts."""
    return [
        np.broadcast_to(
            level_variance(
                mechanism.law(),
                clients=clients,
                reports=heard,
                counts=counts,
                sampled=survey.samples_clients,
            ),
            counts.shape,
        )
        for mechanism, counts, heard in zip(survey.mechanisms, values, reports, strict=True)
    ]


def assembled(
    survey: Survey,
    places: Places,
    counts: Sequence[FloatArray],
    variances: Sequence[FloatArray] | None,
    *,
    smooth: bool,
) -> PairHistogram:
    """Counts of all levels, with the variances of their noise, as margins and joint counts."""
    names = pair_of(survey).names
    rows, columns = places.joint
    joint = counts[-1].reshape(2, len(rows) - 1, len(columns) - 1)
    noises = [_noise(survey, level, counts, variances) for level in range(len(counts))]
    if len(counts) == 1:
        first, second = margins_of(joint, places.margins, noises[0], smooth=smooth)
    else:
        first, second = (
            ScoreHistogram(places.margins[axis], counts[axis], noises[axis], smooth)
            for axis in (0, 1)
        )
    return PairHistogram(
        names=names,
        first=first,
        second=second,
        joint=joint,
        rows=rows,
        columns=columns,
        noise=noises[-1],
        is_margin=len(counts) == 1,
        is_drawn=isinstance(survey.level_policy, OneLevel),
    )


def _noise(
    survey: Survey,
    level: int,
    counts: Sequence[FloatArray],
    variances: Sequence[FloatArray] | None,
) -> NoiseModel:
    """Of one level, by itself: levels have noise of their own."""
    if variances is None:
        return NoNoise()
    flat = Hierarchy.flat(counts[level].shape[1])
    noise: TreeNoise = tree_noise(survey, flat, counts[level], (variances[level],))
    return noise
