from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Examples, Grid
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields
from fedassay.grid import check_smallest_cell
from tests.tables import AWKWARD_SCORES, Table, score_lists

MAX_CELLS = 2**20

GRIDS = {
    "one cell": Grid.uniform(1),
    "two cells": Grid.given_classifier(0.3),
    "uniform 16": Grid.uniform(16),
    "uniform 1000": Grid.uniform(1000),
    "uniform 2^14": Grid.uniform(2**14),
    "fine": Grid.fine(),
    "uneven": Grid.explicit([0.0, 1e-300, 1e-9, 0.1, 0.3, 1 / 3, 0.7312345, 1 - 2**-53, 1.0]),
    "fine with thresholds": Grid.fine().with_edges_at([0.3, 0.7, 1e-7, 1 - 1e-7]),
    "fine 1000": Grid.fine(1000),
    "octaves of 1": Grid.octaves(1),
    "octaves of 8": Grid.octaves(8),
    "octaves of 3 with thresholds": Grid.octaves(3).with_edges_at([1e-15, 0.3, 1 - 2**-53]),
    "octaves of 64": Grid.octaves(64),
}
grids = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())


def cell_of(grid: Grid, score: float) -> int:
    """The cell (lo, hi] by bisection, one score at a time."""
    return max(bisect_left(grid.edges.tolist(), score) - 1, 0)


def brute_force(grid: Grid, labels: list[int], scores: list[float]) -> list[list[int]]:
    counts = [[0] * grid.cells, [0] * grid.cells]
    for label, score in zip(labels, scores, strict=True):
        counts[label][cell_of(grid, score)] += 1
    return counts


@grids
def test_a_cell_holds_its_upper_edge_and_not_its_lower_one(grid: Grid) -> None:
    upper = grid.locate(grid.edges[1:])
    beyond = grid.locate(np.nextafter(grid.edges[:-1], 1.0))
    assert upper.tolist() == list(range(grid.cells))
    assert beyond.tolist() == list(range(grid.cells))


@grids
def test_zero_lies_in_the_first_cell_and_one_in_the_last(grid: Grid) -> None:
    assert grid.locate([0.0, -0.0, 1.0]).tolist() == [0, 0, grid.cells - 1]


@grids
@given(scores=score_lists())
def test_count_equals_bisection_score_by_score(grid: Grid, scores: list[float]) -> None:
    labels = [i % 2 for i in range(len(scores))]
    counted = grid.count(Examples(labels, scores))
    assert counted.tolist() == brute_force(grid, labels, scores)


@grids
def test_count_of_many_rows_equals_a_search_on_edges_and_beside_them(grid: Grid) -> None:
    """More than 2^13 rows take the tabulated path."""
    generator = np.random.default_rng(5)
    scores = np.concatenate(
        [
            generator.random(2**13),
            generator.beta(0.01, 0.01, 3000),
            np.resize(grid.edges, 5000),
            np.resize(np.nextafter(grid.edges, 0.0), 5000),
            np.resize(np.nextafter(grid.edges, 1.0), 5000).clip(0.0, 1.0),
            np.resize(AWKWARD_SCORES, 1000),
            np.arange(2**10 + 1) / 2**10,
        ]
    ).clip(0.0, 1.0)
    labels = generator.integers(0, 2, len(scores))
    cells = np.maximum(np.searchsorted(grid.edges, scores, side="left") - 1, 0)
    expected = [np.bincount(cells[labels == y], minlength=grid.cells).tolist() for y in (0, 1)]
    assert grid.count(Examples(labels, scores)).tolist() == expected


def test_count_of_several_chunks_keeps_every_row(sample: Table) -> None:
    scores = np.tile(sample.scores, 4)
    labels = np.tile(sample.labels, 4)
    grid = Grid.uniform(97)
    counted = grid.count(Examples(labels, scores))
    # Open on the left: -score sorts the other way round, so np.histogram's [lo, hi) fits.
    expected = np.histogram(-scores[labels == 1], bins=-grid.edges[::-1])[0][::-1]
    assert (counted[1] == expected).all()
    assert counted.sum() == len(scores)


@given(score_lists(), st.integers(1, 40))
def test_a_warped_grid_never_has_more_cells_than_asked(scores: list[float], cells: int) -> None:
    assert Grid.warped(scores, cells).cells <= cells


@given(score_lists(min_size=2), st.integers(1, 40), st.data())
def test_a_warped_grid_with_labels_never_has_more_cells_than_asked(
    scores: list[float], cells: int, data: st.DataObject
) -> None:
    labels = data.draw(
        st.lists(st.sampled_from([0, 1]), min_size=len(scores), max_size=len(scores))
    )
    assert Grid.warped(scores, cells, labels=labels).cells <= cells


