from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from fedassay import Grid, ScoreHistogram
from fedassay.errors import NoRows, SettingInvalid
from fedassay.hierarchy import Hierarchy
from fedassay.interpolation import monotone_slopes
from fedassay.noise import TreeNoise
from tests.tables import Table, tables


def random_histogram(seed: int, buckets: int, *, smooth: bool = True) -> ScoreHistogram:
    generator = np.random.default_rng(seed)
    inner = np.sort(generator.random(buckets - 1))
    counts = generator.integers(0, 20, (2, buckets)).astype(float)
    return ScoreHistogram(np.concatenate([[0.0], inner, [1.0]]), counts, smooth=smooth)


@given(st.integers(0, 2**31), st.integers(2, 30))
def test_slopes_are_those_of_scipys_pchip(seed: int, buckets: int) -> None:
    h = random_histogram(seed, buckets)
    for label in (0, 1):
        cumulative = np.concatenate([[0.0], np.cumsum(h.counts[label])])
        expected = PchipInterpolator(h.edges, cumulative).derivative()(h.edges)
        found = monotone_slopes(np.diff(h.edges), h.counts[label])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)


@given(st.integers(0, 2**31), st.integers(2, 30))
def test_slopes_of_counts_below_zero_are_scipys_too(seed: int, buckets: int) -> None:
    """Noise takes counts below zero: the curve is flat at every turn, and never swings back."""
    h = random_histogram(seed, buckets)
    for counts in h.counts - 6.0:
        cumulative = np.concatenate([[0.0], np.cumsum(counts)])
        expected = PchipInterpolator(h.edges, cumulative).derivative()(h.edges)
        found = monotone_slopes(np.diff(h.edges), counts)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)


@given(st.integers(0, 2**31), st.integers(2, 30), st.floats(0.0, 1.0))
def test_counts_below_a_threshold_are_those_of_scipys_pchip(
    seed: int, buckets: int, threshold: float
) -> None:
    h = random_histogram(seed, buckets)
    below, _, _ = h.below(threshold)
    for label in (0, 1):
        cumulative = np.concatenate([[0.0], np.cumsum(h.counts[label])])
        expected = PchipInterpolator(h.edges, cumulative)(threshold)
        assert below[label] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**31), st.integers(2, 30), st.floats(0.0, 1.0))
def test_without_smoothing_counts_below_a_threshold_grow_evenly(
    seed: int, buckets: int, threshold: float
) -> None:
    h = random_histogram(seed, buckets, smooth=False)
    below, _, _ = h.below(threshold)
    for label in (0, 1):
        cumulative = np.concatenate([[0.0], np.cumsum(h.counts[label])])
        assert below[label] == pytest.approx(np.interp(threshold, h.edges, cumulative), abs=1e-9)


@given(st.integers(0, 2**31), st.integers(1, 30))
def test_at_an_edge_the_counts_below_are_exact(seed: int, buckets: int) -> None:
    h = random_histogram(seed, buckets)
    for edge, threshold in enumerate(h.edges):
        below, _, part = h.below(float(threshold))
        assert below.tolist() == h.counts[:, :edge].sum(axis=1).tolist()
        assert part in (0.0, 1.0)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_a_threshold_outside_zero_to_one_is_refused(threshold: float) -> None:
    with pytest.raises(SettingInvalid):
        random_histogram(0, 4).below(threshold)


@given(st.integers(0, 2**31), st.integers(2, 30), st.data())
def test_merging_sums_neighbours(seed: int, buckets: int, data: st.DataObject) -> None:
    h = random_histogram(seed, buckets)
    inner = data.draw(st.sets(st.integers(1, buckets - 1)))
    kept = [0, *sorted(inner), buckets]
    merged = h.merge(np.array(kept))
    expected = [[row[a:b].sum() for a, b in pairwise(kept)] for row in h.counts]
    assert merged.counts.tolist() == expected
    assert merged.edges.tolist() == h.edges[kept].tolist()


