"""Which joint cells of two models may be published."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedassay.grid import Grid
from fedassay.pair_nesting import LADDER, publishable_margin, publishable_pairs

GRID = Grid.nested(60, thresholds=LADDER)
SEEDS = st.integers(0, 2**32 - 1)


def joint_counts(seed: int, rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Counts of label x cell x cell of two models that go together, more or less."""
    generator = np.random.default_rng(seed)
    table = np.zeros((2, GRID.cells, GRID.cells), np.int64)
    common = generator.normal(size=rows)
    labels = generator.integers(0, 2, rows)
    scores = [1 / (1 + np.exp(-(common + generator.normal(size=rows) + labels))) for _ in "ab"]
    np.add.at(table, (labels, GRID.locate(scores[0]), GRID.locate(scores[1])), 1)
    return table


def published(
    table: np.ndarray[tuple[int, ...], np.dtype[np.int64]], smallest: int
) -> tuple[set[float], set[float]]:
    """The edges of rows and columns that are kept."""
    margins = (table.sum(axis=2), table.sum(axis=1))
    kept = tuple(publishable_margin(GRID, margin, smallest) for margin in margins)
    starts = np.concatenate([[0], np.searchsorted(GRID.edges, sorted(LADDER))])
    groups = np.add.reduceat(np.add.reduceat(table, starts, axis=1), starts, axis=2)
    rows, columns = publishable_pairs(groups, (kept[0], kept[1]), (GRID, GRID), smallest)
    return {float(GRID.edges[starts[i]]) for i in rows[1:]}, {
        float(GRID.edges[starts[i]]) for i in columns[1:]
    }


@given(SEEDS, st.integers(50, 3000), st.integers(2, 30))
def test_every_published_joint_cell_holds_enough_of_each_label(
    seed: int, rows: int, smallest: int
) -> None:
    table = joint_counts(seed, rows)
    first, second = published(table, smallest)
    for label in (0, 1):
        for low, high in zip([0.0, *sorted(first)], [*sorted(first), 1.0], strict=True):
            in_rows = (GRID.edges[:-1] >= low) & (GRID.edges[1:] <= high)
            for left, right in zip([0.0, *sorted(second)], [*sorted(second), 1.0], strict=True):
                inside = (GRID.edges[:-1] >= left) & (GRID.edges[1:] <= right)
                held = table[label][np.ix_(in_rows, inside)].sum()
                assert held >= smallest or not (first or second)


@given(SEEDS, st.integers(200, 3000))
def test_joint_cells_end_where_the_margins_publish_an_edge(seed: int, rows: int) -> None:
    table = joint_counts(seed, rows)
    first, second = published(table, 10)
    for edges, margin in ((first, table.sum(axis=2)), (second, table.sum(axis=1))):
        kept = GRID.edges[publishable_margin(GRID, margin, 10)]
        assert edges <= set(kept.tolist())


def test_an_edge_is_kept_by_the_sums_alone_in_the_ladders_order() -> None:
    # Everybody is in the four corners beside 0.5; then no other edge can be kept.
    table = np.zeros((2, GRID.cells, GRID.cells), np.int64)
    half = int(np.searchsorted(GRID.edges, 0.5))
    table[:, [0, 0, half, half], [0, half, 0, half]] = 10
    assert published(table, 10) == ({0.5}, {0.5})
    # The first model is tried first: its two halves hold 20, and four quarters would hold 10.
    assert published(table, 11) == ({0.5}, set())
    assert published(table, 21) == (set(), set())
