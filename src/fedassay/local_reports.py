"""Locally private reports of one client: one for each example, in random order."""

from collections.abc import Iterator

import numpy as np

from fedassay.cut_levels import CutLevels
from fedassay.errors import SurveyRefused
from fedassay.examples import IntArray
from fedassay.level_draw import levels_of_reports
from fedassay.mechanisms import LocalMechanism
from fedassay.randomness import Randomness
from fedassay.report_ids import REPORT_ID_BYTES
from fedassay.survey import Survey
from fedassay.wire import MAX_BLOCK_BYTES, Block, row_bytes


def blocks(
    survey: Survey, leaf_counts: IntArray, given_level: int | None, randomness: Randomness
) -> Iterator[Block]:
    """One locally private report for each example, in random order.

    All are on the given level, or each on one drawn for it.
    """
    flat = leaf_counts.ravel()
    filled = flat.nonzero()[0]
    hits = filled.repeat(flat[filled])
    if len(hits) == 0:
        if not survey.allow_empty:
            raise SurveyRefused(
                "this survey is for clients that hold an example; this one has none. "
                "Do not answer, or start a survey that allows empty clients."
            )
        hits = np.array([-1])
    # Counts come sorted by cell: the order of reports must not tell.
    keys = np.frombuffer(randomness.bytes(8 * len(hits)), dtype=np.uint64)
    hits = hits[keys.argsort(kind="stable")]
    level_of = (
        levels_of_reports(survey, len(hits), randomness)
        if given_level is None
        else np.full(len(hits), given_level, dtype=np.int64)
    )
    for level in range(survey.hierarchy.levels):
        mechanism = survey.mechanisms[level]
        chosen = hits[level_of == level]
        if not isinstance(mechanism, LocalMechanism) or len(chosen) == 0:
            continue
        cell = cells_of(survey, chosen, level)
        size = 2 * survey.hierarchy.cells_per_level[level]
        step = MAX_BLOCK_BYTES // row_bytes(survey, level)
        for first in range(0, len(cell), step):
            rows = mechanism.encode(cell[first : first + step], size, randomness=randomness)
            report_id = randomness.bytes(REPORT_ID_BYTES)
            yield Block(survey.fingerprint, report_id, rows, level)


def cells_of(survey: Survey, hits: IntArray, level: int) -> IntArray:
    """The cell on a level (label x cell) of each hit (label x leaf), and -1 for -1."""
    leaves, cells = survey.hierarchy.leaves, survey.hierarchy.cells_per_level[level]
    if cells == leaves and not isinstance(survey.hierarchy, CutLevels):
        return hits
    label, leaf = np.divmod(hits, leaves)
    cell = np.where(
        label == 1,
        survey.hierarchy.cell_of(leaf, level, 1),
        survey.hierarchy.cell_of(leaf, level, 0),
    )
    return np.where(hits < 0, -1, label * cells + cell)
