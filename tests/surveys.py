"""Small surveys and cohorts that several tests use."""

import numpy as np

from fedassay import Exact, Examples, Grid, Hierarchy, Report, Survey
from fedassay.engines.tables import Cohort

REPORT_ID = bytes(range(16))


def small_survey(cells: int = 4, *, fanout: int = 2, minimum_reports: int = 1) -> Survey:
    hierarchy = Hierarchy.regular(cells, fanout)
    return Survey(
        grid=Grid.uniform(cells),
        hierarchy=hierarchy,
        mechanisms=(Exact(),) * hierarchy.levels,
        minimum_reports=minimum_reports,
    )


def flat_survey(grid: Grid) -> Survey:
    return Survey(grid=grid, hierarchy=Hierarchy.flat(grid.cells), mechanisms=(Exact(),))


def report_of(
    survey: Survey, counters: list[int] | None = None, *, report_id: bytes = REPORT_ID
) -> Report:
    filled = np.zeros(survey.hierarchy.width, dtype=np.int64)
    if counters is not None:
        filled[: len(counters)] = counters
    return Report(survey.fingerprint, report_id, filled)


def cohort_of(examples: Examples, client_of_row: list[int] | None = None) -> Cohort:
    if client_of_row is None:
        return Cohort(examples, None, len(examples))
    _, codes = np.unique(client_of_row, return_inverse=True)
    return Cohort(examples, codes.astype(np.int64), int(codes.max()) + 1)
