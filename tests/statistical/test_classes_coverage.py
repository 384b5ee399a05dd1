"""Do figures of many classes err as much as they say, under every privacy model?

A run draws rows with replacement from one table, whose own figures are the truth, and asks them.
The spread of errors is compared with what was told, from both sides (`tests.laws.fits_spread`,
whose false alarms are stated: 1e-8 for each of 23 checks, below 1e-6 for all).
Means over classes add up sampling as if classes always went together: they may be told up to twice
too large, and never too small. The same checks must reject errors without their noise.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import hypot

import numpy as np
import pytest

from fedassay.classes.class_design import ClassDesign
from fedassay.classes.class_survey import (
    ClassSurvey,
    class_survey,
)
from fedassay.classes.exact_figures import exact_figures
from fedassay.classes.figures import class_estimates
from fedassay.classes.result import simulate_cohort
from fedassay.classes.tallies import ClassCohort
from fedassay.estimate import Estimate
from fedassay.grid import Grid
from fedassay.mechanisms import Privacy
from fedassay.planning.request import SurveyRequest
from fedassay.randomness import SimulatedRandomness
from tests.class_rows import drawn_rows
from tests.laws import fits_spread, full

pytestmark = pytest.mark.statistical

TABLE = drawn_rows(20_000, (3.0, 2.0, 1.0), sharpness=1.3, seed=5)
TRUTH = exact_figures(TABLE)
ROWS = 3000
RUNS = full(1200, 60)
EXACTLY = ("roc_auc/0", "roc_auc/2", "accuracy", "log_loss")
CAUTIOUSLY = ("roc_auc/macro", "roc_auc/weighted", "roc_auc/micro", "brier")
FALSE_ALARM = 1e-8

Spoil = Callable[[Estimate], Estimate]


def survey(privacy: Privacy, epsilon: Fraction | None, design: ClassDesign) -> ClassSurvey:
    request = SurveyRequest(
        privacy=privacy,
        epsilon=epsilon,
        clients=ROWS,
        dropouts=Fraction(0),
        smallest_cell=None if privacy.spends_epsilon else 0,
    )
    cells = 12 if privacy.spends_epsilon else 40
    return class_survey(request, TABLE.names, design, Grid.uniform(cells))


@cache
def estimates(
    privacy: Privacy, epsilon: Fraction | None, design: ClassDesign
) -> list[dict[str, Estimate]]:
    asked = survey(privacy, epsilon, design)
    randomness = SimulatedRandomness(20_261_116)
    found = []
    for _ in range(RUNS):
        kept = randomness.generator.integers(len(TABLE), size=ROWS)
        cohort = ClassCohort.of(TABLE.rows(kept))
        result = simulate_cohort(asked, cohort, randomness=randomness, exact={})
        wanted = class_estimates(result.tables)
        found.append({name: wanted[name] for name in (*EXACTLY, *CAUTIOUSLY)})
    return found


def unspoilt(estimate: Estimate) -> Estimate:
    return estimate


def fits(found: list[dict[str, Estimate]], name: str, spoil: Spoil = unspoilt) -> bool:
    told = [spoil(each[name]) for each in found]
    truth = TRUTH[name] or 0.0
    errors = [each.value - truth for each in told]
    sd = [hypot(each.noise_sd, each.sampling_sd) for each in told]
    extra = [each.binning_sd for each in told]
    if name in EXACTLY:
        return fits_spread(errors, sd, extra=extra, kurtosis=4.0, false_alarm=FALSE_ALARM)
    cautious = np.sqrt(np.mean(np.square(sd)) / np.mean(np.square(errors)))
    not_less = fits_spread(
        errors, np.array(sd) / 2.0, extra=np.hypot(sd, extra), kurtosis=4.0, false_alarm=FALSE_ALARM
    )
    return not_less and float(cautious) < 2.0


SETTINGS = [
    (Privacy.SECURE, None, ClassDesign.EVERY),
    (Privacy.DISTRIBUTED, Fraction(1, 2), ClassDesign.OWN),
    (Privacy.LOCAL, Fraction(6), ClassDesign.OWN),
]


@pytest.mark.parametrize(("privacy", "epsilon", "design"), SETTINGS)
def test_errors_spread_as_they_are_told(
    privacy: Privacy, epsilon: Fraction | None, design: ClassDesign
) -> None:
    found = estimates(privacy, epsilon, design)
    for name in (*EXACTLY, *CAUTIOUSLY):
        # Of 200 rows for each class noise leaves no positives to take a logarithm of.
        if privacy.is_local and name == "log_loss":
            continue
        assert fits(found, name), name


def without_noise(estimate: Estimate) -> Estimate:
    return replace(estimate, noise_sd=0.0, binning_sd=0.0)


def without_sampling(estimate: Estimate) -> Estimate:
    return replace(estimate, sampling_sd=0.3 * estimate.sampling_sd)


def test_errors_told_without_their_noise_are_seen() -> None:
    found = estimates(Privacy.LOCAL, Fraction(6), ClassDesign.OWN)
    for name in ("roc_auc/0", "roc_auc/2", "accuracy"):
        assert not fits(found, name, without_noise), name


def test_errors_told_without_their_sampling_are_seen() -> None:
    found = estimates(Privacy.SECURE, None, ClassDesign.EVERY)
    for name in ("roc_auc/0", "accuracy", "roc_auc/macro", "brier"):
        assert not fits(found, name, without_sampling), name
