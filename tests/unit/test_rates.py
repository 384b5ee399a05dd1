"""Buckets that stand clear of their noise, and how much each of them tells."""

from itertools import pairwise

import numpy as np
import pytest

from fedassay import Grid, ScoreHistogram
from fedassay.calibration.rates import bucket_rates, quantile_boundaries
from fedassay.hierarchy import Hierarchy
from fedassay.noise import TreeNoise
from tests.bucket_rates import rates_of


def noisy(sd: float, *, cells: int = 64) -> ScoreHistogram:
    generator = np.random.default_rng(8)
    scores = generator.beta(1.2, 3.0, 5_000)
    labels = (generator.random(5_000) < scores).astype(np.int64)
    exact = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(cells))
    model = TreeNoise(Hierarchy.flat(cells), (np.full((2, cells), sd**2),))
    return ScoreHistogram(exact.edges, exact.counts + generator.normal(0, sd, (2, cells)), model)


@pytest.mark.parametrize("sd", [5.0, 20.0, 30.0])
def test_every_buckets_size_is_three_deviations_clear_of_its_noise(sd: float) -> None:
    histogram = noisy(sd)
    rates = bucket_rates(histogram)
    cells = np.rint(np.diff(rates.edges) * 64)
    # Two labels of independent cells; what is left at the end joins the last bucket.
    assert (rates.totals[:-1] >= 3.0 * sd * np.sqrt(2.0 * cells[:-1])).all()
    assert rates.totals.sum() == pytest.approx(histogram.total)
    # And no bucket is larger than it must be: without its last cell it is not clear.
    ends = np.rint(rates.edges * 64).astype(np.int64)
    sizes = histogram.counts.sum(axis=0)
    for first, last in pairwise(ends[:-1].tolist()):
        for stop in range(first + 1, last):
            assert sizes[first:stop].sum() < 3.0 * sd * np.sqrt(2.0 * (stop - first))


def test_a_tail_that_takes_all_rows_of_the_last_bucket_joins_the_one_before() -> None:
    """Whole noise may add up to minus the last bucket: a rate of nothing is none."""
    counts = np.array([[50.0, 40.0, 30.0, -30.0], [10.0, 20.0, 30.0, -30.0]])
    model = TreeNoise(Hierarchy.flat(4), (np.full((2, 4), 1.0),))
    rates = bucket_rates(ScoreHistogram(np.linspace(0.0, 1.0, 5), counts, model))
    assert rates.totals.tolist() == [60.0, 60.0]


def test_a_rates_noise_is_that_of_positives_less_the_expected_share() -> None:
    """Var[positives - r total] = ((1 - r)^2 + r^2) v for labels that err apart."""
    histogram = noisy(10.0, cells=16)
    plain = ScoreHistogram(histogram.edges, histogram.counts, histogram.noise, smooth=False)
    rates = bucket_rates(plain)
    cells = np.rint(np.diff(rates.edges) * 16)
    r = rates.expected
    assert np.allclose(rates.noise_variance, ((1.0 - r) ** 2 + r**2) * cells * 100.0)
    assert rates.noise_covariance is not None
    assert np.allclose(rates.noise_covariance, np.diag(rates.noise_variance))


def test_noise_as_large_as_sampling_halves_what_a_bucket_tells() -> None:
    rates = rates_of([100.0], [50.0], noise=[25.0])
    assert rates.effective.tolist() == [50.0]
    assert rates.variance == pytest.approx([0.25 / 50])
    assert rates.without_noise().effective.tolist() == [100.0]


def test_a_quarter_of_the_examples_is_left_where_noise_is_three_times_sampling() -> None:
    assert rates_of([100.0], [50.0], noise=[75.0]).effective.tolist() == [25.0]


def test_expected_rates_rise_and_keep_half_an_example_from_the_ends() -> None:
    rates = rates_of([9, 10, 10, 9], [0, 8, 4, 9])
    assert rates.expected == pytest.approx([0.05, 0.6, 0.6, 0.95])


def test_cuts_are_the_first_edges_with_so_much_below() -> None:
    cumulative = np.array([0.0, 1.0, 4.0, 4.0, 6.0, 8.0])
    assert quantile_boundaries(cumulative, 2).tolist() == [0, 2, 5]
    assert quantile_boundaries(cumulative, 4).tolist() == [0, 2, 4, 5]
    assert quantile_boundaries(cumulative, 8).tolist() == [0, 1, 2, 4, 5]


def test_buckets_left_out_for_cross_fitting_leave_the_others_as_they_are() -> None:
    rates = bucket_rates(noisy(20.0))
    kept = np.arange(0, len(rates), 2)
    fewer = rates.only(kept)
    assert (fewer.rates == rates.rates[kept]).all()
    assert np.allclose(fewer.scores, rates.scores[kept])
    assert np.allclose(np.add.reduceat(fewer.piece_shares, fewer.piece_starts), 1.0)
