"""BBQ that knows the noise, against the normal law that it is made of."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from fedassay.calibration.bbq import _normal_binning, bbq_from
from tests.bucket_rates import rates_of

Floats = npt.NDArray[np.float64]
BUCKETS = 12
SIZE = 400.0


def drawn_rates(seed: int) -> tuple[Floats, Floats]:
    """Positives of buckets whose scores are right, and a covariance of their noise."""
    generator = np.random.default_rng(seed)
    scores = (np.arange(BUCKETS) + 0.5) / BUCKETS
    shift = np.exp(-np.abs(np.subtract.outer(np.arange(BUCKETS), np.arange(BUCKETS))))
    covariance = 300.0 * shift
    noise = generator.multivariate_normal(np.zeros(BUCKETS), covariance)
    return generator.binomial(int(SIZE), scores) + noise, covariance


@pytest.mark.parametrize("is_correlated", [True, False])
def test_a_binnings_score_is_the_log_density_of_the_rates(is_correlated: bool) -> None:
    positives, covariance = drawn_rates(1)
    rates = rates_of(
        np.full(BUCKETS, SIZE),
        positives,
        noise=np.diag(covariance),
        covariance=covariance if is_correlated else None,
    )
    below = np.append(0.0, np.cumsum(rates.totals))
    spread = covariance / SIZE**2 if is_correlated else np.zeros_like(covariance)
    np.fill_diagonal(spread, rates.variance)
    ours, theirs = [], []
    for buckets in (1, 2, 3, 4, 6, 12):
        each = BUCKETS // buckets
        centres = rates.scores.reshape(buckets, each).mean(axis=1)
        # The Beta prior of 2/B examples around the mean score has this variance.
        prior = centres * (1.0 - centres) / (1.0 + 2.0 / buckets)
        both = spread + np.kron(np.diag(prior), np.ones((each, each)))
        law = stats.multivariate_normal(np.zeros(BUCKETS), both)
        theirs.append(law.logpdf(rates.rates - rates.scores))
        ours.append(_normal_binning(rates, below, buckets).log_score)
    # Only differences matter: what is the same for all binnings may be left out.
    assert np.allclose(np.diff(ours), np.diff(theirs), atol=1e-8)


def test_few_buckets_win_where_the_score_is_right() -> None:
    """Of 20 draws; without the price of flexibility, 12 buckets would win every time."""
    heaviest = []
    for seed in range(20):
        positives, covariance = drawn_rates(seed)
        rates = rates_of(
            np.full(BUCKETS, SIZE), positives, noise=np.diag(covariance), covariance=covariance
        )
        heaviest.append(bbq_from(rates).parameters["heaviest_buckets"])
    assert np.mean(np.array(heaviest) <= 2.0) > 0.9
