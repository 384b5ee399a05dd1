"""Every group's own counts, decoded; and how many rows are in none."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from fedassay.assessment import Assessment
from fedassay.checks import require_type
from fedassay.decoding import decode_leaves, require_enough
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.group_names import GroupNames
from fedassay.histogram import ScoreHistogram
from fedassay.noise import NoiseModel, NoNoise, PartNoise
from fedassay.published import GROUP_ROOM, GroupedTally, published
from fedassay.survey_cells import by_part

REST = "(in no group shown)"
"""Rows of exact sums that are held back, all together."""
_SURELY = 3.0
"""Standard deviations of noise above which rows without a group are surely there."""


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Counts of every group that may be shown, and of rows in no named group."""

    groups: GroupNames
    histograms: Mapping[str, ScoreHistogram]
    """Of named groups that are shown, and of rows without one where there surely are some."""
    rows: Mapping[str, Estimate]
    """How many rows each part has; why it is held back, where it is."""

    @property
    def held_back(self) -> dict[str, str]:
        """Why some named groups have no figures."""
        return {
            name: each.reason
            for name, each in self.rows.items()
            if isinstance(each, NotEnoughData) and name in self.groups.names
        }


def group_counts(assessment: Assessment) -> GroupCounts:
    """Decode every group of an assessment whose survey tells groups apart.

    Guarantee: post-processing only; nothing more is spent. Of exact sums groups are published
    as `published.published` says.

    >>> import fedassay
    >>> labels, scores = [0, 1] * 600, [i / 1200 for i in range(1200)]
    >>> sexes = ["F"] * 600 + ["M"] * 500 + [None] * 100
    >>> result = fedassay.simulate(labels, scores, group=sexes, smallest_cell=0)
    >>> counts = group_counts(result)
    >>> {name: each.total for name, each in counts.histograms.items()}
    {'F': 600.0, 'M': 500.0, '(missing)': 100.0}
    """
    require_type(assessment, Assessment, "an assessment", "fedassay.load reads files.")
    survey, tally = assessment.survey, assessment.tally
    if survey.groups is None:
        raise SettingInvalid(
            "this survey told no groups apart; its figures are of all rows together. Name the "
            "groups when the survey is made: group= in simulations (--group COL), groups= in "
            "new_survey (--groups)."
        )
    require_enough(survey, tally)
    seen = published(survey, tally)
    if isinstance(seen, GroupedTally):
        return _merged_counts(assessment, seen, survey.groups)
    parts = survey.groups.parts
    if survey.is_exact:
        leaves = tally.per_level(survey)[-1].astype(np.float64)
        noises: list[NoiseModel] = [NoNoise()] * len(parts)
    else:
        leaves, joint = decode_leaves(survey, tally, decode_options=assessment.decode_options)
        noises = [PartNoise(joint, len(parts), place) for place in range(len(parts))]
    counts = np.moveaxis(by_part(survey, leaves), 1, 0)
    smooth = assessment.decode_options.smooth
    every = {
        name: ScoreHistogram(survey.grid.edges, np.ascontiguousarray(own), noise, smooth)
        for name, own, noise in zip(parts, counts, noises, strict=True)
    }
    rows = {
        name: Estimate(each.total, noise_sd=sqrt(each.noise.variance(np.ones_like(each.counts))))
        for name, each in every.items()
    }
    shown = {
        name: each
        for name, each in every.items()
        if name in survey.groups.names or each.total > _SURELY * rows[name].noise_sd
    }
    return GroupCounts(survey.groups, shown, rows)


def _merged_counts(assessment: Assessment, seen: GroupedTally, groups: GroupNames) -> GroupCounts:
    """Groups on the cells that all of them share."""
    survey = assessment.survey
    edges = survey.grid.edges[seen.groups_kept]
    shown = {
        name: ScoreHistogram(
            edges,
            seen.groups[name].reshape(2, -1).astype(np.float64),
            NoNoise(),
            assessment.decode_options.smooth,
        )
        for name in groups.parts
        if name in seen.groups
    }
    few = NotEnoughData(
        reason=f"fewer than {GROUP_ROOM * survey.smallest_cell:,} rows of a label: such groups "
        "are held back, with the rows of no group, so that no small count is published."
    )
    rows = {name: Estimate(shown[name].total) if name in shown else few for name in groups.parts}
    rest = float(seen.counters.sum()) - sum(each.total for each in shown.values())
    return GroupCounts(groups, shown, rows | ({REST: Estimate(rest)} if rest else {}))
