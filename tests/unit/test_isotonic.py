"""Isotonic maps of rates, worked out by hand."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from fedassay.calibration.isotonic import isotonic_from
from tests.bucket_rates import rates_of


def test_a_noisy_bucket_weighs_less_than_an_exact_one_of_its_size() -> None:
    # Pooled rate 1/2, so sampling variance 25: noise of 75 makes 100 examples worth 25.
    rates = rates_of([100, 100], [60, 40], noise=[0.0, 75.0])
    assert isotonic_from(rates).predict([0.5])[0] == pytest.approx((60 + 25 * 0.4) / 125)
    assert isotonic_from(rates.without_noise()).predict([0.5])[0] == pytest.approx(0.5)


def test_uneven_noise_is_weighed_as_scikit_learn_weighs_it() -> None:
    generator = np.random.default_rng(4)
    scores = (np.arange(16) + 0.5) / 16
    noise = generator.uniform(0.0, 400.0, 16)
    positives = generator.binomial(200, scores) + generator.normal(0.0, np.sqrt(noise))
    rates = rates_of(np.full(16, 200.0), positives, noise=noise)
    rising = IsotonicRegression().fit(scores, positives / 200).predict(scores)
    rising = np.clip(rising, 0.5 / 201, 1.0 - 0.5 / 201)
    weights = 200.0 / (1.0 + noise / (200.0 * rising * (1.0 - rising)))
    theirs = IsotonicRegression(y_min=0.0, y_max=1.0)
    theirs.fit(scores, positives / 200, sample_weight=weights)
    assert np.allclose(isotonic_from(rates).predict(scores), theirs.predict(scores), atol=1e-12)


def test_a_cautious_map_keeps_half_an_example_away_from_both_ends() -> None:
    rates = rates_of([9, 10, 9], [0, 5, 9])
    plain = isotonic_from(rates).predict(rates.scores)
    cautious = isotonic_from(rates, cautious=True).predict(rates.scores)
    assert plain.tolist() == [0.0, 0.5, 1.0]
    assert cautious == pytest.approx([0.05, 0.5, 0.95])


@pytest.mark.parametrize("positives", [[0, 0, 0, 8], [0, 8, 8, 8], [0, 0, 8, 8]])
def test_a_cautious_map_never_answers_0_or_1_and_still_rises(positives: list[int]) -> None:
    cautious = isotonic_from(rates_of([8] * 4, positives), cautious=True)
    assert cautious.is_monotone
    assert cautious.values.min() > 0.0
    assert cautious.values.max() < 1.0
