"""What of exact sums is published: cells merged until each holds enough of either label.

The rule (`nesting.publishable_edges`) sees the sums alone, which whoever adds up has seen. Its
cells hold at least the survey's smallest cell of each label, or nobody at all: nobody of one label
among rows of the other would be as telling as one. No difference of two files of the same rows
holds fewer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedassay.errors import FileInvalid, SettingInvalid, TooFewRows
from fedassay.examples import FloatArray, IntArray
from fedassay.files import Fields
from fedassay.group_names import GroupNames
from fedassay.mechanisms import Privacy
from fedassay.nesting import publishable_edges
from fedassay.survey import Survey
from fedassay.survey_cells import by_part
from fedassay.tally import MOST_SITE_COUNTERS, Tally
from fedassay.ties import AT_THE_END

GROUP_ROOM = 5
"""A group with fewer rows of a label than so many smallest cells is held back."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergedTally(Tally):
    """The sums of an exact survey over published cells: all that is left of a tally."""

    kept: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Places of the survey's edges that were kept, both ends included."""

    def edges(self, survey: Survey) -> FloatArray:
        """Between which edges the counters lie."""
        edges: FloatArray = survey.grid.edges[self.kept]
        return edges

    def per_level(self, survey: Survey) -> tuple[IntArray, ...]:
        """The counters of the one level, label x published cell."""
        self.require(survey)
        return (self.counters.reshape(2, -1),)

    def __add__(self, other: Tally) -> Tally:
        raise SettingInvalid(
            "published cells do not add up: each tally has its own. Add tallies before they are "
            "published."
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedTally(MergedTally):
    """The sums of groups that may be shown, over cells that all of them share, and of all rows."""

    groups: Mapping[str, IntArray] = field(default_factory=dict)
    """By name, label x cell; a group without is held back."""
    groups_kept: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Places of the survey's edges between the groups' cells, both ends included."""


def published(survey: Survey, tally: Tally) -> Tally:
    """A tally as it may be published: merged where the survey has a smallest cell.

    Guarantee: no cell holds fewer than the smallest cell of either label, unless it holds nobody,
    and neither does any difference of two such tallies of the same rows, whatever was asked.

    >>> from fedassay.grid import Grid
    >>> from fedassay.hierarchy import Hierarchy
    >>> from fedassay.mechanisms import Exact, Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.explicit([0.0, 0.2, 0.5, 1.0]).with_ends(),
    ...     hierarchy=Hierarchy.flat(5), mechanisms=(Exact(),), smallest_cell=10,
    ... )
    >>> tally = Tally(survey.fingerprint, (2,), np.array([0, 9, 20, 90, 0, 0, 30, 20, 30, 0]))
    >>> published(survey, tally).counters.tolist()
    [29, 90, 50, 30]
    """
    tally.require(survey)
    if not survey.smallest_cell or isinstance(tally, MergedTally):
        return tally
    if survey.groups is not None:
        return _published_groups(survey, tally, survey.groups)
    (counts,) = tally.per_level(survey)
    _require_rows(survey, counts)
    kept = publishable_edges(survey.grid.edges, counts, survey.smallest_cell)
    return _merged(survey, tally, kept)


def _require_rows(survey: Survey, counts: IntArray) -> None:
    if counts.sum(axis=1).min() < survey.smallest_cell:
        raise TooFewRows(
            f"this survey publishes no count below {survey.smallest_cell:,} of either label; there "
            "are fewer rows of one label in all, so there is nothing to publish. Wait for more "
            "clients, or start a survey with a smaller one (--smallest-cell)."
        )


def _published_groups(survey: Survey, tally: Tally, groups: GroupNames) -> GroupedTally:
    """Groups that have enough, on cells in which each has enough, and the sum of all.

    Groups with fewer of a label than `GROUP_ROOM` smallest cells are held back, or they would
    coarsen the others' cells, and so are rows of no named group. Together they are part of the
    sum if they have enough, and of nothing that is published if not. The sum less the groups
    is theirs between edges that both keep: there the sum keeps only those where they have enough.
    """
    smallest, edges = survey.smallest_cell, survey.grid.edges
    per_part = np.moveaxis(by_part(survey, tally.per_level(survey)[0]), 1, 0)
    counts = dict(zip(groups.parts, per_part, strict=True))
    fewest = {name: int(each.sum(axis=1).min()) for name, each in counts.items()}
    shown = [name for name in groups.names if fewest[name] >= GROUP_ROOM * smallest]
    nobody = np.zeros_like(per_part[0])
    rest = sum((each for name, each in counts.items() if name not in shown), nobody)
    counted = not shown or rest.sum(axis=1).min() >= smallest
    pooled = sum((counts[name] for name in shown), rest if counted else nobody)
    _require_rows(survey, pooled)
    common = np.arange(len(edges))
    for name in shown:
        common = np.intersect1d(common, publishable_edges(edges, counts[name], smallest))
    kept = publishable_edges(edges, pooled, smallest)
    if counted and shown:
        telling = np.setdiff1d(common, publishable_edges(edges, rest, smallest))
        kept = np.setdiff1d(kept, telling)
    return GroupedTally(
        tally.fingerprint,
        tally.reports,
        np.add.reduceat(pooled, kept[:-1], axis=1).ravel(),
        moments=tally.moments,
        kept=kept,
        groups={name: np.add.reduceat(counts[name], common[:-1], axis=1).ravel() for name in shown},
        groups_kept=common,
    )


def _merged(survey: Survey, tally: Tally, kept: IntArray) -> MergedTally:
    (counts,) = tally.per_level(survey)
    sums = np.add.reduceat(counts, kept[:-1], axis=1)
    return MergedTally(
        tally.fingerprint, tally.reports, sums.ravel(), moments=tally.moments, kept=kept
    )


def published_sites(
    survey: Survey, tallies: Mapping[str, Tally]
) -> tuple[dict[str, Tally], tuple[str, ...]]:
    """Tallies of single sites as they may be shown beside their sum, and who is held back.

    Sites with fewer rows of a label than the smallest cell are held back, and as many more, the
    smallest first, as it takes that those held back have enough together: or else the sum less
    the others would be theirs. All that are shown have the same cells, in which each of them has
    enough, and those held back together too: the sum less one of two sites is the other.

    Guarantee: that of `published`, for every sum and difference of the shown and of all together.

    >>> from fedassay.grid import Grid
    >>> from fedassay.hierarchy import Hierarchy
    >>> from fedassay.mechanisms import Exact, Privacy
    >>> survey = Survey(
    ...     privacy=Privacy.SECURE, grid=Grid.uniform(2).with_ends(), hierarchy=Hierarchy.flat(4),
    ...     mechanisms=(Exact(),), smallest_cell=10,
    ... )
    >>> counts = {"north": [30, 40, 50, 60], "south": [20, 20, 20, 20], "tiny": [1, 1, 1, 1]}
    >>> tallies = {
    ...     name: Tally(survey.fingerprint, (1,), np.array([0, a, b, 0, 0, c, d, 0]))
    ...     for name, (a, b, c, d) in counts.items()
    ... }
    >>> shown, held_back = published_sites(survey, tallies)
    >>> list(shown), held_back
    (['north'], ('tiny', 'south'))
    """
    smallest = survey.smallest_cell
    if not smallest:
        return dict(tallies), ()
    counts = {name: tally.per_level(survey)[0] for name, tally in tallies.items()}
    order = sorted(counts, key=lambda name: (int(counts[name].sum(axis=1).min()), name))
    back = [name for name in order if counts[name].sum(axis=1).min() < smallest]
    shown = order[len(back) :]
    rest = sum((counts[name] for name in back), np.zeros((2, survey.grid.cells), np.int64))
    while back and shown and rest.sum(axis=1).min() < smallest:
        back.append(shown.pop(0))
        rest = rest + counts[back[-1]]
    parts = [counts[name] for name in shown] + ([rest] if back else [])
    kept = np.arange(len(survey.grid.edges))
    for part in parts:
        kept = np.intersect1d(kept, publishable_edges(survey.grid.edges, part, smallest))
    merged = {name: _merged(survey, tallies[name], kept) for name in tallies if name in shown}
    return dict(merged), tuple(back)


def cells_in_words(survey: Survey, edges: FloatArray, thresholds: Sequence[float]) -> str:
    """How a smallest cell was kept, or that exact sums have none; what noise leaves unseen."""
    if not survey.is_exact:
        return _ends_in_words(survey, edges)
    if not survey.smallest_cell:
        return " Any count is published, single rows too: there is no smallest cell."
    note = (
        f" {survey.grid.cells:,} cells were merged into {len(edges) - 1:,} of at least "
        f"{survey.smallest_cell:,} of each label, or of nobody."
    )
    inside = [f"{point:g}" for point in thresholds if 0.0 < point < 1.0 and point not in edges]
    if inside:
        note += f" Inside a cell, and read between its edges: {', '.join(inside)}."
    return note


def _ends_in_words(survey: Survey, edges: FloatArray) -> str:
    """That rows which nobody scored might hide at exactly 0 and 1, where no counter shows them."""
    if not survey.is_local and survey.privacy is not Privacy.SITE:
        return ""
    if max(edges[1] - edges[0], edges[-1] - edges[-2]) <= AT_THE_END:
        return ""
    return (
        " Scores of exactly 0 and 1 are not counted apart: where they stand for rows that nobody "
        "scored, log loss and calibration are off."
    )


def coarse_in_words(survey: Survey) -> str:
    """What helps where merged cells are too coarse."""
    return (
        f"Each cell holds at least {survey.smallest_cell:,} of either label; more rows, or a "
        "smaller --smallest-cell where rules allow it, would tell."
    )


def published_json(tally: Tally) -> dict[str, Any]:
    """The sums as a file holds them, with the edges that were kept where cells were merged."""
    content: dict[str, Any] = {
        "reports": list(tally.reports),
        "counters": tally.counters.tolist(),
    }
    if isinstance(tally, MergedTally):
        content["kept"] = tally.kept.tolist()
    if isinstance(tally, GroupedTally):
        content["groups"] = {
            "kept": tally.groups_kept.tolist(),
            "counters": {name: each.tolist() for name, each in tally.groups.items()},
        }
    if tally.sites:
        content["sites"] = {name: each.tolist() for name, each in tally.sites.items()}
    return content


def published_from_json(
    fields: Fields, survey: Survey, where: str, *, moments: IntArray | None = None
) -> Tally:
    """Rebuild a published tally from untrusted JSON; a smaller cell than promised is refused."""
    reports = fields.integers("reports", survey.hierarchy.levels)
    if not survey.smallest_cell:
        counters = np.array(fields.integers("counters", survey.hierarchy.width), np.int64)
        sites = _read_sites(fields, survey, where) if fields.has("sites") else None
        return Tally.checked(
            survey, reports=reports, counters=counters, sites=sites, moments=moments, where=where
        )
    kept = _read_kept(fields, survey, where)
    counters = _read_cells(fields, "counters", survey, kept, where)
    # What holds for the whole grid's sums is checked on sums of the same totals.
    spread = np.zeros((2, survey.leaves), np.int64)
    spread[:, kept[:-1]] = counters.reshape(2, -1)
    whole = Tally.checked(
        survey, reports=reports, counters=spread.ravel(), moments=moments, where=where
    )
    if survey.groups is None:
        return MergedTally(
            whole.fingerprint, whole.reports, counters, moments=whole.moments, kept=kept
        )
    groups_kept, groups = _read_groups(fields.inside("groups"), survey, survey.groups, where)
    return GroupedTally(
        whole.fingerprint,
        whole.reports,
        counters,
        moments=whole.moments,
        kept=kept,
        groups=groups,
        groups_kept=groups_kept,
    )


def _read_kept(fields: Fields, survey: Survey, where: str) -> IntArray:
    kept = np.array(fields.integers("kept", survey.grid.cells + 1), np.int64)
    ends = [0, survey.grid.cells]
    if len(kept) < 2 or [kept[0], kept[-1]] != ends or not (np.diff(kept) > 0).all():
        raise FileInvalid(
            f'{where}: "kept" must list places of edges in rising order, from first to last.'
        )
    return kept


def _read_cells(fields: Fields, name: str, survey: Survey, kept: IntArray, where: str) -> IntArray:
    width = 2 * (len(kept) - 1)
    counters = np.array(fields.integers(name, width), np.int64)
    if len(counters) != width or not holds_enough(counters, survey.smallest_cell):
        raise FileInvalid(
            f"{where}: each of the {width // 2} cells holds at least {survey.smallest_cell} of "
            "either label, the survey's smallest cell, or nobody; found other ones. Make the file "
            "again with fedassay tally."
        )
    return counters


def holds_enough(counters: IntArray, smallest: int) -> bool:
    """Whether each cell, negatives of all before positives, has so many of either label or nobody.

    >>> holds_enough(np.array([12, 0, 10, 0]), 10), holds_enough(np.array([12, 0, 10, 30]), 10)
    (True, False)
    """
    cells = counters.reshape(2, -1)
    return bool(((cells.min(axis=0) >= smallest) | (cells == 0).all(axis=0)).all())


def _read_groups(
    fields: Fields, survey: Survey, groups: GroupNames, where: str
) -> tuple[IntArray, dict[str, IntArray]]:
    """The groups that are shown, from a file that a stranger may have written."""
    fields.only("kept", "counters")
    listed, inside = fields.get("counters"), fields.inside("counters")
    if not isinstance(listed, dict) or not set(listed) <= set(groups.names):
        raise FileInvalid(f"{where}: groups are those that the survey names; found others.")
    kept = _read_kept(fields, survey, f"{where}, groups")
    return kept, {name: _read_cells(inside, name, survey, kept, where) for name in listed}


def _read_sites(fields: Fields, survey: Survey, where: str) -> dict[str, IntArray]:
    """Every site's counters, from a file that a stranger may have written."""
    width, listed = survey.hierarchy.width, fields.get("sites")
    if not isinstance(listed, dict) or len(listed) * width > MOST_SITE_COUNTERS:
        raise FileInvalid(
            f'{where}: "sites" holds at most {MOST_SITE_COUNTERS:,} counters by name; found '
            "something else."
        )
    inside = Fields(listed, f"{where}, sites")
    return {name: np.array(inside.integers(name, width), np.int64) for name in listed}
