"""Rows counted in a survey's cells: group by group, where it tells groups apart.

The leaves of the first group come first, then those of the second, and so on to rows that say
nothing and rows of no named group: one line of cells, of which an example is in one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples, IntArray
from fedassay.survey import Survey


def count_rows(survey: Survey, examples: Examples) -> IntArray:
    """Examples per label and leaf cell; rows 0 and 1 are negatives and positives.

    >>> import fedassay
    >>> from fedassay.group_names import GroupNames
    >>> groups = GroupNames("sex", ("F", "M"))
    >>> survey = fedassay.new_survey(groups=groups, smallest_cell=0, height=1)
    >>> rows = Examples([0, 1, 1], [0.2, 0.62, 1.0]).in_groups(groups.codes(["M", "F", None]))
    >>> count_rows(survey, rows).tolist()
    [[0, 0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1, 0, 0]]
    """
    if survey.groups is None:
        return survey.grid.count(examples)
    if examples.groups is None:
        raise SettingInvalid(
            f'this survey tells groups of "{survey.groups.column}" apart; the rows do not say '
            "which each is in. Name the column: group= (--group-column COL)."
        )
    cells, leaves = survey.grid.cells, survey.leaves
    place = survey.grid.locate(examples.scores) + cells * examples.groups
    place += leaves * examples.labels.astype(np.int64)
    return np.bincount(place, minlength=2 * leaves).reshape(2, leaves)


def by_part(survey: Survey, leaf_counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Counts per label, part and cell of the grid.

    >>> import fedassay
    >>> survey = fedassay.new_survey(smallest_cell=0, height=1)
    >>> by_part(survey, np.array([[1, 2], [3, 4]])).shape
    (2, 1, 2)
    """
    return leaf_counts.reshape(*leaf_counts.shape[:-1], -1, survey.grid.cells)


def all_parts(survey: Survey, leaf_counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Counts per label and cell of the grid, of all groups together.

    >>> import fedassay
    >>> survey = fedassay.new_survey(smallest_cell=0, height=1)
    >>> all_parts(survey, np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    if survey.groups is None:
        return leaf_counts
    pooled: npt.NDArray[Any] = by_part(survey, leaf_counts).sum(axis=-2)
    return pooled
