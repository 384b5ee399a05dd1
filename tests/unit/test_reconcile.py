"""Leaves and their noise where the total is known, or levels form no tree, by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.hierarchy import Hierarchy, Interleaved, SharedCuts
from fedassay.noise import DenseNoise, PrefixNoise, TreeNoise
from fedassay.reconcile import Observed, fit_leaves, reconcile
from tests.laws import FloatArray

seeds = st.integers(0, 2**32 - 1)


@st.composite
def trees(draw: st.DrawFn) -> Hierarchy:
    fanouts = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    return Hierarchy(draw(st.integers(2, int(np.prod(fanouts)))), fanouts)


@st.composite
def interleaved(draw: st.DrawFn) -> Interleaved:
    leaves = draw(st.integers(3, 9))
    return Interleaved(leaves, draw(st.integers(1, min(4, leaves - 1))))


def drawn(levels: SharedCuts, seed: int) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Values and variances of every counter, per level."""
    generator = np.random.default_rng(seed)
    values = tuple(generator.normal(5.0, 2.0, (2, cells)) for cells in levels.cells_per_level)
    variances = tuple(generator.uniform(0.2, 5.0, (2, c)) for c in levels.cells_per_level)
    return values, variances


def observed(
    levels: SharedCuts, values: tuple[FloatArray, ...], variances: tuple[FloatArray, ...]
) -> list[Observed]:
    return [
        Observed(levels.rows(level), *pair)
        for level, pair in enumerate(zip(values, variances, strict=True))
    ]


def constrained(
    levels: SharedCuts,
    values: tuple[FloatArray, ...],
    variances: tuple[FloatArray, ...],
    total: float,
) -> tuple[FloatArray, FloatArray]:
    """Least squares over both labels' leaves with a given sum, by Lagrange's equations.

    Returns the leaves and their covariance, from one dense system that knows no tree.
    """
    count = levels.leaves
    information, target = np.zeros((2 * count, 2 * count)), np.zeros(2 * count)
    for level, (value, variance) in enumerate(zip(values, variances, strict=True)):
        starts = [*levels.starts(level).tolist(), count]
        for label in (0, 1):
            for cell in range(len(starts) - 1):
                row = np.zeros(2 * count)
                row[label * count + starts[cell] : label * count + starts[cell + 1]] = 1.0
                information += np.outer(row, row) / variance[label, cell]
                target += row * value[label, cell] / variance[label, cell]
    ones = np.ones(2 * count)
    system = np.block([[information, ones[:, None]], [ones[None, :], np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(target, total))[:-1]
    covariance = np.linalg.inv(system)[:-1, :-1]
    return solved.reshape(2, count), covariance


@given(trees(), seeds)
def test_a_known_total_is_met_by_least_squares_and_by_nothing_else(
    levels: Hierarchy, seed: int
) -> None:
    values, variances = drawn(levels, seed)
    expected, _ = constrained(levels, values, variances, 123.0)
    leaves = reconcile(levels, values, variances, total=123.0)
    np.testing.assert_allclose(leaves, expected, rtol=1e-7, atol=1e-7)


@given(trees(), seeds)
def test_a_known_total_is_no_noise(levels: Hierarchy, seed: int) -> None:
    values, variances = drawn(levels, seed)
    _, covariance = constrained(levels, values, variances, 0.0)
    noise = TreeNoise(levels, variances, total_is_known=True)
    weights = np.random.default_rng(seed + 1).normal(size=(2, levels.leaves))
    flat = weights.ravel()
    np.testing.assert_allclose(noise.variance(weights), flat @ covariance @ flat, rtol=1e-6)
    assert noise.variance(np.ones_like(weights)) == pytest.approx(0.0, abs=1e-9)


@given(interleaved(), seeds, st.booleans())
def test_levels_that_form_no_tree_are_fitted_by_least_squares(
    levels: Interleaved, seed: int, knows_total: bool
) -> None:
    values, variances = drawn(levels, seed)
    if knows_total:
        expected, covariance = constrained(levels, values, variances, 77.0)
        leaves, found = fit_leaves(observed(levels, values, variances), total=77.0)
    else:
        # A total that nobody knows is one with any value: weigh it not at all.
        leaves, found = fit_leaves(observed(levels, values, variances), total=None)
        expected, covariance = constrained(levels, values, variances, float(leaves.sum()))
        ones = found.sum(axis=1)
        covariance = covariance + np.outer(ones, ones) / ones.sum()
    np.testing.assert_allclose(leaves, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, covariance, rtol=1e-6, atol=1e-6)


@given(st.integers(2, 6), seeds)
def test_what_the_table_itself_varies_by_is_no_noise_and_its_size_is_given(
    leaves: int, seed: int
) -> None:
    """Variances of a population's sample: a multinomial part of them the table has too."""
    generator = np.random.default_rng(seed)
    table = generator.uniform(1.0, 50.0, (2, leaves))
    weights = generator.normal(size=(2, leaves))
    own = table + generator.uniform(5.0, 50.0, (2, leaves))
    flat, share = table.ravel(), weights.ravel()
    # The covariance of counts whose sum is fixed: diag(t) - t t' / sum(t).
    multinomial = np.diag(flat) - np.outer(flat, flat) / flat.sum()
    expected = float((own.ravel() * share**2).sum() - share @ multinomial @ share)
    levels = Hierarchy.flat(leaves)
    for noise in (
        TreeNoise(levels, (own,), table),
        PrefixNoise(levels, (own,), table),
        DenseNoise(np.diag(own.ravel()), table),
    ):
        assert noise.variance(weights) == pytest.approx(expected)


@given(st.integers(12, 24), seeds, st.booleans())
def test_few_counters_beside_those_of_every_leaf_are_fitted_by_the_same_least_squares(
    leaves: int, seed: int, knows_total: bool
) -> None:
    """As of two surveys: a tree down to the leaves, cells of other cuts, one says nothing."""
    generator = np.random.default_rng(seed)
    tree, cells = Hierarchy(leaves, (3, leaves)), Interleaved(leaves, leaves // 2)
    levels = [
        Observed(rows, generator.normal(5.0, 2.0, (2, len(rows[0]))), spread)
        for rows in (tree.rows(0), tree.rows(1), cells.rows(0))
        for spread in (generator.uniform(0.2, 5.0, (2, len(rows[0]))),)
    ]
    levels[2].variances[0, 0] = np.inf
    assert sum(len(level.rows[0]) for level in levels if level is not levels[1]) < leaves
    information, target = np.zeros((2 * leaves, 2 * leaves)), np.zeros(2 * leaves)
    for level in levels:
        for label, cell in np.ndindex(level.values.shape):
            row = np.zeros((2, leaves))
            row[label] = level.rows[label, cell]
            information += np.outer(row, row) / level.variances[label, cell]
            target += row.ravel() * level.values[label, cell] / level.variances[label, cell]
    covariance = np.linalg.inv(information)
    expected = covariance @ target
    if knows_total:
        row = covariance.sum(axis=1)
        expected = expected + row * (77.0 - expected.sum()) / row.sum()
        covariance = covariance - np.outer(row, row) / row.sum()
    found, spread = fit_leaves(levels, total=77.0 if knows_total else None)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(spread, covariance, rtol=1e-9, atol=1e-9)
