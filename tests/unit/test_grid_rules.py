"""Rules that make edges, by exact fractions; each edge is rounded once to the nearest double."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Grid
from fedassay.errors import FileInvalid, SettingInvalid
from fedassay.files import Fields
from fedassay.grid_rules import GridRule, RuleKind


def mirrored(edges: set[Fraction]) -> set[Fraction]:
    return edges | {1 - edge for edge in edges}


def rounded(edges: set[Fraction]) -> list[float]:
    """In rising order; edges that differ must differ as doubles too."""
    return [float(edge) for edge in sorted(edges)]


def fine_edges(n: int) -> set[Fraction]:
    """i / n; 64 parts in each octave [2^-k, 2^-(k-1)] with fewer; halves down to 2^-52."""
    even = {Fraction(i, n) for i in range(n + 1)}
    low = {Fraction(1, 2**k) for k in range(40, 53)}
    for k in range(2, 41):
        start = Fraction(1, 2**k)
        if n * start < 64:
            low |= {start + start * j / 64 for j in range(65)}
    return even | mirrored(low)


def octave_edges(parts: int) -> set[Fraction]:
    low = {Fraction(1, 2**k) * (1 + Fraction(j, parts)) for k in range(2, 41) for j in range(parts)}
    return mirrored({Fraction(0), Fraction(1, 2), *low})


@pytest.mark.parametrize("cells", [1, 2, 3, 10, 49, 1000])
def test_even_and_cubic_edges_are_one_rounded_quotient_of_whole_numbers(cells: int) -> None:
    uniform = [float(Fraction(i, cells)) for i in range(cells + 1)]
    cubic = [float(Fraction(i * i * (3 * cells - 2 * i), cells**3)) for i in range(cells + 1)]
    assert Grid.uniform(cells).edges.tolist() == uniform
    assert Grid.cubic(cells).edges.tolist() == cubic


@pytest.mark.parametrize("cells", [1, 2, 63, 64, 127, 128, 1000, 2**12, 12_345, 2**14])
def test_fine_edges_are_one_rounded_quotient_of_whole_numbers(cells: int) -> None:
    assert Grid.fine(cells).edges.tolist() == rounded(fine_edges(cells))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 8, 64, 100])
def test_octave_edges_are_one_rounded_quotient_of_whole_numbers(parts: int) -> None:
    assert Grid.octaves(parts).edges.tolist() == rounded(octave_edges(parts))
    assert Grid.octaves(parts).cells == 78 * parts + 2


@given(st.integers(1, 2**12))
def test_octave_edges_rise_and_have_their_ends(parts: int) -> None:
    edges = Grid.octaves(parts).edges
    assert edges[[0, 1, -2, -1]].tolist() == [0.0, 2.0**-40, 1 - 2.0**-40, 1.0]
    assert (np.diff(edges) > 0).all()
    assert len(edges) == 78 * parts + 3


@given(st.integers(1, 2**16) | st.sampled_from([2**19 - 1, 2**19]))
def test_fine_edges_rise_and_hold_all_even_ones(cells: int) -> None:
    edges = Grid.fine(cells).edges
    assert (np.diff(edges) > 0).all()
    assert np.isin(np.arange(cells + 1) / cells, edges).all()
    assert edges[1] == 2.0**-52
    assert edges[-2] == 1 - 2.0**-52


def test_the_default_of_exact_sums_tells_scores_apart_down_to_a_trillionth() -> None:
    """Neighbours 2 % apart never share a cell, at either end; each is a tie of its own."""
    scores = 1.02 ** -np.arange(36, 1395)
    assert scores.min() < 1.1e-12
    for values in (scores, 1.0 - scores[scores > 1e-12]):
        assert len(np.unique(Grid.fine().locate(values))) == len(values)
    assert Grid.fine().cells == 20_378


@given(st.floats(1e-12, 0.5), st.integers(1, 64))
def test_cells_of_octaves_are_about_even_in_log_odds(score: float, parts: int) -> None:
    """A cell (lo, hi] has hi / lo from 1 + 1 / (2c) to 1 + 1 / c, and so has its mirror image."""
    edges = Grid.octaves(parts).edges
    i = int(Grid.octaves(parts).locate([score])[0])
    low, high = edges[i], edges[i + 1]
    slack = 1e-9
    assert 1 + 1 / (2 * parts) - slack < high / low <= 1 + 1 / parts + slack


@pytest.mark.parametrize("cells", [1, 2, 3, 79, 81, 665, 78 * 4097 + 2])
def test_cells_that_no_parts_make_are_refused(cells: int) -> None:
    with pytest.raises(SettingInvalid, match="the cells of an octaves grid"):
        GridRule(RuleKind.OCTAVES, cells)
    with pytest.raises((SettingInvalid, FileInvalid)):
        Grid.from_json(Fields({"kind": "octaves", "cells": cells}, "grid"))


@pytest.mark.parametrize("parts", [0, -1, 4097])
def test_parts_that_whole_numbers_cannot_make_are_refused(parts: int) -> None:
    with pytest.raises(SettingInvalid, match="the parts of an octave"):
        Grid.octaves(parts)


@pytest.mark.parametrize(
    "grid", [Grid.fine(1), Grid.octaves(3), Grid.octaves(8).with_edges_at([1e-15, 0.3])]
)
def test_a_file_names_the_rule_and_gives_the_grid_back(grid: Grid) -> None:
    content = grid.to_json()
    assert "edges" not in content
    assert Grid.from_json(Fields(content, "grid")) == grid