@given(st.sets(st.integers(0, 1000), min_size=1, max_size=20), st.integers(0, 30))
def test_fewer_values_than_cells_get_a_cell_each(places: set[int], spare: int) -> None:
    values = sorted(place / 1000 for place in places)
    grid = Grid.warped(values * 3, len(values) + spare)
    assert len(set(grid.locate(values).tolist())) == len(values)


def test_a_spike_gets_a_cell_of_its_own() -> None:
    smooth = np.linspace(0.01, 0.99, 999)
    grid = Grid.warped(np.concatenate([smooth, np.full(500, 0.4321)]), 32)
    beside = np.array([0.4321 - 1e-5, 0.4321, 0.4321 + 1e-9])
    assert len(set(grid.locate(beside).tolist())) == 3


@pytest.mark.parametrize("spike", [0.0, 1e-300, 0.5, 1.0])
def test_a_spike_at_an_awkward_place_is_apart_from_ordinary_scores(spike: float) -> None:
    grid = Grid.warped(np.concatenate([np.linspace(0.001, 0.999, 998), np.full(300, spike)]), 16)
    beside = [x for x in (spike - 1e-4, spike + 1e-4) if 0 <= x <= 1]
    assert grid.locate([spike])[0] not in grid.locate(beside)


def test_cells_of_a_warped_grid_hold_about_equal_mass() -> None:
    scores = np.random.default_rng(1).beta(0.5, 3.0, 20_000)
    counts = Grid.warped(scores, 50).count(Examples(np.zeros(20_000, int), scores))[0]
    assert counts.min() > 300
    assert counts.max() < 500


def test_labels_let_a_warped_grid_resolve_a_rare_class() -> None:
    generator = np.random.default_rng(2)
    scores = np.concatenate([generator.beta(1, 20, 10_000), generator.beta(20, 1, 20)])
    labels = np.repeat([0, 1], [10_000, 20])
    rare = scores[labels == 1]
    apart = len(set(Grid.warped(scores, 32, labels=labels).locate(rare).tolist()))
    blind = len(set(Grid.warped(scores, 32).locate(rare).tolist()))
    assert apart >= 12
    assert blind <= 3


@given(st.integers(1, 40), st.lists(st.floats(0.0, 1.0), max_size=6))
def test_wanted_thresholds_become_edges(cells: int, thresholds: list[float]) -> None:
    grid = Grid.uniform(cells).with_edges_at(iter(thresholds))
    assert set(thresholds) <= set(grid.edges.tolist())
    assert grid.cells <= cells + len(set(thresholds))


def test_a_threshold_keeps_edges_that_are_thresholds() -> None:
    grid = Grid.uniform(4).with_edges_at(t for t in (0.5, 0.45))
    assert {0.5, 0.45} <= set(grid.edges.tolist())


@given(
    st.sampled_from([Grid.octaves(1), Grid.octaves(3), Grid.octaves(8), Grid.fine(1000)]),
    st.sets(st.floats(5e-324, 1 - 2**-53) | st.sampled_from([1e-15, 1 - 1e-16]), max_size=6),
)
def test_thresholds_become_edges_however_close_to_the_ends(grid: Grid, asked: set[float]) -> None:
    moved = grid.with_edges_at(asked)
    assert asked <= set(moved.edges.tolist())
    assert grid.cells <= moved.cells <= grid.cells + len(asked)
    assert np.isin([0.0, 1.0], moved.edges).all()


@pytest.mark.parametrize("threshold", [1e-15, 3e-7, 0.31, 1 - 1e-9, 1 - 1e-16])
def test_a_threshold_moves_the_nearest_edge_of_octaves(threshold: float) -> None:
    before = Grid.octaves(5).edges.tolist()
    after = Grid.octaves(5).with_edges_at([threshold]).edges.tolist()
    (gone,) = set(before) - set(after)
    assert set(after) - set(before) == {threshold}
    assert gone == min(before[1:-1], key=lambda edge: abs(edge - threshold))


def test_a_threshold_leaves_alone_the_cells_of_what_log_loss_clips() -> None:
    eps = 2.0**-52
    for grid in (Grid.fine(), Grid.octaves(2).with_ends()):
        edges = grid.with_edges_at([1e-16, 1 - 2**-53]).edges.tolist()
        assert edges[:3] == [0.0, 1e-16, eps]
        assert edges[-3:] == [1 - eps, 1 - 2**-53, 1.0]


