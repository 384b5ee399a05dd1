"""Delays as planned: histories from the plan's own surveys, with three changes of prevalence.

The median of 120 histories is within 20 % of the planned one; the seed is fixed. The twin plans
with the errors of a look that has half the rows, and is off by more for the smallest change.
"""

from dataclasses import replace

import numpy as np
import pytest
from experiments.tracking import LOOKS, REQUEST, measured_delays, shares_of

from fedassay.planning.request import Steps
from fedassay.planning.track import plan_track
from tests.laws import full

SHIFTS = (0.012, 0.016, 0.03)
ASKED = replace(REQUEST, steps=Steps.ONE)


@pytest.fixture(scope="module")
def measured() -> dict[float, float]:
    plan = plan_track(ASKED, LOOKS, metric="prevalence", shifts=SHIFTS)
    old = shares_of(plan.design.survey, 0.8)
    medians = {}
    for number, shift in enumerate(SHIFTS):
        rates = np.array([0.7 - shift, 0.3 + shift]) / old.sum(axis=1)
        new = old * rates[:, np.newaxis]
        runs = measured_delays(plan, old, new, runs=full(1000, 120), seed=number)
        medians[shift] = float(np.median(runs))
    return medians


def off(measured: dict[float, float], planned: dict[float, float]) -> list[float]:
    return [abs(measured[shift] / planned[shift] - 1.0) for shift in SHIFTS]


def test_changes_are_noticed_when_the_plan_says(measured: dict[float, float]) -> None:
    plan = plan_track(ASKED, LOOKS, metric="prevalence", shifts=SHIFTS)
    assert max(off(measured, dict(plan.delays))) <= 0.2


def test_a_plan_for_half_the_rows_is_noticed(measured: dict[float, float]) -> None:
    half = plan_track(replace(ASKED, clients=2500), LOOKS, metric="prevalence", shifts=SHIFTS)
    assert max(off(measured, dict(half.delays))) > 0.2
