"""Tallies as they may come out, drawn from counts without making single reports."""

import numpy as np

from fedassay.examples import FloatArray, IntArray
from fedassay.level_policy import OneLevel
from fedassay.survey import Survey
from fedassay.tally import Tally


def draw_tally(
    survey: Survey, leaf_counts: IntArray, *, clients: int, generator: np.random.Generator
) -> Tally:
    """The tally of clients with one example each, and of some without; for simulation only."""
    leaves, reports = split_levels(survey, leaf_counts, clients=clients, generator=generator)
    return randomised(survey, leaves, reports=reports, generator=generator)


def whole_counts(counts: FloatArray) -> IntArray:
    """Whole counts whose running sums are those of the expected ones, up to a half."""
    ends = np.rint(np.cumsum(counts.ravel())).astype(np.int64)
    return np.diff(ends, prepend=0).reshape(counts.shape)


def split_levels(
    survey: Survey, leaf_counts: IntArray, *, clients: int, generator: np.random.Generator
) -> tuple[list[IntArray], tuple[int, ...]]:
    """Leaf counts and number of the clients that report on each level, one example each."""
    levels = survey.hierarchy.levels
    if not isinstance(survey.level_policy, OneLevel):
        return [leaf_counts] * levels, (clients,) * levels
    shares = [float(share) for share in survey.level_policy.client_fractions]
    split = generator.multinomial(leaf_counts, shares)
    silent = generator.multinomial(clients - int(leaf_counts.sum()), shares)
    return list(np.moveaxis(split, -1, 0)), tuple((split.sum(axis=(0, 1)) + silent).tolist())


def randomised(
    survey: Survey,
    leaves: list[IntArray],
    *,
    reports: tuple[int, ...],
    generator: np.random.Generator,
) -> Tally:
    """What arrives when the clients of each level hold these leaf counts together."""
    # The hierarchy sums cells up to the level,
    per_level = [survey.hierarchy.at_level(counts, i) for i, counts in enumerate(leaves)]
    # the mechanisms randomise what clients send, here summed over all clients,
    sums = [
        mechanism.cohort(counts, reports=clients, generator=generator)
        for mechanism, counts, clients in zip(survey.mechanisms, per_level, reports, strict=True)
    ]
    # and the tally is what arrives.
    return Tally(survey.fingerprint, reports, np.concatenate([counts.ravel() for counts in sums]))
