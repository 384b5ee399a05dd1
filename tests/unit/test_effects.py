"""A site's figure on the scale where sites differ normally, or the reason why there is none."""

from math import inf, log, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from fedassay import Grid, ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, NotEnoughData
from fedassay.metrics.named import AT_THRESHOLD, OVERALL
from fedassay.sites import Scale, SiteEffect, SiteEffects, histogram_effects, scale_of, site_effects


@given(st.floats(1e-6, 1.0 - 1e-6))
def test_a_logit_goes_forth_and_back_as_in_scipy(value: float) -> None:
    assert Scale.LOGIT.forward(value) == pytest.approx(float(logit(value)), rel=1e-9, abs=1e-12)
    assert Scale.LOGIT.back(Scale.LOGIT.forward(value)) == pytest.approx(value, rel=1e-9)
    assert Scale.LOG.back(Scale.LOG.forward(value)) == pytest.approx(value, rel=1e-9)


@given(st.floats(-1e4, 1e4))
def test_no_effect_is_too_large_to_come_back(effect: float) -> None:
    assert Scale.LOGIT.back(effect) == pytest.approx(float(expit(effect)), rel=1e-9, abs=1e-300)
    assert Scale.LOG.back(effect) >= 0.0
    assert Scale.IDENTITY.back(effect) == effect


@pytest.mark.parametrize("scale", Scale)
def test_the_slope_is_that_of_the_scale(scale: Scale) -> None:
    for value in (0.2, 0.5, 0.9):
        rise = (scale.forward(value + 1e-6) - scale.forward(value - 1e-6)) / 2e-6
        assert scale.slope(value) == pytest.approx(rise, rel=1e-6)


def test_metrics_have_the_scale_that_makes_sites_normal() -> None:
    assert scale_of("roc_auc") is Scale.LOGIT
    assert scale_of("oe_ratio") is Scale.LOG
    assert scale_of("calibration_slope") is Scale.IDENTITY
    assert scale_of("recall@0.5") is Scale.LOGIT
    assert scale_of("net_benefit@0.1") is Scale.IDENTITY
    assert scale_of("mcc@0.5") is Scale.IDENTITY


def test_logits_are_for_metrics_that_cannot_be_negative_or_above_one() -> None:
    rows = [0, 1] * 50, [i / 100 for i in range(100)]
    histogram = ScoreHistogram.from_scores(*rows)
    upside_down = ScoreHistogram.from_scores([1] * 50 + [0] * 50, rows[1])
    for name, metric in OVERALL.items():
        if scale_of(name) is Scale.LOGIT:
            assert all(0.0 <= metric(each).value <= 1.0 for each in (histogram, upside_down))
    for name, at in AT_THRESHOLD.items():
        if scale_of(name) is Scale.LOGIT:
            assert all(0.0 <= at(each, 0.5).value <= 1.0 for each in (histogram, upside_down))


def test_an_effects_variance_is_of_sampling_noise_and_binning_together() -> None:
    estimate = Estimate(0.8, sampling_sd=0.03, noise_sd=0.02, binning_sd=0.01)
    (effect,) = site_effects("roc_auc", {"a": estimate}).effects
    assert effect.value == pytest.approx(log(4.0))
    assert effect.variance == pytest.approx(0.0014 * 6.25**2)
    (effect,) = site_effects("oe_ratio", {"a": estimate}).effects
    assert effect.variance == pytest.approx(0.0014 / 0.8**2)


def test_an_effect_of_rows_is_the_logit_of_scikit_learns_area() -> None:
    generator = np.random.default_rng(5)
    labels = generator.integers(0, 2, 400)
    scores = np.clip(0.3 * labels + 0.7 * generator.random(400), 0.0, 1.0)
    found = histogram_effects("roc_auc", {"a": ScoreHistogram.from_scores(labels, scores)})
    area = roc_auc_score(labels, scores)
    assert found.effects[0].value == pytest.approx(float(logit(area)), abs=1e-3)
    draws = []
    for _ in range(300):
        rows = generator.integers(0, 400, 400)
        draws.append(logit(roc_auc_score(labels[rows], scores[rows])))
    assert found.effects[0].variance == pytest.approx(np.var(draws), rel=0.3)


