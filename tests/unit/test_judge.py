"""Predicted noise of two surveys together, against brute force and against what happens."""

from dataclasses import replace
from fractions import Fraction
from math import hypot, sqrt

import numpy as np
import pytest
from scipy.linalg import block_diag

from fedassay.cut_levels import CutLevels
from fedassay.decoding import DecodeOptions
from fedassay.draws import draw_tally
from fedassay.examples import FloatArray
from fedassay.mechanisms import Polya, Privacy
from fedassay.metrics import accuracy, average_precision, precision, recall, roc_auc
from fedassay.metrics.roc_auc import area_gradient
from fedassay.planning.first_survey import first_survey
from fedassay.planning.forecast import expected_histogram
from fedassay.planning.judge import Judge
from fedassay.planning.pilot import Pilot, expected_pilot
from fedassay.planning.request import SurveyRequest
from fedassay.planning.score_model import binormal, on_grid
from fedassay.planning.second_survey import second_for
from fedassay.survey import Survey
from fedassay.two_steps import decode_two

TRIALS = 200


def rehearsed() -> tuple[Pilot, Survey]:
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1), clients=20_000, dropouts=Fraction(0)
    )
    first = first_survey(request)
    model = binormal(examples=20_000, positive_rate=0.1, auc=0.85)
    pilot = expected_pilot(first, on_grid(model, first.grid), clients=20_000.0)
    return pilot, second_for(pilot, (), thorough=False)


def rows_of(survey: Survey, label: int) -> tuple[FloatArray, FloatArray]:
    """Each counter as a row over the leaves, and its noise's variance, by loops."""
    rows, variances = [], []
    for level, mechanism in enumerate(survey.mechanisms):
        ratio = np.exp(-float(mechanism.epsilon) / mechanism.sensitivity)  # type: ignore[union-attr]  # the survey has one
        for cell in range(survey.hierarchy.cells_per_level[level]):
            row = []
            for leaf in range(survey.hierarchy.leaves):
                one = np.zeros((2, survey.hierarchy.leaves), dtype=np.int64)
                one[label, leaf] = 1
                row.append(float(survey.hierarchy.at_level(one, level)[label, cell]))
            rows.append(row)
            # Of the discrete Laplace law, 2a / (1 - a)^2.
            variances.append(2.0 * ratio / (1.0 - ratio) ** 2)
    return np.array(rows), np.array(variances)


def test_predicted_noise_is_that_of_least_squares_by_brute_force() -> None:
    pilot, second = rehearsed()
    blocks = []
    for label in (0, 1):
        stacked = [rows_of(survey, label) for survey in (pilot.survey, second)]
        rows = np.concatenate([each[0] for each in stacked])
        weights = 1.0 / np.concatenate([each[1] for each in stacked])
        blocks.append(np.linalg.inv(rows.T @ (weights[:, None] * rows)))
    covariance = block_diag(*blocks)
    n, p = pilot.histogram.counts
    below_n, below_p = np.cumsum(n) - n / 2, np.cumsum(p) - p / 2
    area = float(p @ below_n) / (n.sum() * p.sum())
    gradient = np.concatenate(
        [(1.0 - below_p / p.sum() - area) / n.sum(), (below_n / n.sum() - area) / p.sum()]
    )
    expected = sqrt(gradient @ covariance @ gradient)
    errors = Judge.of(pilot, ()).errors(second)
    assert errors[0] == pytest.approx(expected, rel=1e-6)
    # The last is the true positive rate above 95 % of both classes, each counting as much.
    shares = (np.cumsum(n) / n.sum() + np.cumsum(p) / p.sum()) / 2
    above = np.arange(len(p)) > np.flatnonzero(shares >= 0.95)[0]
    rate = np.concatenate([np.zeros(len(n)), (above - p[above].sum() / p.sum()) / p.sum()])
    assert errors[-1] == pytest.approx(sqrt(rate @ covariance @ rate), rel=1e-6)


