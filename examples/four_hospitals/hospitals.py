"""The four hospitals and a clinic: their tables, parts of the bundled sample, and their folders."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fedassay import Examples, Survey
from fedassay.engines.flower.site_setup import (
    MEMBER_FILE,
    NODE_KEY,
    ROSTER_FILE,
    SiteOptions,
    make_roster,
    prepare_site,
)
from fedassay.examples import IntArray
from fedassay.tables.reading import Columns, read_clients

NAMES = ("north", "east", "south", "west", "clinic")
_ROWS = (30_000, 20_000, 10_000, 5_000, 1_000)
SCORE, LABEL = "risk", "outcome"


@dataclass(frozen=True, slots=True, eq=False)
class Hospital:
    """A site: its name, its rows, and its folder."""

    name: str
    examples: Examples
    folder: Path
    """Holds `scores/` with its table, and `site/` with what it agrees to."""

    @property
    def key(self) -> Path:
        """The SuperNode's private key; the public one ends in `.pub`."""
        return self.folder / "site" / NODE_KEY

    @property
    def config(self) -> Mapping[str, str]:
        """The SuperNode's configuration."""
        return {
            "data": "scores.parquet",
            "score": SCORE,
            "label": LABEL,
            "where": str(self.folder / "site"),
        }

    def counters(self, survey: Survey) -> IntArray:
        """This hospital's exact counters, row by row: not by the code that sites count with."""
        leaves = survey.grid.cells
        cells = np.maximum(np.searchsorted(survey.grid.edges, self.examples.scores) - 1, 0)
        hits = self.examples.labels.astype(np.int64) * leaves + cells
        counts = np.bincount(hits, minlength=2 * leaves).reshape(2, leaves)
        levels = range(survey.hierarchy.levels)
        return np.concatenate([survey.hierarchy.at_level(counts, i).ravel() for i in levels])


def open_hospitals(folder: Path, *, pinned: bool = True) -> list[Hospital]:
    """Give each hospital its rows and its folder; with a roster of all where pinned."""
    with as_file(files("fedassay") / "data" / "nycflights13_xgb.parquet") as path:
        everything = read_clients(path, Columns("score", "label")).examples
    ends = np.cumsum((0, *_ROWS))
    hospitals = [
        open_hospital(
            folder / name,
            everything.rows(slice(first, last)),
            pinned=pinned,
        )
        for name, first, last in zip(NAMES, ends[:-1], ends[1:], strict=True)
    ]
    if pinned:
        share_roster(folder, hospitals)
    return hospitals


def open_hospital(
    folder: Path,
    examples: Examples,
    *,
    pinned: bool = True,
    smallest_cohort: int = 3,
    colluders: int | None = None,
) -> Hospital:
    """One hospital's table and folder."""
    scores = folder / "scores"
    scores.mkdir(parents=True)
    table = pa.table({SCORE: examples.scores, LABEL: examples.labels})
    pq.write_table(table, scores / "scores.parquet")
    wishes = SiteOptions(
        name=folder.name,
        data_folder=scores,
        largest_epsilon=Fraction(5),
        budget=Fraction(20),
        reason="made-up hospitals with public rows",
        # Their rows are public, and the walk and its tests run many surveys over them.
        exact_sums=100,
        smallest_cell=0,
        smallest_cohort=smallest_cohort,
        colluders=colluders,
        pinned=pinned,
    )
    prepare_site(folder / "site", wishes)
    return Hospital(folder.name, examples, folder)


def share_roster(folder: Path, hospitals: list[Hospital]) -> None:
    """One roster for all, with a copy at every hospital."""
    roster = make_roster([hospital.folder / "site" / MEMBER_FILE for hospital in hospitals])
    roster.save(folder / ROSTER_FILE)
    for hospital in hospitals:
        roster.save(hospital.folder / "site" / ROSTER_FILE)
