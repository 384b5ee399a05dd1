"""Regressions with rows elsewhere in their buckets: the interval reaches them."""

import numpy as np
import pytest

from fedassay import Grid, ScoreHistogram
from fedassay.examples import FloatArray
from fedassay.metrics import calibration_intercept, calibration_slope, oe_ratio
from fedassay.metrics.log_odds import in_pieces
from fedassay.metrics.placements import as_interpolated, at_ends, crowded
from fedassay.metrics.weak_calibration import calibration_in_the_large
from fedassay.noise import DenseNoise
from tests.oracles import weak_calibration
from tests.tables import Table

COARSE = np.array([0.0, 0.043, 0.1, 0.3164, 0.5, 0.6836, 0.8438, 0.957, 1.0])


def labelled(scores: FloatArray, seed: int) -> Table:
    generator = np.random.default_rng(seed)
    return Table((generator.random(len(scores)) < 0.02 + 0.94 * scores).astype(np.int64), scores)


def on(table: Table, edges: FloatArray) -> ScoreHistogram:
    counts = [np.histogram(table.scores[table.labels == each], edges)[0] for each in (0, 1)]
    return ScoreHistogram(edges, np.stack(counts).astype(np.float64))


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_exactly_0_and_1_hidden_in_wide_buckets_are_in_the_interval(seed: int) -> None:
    """A third is exactly 0 and a twelfth exactly 1: the slope is 0.13, that of the cubic 0.9."""
    generator = np.random.default_rng(seed)
    scores = generator.beta(0.8, 1.2, 60_000)
    scores[:20_000], scores[20_000:25_000] = 0.0, 1.0
    table = labelled(scores, seed)
    truth, h = weak_calibration(table), on(table, COARSE)
    found = calibration_slope(h)
    assert abs(found.value - truth["calibration_slope"]) > 0.5
    assert truth["calibration_slope"] in found.interval(population=False)
    assert truth["calibration_intercept"] in calibration_intercept(h).interval(population=False)


def test_even_scores_have_no_towers_at_the_ends() -> None:
    even = ScoreHistogram(np.arange(11) / 10, np.full((2, 10), 1000.0))
    assert at_ends(in_pieces(even)) == []
    tower = ScoreHistogram(
        np.arange(11) / 10, np.stack([[9000.0, *[1000.0] * 9], [*[1000.0] * 9, 9000.0]])
    )
    assert [each.odds[0, [0, -1], -1].round().tolist() for each in at_ends(in_pieces(tower))] == [
        [-36.0, 0.0],
        [0.0, 36.0],
        [-36.0, 36.0],
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_class_that_crowds_beside_a_wide_bucket_is_in_the_interval(seed: int) -> None:
    """Negatives end at 0.01, in a bucket that ends at 0.1; positives are all over."""
    generator = np.random.default_rng(seed)
    negatives = 0.01 * generator.beta(0.7, 2.0, 54_000)
    positives = generator.beta(0.6, 1.4, 6_000)
    table = Table(np.repeat([0, 1], [54_000, 6_000]), np.concatenate([negatives, positives]))
    truth = weak_calibration(table)
    h = on(table, np.array([0.0, 0.001, 0.003, 0.005, 0.1, 0.25, 0.5, 1.0]))
    for name, figure in (
        ("calibration_slope", calibration_slope),
        ("calibration_intercept", calibration_intercept),
        ("calibration_in_the_large", calibration_in_the_large),
        ("oe_ratio", oe_ratio),
    ):
        assert truth[name] in figure(h).interval(population=False), name


def test_tied_scores_may_all_lie_at_the_same_side_of_their_buckets() -> None:
    """Ten round scores, each at the right edge of its bucket."""
    generator = np.random.default_rng(2)
    table = labelled(generator.choice([0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8], 40_000), 2)
    h = ScoreHistogram.from_scores(*table, grid=Grid.uniform(2000))
    truth = weak_calibration(table)
    found = oe_ratio(h)
    assert truth["oe_ratio"] in found.interval(population=False)
    assert found.interval(population=False).high / found.value < 1.003
    in_the_large = calibration_in_the_large(h)
    assert truth["calibration_in_the_large"] in in_the_large.interval(population=False)


def test_expected_positives_are_read_with_counts_below_0() -> None:
    """Noise far from 0 cancels: without what is below 0, it would be more than all scores.

    All but a few negatives lie below 0.01, where 3.1 times as many positives are as expected.
    """
    counts = [
        [179_442.0, -389.0, 1015.0, -2502.0, -874.0, 208.0, 3303.0, -1691.0],
        [2603.0, 4839.0, 3442.0, 3242.0, 3610.0, 6011.0, -4879.0, 2620.0],
    ]
    # All rows together are known, and each bucket as badly as any.
    noise = DenseNoise(np.kron(np.eye(2), 700.0**2 * (np.eye(8) - 0.125)).astype(np.float64))
    found = oe_ratio(ScoreHistogram(COARSE, np.array(counts), noise))
    assert found.is_available
    assert 3.1 in found.interval(population=False)


def test_rows_beside_alike_neighbours_are_not_placed_elsewhere() -> None:
    even = ScoreHistogram(np.arange(11) / 10, np.full((2, 10), 1000.0))
    first, second = as_interpolated(in_pieces(even)), crowded(in_pieces(even))
    pieces = first.shares.shape[-1]
    assert np.allclose(second.shares[..., :pieces], first.shares)
    assert np.allclose(second.shares.sum(axis=-1), 1.0)
    assert np.allclose(second.flat_counts.sum(axis=1), even.counts.sum(axis=1))
