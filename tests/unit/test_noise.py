from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.classes import part_noise
from fedassay.classes.part_noise import JoinedNoise, ThinnedNoise
from fedassay.hierarchy import Hierarchy
from fedassay.noise import (
    DenseNoise,
    MergedNoise,
    NoiseModel,
    NoNoise,
    PartNoise,
    PrefixNoise,
    TreeNoise,
)
from fedassay.paired.pair_histogram import MarginNoise
from fedassay.reconcile import prefix_leaves, reconcile
from fedassay.sites import pooling
from tests.laws import FloatArray


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Trees of one to three levels, most of them ragged."""
    fanouts = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    leaves = draw(st.integers(2, int(np.prod(fanouts))))
    return Hierarchy(leaves, fanouts)


seeds = st.integers(0, 2**32 - 1)
Tree = tuple[FloatArray, ...]


def rows(hierarchy: Hierarchy) -> FloatArray:
    """Every counter as a sum of leaves, all levels below one another."""
    found = []
    for level in range(hierarchy.levels):
        for first in range(0, hierarchy.leaves, hierarchy.blocks[level]):
            row = np.zeros(hierarchy.leaves)
            row[first : first + hierarchy.blocks[level]] = 1.0
            found.append(row)
    return np.array(found)


def random_tree(hierarchy: Hierarchy, generator: np.random.Generator) -> tuple[Tree, Tree]:
    values = tuple(generator.normal(size=(2, cells)) for cells in hierarchy.cells_per_level)
    spreads = tuple(generator.uniform(0.3, 3, (2, cells)) for cells in hierarchy.cells_per_level)
    return values, spreads


@given(hierarchies(), seeds)
def test_reconciled_leaves_are_the_weighted_least_squares(hierarchy: Hierarchy, seed: int) -> None:
    generator = np.random.default_rng(seed)
    values, variances = random_tree(hierarchy, generator)
    leaves = reconcile(hierarchy, values, variances)
    design = rows(hierarchy)
    for label in (0, 1):
        scale = 1 / np.sqrt(np.concatenate([level[label] for level in variances]))
        observed = np.concatenate([level[label] for level in values])
        best, *_ = np.linalg.lstsq(design * scale[:, None], observed * scale, rcond=None)
        np.testing.assert_allclose(leaves[label], best, atol=1e-8)


@given(hierarchies(), seeds)
def test_tree_noise_is_the_variance_of_least_squares(hierarchy: Hierarchy, seed: int) -> None:
    generator = np.random.default_rng(seed)
    _, variances = random_tree(hierarchy, generator)
    weights = generator.normal(size=(2, hierarchy.leaves))
    design, expected = rows(hierarchy), 0.0
    for label in (0, 1):
        own = np.concatenate([level[label] for level in variances])
        information = design.T @ (design / own[:, None])
        expected += float(weights[label] @ np.linalg.solve(information, weights[label]))
    np.testing.assert_allclose(TreeNoise(hierarchy, variances).variance(weights), expected)


@given(hierarchies(), seeds)
def test_prefix_noise_is_what_every_counter_does_to_the_leaves(
    hierarchy: Hierarchy, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    values, variances = random_tree(hierarchy, generator)
    weights = generator.normal(size=(2, hierarchy.leaves))
    expected = 0.0
    for level, own in enumerate(variances):
        for place in np.ndindex(own.shape):
            single = tuple(np.zeros_like(counters) for counters in values)
            single[level][place] = 1.0
            moved = float((prefix_leaves(hierarchy, single) * weights).sum())
            expected += float(own[place]) * moved**2
    np.testing.assert_allclose(
        PrefixNoise(hierarchy, variances).variance(weights), expected, atol=1e-10
    )


@given(hierarchies(), seeds)
def test_prefix_sums_take_each_level_once(hierarchy: Hierarchy, seed: int) -> None:
    values, _ = random_tree(hierarchy, np.random.default_rng(seed))
    found = np.cumsum(prefix_leaves(hierarchy, values), axis=1)
    for leaf in range(hierarchy.leaves - 1):
        # The paper's prefix: on each level, the whole cells before the leaf's end that lie
        # inside the one cell of the level above that the prefix cuts.
        end, start, total = leaf + 1, 0, np.zeros(2)
        for level, block in enumerate(hierarchy.blocks):
            first, last = start // block, end // block
            total += values[level][:, first:last].sum(axis=1)
            start = last * block
        np.testing.assert_allclose(found[:, leaf], total, atol=1e-9)


@given(hierarchies(), seeds)
def test_levels_that_agree_are_left_alone(hierarchy: Hierarchy, seed: int) -> None:
    generator = np.random.default_rng(seed)
    leaves = generator.integers(0, 50, (2, hierarchy.leaves))
    climbed = tuple(level.astype(np.float64) for level in hierarchy.climb(leaves))
    _, variances = random_tree(hierarchy, generator)
    np.testing.assert_allclose(reconcile(hierarchy, climbed, variances), leaves, atol=1e-8)
    np.testing.assert_allclose(prefix_leaves(hierarchy, climbed), leaves, atol=1e-8)


@given(hierarchies(), seeds)
def test_merging_cells_keeps_the_variance_of_their_sum(hierarchy: Hierarchy, seed: int) -> None:
    generator = np.random.default_rng(seed)
    _, variances = random_tree(hierarchy, generator)
    base = TreeNoise(hierarchy, variances)
    sizes = np.array([1, hierarchy.leaves - 1])
    weights = generator.normal(size=(2, 2))
    spread = np.concatenate([weights[:, :1], np.repeat(weights[:, 1:], sizes[1], axis=1)], axis=1)
    assert np.isclose(MergedNoise(base, sizes).variance(weights), base.variance(spread))


@given(st.integers(4, 9), seeds)
def test_merged_leaves_have_the_noise_of_their_sums(leaves: int, seed: int) -> None:
    """Of a matrix: once merged and merged again, against leaves with their bucket's weight."""
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(2 * leaves, 2 * leaves))
    base = DenseNoise(root @ root.T + np.eye(2 * leaves), generator.uniform(0.0, 0.1, (2, leaves)))
    once = MergedNoise(base, np.array([2, 1, leaves - 3]))
    twice = MergedNoise(once, np.array([1, 2]))
    for merged, sizes in ((once, [2, 1, leaves - 3]), (twice, [2, leaves - 2])):
        weights = generator.normal(size=(2, 2, len(sizes)))
        spread = np.stack([np.repeat(each, sizes, axis=1) for each in weights])
        np.testing.assert_allclose(merged.covariances(weights), base.covariances(spread))
        assert np.isclose(merged.variance(weights[0]), base.variance(spread[0]))


