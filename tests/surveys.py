"""Small surveys and cohorts that several tests use."""

from fractions import Fraction

import numpy as np

from fedassay import Exact, Examples, Grid, Hierarchy, Report, Survey
from fedassay.examples import ScoredClients
from fedassay.mechanisms import AnyMechanism, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.survey import EveryLevel, OneLevel

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
