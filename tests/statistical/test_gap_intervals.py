"""The interval of debiased ECE covers the population's, also where gaps are lost in noise."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from fedassay import Examples, Privacy, SurveyDesign, SurveyRequest, design_survey
from fedassay.calibration import ece
from fedassay.calibration.gap_intervals import SumOfSizes
from fedassay.estimate import Estimate, Interval
from fedassay.examples import FloatArray, ScoredClients
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import simulate
from tests.laws import FALSE_ALARM, full

MODELS = (
    (Privacy.SECURE, None),
    (Privacy.DISTRIBUTED, Fraction(1)),
    (Privacy.LOCAL, Fraction(5)),
    (Privacy.LOCAL, Fraction(1)),
)
ROWS = 8_000
BINS = 20
# The interval is made for 95 %; a sum of sizes is only about gamma, so somewhat less may be.
LEAST = 0.92


def true_probability(odds_times: float, scores: FloatArray) -> FloatArray:
    odds = np.log(scores / (1.0 - scores))
    return np.asarray(1.0 / (1.0 + np.exp(-odds_times * odds)))


@cache
def population_ece(odds_times: float) -> float:
    """By quadrature over the scores' law, Beta(1.2, 1.8)."""
    ends = np.linspace(0.0, 1.0, 200 * BINS + 1)
    mass = np.diff(stats.beta(1.2, 1.8).cdf(ends))
    scores = 0.5 * (ends[1:] + ends[:-1])
    gaps = mass * (true_probability(odds_times, scores) - scores)
    return float(np.abs(gaps.reshape(BINS, -1).sum(axis=1)).sum())


@cache
def planned(privacy: Privacy, epsilon: Fraction | None) -> SurveyDesign:
    return design_survey(
        SurveyRequest(privacy=privacy, epsilon=epsilon, clients=ROWS, dropouts=Fraction(0))
    )


def estimated(
    privacy: Privacy, epsilon: Fraction | None, odds_times: float, seed: int
) -> SumOfSizes:
    generator = np.random.default_rng(seed)
    scores = np.clip(generator.beta(1.2, 1.8, ROWS), 1e-6, 1.0 - 1e-6)
    labels = generator.random(ROWS) < true_probability(odds_times, scores)
    design = planned(privacy, epsilon)
    histogram = simulate(
        design.survey,
        ScoredClients(Examples.of(labels.astype(np.uint8), scores), None, ROWS),
        decode_options=design.decode_options,
        randomness=SimulatedRandomness(seed),
    )
    found = ece(histogram, bins=BINS)
    assert isinstance(found, SumOfSizes)
    return found


def covers_too_seldom(covered: int, trials: int) -> bool:
    """Whether so few would be seen less than once in a million times."""
    return bool(stats.binom.cdf(covered, trials, LEAST) < FALSE_ALARM)


@pytest.mark.statistical
@pytest.mark.parametrize(("privacy", "epsilon"), MODELS)
@pytest.mark.parametrize("odds_times", [1.0, 0.85, 0.6])
def test_the_interval_covers_the_population(
    privacy: Privacy, epsilon: Fraction | None, odds_times: float
) -> None:
    trials = full(400, 25)
    truth = population_ece(odds_times)
    found = [estimated(privacy, epsilon, odds_times, seed) for seed in range(trials)]
    covered = sum(truth in estimate.interval() for estimate in found)
    assert not covers_too_seldom(covered, trials), covered / trials
    # What is told apart must not be everything: the interval narrows as an ordinary one does.
    widths = [np.ptp(estimate.interval()) for estimate in found]
    usual = [2.0 * 1.96 * np.hypot(e.noise_sd, e.sampling_sd) + e.value for e in found]
    assert np.mean(widths) < 3.0 * np.mean(usual)


def forgetful(estimate: SumOfSizes) -> Interval:
    """What comes of the plain sum and its sampling alone."""
    plain = float(np.abs(estimate.gaps).sum())
    nil = np.zeros_like(estimate.gap_noise)
    return replace(estimate, value=plain, gap_noise=nil).interval()


def around_the_plain_sum(estimate: SumOfSizes) -> Interval:
    """What is usual for figures that are normal."""
    plain = float(np.abs(estimate.gaps).sum())
    return Estimate(plain, estimate.noise_sd, estimate.sampling_sd).interval()


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("wrong", "privacy", "epsilon"),
    [(forgetful, *MODELS[2]), (around_the_plain_sum, *MODELS[1])],
)
def test_a_wrong_interval_is_caught(
    wrong: Callable[[SumOfSizes], Interval], privacy: Privacy, epsilon: Fraction | None
) -> None:
    trials = full(400, 25)
    truth = population_ece(1.0)
    found = [estimated(privacy, epsilon, 1.0, seed) for seed in range(trials)]
    covered = sum(truth in wrong(estimate) for estimate in found)
    assert covers_too_seldom(covered, trials), covered / trials
