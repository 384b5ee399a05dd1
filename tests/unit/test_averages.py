"""Figures over all classes, and how far they may be off, against resampled rows."""

import numpy as np
import pytest

from fedassay.classes.averages import area_sampling_sd, by_prevalence, mean_of_sizes, weighted_mean
from fedassay.classes.exact_figures import exact_figures
from fedassay.estimate import Estimate
from fedassay.grid import Grid
from fedassay.histogram import ScoreHistogram
from tests.class_rows import drawn_rows

ROWS = drawn_rows(20_000, (3.0, 2.0, 1.0), seed=3)


def test_a_mean_of_areas_varies_at_most_as_told() -> None:
    generator = np.random.default_rng(0)
    areas = []
    for _ in range(200):
        kept = generator.integers(len(ROWS), size=1000)
        areas.append(exact_figures(ROWS.rows(kept))["roc_auc/macro"])
    seen = float(np.std(np.array(areas, dtype=np.float64)))
    sample = ROWS.rows(np.arange(1000))
    grid = Grid.uniform(200)
    histograms = [
        ScoreHistogram(grid.edges, grid.count(sample.one_vs_rest(k)).astype(np.float64))
        for k in range(3)
    ]
    told = area_sampling_sd(histograms, np.full(3, 1 / 3))
    # The sd of 200 is known to 5 %: at five of them 1.25; classes do go together, mostly.
    assert seen / 1.25 < told < 2.0 * seen


def test_noise_adds_up_in_squares_and_sampling_as_if_classes_went_together() -> None:
    parts = [Estimate(0.5, noise_sd=0.3, sampling_sd=0.1), Estimate(0.7, noise_sd=0.4)]
    found = weighted_mean(parts, np.array([1.0, 1.0]))
    assert (found.value, found.noise_sd) == pytest.approx((1.2, 0.5))
    assert found.sampling_sd == pytest.approx(0.1)


def test_a_mean_by_prevalence_feels_the_noise_of_the_shares() -> None:
    generator = np.random.default_rng(1)
    figures = [Estimate(0.9), Estimate(0.5)]
    shares = [Estimate(0.75, noise_sd=0.02), Estimate(0.25, noise_sd=0.02)]
    found = by_prevalence(figures, shares, 1e12)
    drawn = np.array([0.75, 0.25]) + 0.02 * generator.standard_normal((100_000, 2))
    means = (drawn @ np.array([0.9, 0.5])) / drawn.sum(axis=1)
    assert found.value == pytest.approx(0.8)
    assert found.noise_sd == pytest.approx(means.std(), rel=0.03)


def test_a_mean_by_prevalence_feels_the_sampling_of_the_shares() -> None:
    found = by_prevalence([Estimate(0.9), Estimate(0.5)], [Estimate(0.75), Estimate(0.25)], 100.0)
    # 0.9 with chance 3/4, 0.5 with 1/4: the sd of the mean of 100.
    assert found.sampling_sd == pytest.approx(0.4 * np.sqrt(0.75 * 0.25 / 100))


def test_a_mean_of_plain_errors_is_plain() -> None:
    assert mean_of_sizes([Estimate(0.1), Estimate(0.3)]).value == pytest.approx(0.2)
