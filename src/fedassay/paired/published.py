"""What of exact sums of two models is published: margins and joint cells that hold enough."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedassay.errors import FileInvalid, SettingInvalid, TooFewRows
from fedassay.examples import FloatArray, IntArray
from fedassay.files import Fields
from fedassay.pair_grid import PairGrid
from fedassay.pair_levels import PairLevels
from fedassay.pair_nesting import publishable_margin, publishable_pairs
from fedassay.published import holds_enough
from fedassay.survey import Survey
from fedassay.tally import Tally

Kept = tuple[IntArray, IntArray, IntArray, IntArray]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergedPair(Tally):
    """The sums over published cells: of the first margin, the second, and of the pairs."""

    kept: Kept = field(default_factory=lambda: (np.zeros(0, dtype=np.int64),) * 4)
    """Places of edges that the margins keep, both ends included; and at which of the asked groups
    the published groups of rows and columns begin."""

    def per_level(self, survey: Survey) -> tuple[IntArray, ...]:
        """The counters of both margins, and of pairs, label x published cell."""
        self.require(survey)
        first, second = (2 * (len(edges) - 1) for edges in self.kept[:2])
        cut = np.split(self.counters, [first, first + second])
        return tuple(part.reshape(2, -1) for part in cut)

    def __add__(self, other: Tally) -> Tally:
        raise SettingInvalid(
            "published cells do not add up: each tally has its own. Add tallies before they are "
            "published."
        )


def pair_of(survey: Survey) -> PairGrid:
    """The two models' grids; raises where a survey asks for one model's scores."""
    if survey.pair is None:
        raise SettingInvalid(
            "this survey asks for the scores of one model; two were wanted. Start one with "
            "--paired (paired=True)."
        )
    return survey.pair


def published_pair(survey: Survey, tally: Tally) -> Tally:
    """A tally of two models as it may be published: merged where there is a smallest cell.

    Guarantee: no cell holds fewer than the smallest cell of either label, and neither does any
    set of rows that published files of the same rows tell apart (`pair_nesting`).
    """
    tally.require(survey)
    if not survey.smallest_cell or isinstance(tally, MergedPair):
        return tally
    pair, smallest = pair_of(survey), survey.smallest_cell
    first, second, joint = tally.per_level(survey)
    if joint.sum(axis=1).min() < smallest:
        raise TooFewRows(
            f"this survey publishes no count below {smallest:,} of either label; there are fewer "
            "rows of one label in all, so there is nothing to publish. Wait for more clients, or "
            "start a survey with a smaller one (--smallest-cell)."
        )
    kept = (
        publishable_margin(pair.first, first, smallest),
        publishable_margin(pair.second, second, smallest),
    )
    groups = joint.reshape(2, *asked_groups(survey))
    rows, columns = publishable_pairs(groups, kept, (pair.first, pair.second), smallest)
    sums = [
        np.add.reduceat(first, kept[0][:-1], axis=1),
        np.add.reduceat(second, kept[1][:-1], axis=1),
        np.add.reduceat(np.add.reduceat(groups, rows, axis=1), columns, axis=2),
    ]
    counters = np.concatenate([each.ravel() for each in sums])
    return MergedPair(tally.fingerprint, tally.reports, counters, kept=(*kept, rows, columns))


def asked_groups(survey: Survey) -> tuple[int, int]:
    """How many groups of rows and of columns the joint cells of a survey have."""
    pair, levels = pair_of(survey), survey.hierarchy
    if not isinstance(levels, PairLevels):
        return pair.first.cells, pair.second.cells
    rows, columns = levels.cuts[-1]
    return len(rows), len(columns)


def joint_edges(survey: Survey, tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Between which scores the joint counts lie: edges of rows, and of columns."""
    pair, levels = pair_of(survey), survey.hierarchy
    if not isinstance(levels, PairLevels):
        return pair.first.edges, pair.second.edges
    starts = [np.array(cuts) for cuts in levels.cuts[-1]]
    if isinstance(tally, MergedPair):
        starts = [cuts[kept] for cuts, kept in zip(starts, tally.kept[2:], strict=True)]
    first, second = (
        np.append(grid.edges[cuts], 1.0)
        for grid, cuts in zip((pair.first, pair.second), starts, strict=True)
    )
    return first, second


