"""The planner's choice of a survey of two models, and what it says of the gain."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import inf

import numpy as np
import pytest

from fedassay.errors import SettingInvalid
from fedassay.examples import Examples
from fedassay.hierarchy import Hierarchy
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import Privacy
from fedassay.pair_levels import PairLevels
from fedassay.planning.forecast import forecast_one, model_for
from fedassay.planning.pair_gain import PairGain, _apart, _share, pair_gain
from fedassay.planning.pair_model import pair_models
from fedassay.planning.pair_search import _pairs, design_pair, expected_pair
from fedassay.planning.rehearsal import rehearsed
from fedassay.planning.request import Steps, SurveyRequest
from fedassay.planning.score_model import binormal
from fedassay.planning.search import quick_design
from fedassay.survey import Survey
from tests.surveys import small_survey


def request(privacy: Privacy, epsilon: int | None) -> SurveyRequest:
    return SurveyRequest(
        privacy=privacy,
        epsilon=None if epsilon is None else Fraction(epsilon),
        clients=50_000,
        thresholds=(0.35,),
        positive_rate=0.3,
        auc=0.8,
    )


@cache
def chosen(privacy: Privacy, epsilon: int) -> Survey:
    return design_pair(request(privacy, epsilon)).survey


@cache
def of_unknown() -> Survey:
    """Under local privacy, of models whose positives may be rare."""
    return design_pair(unknown()).survey


def unknown() -> SurveyRequest:
    return replace(request(Privacy.LOCAL, 5), positive_rate=None, auc=None)


def test_under_local_privacy_joint_cells_stand_alone_where_scores_are_known_to_spread() -> None:
    survey = chosen(Privacy.LOCAL, 5)
    assert isinstance(survey.hierarchy, Hierarchy)
    assert survey.hierarchy.levels == 1
    assert survey.epsilon == 5


def test_under_local_privacy_rows_draw_a_margin_where_scores_may_crowd() -> None:
    survey = of_unknown()
    assert isinstance(survey.level_policy, OneLevel)
    assert isinstance(survey.hierarchy, PairLevels)
    first, second, joint = survey.hierarchy.cells_per_level
    assert joint == 4 < min(first, second)
    assert survey.epsilon == 5


def test_a_minimum_that_a_tenth_of_the_clients_cannot_fill_leaves_joint_cells_alone() -> None:
    asked = replace(unknown(), minimum_reports=10_000)
    survey = design_pair(asked).survey
    assert isinstance(survey.hierarchy, Hierarchy)
    assert survey.hierarchy.levels == 1
    assert survey.epsilon == 5


def test_a_forecast_counts_the_rows_that_answer_for_a_model() -> None:
    """Of 50,000 rows 22,500 answer for the first model: a count c of it errs by c 50 / 22.5."""
    survey = of_unknown()
    (model,) = pair_models(request(Privacy.LOCAL, 5), None)
    pair = expected_pair(survey, model, clients=50_000.0)
    positives = np.zeros_like(pair.first.counts)
    positives[1] = 1.0
    # Luck of the draw alone, without the noise of reports: 15,000 of 50,000 rows are positives.
    luck = 15_000 * (35_000 / 50_000) * (50 / 22.5 - 1.0)
    assert pair.first.noise.variance(positives) > luck


def test_under_local_privacy_one_survey_of_both_is_as_good_as_two() -> None:
    """A tenth of the rows says who changes sides: 1 / sqrt(0.9) is what that costs the others."""
    known, other = gain(Privacy.LOCAL, 5), pair_gain(unknown())
    assert known.paired["roc_auc"] < 0.9 * known.unpaired["roc_auc"]
    assert other.paired["roc_auc"] < 1.1 * other.unpaired["roc_auc"]
    assert "each row answering for one of the models" in other.sentence()


def test_where_nothing_cancels_no_gain_is_promised_for_scores_that_may_crowd() -> None:
    """One step of 12 cells knows nothing of scores below 0.01; two steps go where they are."""
    found = pair_gain(replace(unknown(), steps=Steps.AUTO))
    assert found.is_drawn
    assert not found.pays
    crowded = found.cases[-1]
    assert crowded.is_crowded
    assert crowded.paired["roc_auc"] == inf > crowded.unpaired["roc_auc"]
    assert "does not pay for sure" in found.sentence()
    asked = "fedassay survey new --privacy local --epsilon 5 --clients 25000"
    assert asked in found.sentence()
    assert "fedassay compare a.json b.json" in found.sentence()
    told = found.to_json()["cases"][-1]
    assert told["paired"]["roc_auc"] is None
    assert told["unpaired"]["roc_auc"] == crowded.unpaired["roc_auc"]


def test_where_a_gain_of_one_step_is_all_there_is_none_is_promised() -> None:
    """The ordinary case alone has the narrower interval, as by a grid that suited it."""
    asked = replace(unknown(), positive_rate=0.25, auc=0.8, clients=163_882, steps=Steps.AUTO)
    found = pair_gain(replace(asked, thresholds=(0.5,)))
    assert found.is_drawn
    narrower = {name: 0.9 * width for name, width in found.cases[0].unpaired.items()}
    found = replace(found, cases=(replace(found.cases[0], paired=narrower), *found.cases[1:]))
    assert found.cases[0].is_narrower
    assert not found.pays
    assert "would have no answer" in found.sentence()


def test_a_gain_that_crowding_would_take_is_told_with_that() -> None:
    found = gain(Privacy.DISTRIBUTED, 1)
    assert found.pays
    assert "Where scores crowd near 0 it does not: no answer instead of" in found.sentence()


def test_two_surveys_are_compared_on_the_same_scores_and_in_their_own_steps() -> None:
    """The second of two steps is made for where the first finds the case's own scores."""
    found = pair_gain(replace(unknown(), steps=Steps.AUTO))
    share = replace(unknown(), clients=25_000, examples=25_000, steps=Steps.AUTO)
    design = quick_design(share)
    assert design.rehearse is not None
    for case, (rate, auc) in zip(found.cases, [(0.3, 0.8), (0.1, 0.7)], strict=False):
        scores = binormal(examples=25_000, positive_rate=rate, auc=auc)
        second = rehearsed(share, design.survey, scores, thorough=False)
        one = forecast_one(design.survey, scores, metric="roc_auc", clients=25_000.0, second=second)
        assert case.scores == f"{100 * rate:g} % positive, ROC AUC {auc:g}"
        assert case.unpaired["roc_auc"] == pytest.approx(one.half_width * 2**0.5)