def test_a_site_without_positives_or_with_few_is_listed_with_the_reason() -> None:
    fine = Grid.fine()
    many = ScoreHistogram.from_scores([0, 1] * 20, [i / 40 for i in range(40)], grid=fine)
    none = ScoreHistogram.from_scores([0] * 40, [i / 40 for i in range(40)], grid=fine)
    nine = [int(i % 4 == 0) for i in range(36)] + [0] * 4
    few = ScoreHistogram.from_scores(nine, [i / 40 for i in range(40)], grid=fine)
    found = histogram_effects("roc_auc", {"many": many, "none": none, "few": few})
    assert [each.site for each in found.effects] == ["many"]
    reasons = {each.site: each.reason for each in found.left_out}
    assert reasons["none"].startswith("it has 0 positives; at least 10")
    assert reasons["few"].startswith("it has 9 positives; at least 10")
    assert len(histogram_effects("roc_auc", {"few": few}, fewest=9)) == 1


def test_every_site_is_either_pooled_or_listed() -> None:
    estimates = {
        "good": Estimate(0.8, sampling_sd=0.01),
        "perfect": Estimate(1.0, sampling_sd=0.01),
        "noisy": Estimate(1.03, noise_sd=0.05),
        "empty": NotEnoughData(reason="no rows"),
        "unknown": Estimate(nan),
        "sure": Estimate(0.8),
        "lost": Estimate(0.8, sampling_sd=inf),
    }
    found = site_effects("roc_auc", estimates)
    reasons = {each.site: each.reason for each in found.left_out}
    assert [each.site for each in found.effects] == ["good"]
    assert reasons == {
        "perfect": "its value 1 has no logit",
        "noisy": "its value 1.03 has no logit",
        "empty": "no rows",
        "unknown": "there is no value",
        "sure": "its error is not known",
        "lost": "its error is not known",
    }


def test_a_site_stands_once() -> None:
    twice = (SiteEffect("a", 1.0, 0.1), SiteEffect("a", 1.1, 0.1))
    with pytest.raises(SettingInvalid, match="found a name twice"):
        SiteEffects("roc_auc", Scale.LOGIT, twice)


def test_a_site_that_withdraws_is_as_if_it_had_never_been() -> None:
    estimates = {site: Estimate(0.8, sampling_sd=0.01) for site in "abc"}
    kept = {site: estimates[site] for site in "ac"}
    assert site_effects("ks", estimates).without("b") == site_effects("ks", kept)
    with pytest.raises(SettingInvalid, match="There are: a, b, c"):
        site_effects("ks", estimates).without("d")


def test_a_sites_own_interval_is_on_its_scale() -> None:
    found = site_effects("oe_ratio", {"a": Estimate(2.0, sampling_sd=0.2)})
    low, high = found.interval(found.effects[0])
    assert low * high == pytest.approx(4.0)
    assert high == pytest.approx(2.0 * np.exp(1.959964 * 0.1), rel=1e-6)


def test_what_is_no_mapping_of_estimates_is_refused() -> None:
    with pytest.raises(SettingInvalid, match=r"Write them as \{site: estimate\}"):
        site_effects("roc_auc", [0.8])  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="a site's figure must be an Estimate"):
        site_effects("roc_auc", {"a": 0.8})  # type: ignore[dict-item]  # what a user may pass
    with pytest.raises(SettingInvalid, match="Name sites by texts"):
        site_effects("roc_auc", {1: Estimate(0.8)})  # type: ignore[dict-item]  # what a user may pass
    with pytest.raises(SettingInvalid, match=r"Write them as \{site: histogram\}"):
        histogram_effects("roc_auc", [0.8])  # type: ignore[arg-type]  # what a user may pass
