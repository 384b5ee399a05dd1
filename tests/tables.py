"""Tables to test on: real ones, and ones that hypothesis makes."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
BUNDLED = ROOT / "src" / "fedassay" / "data" / "nycflights13_xgb.parquet"
SHARED = ROOT.parent / "shared" / "data"

# Ends, ties with grid edges, one step beside them, and what floats can barely tell apart.
AWKWARD_SCORES = (
    0.0,
    5e-324,
    1e-300,
    2.0**-53,
    2.0**-52,
    2.0**-14,
    1 / 16,
    float(np.nextafter(0.25, 0.0)),
    0.25,
    float(np.nextafter(0.25, 1.0)),
    0.3,
    float(np.nextafter(0.5, 0.0)),
    0.5,
    float(np.nextafter(0.5, 1.0)),
    0.7312345,
    1 - 2.0**-14,
    1 - 2.0**-52,
    1 - 2.0**-53,
    1.0,
)


class Table(NamedTuple):
    """Labels and scores."""

    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


def table_paths() -> list[Path]:
    """The bundled sample, and larger tables where a checkout has them beside it."""
    return [
        BUNDLED,
        *(path for path in sorted(SHARED.glob("scores_*.parquet")) if _has_score(path)),
    ]


def _has_score(path: Path) -> bool:
    """Whether a table has one score; others have one per model or class."""
    return "score" in pq.read_schema(path).names


def read_table(path: Path) -> Table:
    table = pq.read_table(path, columns=["label", "score"])
    return Table(
        table["label"].to_numpy().astype(np.int64), table["score"].to_numpy().astype(np.float64)
    )


def scores() -> st.SearchStrategy[float]:
    """Ordinary scores, round ones that tie, and awkward ones."""
    return st.one_of(
        st.floats(0.0, 1.0),
        st.integers(0, 16).map(lambda i: i / 16),
        st.integers(0, 10).map(lambda i: i / 10),
        st.sampled_from(AWKWARD_SCORES),
    )


@st.composite
def score_lists(draw: st.DrawFn, *, min_size: int = 1, max_size: int = 40) -> list[float]:
    """Scores with spikes: some values are repeated many times."""
    values = draw(st.lists(scores(), min_size=min_size, max_size=max_size))
    for spike in draw(st.lists(st.sampled_from(values), max_size=2)):
        values += [spike] * draw(st.integers(1, 30))
    return values


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Two-class tables; often with one row of a class only."""
    values = draw(score_lists(min_size=2))
    rows = len(values)
    few = st.sets(st.integers(0, rows - 1), min_size=1, max_size=1)
    some = st.sets(st.integers(0, rows - 1), min_size=1, max_size=rows - 1)
    positive = draw(st.one_of(few, some))
    labels = np.zeros(rows, dtype=np.int64)
    labels[list(positive)] = 1
    if draw(st.booleans()) and len(positive) == 1:
        labels = 1 - labels
    return Table(labels, np.array(values))


def flights_by_carrier() -> dict[str, Table]:
    """The bundled rows of every airline, by its name."""
    table = pq.read_table(BUNDLED)
    carriers = table["carrier"].to_numpy(zero_copy_only=False)
    labels, scores = table["label"].to_numpy(), table["score"].to_numpy().astype(np.float64)
    return {
        str(name): Table(labels[carriers == name].astype(np.int64), scores[carriers == name])
        for name in np.unique(carriers)
    }
