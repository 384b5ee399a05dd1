"""Two models' calibration errors on the same rows: against rows, and against drawn gaps."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest
from scipy import stats

import fedassay
from fedassay import Grid, ScoreHistogram
from fedassay.calibration.calibration_error import debiased_sizes, ece, ece_gradient
from fedassay.calibration.gap_intervals import SumOfSizes
from fedassay.examples import FloatArray
from fedassay.paired.difference import PairedDifference
from tests.laws import FALSE_ALARM

BINS, SD, DRAWS = 20, 0.001, 300


def rows(count: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Labels, and two models that say too little and too much, of the same rows."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=count)
    labels = (generator.random(count) < 1.0 / (1.0 + np.exp(-common))).astype(float)
    low, high = (
        1.0 / (1.0 + np.exp(-(common + 0.3 * generator.normal(size=count) + by)))
        for by in (-0.7, 0.7)
    )
    return labels, low, high


def of_rows(labels: FloatArray, scores: FloatArray) -> FloatArray:
    """What every row does to its model's ECE: its own error, with the sign of its bin's gap."""
    place = np.minimum((scores * BINS).astype(int), BINS - 1)
    sign = np.sign(np.bincount(place, labels - scores, BINS))
    moved: FloatArray = sign[place] * (labels - scores)
    about: FloatArray = moved - moved.mean()
    return about


@pytest.mark.parametrize("seed", [1, 2])
def test_the_paired_error_is_that_of_rows_where_gaps_are_clear(seed: int) -> None:
    """Too low by one model and too high by the other: luck that helps one harms the other."""
    labels, low, high = rows(20_000, seed)
    result = fedassay.simulate(
        labels, {"low": low, "high": high}, privacy="secure", seed=0, smallest_cell=0
    )
    found = result.differences()["ece"]
    one, other = of_rows(labels, low), of_rows(labels, high)
    expected = (one - other).std() / np.sqrt(len(labels))
    assert found.sampling_sd == pytest.approx(expected, rel=0.1)
    apart = np.hypot(one.std(), other.std()) / np.sqrt(len(labels))
    assert found.sampling_sd > 1.2 * apart
    half = (found.interval().high - found.interval().low) / 2.0
    assert half == pytest.approx(1.96 * expected, rel=0.2)
    exact = result.exact_differences["ece"]
    assert exact is not None
    assert found.value == pytest.approx(exact, abs=0.003)


def test_the_gradient_is_that_of_the_plain_sum_where_gaps_are_clear() -> None:
    """One row more of each label in a cell, by the definition; gaps of a tenth in every bin."""
    generator = np.random.default_rng(4)
    middles = (np.arange(40) + 0.5) / 40
    total = generator.integers(9_000, 11_000, 40).astype(float)
    positives = total * np.clip(middles - 0.1, 0.002, 1.0)
    counts = np.stack([total - positives, positives])
    histogram = ScoreHistogram(Grid.uniform(40).edges, counts, smooth=False)
    gradient = ece_gradient(histogram)
    for label, cell in ((0, 5), (1, 20), (0, 39)):
        more = counts.copy()
        more[label, cell] += 1.0
        moved = ece(ScoreHistogram(histogram.edges, more, smooth=False), debiased=False).value
        by = moved - ece(histogram, debiased=False).value
        assert gradient[label, cell] == pytest.approx(by, rel=1e-3)


def drawn(gaps: FloatArray) -> tuple[SumOfSizes, float]:
    """A look at gaps, and which part of its variance comes of sizes lost in noise."""
    variance = np.full(BINS, SD**2)
    sizes, slopes = debiased_sizes(gaps, variance, np.full(BINS, 1.0 / BINS))
    clear = float((slopes**2 * variance).sum())
    lost = float(((1.0 - 2.0 / pi) * (1.0 - slopes**2) * variance).sum())
    figure = SumOfSizes(
        value=float(sizes.sum()),
        sampling_sd=(clear + lost) ** 0.5,
        gaps=gaps,
        gap_noise=np.zeros((BINS, BINS)),
        gap_sampling=variance,
    )
    return figure, lost / (clear + lost)


@pytest.fixture(scope="module")
def drawn_pairs() -> list[PairedDifference]:
    """A calibrated model, and one with gaps of 1.3 standard errors, of different rows."""
    generator = np.random.default_rng(6)
    found = []
    for _ in range(DRAWS):
        (first, one), (second, other) = (
            drawn(size * SD + generator.normal(0.0, SD, BINS)) for size in (0.0, 1.3)
        )
        luck = float(np.hypot(first.sampling_sd, second.sampling_sd))
        found.append(PairedDifference(first, second, sampling_sd=luck, unclear=max(one, other)))
    return found


def held(pairs: list[PairedDifference]) -> int:
    return sum(-1.3 * SD * BINS in each.interval() for each in pairs)


def test_a_model_without_gaps_is_not_taken_for_surer_than_it_is(
    drawn_pairs: list[PairedDifference],
) -> None:
    assert held(drawn_pairs) >= stats.binom.ppf(FALSE_ALARM, DRAWS, 0.95)


def test_distances_that_add_up_in_squares_near_nothing_are_noticed(
    drawn_pairs: list[PairedDifference],
) -> None:
    squares = [replace(each, unclear=0.0) for each in drawn_pairs]
    assert held(squares) < stats.binom.ppf(FALSE_ALARM, DRAWS, 0.95)
