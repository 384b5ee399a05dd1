"""Paired differences err as much as they say, and a row costs what the survey says.

Every run draws rows anew from a made-up population of two models whose log-odds share a part, asks
them as the planner chooses, and reads differences. `fits_spread` has the errors about the
population's differences against the errors that are told, on both sides: a paired interval twice
too wide is a bug as much as one too narrow. Twins: the covariance of both models dropped, as if
different rows had answered, and the privacy noise dropped.

False-alarm rate: 1e-8 for each of less than 20 figures. The full size, FEDASSAY_VERIFY=1, has 1,000
runs; experiments/paired.md has how often intervals hold, power and false alarms.
"""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import log

import numpy as np
import pytest
from experiments.paired import SETTINGS, Population, design_for
from scipy.stats import binom

from fedassay.level_policy import OneLevel
from fedassay.mechanisms import AnyMechanism, Polya, Privacy, RandomizedResponse, UnaryEncoding
from fedassay.paired.difference import PairedDifference, PairReader
from fedassay.planning.pair_search import design_pair
from fedassay.planning.request import SurveyRequest
from fedassay.planning.search import SurveyDesign
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.pairs import assess_pair
from fedassay.survey import Survey
from tests.laws import fits_spread, full

pytestmark = pytest.mark.statistical

RUNS = full(1000, 60)
ROWS = 3_000
METRICS = ("roc_auc", "recall@0.5")
FALSE_ALARM = 1e-8
POPULATION = Population(0.95, (1.0, 1.0))


@cache
def design_of(setting: str) -> SurveyDesign:
    """What the planner chooses."""
    return design_for(*SETTINGS[setting], ROWS)


def survey_of(setting: str) -> Survey:
    return design_of(setting).survey


@cache
def runs(setting: str) -> dict[str, list[PairedDifference]]:
    """Differences of rows drawn anew; the models are equal, so each is an error."""
    design = design_of(setting)
    found: dict[str, list[PairedDifference]] = {metric: [] for metric in METRICS}
    for run in range(RUNS):
        rows = POPULATION.rows(ROWS, np.random.default_rng([1, run]))
        randomness = SimulatedRandomness(np.random.SeedSequence([2, run]))
        read = assess_pair(design, rows, thresholds=(0.5,), randomness=randomness)
        reader = PairReader(read.pair())
        for metric in METRICS:
            found[metric].append(reader.difference(metric))
    return found


def unpaired(difference: PairedDifference) -> PairedDifference:
    """The twin: as if other rows had answered for the second model."""
    apart = np.hypot(difference.first.sampling_sd, difference.second.sampling_sd)
    return replace(difference, sampling_sd=float(apart))


def fits(differences: list[PairedDifference]) -> bool:
    """Whether errors spread as they are told, with what caution adds for binning."""
    return fits_spread(
        [each.value for each in differences],
        [float(np.hypot(each.noise_sd, each.sampling_sd)) for each in differences],
        extra=[each.binning_sd for each in differences],
        false_alarm=FALSE_ALARM,
        tolerance=1.1,
    )


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("metric", METRICS)
def test_paired_differences_err_as_much_as_they_say(setting: str, metric: str) -> None:
    assert fits(runs(setting)[metric])


@pytest.mark.parametrize("setting", SETTINGS)
def test_equal_models_are_told_apart_no_more_often_than_stated(setting: str) -> None:
    found = runs(setting)["roc_auc"]
    alarms = sum(each.p_value < 0.05 for each in found)
    assert alarms <= binom.isf(FALSE_ALARM, len(found), 0.07)


def test_the_covariance_of_other_rows_is_seen() -> None:
    assert not fits([unpaired(each) for each in runs("secure")["roc_auc"]])


def test_dropped_noise_is_seen() -> None:
    bare = [replace(each, noise_sd=0.0, binning_sd=0.0) for each in runs("local ε = 5")["roc_auc"]]
    assert not fits(bare)


def distributed_loss(survey: Survey, moved: tuple[int, ...]) -> float:
    """The largest log ratio of the sum's exact law when counters of each level move so far.

    The noise of a counter is discrete Laplace, P(k) ~ exp(-|k| step): a shift by d changes its
    log by at most d step, and reaches it beyond d.
    """
    loss = 0.0
    for mechanism, shift in zip(survey.mechanisms, moved, strict=True):
        assert isinstance(mechanism, Polya)
        values = np.arange(-40, 41)
        law = -float(mechanism.step) * np.abs(values)
        other = -float(mechanism.step) * np.abs(values - shift)
        loss += float(np.max(law - other))
    return loss


def moves(survey: Survey, leaf: int) -> tuple[int, ...]:
    """How far one row in a leaf moves all counters of each level together."""
    counts = np.zeros((2, survey.hierarchy.leaves), np.int64)
    counts[1, leaf] = 1
    return tuple(int(np.abs(level).sum()) for level in survey.hierarchy.climb(counts))


def test_a_row_with_two_scores_costs_epsilon_by_the_exact_law() -> None:
    survey = survey_of("distributed ε = 1")
    assert survey.epsilon is not None
    for leaf in (0, survey.hierarchy.leaves // 2, survey.hierarchy.leaves - 1):
        loss = distributed_loss(survey, moves(survey, leaf))
        assert loss == pytest.approx(float(survey.epsilon), rel=1e-6)


def test_a_row_counted_twice_on_a_level_would_cost_more() -> None:
    survey = survey_of("distributed ε = 1")
    assert survey.epsilon is not None
    twice = (2, *moves(survey, 0)[1:])
    assert distributed_loss(survey, twice) > 1.2 * float(survey.epsilon)


def local_loss(mechanism: AnyMechanism, values: int) -> float | Decimal:
    """The largest log ratio of one report's exact law between two of so many values."""
    if isinstance(mechanism, RandomizedResponse):
        # In more digits than a float has: the last of those would decide.
        odds = mechanism.p * (values - 1) / (1 - mechanism.p)
        with localcontext(prec=60):
            return (Decimal(odds.numerator) / Decimal(odds.denominator)).ln()
    assert isinstance(mechanism, UnaryEncoding)
    # One bit falls from its own chance to the others', and another one rises.
    law = mechanism.law()
    own, other = law.offset + law.gain, law.offset
    return log(own / other) + log((1.0 - other) / (1.0 - own))


@pytest.mark.parametrize("minimum", [None, ROWS // 2])
def test_a_local_report_costs_epsilon_by_the_exact_mass_on_every_level(
    minimum: int | None,
) -> None:
    """On a margin, or on joint cells alone, where a minimum leaves no room for a draw."""
    asked = SurveyRequest(
        privacy=Privacy.LOCAL,
        epsilon=Fraction(5),
        clients=ROWS,
        minimum_reports=minimum,
        dropouts=Fraction(0),
    )
    survey = design_pair(asked).survey
    assert isinstance(survey.level_policy, OneLevel) is (minimum is None)
    for mechanism, cells in zip(survey.mechanisms, survey.hierarchy.cells_per_level, strict=True):
        assert 4.99 < local_loss(mechanism, 2 * cells) <= 5.0
        # The twin: odds made for half as many values protect less.
        assert local_loss(RandomizedResponse(Fraction(5), cells // 2, False), 2 * cells) > 5.5
    assert survey.epsilon == 5
