"""The rows of a table that answer one of two surveys, where each row answers one."""

from pathlib import Path

import numpy as np

from fedassay.errors import SurveyRefused
from fedassay.examples import IntArray
from fedassay.ledger.steps import TableDigest, TableReader
from fedassay.level_draw import answers_step, rows_of_step
from fedassay.survey import Survey
from fedassay.tables.reading import Columns, Progress, checked_batches


def splits_rows(survey: Survey) -> bool:
    """Whether each row answers this survey or the other one of two."""
    return survey.step is not None and survey.is_local


def count_split_file(
    path: Path,
    columns: Columns,
    survey: Survey,
    client_id: str,
    *,
    progress: Progress | None = None,
) -> tuple[IntArray, TableDigest]:
    """Count the rows whose turn it is, per label and cell; and all rows' digest for the ledger.

    Guarantee: whose turn it is depends on the client's id and the row's number alone
    (`level_draw.rows_of_step`).
    """
    counts = np.zeros((2, survey.grid.cells), dtype=np.int64)
    reader, asked = TableReader(), 0
    for _, examples in checked_batches(path, columns, progress):
        first = reader.rows
        turn = rows_of_step(survey, client_id, range(first, first + len(examples)))
        counts += survey.grid.count(examples.rows(turn))
        asked += int(turn.sum())
        reader.add(examples)
    table = reader.digest()
    is_turn = asked > 0 if table.rows else answers_step(survey, client_id)
    if not is_turn:
        raise SurveyRefused(
            "under local privacy a client, or each of its rows, answers one of two surveys, by "
            "a public hash; nothing of this client is asked by this one. Answer the other."
        )
    return counts, table
