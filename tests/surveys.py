"""Small surveys and cohorts that several tests use."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fedassay import DecodeOptions, Exact, Examples, Grid, Hierarchy, Polya, Report, Survey, Tally
from fedassay.assessment import Assessment
from fedassay.cut_levels import CutLevels
from fedassay.examples import ScoredClients
from fedassay.level_policy import EveryLevel, OneLevel
from fedassay.mechanisms import AnyMechanism, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.survey_steps import FirstOfTwo, SecondOfTwo

REPORT_ID = bytes(range(16))


def small_survey(cells: int = 4, *, fanout: int = 2, minimum_reports: int = 1) -> Survey:
    hierarchy = Hierarchy.regular(cells, fanout)
    return Survey(
        privacy=Privacy.SECURE,
        grid=Grid.uniform(cells),
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * hierarchy.levels,
        minimum_reports=minimum_reports,
    )


def site_survey(cells: int = 4, *, sum_only: bool = False, minimum_reports: int = 1) -> Survey:
    """Every site adds the whole noise for epsilon 1."""
    return Survey(
        privacy=Privacy.SITE,
        grid=Grid.uniform(cells),
        hierarchy=Hierarchy.flat(cells),
        mechanisms=(Polya(Fraction(1), 1, 1),),
        minimum_reports=minimum_reports,
        sum_only=sum_only,
    )


def flat_survey(grid: Grid) -> Survey:
    return Survey(
        privacy=Privacy.SECURE,
        grid=grid,
        hierarchy=Hierarchy.flat(grid.cells),
        mechanisms=(Exact(),),
    )


def local_survey(
    epsilon: Fraction = Fraction(1),
    *,
    cells: int = 4,
    fanouts: tuple[int, ...] | None = None,
    kinds: str = "oue",
    allow_empty: bool = False,
) -> Survey:
    """Locally private, with oracles by name from the coarsest level on: "grr oue"."""
    hierarchy = Hierarchy(cells, fanouts or (cells,))
    oracles: list[AnyMechanism] = [
        UnaryEncoding(epsilon)
        if kind == UnaryEncoding.kind
        else RandomizedResponse(epsilon, size, allow_empty)
        for kind, size in zip(kinds.split(), hierarchy.cells_per_level, strict=True)
    ]
    levels = hierarchy.levels
    # Uneven shares, so that a level taken for another shows.
    shares = tuple(Fraction(level + 1, levels * (levels + 1) // 2) for level in range(levels))
    return Survey(
        privacy=Privacy.LOCAL,
        grid=Grid.uniform(cells),
        hierarchy=hierarchy,
        mechanisms=tuple(oracles),
        level_policy=OneLevel(shares) if levels > 1 else EveryLevel(),
        minimum_reports=1,
        allow_empty=allow_empty,
    )


def shared_pair(
    total: Fraction = Fraction(1), *, spent: Fraction | None = None, minimum_reports: int = 5
) -> tuple[Survey, Survey]:
    """Two surveys that belong together, under distributed privacy: a fifth, and the rest."""
    share = total / 5 if spent is None else spent
    first = Survey(
        privacy=Privacy.DISTRIBUTED,
        grid=Grid.uniform(4),
        hierarchy=Hierarchy.flat(4),
        mechanisms=(Polya(share, 1, minimum_reports),),
        minimum_reports=minimum_reports,
        step=FirstOfTwo(total, Fraction(1)),
    )
    return first, second_after(first, total - share)


def second_after(first: Survey, epsilon: Fraction, *, cut: int = 2) -> Survey:
    """A second survey after a first one, with cells cut at one leaf."""
    step = first.step
    if step is None:
        raise ValueError("this survey stands alone")
    local = first.is_local
    return replace(
        first,
        hierarchy=CutLevels(first.grid.cells, (((0, cut), (0, 1)),)),
        mechanisms=(UnaryEncoding(epsilon) if local else Polya(epsilon, 1, first.minimum_reports),),
        step=SecondOfTwo(
            step.total_epsilon,
            1 - step.client_fraction if local else Fraction(1),
            first.fingerprint,
        ),
    )


def local_pair(
    epsilon: Fraction = Fraction(1), *, share: Fraction = Fraction(1, 5), cells: int = 4
) -> tuple[Survey, Survey]:
    """Two surveys that belong together, under local privacy: each client answers one."""
    first = replace(local_survey(epsilon, cells=cells), step=FirstOfTwo(epsilon, share))
    return first, second_after(first, epsilon)


def report_of(
    survey: Survey, counters: list[int] | None = None, *, report_id: bytes = REPORT_ID
) -> Report:
    filled = np.zeros(survey.hierarchy.width, dtype=np.int64)
    if counters is not None:
        filled[: len(counters)] = counters
    return Report(survey.fingerprint, report_id, filled)


def cohort_of(examples: Examples, client_of_row: list[int] | None = None) -> ScoredClients:
    if client_of_row is None:
        return ScoredClients(examples, None, len(examples))
    _, codes = np.unique(client_of_row, return_inverse=True)
    return ScoredClients(examples, codes.astype(np.int64), int(codes.max()) + 1)


def counted(counts: npt.ArrayLike, *, reports: int | None = None) -> Assessment:
    """Exact counts, label x cell of [0, 1] in even cells, as an assessment."""
    cells = np.asarray(counts)
    survey = flat_survey(Grid.uniform(cells.shape[1]))
    made = int(cells.sum()) if reports is None else reports
    tally = Tally(survey.fingerprint, (made,), cells.astype(np.int64).ravel())
    return Assessment(survey, tally, DecodeOptions())
