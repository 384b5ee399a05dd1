"""Predictions, targets, and budgets: what a plan promises before anybody answers."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import foldnorm, norm

from fedassay import Privacy, ScoreHistogram, SurveyDesign, SurveyRequest
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.metrics import named_metrics
from fedassay.planning.boundaries import rank_error, reference_from
from fedassay.planning.build import rebuilt_survey
from fedassay.planning.forecast import (
    Cause,
    ErrorForecast,
    expected_histogram,
    folded_quantile,
    forecast,
    model_for,
    scaled,
)
from fedassay.planning.pipeline import PipelineStep, plan_pipeline
from fedassay.planning.plan import Goal, Plan, make_plan
from fedassay.planning.request import Preset, Steps
from fedassay.planning.score_model import binormal
from fedassay.planning.search import decode_options_for, design_survey
from fedassay.planning.solve import (
    Target,
    clients_needed,
    detectable_difference,
    detectable_on_same_clients,
    epsilon_needed,
    predicted,
)

# The planner plans for a little more than 95 surveys of 100.
PLANNED = 0.965
LOCAL = SurveyRequest(privacy=Privacy.LOCAL, epsilon=Fraction(5), auc=0.8, positive_rate=0.3)
DISTRIBUTED = replace(LOCAL, privacy=Privacy.DISTRIBUTED, epsilon=Fraction(1))
SECURE = replace(LOCAL, privacy=Privacy.SECURE, epsilon=None)


def silent(_: str) -> None:
    """Progress that nobody watches."""


@cache
def chosen(request: SurveyRequest) -> SurveyDesign:
    return design_survey(request)


@cache
def planned(request: SurveyRequest, target: Target) -> Plan:
    return make_plan(request, Goal(target), progress=silent)


@given(st.floats(-3.0, 3.0), st.floats(0.01, 3.0), st.floats(0.5, 0.999))
def test_the_folded_quantile_is_scipys(mean: float, sd: float, probability: float) -> None:
    expected = foldnorm.ppf(probability, abs(mean) / sd, scale=sd)
    assert folded_quantile(mean, sd, probability) == pytest.approx(expected, rel=1e-6)


def test_predictions_have_the_names_of_the_metrics() -> None:
    request = replace(LOCAL, clients=20_000)
    model = model_for(request)
    found = forecast(chosen(request).survey, model, clients=20_000, thresholds=(0.2, 0.5))
    assert list(found) == list(named_metrics(model, (0.2, 0.5)))


def test_exact_sums_have_sampling_errors_only() -> None:
    request = replace(SECURE, clients=20_000)
    found = forecast(chosen(request).survey, model_for(request), clients=20_000)
    assert all(each.noise_sd == 0.0 for each in found.values())
    assert found["roc_auc"].dominates is Cause.SAMPLING
    assert found["accuracy@0.5"].sampling_sd == pytest.approx(
        np.sqrt(found["accuracy@0.5"].value * (1 - found["accuracy@0.5"].value) / 20_000), rel=1e-3
    )


def test_the_papers_readout_predicts_the_papers_noise() -> None:
    """Naive prefix sums feel the noise of every level once: 10 levels, 2 cells at a threshold."""
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED,
        epsilon=Fraction(1),
        clients=20_000,
        dropouts=Fraction(0),
        preset=Preset.PAPER,
    )
    survey, decode_options = design_survey(request).survey, decode_options_for(Preset.PAPER, None)
    expected = expected_histogram(
        survey, model_for(request), clients=20_000, decode_options=decode_options
    )
    a = np.exp(-0.1)
    below = np.stack([np.ones(1024), np.zeros(1024)])
    below[:, 1023:] = 0.0
    # The prefix 1023/1024 adds one cell on each of ten levels.
    assert expected.noise.variance(below) == pytest.approx(10 * 2 * a / (1 - a) ** 2)
    assert not expected.smooth


def test_what_dominates_is_the_largest() -> None:
    base = ErrorForecast(
        value=0.5,
        noise_sd=1e-3,
        sampling_sd=2e-3,
        binning_bound=0.1,
        binning_sd=1e-2,
        binning_bias=-3e-3,
        half_width=0.1,
    )
    assert base.dominates is Cause.BINNING
    assert replace(base, binning_bias=1e-3).dominates is Cause.SAMPLING
    assert replace(base, noise_sd=0.1).dominates is Cause.PRIVACY
    assert replace(base, reason="drowned").error_quantile() == float("inf")


def test_a_redrafted_survey_keeps_its_shape() -> None:
    for request in (replace(LOCAL, clients=50_000), replace(DISTRIBUTED, clients=50_000)):
        survey = chosen(request).survey
        again = rebuilt_survey(request, survey)
        assert again == survey
        dearer = rebuilt_survey(replace(request, epsilon=Fraction(7, 3)), survey)
        assert dearer.epsilon == Fraction(7, 3)
        assert (dearer.grid, dearer.hierarchy) == (survey.grid, survey.hierarchy)


@pytest.mark.parametrize("request_", [LOCAL, DISTRIBUTED, SECURE], ids=["local", "dist", "secure"])
def test_clients_needed_are_enough_and_hardly_more(request_: SurveyRequest) -> None:
    target = Target("roc_auc", 0.01)
    clients = clients_needed(request_, target)
    reaches = []
    for count in (clients, round(0.9 * clients)):
        asked = replace(request_, clients=count)
        reaches.append(predicted(asked, chosen(asked), "roc_auc").error_quantile(PLANNED))
    # The survey is chosen anew for the number found, hence a small slack.
    assert reaches[0] <= 0.01 * 1.02
    assert reaches[1] > 0.01


def test_epsilon_needed_is_enough_and_hardly_more() -> None:
    request, target = replace(LOCAL, clients=50_000), Target("recall@0.5", 0.02)
    epsilon = epsilon_needed(request, target)
    reaches = []
    for value in (epsilon, epsilon * Fraction(9, 10)):
        asked = replace(request, epsilon=value)
        reaches.append(predicted(asked, chosen(asked), target.metric).error_quantile(PLANNED))
    assert reaches[0] <= 0.02 * 1.02
    assert reaches[1] > 0.02
    assert epsilon.denominator <= 1000


def test_impossible_targets_say_which_floor_stands_in_the_way() -> None:
    with pytest.raises(TargetImpossible, match=r"sampling alone leaves .* with 500 examples"):
        epsilon_needed(replace(LOCAL, clients=500), Target("roc_auc", 0.001))
    with pytest.raises(TargetImpossible, match=r"no number of clients .* privacy alone leaves"):
        clients_needed(replace(LOCAL, epsilon=Fraction(1, 1000)), Target("roc_auc", 0.001))


@pytest.mark.parametrize("error", [0.0, -0.1, 1.0, float("nan")])
def test_a_target_error_is_a_small_positive_number(error: float) -> None:
    with pytest.raises(
        SettingInvalid, match=r"target error must (lie between 0 and 1|be a number)"
    ):
        Target("roc_auc", error)


@pytest.mark.parametrize("metric", ["auc", "precision", "precision@2", "roc_auc@0.5", "ece@x", ""])
def test_an_unknown_metric_is_named_with_the_known_ones(metric: str) -> None:
    with pytest.raises(SettingInvalid, match=r"roc_auc.*precision@0\.5"):
        Target(metric, 0.01)


def test_a_detectable_difference_is_seen_with_its_power() -> None:
    """A two-sided z test at 5 % of two independent estimates, by scipy."""
    expected = ErrorForecast(
        value=0.8,
        noise_sd=0.003,
        sampling_sd=0.004,
        binning_bound=0.0,
        binning_sd=0.0,
        binning_bias=0.0,
        half_width=0.01,
    )
    for power in (0.5, 0.8, 0.95):
        difference = detectable_difference(expected, power)
        spread = np.sqrt(2.0) * 0.005
        seen = norm.sf(norm.ppf(0.975) - difference / spread)
        assert seen == pytest.approx(power, abs=1e-3)
    assert detectable_on_same_clients(expected, 0.8) == pytest.approx(
        detectable_difference(replace(expected, sampling_sd=0.0), 0.8)
    )


@pytest.mark.parametrize("power", [0.0, 0.05, 1.0, 1.5, float("nan")])
def test_power_lies_between_false_alarms_and_certainty(power: float) -> None:
    with pytest.raises(SettingInvalid, match=r"power must (lie|be a number)"):
        Goal(power=power)


def test_a_scaled_model_is_the_same_model_of_more() -> None:
    small = binormal(examples=1000.0, positive_rate=0.2, auc=0.7)
    large = scaled(small, 5000.0)
    assert large.counts == pytest.approx(5.0 * small.counts)


def test_a_verdict_says_enough_or_what_would_be() -> None:
    few = planned(replace(LOCAL, clients=5_000), Target("roc_auc", 0.01))
    assert not few.is_enough
    assert few.enough_clients is not None
    assert few.enough_clients > 5_000
    assert f"{few.enough_clients:,} clients" in few.verdict
    many = planned(replace(LOCAL, clients=few.enough_clients * 2), Target("roc_auc", 0.01))
    assert many.is_enough
    assert many.verdict.startswith("Enough: ")
    assert (many.solved_for, many.enough_clients) == ((), None)


def test_a_plan_in_json_has_the_documented_keys() -> None:
    content = planned(replace(LOCAL, clients=5_000), Target("roc_auc", 0.01)).to_json()
    assert content["format"] == "fedassay.plan/1"
    assert {"survey", "predictions", "verdict"} <= set(content)
    keys = {"noise_sd", "binning_bound", "sampling_sd", "half_width"}
    assert all(set(each) == keys for each in content["predictions"].values())
    assert {"roc_auc", "brier", "precision@0.5", "ece"} <= set(content["predictions"])


def test_an_assumed_auc_and_a_reference_contradict_each_other() -> None:
    reference = reference_from(binormal(examples=1000.0, positive_rate=0.3, auc=0.8))
    with pytest.raises(SettingInvalid, match="Drop one of the two"):
        design_survey(replace(LOCAL, clients=1000, reference=reference))


def test_a_reference_from_a_histogram_has_its_quantiles() -> None:
    model = binormal(examples=1e6, positive_rate=0.2, auc=0.85)
    found = reference_from(model)
    for label in (0, 1):
        scores = np.sort(found.scores[found.labels == label])
        ranks = np.interp(scores, model.edges, model.cumulative[label] / model.counts[label].sum())
        assert np.abs(ranks - (np.arange(len(scores)) + 0.5) / len(scores)).max() < 1e-3
    empty = ScoreHistogram(np.array([0.0, 0.5, 1.0]), np.array([[5.0, 5.0], [0.0, 0.0]]))
    with pytest.raises(SettingInvalid, match="both classes"):
        reference_from(empty)


def test_a_grid_from_an_earlier_histogram_is_finer_than_that_one() -> None:
    """Where noise is small beside luck: 14,000 rows at epsilon 1/4, known in eight even cells.

    Rows that are smooth inside eight cells would seem to need no more than those.
    """
    counts = [[7000, 2000, 600, 250, 100, 40, 9, 1], [500, 800, 650, 450, 300, 200, 80, 20]]
    coarse = ScoreHistogram(np.linspace(0.0, 1.0, 9), np.array(counts, dtype=np.float64))
    request = SurveyRequest(
        privacy=Privacy.DISTRIBUTED,
        epsilon=Fraction(1, 4),
        clients=14_000,
        steps=Steps.ONE,
        reference=reference_from(coarse),
    )
    assert design_survey(request).survey.grid.cells >= 16


def test_boundaries_are_better_known_with_more_epsilon() -> None:
    errors = []
    for epsilon in (Fraction(1), Fraction(4)):
        request = replace(LOCAL, clients=50_000, epsilon=epsilon)
        expected = expected_histogram(chosen(request).survey, model_for(request), clients=50_000)
        errors.append(rank_error(expected))
    assert errors[1] < errors[0]


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7, 10)])
def test_a_pipeline_spends_its_epsilon_exactly(epsilon: Fraction) -> None:
    request = replace(DISTRIBUTED, clients=20_000, epsilon=epsilon)
    stages = [PipelineStep.EVALUATION, PipelineStep.CALIBRATION, PipelineStep.MONITORING]
    found = plan_pipeline(request, stages, generator=np.random.default_rng(0), progress=silent)
    assert [each.stage for each in found.stages] == stages
    assert found.epsilon == epsilon
    assert sum(each.share for each in found.stages) == 1
    for each in found.stages:
        assert each.design.survey.epsilon == each.epsilon
        assert 0.0 < each.error < 1.0


def test_a_weight_buys_a_stage_more_epsilon() -> None:
    request = replace(LOCAL, clients=50_000)
    stages = [PipelineStep.EVALUATION, PipelineStep.CALIBRATION]
    shares = []
    for weight in (1.0, 5.0):
        found = plan_pipeline(
            request,
            stages,
            weights={PipelineStep.CALIBRATION: weight},
            generator=np.random.default_rng(0),
            progress=silent,
        )
        shares.append(found.stages[1].share)
    assert shares[1] > shares[0]


def test_boundaries_come_first_and_give_the_others_a_warped_grid() -> None:
    request = replace(LOCAL, clients=200_000, positive_rate=0.05)
    found = plan_pipeline(
        request,
        [PipelineStep.BOUNDARIES, PipelineStep.EVALUATION],
        generator=np.random.default_rng(0),
        progress=silent,
    )
    assert found.epsilon == 5
    edges = found.stages[1].design.survey.grid.edges
    # With 5 % positives half of the balanced mass lies below 0.1.
    assert np.median(edges) < 0.25


@pytest.mark.parametrize(
    ("stages", "changes", "words"),
    [
        ([PipelineStep.EVALUATION], {}, "at least two"),
        ([PipelineStep.EVALUATION, PipelineStep.EVALUATION], {}, "named once"),
        ([PipelineStep.EVALUATION, PipelineStep.BOUNDARIES], {}, "come first"),
        (
            [PipelineStep.EVALUATION, PipelineStep.MONITORING],
            {"clients": None},
            "number of clients",
        ),
        (
            [PipelineStep.EVALUATION, PipelineStep.MONITORING],
            {"privacy": Privacy.SECURE, "epsilon": None},
            "none to split",
        ),
    ],
)
def test_a_pipeline_that_makes_no_sense_is_refused(
    stages: list[PipelineStep], changes: dict[str, object], words: str
) -> None:
    request = replace(replace(LOCAL, clients=1000), **changes)  # type: ignore[arg-type]  # settings by name
    with pytest.raises(SettingInvalid, match=words):
        plan_pipeline(request, stages, generator=np.random.default_rng(0), progress=silent)