def test_of_two_surveys_that_differ_at_thresholds_nobody_asked_for_the_better_is_taken() -> None:
    pilot, second = rehearsed()
    judge, levels = Judge.of(pilot, ()), second.hierarchy
    assert isinstance(levels, CutLevels)
    shares = pilot.shares.mean(axis=0)
    surveys = []
    for cells in (5, 40):  # both have cuts at 0.2 and 0.8, where thresholds are judged
        starts = tuple(sorted({0, *np.searchsorted(shares, np.arange(1, cells) / cells).tolist()}))
        surveys.append(replace(second, hierarchy=replace(levels, cuts=((starts, starts),))))
    errors = [judge.errors(survey)[-20:].mean() for survey in surveys]
    assert errors[1] < 0.7 * errors[0]
    assert judge.error(surveys[1]) < judge.error(surveys[0])


def test_areas_vary_as_predicted_when_the_surveys_are_made() -> None:
    """Sees a factor of 1.25 in the spread; false alarms once in 10^5 (chi-square, 199)."""
    pilot, second = rehearsed()
    first, generator = pilot.survey, np.random.default_rng(11)
    leaves = np.rint(pilot.histogram.counts).astype(np.int64)
    areas = []
    for _ in range(TRIALS):
        tallies = [
            draw_tally(survey, leaves, clients=20_000, generator=generator)
            for survey in (first, second)
        ]
        histogram = decode_two(
            first, tallies[0], second, tallies[1], decode_options=DecodeOptions()
        )
        areas.append(roc_auc(histogram).value)
    ratio = float(np.std(areas, ddof=1) / Judge.of(pilot, ()).errors(second)[0])
    assert 0.78 < ratio < 1.24


def test_more_epsilon_for_the_weighted_sum_makes_the_area_better_and_thresholds_worse() -> None:
    pilot, second = rehearsed()
    judge = Judge.of(pilot, (0.1, 0.5))
    # Weights as they are without cells: placements, less ROC AUC.
    rows = [row / np.abs(row).max() for row in area_gradient(pilot.histogram)]
    whole = [tuple(np.rint(1000 * row).astype(int).tolist()) for row in rows]
    assert isinstance(second.hierarchy, CutLevels)
    second = replace(second, hierarchy=replace(second.hierarchy, weights=(whole[0], whole[1])))
    cells, weighted = second.mechanisms
    assert isinstance(cells, Polya)
    assert isinstance(weighted, Polya)
    moved = Fraction(1, 5)
    other = replace(
        second,
        mechanisms=(
            replace(cells, epsilon=cells.epsilon - moved),
            replace(weighted, epsilon=weighted.epsilon + moved),
        ),
    )
    before, after = judge.errors(second), judge.errors(other)
    assert after[0] < before[0]
    assert (after[2:] >= before[2:]).mean() > 0.7


def test_under_local_privacy_the_judge_foresees_what_is_read() -> None:
    """What decoding tells of counters at their means, but for what rows themselves vary by.

    What cells may hide besides is in intervals; the judge looks at likely errors.
    """
    request = SurveyRequest(
        privacy=Privacy.LOCAL, epsilon=Fraction(3), clients=50_000, thresholds=(0.1, 0.3)
    )
    first = first_survey(request)
    model = binormal(examples=50_000, positive_rate=0.1, auc=0.85)
    pilot = expected_pilot(first, on_grid(model, first.grid), clients=50_000.0)
    second = second_for(pilot, (0.1, 0.3), thorough=False)
    foreseen = Judge.of(pilot, (0.1, 0.3)).errors(second)
    expected = expected_histogram(
        first, pilot.histogram, clients=50_000.0, second=second, likely=True
    )
    expected = replace(expected, cells=None)
    figures = [roc_auc(expected), average_precision(expected)]
    for threshold in (0.1, 0.3):
        figures += [each(expected, threshold) for each in (recall, precision, accuracy)]
    wanted = [hypot(each.noise_sd, each.binning_sd) for each in figures]
    ratios = foreseen[: len(wanted)] / np.array(wanted)
    assert (ratios > 0.9).all()
    assert (ratios < 1.3).all()
    assert expected.buckets == pilot.histogram.buckets


def test_of_local_surveys_the_one_with_smaller_errors_is_made() -> None:
    """Of few clients fewer cells: each would bring its noise."""
    cells = []
    for clients in (20_000, 2_000_000):
        request = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(2), clients=clients)
        first = first_survey(request)
        model = binormal(examples=clients, positive_rate=0.3, auc=0.8)
        counts = on_grid(model, first.grid)
        pilot = expected_pilot(first, counts, clients=float(clients))
        cells.append(sum(second_for(pilot, ()).hierarchy.cells_per_level))
    assert cells[0] < cells[1]