def check_equi_depth(fine: ScoreHistogram, buckets: int) -> None:
    merged = fine.equi_depth(buckets)
    assert merged.edges[[0, -1]].tolist() == [0.0, 1.0]
    assert set(merged.edges.tolist()) <= set(fine.edges.tolist())
    assert (merged.counts.sum(axis=1) == fine.counts.sum(axis=1)).all()
    cells = np.diff(np.searchsorted(fine.edges, merged.edges))
    several = cells > 1
    tolerance = 1 + 1e-9
    assert (merged.counts.sum(axis=0)[several] <= fine.total / buckets * tolerance).all()
    assert (np.diff(merged.edges)[several] <= tolerance / buckets + 1e-15).all()
    heavy = (fine.counts.sum(axis=0) > fine.total / buckets).sum()
    # Two neighbours never fit into one: together they are too deep or too wide.
    assert merged.buckets <= 4 * buckets + 2 * heavy + 2


@given(tables(), st.integers(1, 40), st.sampled_from([4, 64, 1000]))
def test_equi_depth_buckets_are_neither_deep_nor_wide(
    table: Table, buckets: int, cells: int
) -> None:
    fine = ScoreHistogram.from_scores(table.labels, table.scores, grid=Grid.uniform(cells))
    check_equi_depth(fine, buckets)


@pytest.mark.parametrize("buckets", [1, 10, 100, 1000])
def test_equi_depth_buckets_of_real_scores(real_table: Table, buckets: int) -> None:
    fine = ScoreHistogram.from_scores(real_table.labels, real_table.scores)
    check_equi_depth(fine, buckets)
    assert fine.equi_depth(buckets).buckets <= 3 * buckets + 2


def test_a_histogram_needs_rows_and_fitting_counts() -> None:
    with pytest.raises(NoRows):
        ScoreHistogram.from_scores([], [])
    with pytest.raises(SettingInvalid):
        ScoreHistogram(np.array([0.0, 1.0]), np.zeros((2, 2)))
    with pytest.raises(SettingInvalid):
        random_histogram(0, 4).equi_depth(0)


def test_spikes_are_what_neighbours_cannot_explain() -> None:
    counts = np.array([[10.0, 10.0, 90.0, 10.0], [5.0, 5.0, 5.0, 5.0]])
    h = ScoreHistogram(np.array([0.0, 0.25, 0.5, 0.75, 1.0]), counts)
    assert h.spikes.tolist() == [[0.0, 0.0, 70.0, 0.0], [0.0, 0.0, 0.0, 0.0]]


def test_a_spike_in_a_wide_bucket_is_no_tie() -> None:
    """In a bucket of a 2,000th it is one score; in one of an eighth nobody knows."""
    counts = np.array([[10.0, 10.0, 10.0, 10.0], [10.0, 900.0, 10.0, 10.0]])
    wide = ScoreHistogram(np.array([0.0, 0.25, 0.375, 0.75, 1.0]), counts)
    narrow = ScoreHistogram(np.array([0.0, 0.25, 0.2505, 0.75, 1.0]), counts)
    assert wide.spikes[1, 1] > 800.0
    assert not wide.ties.any()
    assert narrow.ties[1, 1] > 800.0


def test_a_monotone_histogram_has_no_negative_count_not_even_its_first() -> None:
    noise = TreeNoise(Hierarchy.flat(4), (np.ones((2, 4)),))
    counts = np.array([[-7.0, -2.0, 9.0, 5.0], [-3.0, 4.0, -1.0, 6.0]])
    rising = ScoreHistogram(np.arange(5) / 4, counts, noise).monotone()
    assert (rising.counts >= 0.0).all()
    # Nothing below nothing: the nearest running sums that never fall below 0.
    assert rising.counts[0].tolist() == [0.0, 0.0, 0.0, 5.0]
