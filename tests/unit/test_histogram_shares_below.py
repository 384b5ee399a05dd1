import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Grid, ScoreHistogram
from tests.laws import FloatArray


@st.composite
def histograms(draw: st.DrawFn) -> ScoreHistogram:
    """Uneven buckets, positive and negative counts, smooth or not."""
    buckets = draw(st.integers(1, 9))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inner = np.sort(generator.uniform(0.01, 0.99, buckets - 1))
    counts = generator.normal(draw(st.sampled_from([0.0, 20.0])), 5.0, (2, buckets))
    edges = np.concatenate([[0.0], inner, [1.0]])
    return ScoreHistogram(edges, counts, smooth=draw(st.booleans()))


@given(histograms(), st.floats(0.0, 1.0))
def test_shares_times_counts_are_the_counts_below(
    histogram: ScoreHistogram, threshold: float
) -> None:
    below, bucket, part = histogram.below(threshold)
    shares = histogram.shares_below(bucket, part)
    np.testing.assert_allclose((shares * histogram.counts).sum(axis=1), below, atol=1e-3)


@given(st.integers(0, 2**32 - 1), st.floats(0.001, 0.999))
def test_shares_foretell_how_a_change_of_counts_moves_the_sum(seed: int, threshold: float) -> None:
    generator = np.random.default_rng(seed)
    counts: FloatArray = generator.uniform(100.0, 200.0, (2, 8))
    change = generator.normal(0.0, 0.01, (2, 8))
    edges = Grid.cubic(8).edges.copy()
    below, bucket, part = ScoreHistogram(edges, counts).below(threshold)
    shares = ScoreHistogram(edges, counts).shares_below(bucket, part)
    moved = ScoreHistogram(edges, counts + change).below(threshold)[0] - below
    np.testing.assert_allclose(moved, (shares * change).sum(axis=1), atol=1e-4)


@pytest.mark.parametrize("smooth", [True, False])
def test_on_an_edge_every_bucket_counts_whole_or_not_at_all(smooth: bool) -> None:
    histogram = ScoreHistogram(Grid.uniform(4).edges.copy(), np.ones((2, 4)), smooth=smooth)
    for threshold in (0.0, 0.25, 0.75, 1.0):
        _, bucket, part = histogram.below(threshold)
        expected = (histogram.edges[1:] <= threshold).astype(float)
        assert histogram.shares_below(bucket, part).tolist() == [expected.tolist()] * 2