def test_exact_counts_have_no_noise() -> None:
    assert NoNoise().is_zero
    assert NoNoise().variance(np.ones((2, 3))) == 0.0
    assert NoNoise().reports_for(9.0) == 1.0


def test_noise_that_every_report_brings_is_outgrown_slowly() -> None:
    hierarchy, variances = Hierarchy.flat(2), (np.ones((2, 2)),)
    assert TreeNoise(hierarchy, variances).reports_for(3.0) == 3.0
    assert TreeNoise(hierarchy, variances, local_epsilon=2.0).reports_for(3.0) == 9.0
    assert PrefixNoise(hierarchy, variances, local_epsilon=2.0).reports_for(3.0) == 9.0


@given(hierarchies(), seeds)
def test_covariances_of_sums_are_those_of_their_variances(hierarchy: Hierarchy, seed: int) -> None:
    """4 cov(a, b) = var(a + b) - var(a - b), for every model of noise."""
    generator = np.random.default_rng(seed)
    _, variances = random_tree(hierarchy, generator)
    leaves = 2 * hierarchy.leaves
    table = generator.uniform(0.0, 0.1, (2, hierarchy.leaves))
    root = generator.normal(size=(leaves, leaves))
    tree = TreeNoise(hierarchy, variances, table, total_is_known=bool(seed % 2))
    models = (
        tree,
        MergedNoise(tree, np.ones(hierarchy.leaves, dtype=np.int64)),
        PrefixNoise(hierarchy, variances),
        DenseNoise(root @ root.T),
        NoNoise(),
    )
    weights = generator.normal(size=(2, 2, hierarchy.leaves))
    a, b = weights
    for model in models:
        found = model.covariances(weights)
        np.testing.assert_allclose(
            np.diag(found), [model.variance(a), model.variance(b)], atol=1e-6
        )
        expected = (model.variance(a + b) - model.variance(a - b)) / 4.0
        np.testing.assert_allclose(found[0, 1], expected, atol=1e-6)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda base: MergedNoise(base, np.array([2])),
        lambda base: PartNoise(base, 1, 0),
        lambda base: MarginNoise(base, (2, 1), 0),
        lambda base: ThinnedNoise(base, 2.0, np.ones((2, 2))),
        lambda base: JoinedNoise(NoNoise(), base, 0, 2),
        lambda base: part_noise.SummedNoise((base, NoNoise())),
        lambda base: pooling.SummedNoise((NoNoise(), base)),
    ],
)
def test_noise_of_parts_and_sums_grows_as_the_noise_inside(
    wrapped: Callable[[DenseNoise], NoiseModel],
) -> None:
    """Under local privacy every report adds some: twice the precision takes four times as many."""
    once, each = wrapped(DenseNoise(np.eye(4))), wrapped(DenseNoise(np.eye(4), None, 3.0))
    assert (once.local_epsilon, each.local_epsilon) == (None, 3.0)
    assert (once.reports_for(2.0), each.reports_for(2.0)) == (2.0, 4.0)
