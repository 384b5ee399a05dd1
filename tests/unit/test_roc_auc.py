"""The likely binning error of the area, against errors that are known."""

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.metrics import roc_auc_score

from fedassay import Grid, ScoreHistogram, TooCoarse, metrics


def smooth_pair(buckets: int, *, rows: float) -> ScoreHistogram:
    """Expected counts of two smooth densities, without interpolation, as in the paper."""
    edges = Grid.uniform(buckets).edges
    below = np.stack([beta.cdf(edges, 2, 4), beta.cdf(edges, 4, 2)])
    return ScoreHistogram(edges, rows * np.diff(below, axis=1), smooth=False)


@pytest.mark.parametrize("buckets", [16, 32, 64])
def test_the_likely_error_of_even_buckets_is_their_error(buckets: int) -> None:
    """So many rows that only the buckets' width matters; the truth has 4,096 of them."""
    truth = metrics.roc_auc(smooth_pair(4096, rows=1e12)).value
    estimate = metrics.roc_auc(smooth_pair(buckets, rows=1e12))
    error = abs(estimate.value - truth)
    assert error / 1.5 < estimate.binning_sd < 1.5 * error


def test_one_bucket_tells_nothing_of_the_order() -> None:
    """Any area from 0 to 1 fits; were all as likely, their standard deviation is 12^(-1/2)."""
    histogram = ScoreHistogram(np.array([0.0, 1.0]), np.array([[5000.0], [5000.0]]))
    estimate = metrics.roc_auc(histogram)
    assert isinstance(estimate, TooCoarse)
    assert 12**-0.5 / 1.5 < estimate.binning_sd < 1.5 * 12**-0.5
    assert estimate.binning_bound == pytest.approx(0.5)


def test_chance_order_inside_buckets_is_as_large_as_it_is() -> None:
    """Rows drawn with replacement from even ones in ten buckets, 4,000 times: the mean square."""
    generator = np.random.default_rng(7)
    counts = np.array([[40.0] * 10, [30.0] * 10])
    edges = Grid.uniform(10).edges
    estimate = metrics.roc_auc(ScoreHistogram(edges, counts))
    errors = []
    for _ in range(4000):
        n, p = (
            np.arange(10)[:, None]
            + np.take_along_axis(
                generator.random((10, rows)), generator.integers(0, rows, (10, rows)), axis=1
            )
            for rows in (40, 30)
        )
        n, p = n.ravel(), p.ravel()
        area = np.searchsorted(np.sort(n), p).sum() / (len(n) * len(p))
        errors.append(area - estimate.value)
    spread = float(np.sqrt(np.mean(np.square(errors))))
    assert spread / 1.3 < estimate.binning_sd < 1.3 * spread


def test_a_first_cell_of_exact_sums_that_hides_a_rising_ratio_is_in_the_interval() -> None:
    """Its positives lie in its upper fifth, as scores do that crowd by octaves."""
    generator = np.random.default_rng(2)
    edges = np.array([0.0, 0.0005, *(np.arange(2, 41) * 0.0005), 1.0])
    negatives = [220_000, *(120_000 * 0.95 ** np.arange(39)).astype(int), 4_000]
    positives = [900, *(900 + 60 * np.arange(39)), 400]
    inside = [
        [
            generator.uniform(low, high, count)
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        for counts in (negatives, positives)
    ]
    inside[1][0] = generator.uniform(0.0004, 0.0005, 900)
    scores = np.concatenate([*inside[0], *inside[1]])
    labels = np.repeat([0, 1], [sum(negatives), sum(positives)])
    grid = Grid.explicit(edges.tolist())
    found = metrics.roc_auc(ScoreHistogram.from_scores(labels, scores, grid=grid))
    exact = roc_auc_score(labels, scores)
    assert exact in found.interval(population=False)
    assert found.binning_sd < 2.0 * (exact - found.value)