def test_public_rows_serve_two_surveys_as_well() -> None:
    generator = np.random.default_rng(1)
    labels = (generator.random(4_000) < 0.3).astype(int)
    scores = [0.02 * (generator.random(4_000) + 0.4 * labels) / 1.4 for _ in "ab"]
    references = (Examples(labels, scores[0]), Examples(labels, scores[1]))
    asked = replace(unknown(), steps=Steps.ONE)
    (case,) = pair_gain(asked, references=references).cases
    share = replace(asked, clients=25_000, examples=25_000)
    halves = []
    for side in references:
        own = replace(share, reference=side)
        design = quick_design(own)
        halves.append(
            forecast_one(design.survey, model_for(own), metric="roc_auc", clients=25_000.0)
        )
    expected = np.hypot(halves[0].half_width, halves[1].half_width)
    assert case.unpaired["roc_auc"] == pytest.approx(expected)
    assert case.scores == "as the reference's"


def test_shared_noise_asks_for_fine_margins_and_a_few_joint_cells() -> None:
    survey = chosen(Privacy.DISTRIBUTED, 1)
    assert isinstance(survey.hierarchy, PairLevels)
    first, second, joint = survey.hierarchy.cells_per_level
    assert joint < first * second / 4
    assert survey.epsilon == 1


@pytest.mark.parametrize(("privacy", "epsilon"), [(Privacy.LOCAL, 5), (Privacy.DISTRIBUTED, 1)])
def test_thresholds_are_edges_of_joint_cells(privacy: Privacy, epsilon: int) -> None:
    survey = chosen(privacy, epsilon)
    (model,) = pair_models(request(privacy, epsilon), None)
    pair = expected_pair(survey, model, clients=50_000.0)
    assert 0.35 in pair.rows
    assert 0.35 in pair.columns