def margin_edges(survey: Survey, tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Between which scores the counts of either margin lie."""
    pair = pair_of(survey)
    if not isinstance(tally, MergedPair):
        return pair.first.edges, pair.second.edges
    return pair.first.edges[tally.kept[0]], pair.second.edges[tally.kept[1]]


def pair_json(tally: Tally) -> dict[str, Any]:
    """The sums as a file holds them, with what was kept where cells were merged."""
    content: dict[str, Any] = {
        "reports": list(tally.reports),
        "counters": tally.counters.tolist(),
    }
    if isinstance(tally, MergedPair):
        content["kept"] = [each.tolist() for each in tally.kept]
    return content


def pair_from_json(fields: Fields, survey: Survey, where: str) -> Tally:
    """Rebuild a published tally from untrusted JSON; a smaller cell than promised is refused."""
    reports = fields.integers("reports", survey.hierarchy.levels)
    if not survey.smallest_cell:
        counters = np.array(fields.integers("counters", survey.hierarchy.width), np.int64)
        return Tally.checked(survey, reports=reports, counters=counters, where=where)
    kept = _kept(fields.get("kept"), survey, where)
    cells = [len(kept[0]) - 1, len(kept[1]) - 1, len(kept[2]) * len(kept[3])]
    width = 2 * sum(cells)
    counters = np.array(fields.integers("counters", width), np.int64)
    parts = np.split(counters, [2 * cells[0], 2 * (cells[0] + cells[1])])
    smallest = survey.smallest_cell
    enough = len(counters) == width and parts[2].min() >= smallest
    if not enough or not all(holds_enough(margin, smallest) for margin in parts[:2]):
        raise FileInvalid(
            f"{where}: each cell holds at least {smallest} of either label, the survey's smallest "
            "cell, or of a margin's nobody; found other ones. Make the file again with fedassay "
            "tally."
        )
    # What holds for the whole survey's sums is checked on sums of the same totals.
    totals = [part.reshape(2, -1).sum(axis=1) for part in parts]
    if not all(np.array_equal(total, totals[0]) for total in totals):
        raise FileInvalid(f"{where}: margins and joint counts are of the same rows; these are not.")
    spread = [np.zeros((2, size), np.int64) for size in survey.hierarchy.cells_per_level]
    for level in spread:
        level[:, 0] = totals[0]
    whole = Tally.checked(
        survey,
        reports=reports,
        counters=np.concatenate([level.ravel() for level in spread]),
        where=where,
    )
    return MergedPair(whole.fingerprint, whole.reports, counters, kept=kept)


def _kept(listed: object, survey: Survey, where: str) -> Kept:
    pair, groups = pair_of(survey), asked_groups(survey)
    sizes = (pair.first.cells + 1, pair.second.cells + 1, *groups)
    fits = isinstance(listed, list) and len(listed) == 4
    rows: list[IntArray] = []
    if isinstance(listed, list) and fits:
        for places, size in zip(listed, sizes, strict=True):
            whole = isinstance(places, list) and all(type(place) is int for place in places)
            row = np.array(places if whole else [], np.int64)
            fits = fits and len(row) > 0 and row[0] == 0 and bool((np.diff(row) > 0).all())
            fits = fits and row[-1] < size
            rows.append(row)
        ends = [row[-1] + 1 == size for row, size in zip(rows[:2], sizes[:2], strict=True) if fits]
        fits = fits and all(ends)
    if not fits:
        raise FileInvalid(
            f'{where}: "kept" must list places of edges of both margins in rising order, from '
            "first to last, and where groups of rows and columns begin."
        )
    return rows[0], rows[1], rows[2], rows[3]
