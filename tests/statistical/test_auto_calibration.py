"""Choosing a calibrator does no harm, over many kinds of scores and privacy."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from fedassay import Choice, Examples, Privacy, Request, choose
from fedassay.calibration import Method, fit_auto
from fedassay.engines.simulation import simulate
from fedassay.engines.tables import Cohort
from fedassay.examples import FloatArray
from fedassay.randomness import SimulatedRandomness
from tests.laws import full

MODELS = (
    (Privacy.SECURE, None),
    (Privacy.DISTRIBUTED, Fraction(1)),
    (Privacy.LOCAL, Fraction(5)),
    (Privacy.LOCAL, Fraction(1)),
)
KINDS = ("calibrated", "over", "under", "s-shaped", "spiked")


def true_probability(kind: str, scores: FloatArray) -> FloatArray:
    odds = np.log(scores / (1.0 - scores))
    match kind:
        case "over":
            return np.asarray(1.0 / (1.0 + np.exp(-0.6 * odds)))
        case "under":
            return np.asarray(1.0 / (1.0 + np.exp(-1.6 * odds)))
        case "s-shaped":
            return np.clip(scores + 0.1 * np.sin(2.0 * np.pi * scores), 0.0, 1.0)
        case _:
            return scores


@cache
def planned(privacy: Privacy, epsilon: Fraction | None, rows: int) -> Choice:
    return choose(Request(privacy=privacy, epsilon=epsilon, clients=rows))


def case(index: int) -> tuple[float, float, Method]:
    """Mean squared distance to the truth of the raw score and of auto's, and its method."""
    generator = np.random.default_rng(index)
    kind = KINDS[index % len(KINDS)]
    rows = (2_000, 20_000)[index // 20 % 2]
    scores = np.clip(generator.beta(1.2, 1.8, rows), 1e-4, 1.0 - 1e-4)
    if kind == "spiked":
        scores = np.where(generator.random(rows) < 0.6, np.round(scores * 8) / 8, scores)
        scores = np.clip(scores, 1e-4, 1.0 - 1e-4)
    truth = true_probability(kind, scores)
    labels = (generator.random(rows) < truth).astype(np.uint8)
    privacy, epsilon = MODELS[index // 5 % 4]
    choice = planned(privacy, epsilon, rows)
    histogram = simulate(
        choice.survey,
        Cohort(Examples.of(labels, scores), None, rows),
        readout=choice.readout,
        randomness=SimulatedRandomness(index),
    )
    found = fit_auto(histogram)
    after = float(np.mean((found.predict(scores) - truth) ** 2))
    return float(np.mean((scores - truth) ** 2)), after, found.method


@pytest.mark.statistical
def test_auto_is_never_much_worse_than_the_raw_score() -> None:
    cases = [case(index) for index in range(full(200, 40))]
    harms = np.array([after - before for before, after, _ in cases])
    # Seeds are fixed, so this does not vary between runs. With 2,000 clients a map that has one
    # parameter too many is off by about 1 / sqrt(2,000) = 0.02.
    assert np.sqrt(np.maximum(harms, 0.0)).max() < 0.025
    assert np.mean(harms > 1e-4) < 0.03
    assert harms.mean() < -0.001
    declined = [method is Method.NONE for before, _, method in cases if before < 1e-12]
    assert np.mean(declined) > 0.9
