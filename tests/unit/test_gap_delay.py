"""Delays of changes of ECE, against histories drawn look by look, and in a plan for many looks."""

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from fedassay.calibration.gap_intervals import nil_score
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.track import USUAL_RISES, Looks, plan_track
from fedassay.tracking.alarms import Watch
from fedassay.tracking.gap_delay import median_gap_delay
from fedassay.tracking.gap_series import Gaps

WATCH = Watch(("ece",))
MASS = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
COVARIANCE = 1e-5 * (np.diag(MASS) + 0.02)
LOOK = Gaps(np.zeros(5), MASS, COVARIANCE)
REQUEST = SurveyRequest(
    privacy=Privacy.DISTRIBUTED, epsilon=Fraction(6), clients=5000, steps=Steps.ONE
)


@pytest.mark.parametrize("rise", [0.01, 0.013, 0.02])
def test_the_planned_delay_is_that_of_histories(rise: float) -> None:
    """One history after the other, by the words of the definition."""
    generator = np.random.default_rng(2)
    root = np.linalg.cholesky(COVARIANCE)
    delays = []
    for _ in range(300):
        looks = [root @ generator.standard_normal(5)]
        level, delay = 0.0, inf
        for number in range(-10, 60):
            new = rise * MASS * (number > 0) + root @ generator.standard_normal(5)
            away = new - np.mean(looks, axis=0)
            score = nil_score(away, COVARIANCE * (1.0 + 1.0 / len(looks)))
            level = max(0.0, level + score - 0.5)
            looks.append(new)
            if number > 0 and level >= WATCH.limit:
                delay = number
                break
            # An alarm before the change is another one: the sum begins anew.
            level = 0.0 if level >= WATCH.limit else level
        delays.append(delay)
    planned = median_gap_delay(LOOK, rise, looks_before=12, watch=WATCH)
    assert planned == pytest.approx(np.median(delays), rel=0.2, abs=0.51)


def test_what_cells_hide_makes_alarms_later_and_no_luck() -> None:
    """Twice the variance, half of it hidden: alarms are raised later than by luck alone."""
    hidden = np.diag(COVARIANCE)
    wide = COVARIANCE + np.diag(hidden)
    coarse, lucky = (Gaps(np.zeros(5), MASS, wide, part) for part in (hidden, 0.0))
    late = median_gap_delay(coarse, 0.015, looks_before=12, watch=WATCH)
    assert late > median_gap_delay(lucky, 0.015, looks_before=12, watch=WATCH)


def test_a_rise_right_after_the_first_look_may_never_be_noticed() -> None:
    assert median_gap_delay(LOOK, 0.009, looks_before=1, watch=WATCH) > 100
    for wrong in (-0.02, 0.0, 1.5):
        with pytest.raises(SettingInvalid, match="whose ece can only rise"):
            median_gap_delay(LOOK, wrong, looks_before=12, watch=WATCH)


def test_a_plan_for_many_looks_says_how_soon_a_rise_of_ece_is_noticed() -> None:
    made = plan_track(REQUEST, Looks(24), metric="ece")
    assert tuple(made.delays) == USUAL_RISES
    assert made.watch.metrics[-1] == "ece"
    delays = list(made.delays.values())
    assert delays == sorted(delays, reverse=True)
    assert delays[-1] <= 2.0 < delays[0]
    # Of a calibrated model there is none; what is told of it is luck and noise.
    assert made.look.value < 0.001 < made.look.standard_error
    noisier = plan_track(replace(REQUEST, epsilon=Fraction(1, 2)), Looks(24), metric="ece")
    assert noisier.delays[0.02] > made.delays[0.02]


def test_a_look_that_counts_nothing_has_no_ece_to_plan_with() -> None:
    asked = replace(REQUEST, clients=20, epsilon=Fraction(1, 100))
    made = plan_track(asked, Looks(12), metric="ece")
    assert made.delays == {}
    assert "One month shows nothing of ece" in made.lines()[-1]
