"""Parts of Brier score and log loss: noise passes for neither miscalibration nor knowledge."""

import numpy as np
import pytest

from fedassay import ScoreHistogram
from fedassay.calibration import Decomposition, brier_parts, log_loss_parts

CELLS = 100
ROWS = 2_000
DRAWS = 300


def drawn_parts(*, informative: bool) -> list[tuple[Decomposition, ...]]:
    """Of tables with 20 filled cells between 0.4 and 0.6, plain and debiased of both scores."""
    generator = np.random.default_rng(6)
    edges = np.linspace(0.0, 1.0, CELLS + 1)
    scores = np.arange(40, 60) / CELLS + 0.5 / CELLS
    truth = scores if informative else np.full(20, 0.5)
    parts = []
    for _ in range(DRAWS):
        sizes = generator.multinomial(ROWS, np.full(20, 0.05))
        positives = generator.binomial(sizes, truth)
        counts = np.zeros((2, CELLS))
        counts[:, 40:60] = sizes - positives, positives
        histogram = ScoreHistogram(edges, counts, smooth=False)
        parts.append(
            tuple(
                of(histogram, bins=CELLS, debiased=debiased)
                for of in (brier_parts, log_loss_parts)
                for debiased in (False, True)
            )
        )
    return parts


def means(values: list[list[float]]) -> tuple[list[float], list[float]]:
    """Means over draws, and how far six of their standard errors reach."""
    array = np.array(values)
    return array.mean(axis=0).tolist(), (6.0 * array.std(axis=0) / np.sqrt(DRAWS)).tolist()


# What 20 bins of 2,000 rows add to a square: 20 p (1 - p) / n; to a divergence: 20 / (2 n).
BRIER_BIAS = 20 * 0.25 / ROWS
LOG_BIAS = 20 * 0.5 / ROWS


def test_reliability_of_a_right_score_is_nil_on_average() -> None:
    """Debiasing is right within an eighth of what it takes off, of Brier score and log loss."""
    parts = drawn_parts(informative=True)
    (plain_brier, brier, plain_log, log), errors = means(
        [[each.reliability.value for each in draw] for draw in parts]
    )
    assert plain_brier == pytest.approx(BRIER_BIAS, abs=errors[0] + BRIER_BIAS / 8)
    assert plain_log == pytest.approx(LOG_BIAS, abs=errors[2] + LOG_BIAS / 8)
    assert abs(brier) < errors[1] + BRIER_BIAS / 8
    assert abs(log) < errors[3] + LOG_BIAS / 8


def test_resolution_of_a_score_that_knows_nothing_is_nil_on_average() -> None:
    parts = drawn_parts(informative=False)
    (plain_brier, brier, plain_log, log), errors = means(
        [[each.resolution.value for each in draw] for draw in parts]
    )
    assert plain_brier == pytest.approx(BRIER_BIAS * 19 / 20, abs=errors[0] + BRIER_BIAS / 8)
    assert plain_log == pytest.approx(LOG_BIAS * 19 / 20, abs=errors[2] + LOG_BIAS / 8)
    assert abs(brier) < errors[1] + BRIER_BIAS / 8
    assert abs(log) < errors[3] + LOG_BIAS / 8