@pytest.mark.parametrize(
    ("threshold", "end"), [(Fraction(1, 10**400), "0"), (1 - Fraction(1, 10**20), "1")]
)
def test_a_threshold_that_no_double_can_hold_is_refused(threshold: Fraction, end: str) -> None:
    for grid in (Grid.octaves(8), Grid.uniform(4)):
        with pytest.raises(SettingInvalid, match=f"rounds to {end}. Use {end} itself"):
            grid.with_edges_at([threshold])  # type: ignore[list-item]  # what a user may pass
    assert float(Fraction(1, 3)) in Grid.octaves(8).with_edges_at([1 / 3]).edges


def test_thresholds_that_the_largest_grid_has_no_edge_for_are_refused() -> None:
    grid = Grid.uniform(MAX_CELLS)
    in_the_last_cell = [1 - 2**-22, 1 - 2**-23]
    assert grid.with_edges_at(in_the_last_cell[:1]).cells == MAX_CELLS
    with pytest.raises(SettingInvalid, match="1048577 with these 2 thresholds"):
        grid.with_edges_at(in_the_last_cell)


@pytest.mark.parametrize(
    "edges",
    [
        [0.0],
        [0.0, 0.5],
        [0.1, 1.0],
        [0.0, 0.5, 0.5, 1.0],
        [0.0, 0.6, 0.4, 1.0],
        [0.0, float("nan"), 1.0],
        [0.0, float("inf"), float("inf"), 1.0],
        [[0.0, 1.0]],
    ],
)
def test_bad_edges_are_refused(edges: list[float]) -> None:
    with pytest.raises(SettingInvalid):
        Grid.explicit(edges)


@pytest.mark.parametrize("cells", [0, -1, MAX_CELLS + 1])
def test_too_few_or_too_many_cells_are_refused(cells: int) -> None:
    for make in (Grid.uniform, Grid.fine, lambda n: Grid.warped([0.5], n)):
        with pytest.raises(SettingInvalid):
            make(cells)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1, float("nan")])
def test_a_given_classifier_needs_a_threshold_inside(threshold: float) -> None:
    with pytest.raises(SettingInvalid):
        Grid.given_classifier(threshold)


def test_a_reference_without_rows_or_with_odd_labels_is_refused() -> None:
    with pytest.raises(SettingInvalid):
        Grid.warped([], 4)
    with pytest.raises(SettingInvalid):
        Grid.warped([0.1, 0.2], 4, labels=[0])


def test_grids_are_values() -> None:
    assert Grid.uniform(4) == Grid.uniform(4)
    assert hash(Grid.uniform(4)) == hash(Grid.uniform(4))
    # Files name the rule of one and list the edges of the other.
    assert Grid.uniform(4) != Grid.explicit([0, 0.25, 0.5, 0.75, 1])
    assert Grid.uniform(4) != Grid.uniform(5)
    with pytest.raises(ValueError, match="read-only"):
        Grid.uniform(4).edges[0] = 0.5


def test_a_grid_file_may_leave_out_inner_edges_only() -> None:
    grid = {"kind": "uniform", "cells": 4, "with": [0.3]}
    made = Grid.from_json(Fields({**grid, "without": [1]}, "grid"))
    assert made.edges.tolist() == [0.0, 0.3, 0.5, 0.75, 1.0]
    for index in (0, 4, 5, -1, -2):
        with pytest.raises(FileInvalid, match="inner edges"):
            Grid.from_json(Fields({**grid, "without": [index]}, "grid"))


@given(st.lists(st.floats(0.001, 0.999), min_size=30, max_size=60, unique=True))
def test_a_rounded_cut_stays_at_or_above_the_value_it_was_made_for(scores: list[float]) -> None:
    """Each cell of a warped grid ends at or just above a value, so that values stay together.

    With more values than cells every cut is one of them, or that raised by at most 2^-18.
    """
    cuts = Grid.warped(scores, 8).edges[1:-1]
    values = np.array(sorted(scores))
    for cut in cuts:
        below = values[values <= cut]
        assert len(below)
        assert cut - below[-1] <= 2.0**-18


def test_noise_and_a_smallest_cell_do_not_go_together() -> None:
    check_smallest_cell(10, Grid.nested(8), 1, spends_epsilon=False)
    with pytest.raises(SettingInvalid, match=r"for exact sums; found one where noise protects"):
        check_smallest_cell(10, Grid.nested(8), 1, spends_epsilon=True)