def test_expected_joint_counts_have_the_models_margins_and_its_correlation() -> None:
    survey = chosen(Privacy.LOCAL, 5)
    (model,) = pair_models(request(Privacy.LOCAL, 5), None)
    assert survey.pair is not None
    leaves = model.leaves(survey.pair).reshape(2, survey.pair.first.cells, -1)
    assert leaves.sum() == pytest.approx(50_000)
    for label in (0, 1):
        one, other = leaves[label].sum(axis=1), leaves[label].sum(axis=0)
        assert one == pytest.approx(other, rel=0.02, abs=5.0)
        apart = np.outer(one, other) / leaves[label].sum()
        # Models that go together are on the diagonal more often than by chance.
        assert np.trace(leaves[label]) > 1.2 * np.trace(apart)


def test_public_rows_of_both_models_say_how_they_go_together() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 2_000)
    scores = generator.random(2_000)
    references = Examples(labels, scores), Examples(labels, np.sqrt(scores))
    asked = SurveyRequest(clients=1_000)
    (model,) = pair_models(asked, references)
    survey = design_pair(asked, references=references).survey
    assert survey.pair is not None
    leaves = model.leaves(survey.pair)
    seen = survey.pair.count(survey.pair.examples(*references))
    assert np.flatnonzero(leaves).tolist() == np.flatnonzero(seen).tolist()


@cache
def gain(privacy: Privacy, epsilon: int | None) -> PairGain:
    return pair_gain(request(privacy, epsilon))


def test_pairing_pays_with_exact_sums_as_much_as_models_agree() -> None:
    found = gain(Privacy.SECURE, None)
    assert found.pays
    # Sampling alone: sqrt(1 - r) with r the correlation of placements, near that of ranks, 0.8.
    assert 0.35 < found.paired["roc_auc"] / found.unpaired["roc_auc"] < 0.6
    assert found.sentence().startswith("One survey of both models pays: ")
    assert "ranks correlate by 0.8" in found.sentence()
    assert found.to_json()["half_widths"]["paired"] == found.paired


def test_the_gain_is_predicted_for_a_number_of_clients() -> None:
    with pytest.raises(SettingInvalid, match="Add clients=N"):
        pair_gain(SurveyRequest())


def test_two_models_need_a_pair_of_grids() -> None:
    (model, *_) = pair_models(request(Privacy.SECURE, None), None)
    with pytest.raises(SettingInvalid, match=r"need a pair of grids; found one\. Use design_pair"):
        expected_pair(small_survey(), model, clients=10.0)


def test_pairing_that_does_not_pay_is_said_not_to() -> None:
    usual = gain(Privacy.SECURE, None)
    worse = replace(usual.cases[0], paired={"roc_auc": 0.03}, unpaired={"roc_auc": 0.02})
    found = replace(usual, cases=(worse,))
    assert not found.pays
    assert found.sentence().startswith(
        "One survey of both models does not pay for sure: the difference of ROC AUC would be "
        "known to ±0.0300"
    )


def test_under_local_privacy_two_surveys_have_half_of_the_rows_each() -> None:
    """Half of the rows, and so sqrt(2) of the error of one survey, twice: a factor of 2."""
    asked = SurveyRequest(
        privacy=Privacy.LOCAL,
        epsilon=Fraction(5),
        clients=2000,
        steps=Steps.ONE,
        height=2,
        fanout=4,
    )
    half = replace(asked, clients=1000, examples=1000)
    assert _share(asked) == half
    one = forecast_one(quick_design(half).survey, model_for(half), metric="roc_auc", clients=1000.0)
    apart = _apart([(half, quick_design(half))], pair_models(asked, None)[0], "roc_auc")
    assert apart == pytest.approx(one.half_width * 2**0.5)


def test_public_rows_move_the_edges_of_each_model_to_where_its_scores_lie() -> None:
    """Nine in ten of the first model's public scores are below 0.01, none of the second's is."""
    rng = np.random.default_rng(0)
    low = np.where(rng.random(4000) < 0.9, 0.01 * rng.random(4000), rng.random(4000))
    labels = rng.random(4000) < 0.3
    references = Examples(labels, low), Examples(labels, 0.5 + 0.5 * rng.random(4000))
    (grid,) = _pairs(request(Privacy.LOCAL, 5), ("a", "b"), references, 16)
    assert (grid.first.edges < 0.01).sum() > (grid.second.edges < 0.01).sum()
