"""What the planner's scorer counts as an error, by hand and on a survey of four cells."""

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest

from fedassay import Examples, Grid, Privacy, SurveyRequest
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.planning.scorer import Scorer, _error, _halves, _models
from tests.surveys import flat_survey


def test_an_error_is_noise_spread_and_bias_together() -> None:
    estimate, truth = Estimate(0.80, noise_sd=0.02, binning_sd=0.12), Estimate(0.76)
    # 2, a third of 12, and 80 - 76 hundredths: sqrt(4 + 16 + 16) = 6.
    assert _error(estimate, truth, 1.0 / 3.0) == pytest.approx(0.06)
    assert _error(replace(estimate, value=0.76), truth, 1.0 / 3.0) == pytest.approx(sqrt(0.002))
    assert _error(replace(estimate, value=0.72), truth, 1.0 / 3.0) == pytest.approx(0.06)


def test_where_there_is_no_answer_the_error_is_as_large_as_can_be() -> None:
    known, unknown = Estimate(0.8), NotEnoughData(reason="noise")
    assert _error(unknown, known, 1.0) == _error(known, unknown, 1.0) == 1.0


def crowded(rows: int = 4000) -> Examples:
    """Scores of 0.30 and 0.45 only, negative and positive: a cell of [0.25, 0.5] mixes them."""
    labels = np.arange(rows) % 2
    return Examples(labels, np.where(labels == 1, 0.45, 0.30))


def test_a_survey_that_sees_no_difference_scores_its_bias() -> None:
    """The classes are apart, so that AUC is 1; inside one cell an even spread says 0.5."""
    request = SurveyRequest(privacy=Privacy.SECURE, clients=4000, reference=crowded())
    scorer = Scorer.for_request(request)
    blind = scorer.candidate(flat_survey(Grid.uniform(4)))
    seeing = scorer.candidate(flat_survey(Grid(np.array([0.0, 0.4, 1.0]))))
    assert exp(blind.area_error) >= 0.49
    assert exp(seeing.area_error) < 0.01


def test_the_area_counts_twice_and_all_rates_together_once() -> None:
    request = SurveyRequest(privacy=Privacy.SECURE, clients=4000, reference=crowded())
    scorer = Scorer.for_request(replace(request, thresholds=(0.4,)))
    candidate = scorer.candidate(flat_survey(Grid(np.array([0.0, 0.4, 1.0]))))
    # On an edge of exact sums there is no error at all: 1e-12 stands for nil.
    assert scorer.error(candidate) == pytest.approx(2.0 * candidate.area_error + log(1e-12))


def test_halves_of_a_reference_are_all_of_it_and_disjoint() -> None:
    scores = np.arange(1, 401) / 500
    reference = Examples(np.arange(400) % 2, scores)
    halves = _halves(reference)
    assert [len(half) for half in halves] == [200, 200]
    assert np.sort(np.concatenate([half.scores for half in halves])).tolist() == scores.tolist()
    few = Examples(np.arange(60) < 30, np.arange(60) / 60)
    assert _halves(few) == (few,)


def test_scores_without_labels_are_one_model_with_the_rate_that_is_asked() -> None:
    request = SurveyRequest(clients=100, reference=np.linspace(0.01, 0.3, 50), positive_rate=0.1)
    (model,) = _models(request)
    assert model.total_positives / model.total == pytest.approx(0.1)
    above = model.edges[:-1] >= 0.31
    assert model.counts[:, above].sum() == pytest.approx(0.0, abs=1e-6 * model.total)
