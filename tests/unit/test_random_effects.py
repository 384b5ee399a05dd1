"""Sites pooled: published figures, few sites, priors, and what each interval covers."""

from math import isnan, nan, sqrt

import numpy as np
import pytest
from scipy import integrate, stats

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.sites import (
    Heterogeneity,
    PoolOptions,
    PredictionRule,
    Scale,
    SiteEffects,
    TauEstimator,
    TauPrior,
    leave_one_out,
    pool_sites,
    site_effects,
)
from tests import published

AUCS = (0.74, 0.76, 0.77, 0.78, 0.78, 0.79, 0.80, 0.81, 0.83)


def aucs(*values: float, sd: float = 0.01) -> SiteEffects:
    found = {f"{i}": Estimate(value, sampling_sd=sd) for i, value in enumerate(values)}
    return site_effects("roc_auc", found)


def with_estimator(estimator: TauEstimator) -> PoolOptions:
    return PoolOptions(estimator=estimator)


def test_the_bcg_trials_pool_as_in_metafor() -> None:
    found = pool_sites(published.bcg().effects())
    assert found.mean == pytest.approx(published.BCG_REML["mean"], abs=1e-6)
    assert found.tau**2 == pytest.approx(published.BCG_REML["tau2"], abs=1e-6)
    assert found.q == pytest.approx(published.BCG_REML["q"], abs=1e-6)
    assert found.i2 == pytest.approx(published.BCG_I2, abs=5e-5)


def test_kackers_data_pool_as_in_metafor() -> None:
    found = pool_sites(published.KACKER.effects(), with_estimator(TauEstimator.PAULE_MANDEL))
    assert found.mean == pytest.approx(published.KACKER_PAULE_MANDEL["mean"], abs=1e-9)
    assert found.q == pytest.approx(published.KACKER_PAULE_MANDEL["q"], abs=1e-9)
    assert found.i2 == pytest.approx(published.KACKER_PAULE_MANDEL["i2"], abs=1e-9)


@pytest.mark.parametrize(
    ("studies", "figures"),
    [
        (published.KACKER, published.KACKER_DERSIMONIAN_LAIRD),
        (published.bcg(), published.BCG_DERSIMONIAN_LAIRD),
    ],
)
def test_the_means_interval_is_that_of_hartung_knapp_sidik_and_jonkman_in_metafor(
    studies: published.Studies, figures: dict[str, float]
) -> None:
    found = pool_sites(studies.effects(), with_estimator(TauEstimator.DERSIMONIAN_LAIRD))
    assert found.mean == pytest.approx(figures["mean"], abs=1e-6)
    assert found.interval.low == pytest.approx(figures["low"], abs=1e-6)
    assert found.interval.high == pytest.approx(figures["high"], abs=1e-6)


def test_leaving_the_first_trial_out_is_metafors() -> None:
    found = leave_one_out(published.bcg().effects())[0].others
    figures = published.BCG_WITHOUT_FIRST
    assert found.mean == pytest.approx(figures["mean"], abs=1e-6)
    assert found.tau**2 == pytest.approx(figures["tau2"], abs=1e-6)
    assert found.q == pytest.approx(figures["q"], abs=1e-6)
    assert found.i2 == pytest.approx(figures["i2"], abs=1e-6)


def test_the_student_prediction_interval_is_partlett_and_rileys() -> None:
    studies = published.bcg()
    found = pool_sites(studies.effects(), PoolOptions(rule=PredictionRule.STUDENT))
    weights = 1.0 / (studies.variances + found.tau**2)
    mean = weights @ studies.values / weights.sum()
    q = weights @ (studies.values - mean) ** 2 / 12.0
    half = stats.t.ppf(0.975, 11) * sqrt(found.tau**2 + q / weights.sum())
    assert found.prediction.low == pytest.approx(mean - half, abs=1e-9)
    assert found.prediction.high == pytest.approx(mean + half, abs=1e-9)
    above = stats.t.sf(-mean / half * stats.t.ppf(0.975, 11), 11)
    assert found.chance(0.0) == pytest.approx(above, abs=1e-9)


def test_the_mean_may_be_kept_from_being_narrower_than_with_tau_known() -> None:
    alike = aucs(0.780, 0.781, 0.779, 0.780, 0.782, sd=0.02)
    plain, kept = pool_sites(alike), pool_sites(alike, PoolOptions(never_narrower=True))
    # Five sites of one standard deviation: without tau, t of 4 degrees times sd / sqrt(5).
    half = stats.t.ppf(0.975, 4) * 0.02 / sqrt(5)
    assert kept.interval.high - kept.interval.low == pytest.approx(2 * half, rel=0.01)
    assert plain.interval.high - plain.interval.low < 0.1 * (kept.interval.high - kept.interval.low)
    assert "never narrower" in kept.how


def test_with_exact_sites_a_prediction_is_the_normal_samples_own() -> None:
    values = np.array([0.3, 0.9, 1.1, 1.2, 1.6, 1.9, 2.0, 2.8, 3.1, 4.0])
    studies = published.Studies(values, np.full(10, 1e-8))
    found = pool_sites(studies.effects())
    half = stats.t.ppf(0.975, 9) * values.std(ddof=1) * sqrt(1.0 + 0.1)
    assert found.prediction.low == pytest.approx(values.mean() - half, rel=2e-3)
    assert found.prediction.high == pytest.approx(values.mean() + half, rel=2e-3)
    assert found.chance(values.mean() + half) == pytest.approx(0.025, abs=2e-4)


def test_figures_of_a_roc_auc_are_areas_and_tau_is_on_the_logit_scale() -> None:
    found = pool_sites(aucs(*AUCS))
    assert found.scale is Scale.LOGIT
    assert min(AUCS) < found.mean < max(AUCS)
    assert 0.0 < found.prediction.low < min(AUCS)
    assert max(AUCS) < found.prediction.high < 1.0
    # A spread of areas of 0.026 around 0.785 is one of 0.156 on the logit scale.
    assert found.tau == pytest.approx(sqrt(0.0266**2 - 0.01**2) / (0.785 * 0.215), rel=0.1)


def test_one_site_gives_its_own_interval_and_says_what_it_cannot() -> None:
    found = pool_sites(aucs(0.8))
    assert found.mean == pytest.approx(0.8)
    assert [round(end, 3) for end in found.interval] == [0.78, 0.819]
    assert isnan(found.tau)
    assert isnan(found.prediction.low)
    assert isnan(found.chance(0.7))
    assert found.notes[0].startswith("One site: the interval is of new rows of this site")


def test_two_sites_give_a_mean_and_no_prediction() -> None:
    found = pool_sites(aucs(0.75, 0.85))
    middle = (np.log(3.0) + np.log(0.85 / 0.15)) / 2.0
    assert found.effect == pytest.approx(middle, abs=0.02)
    # Both effects and t with one degree, 12.7.
    assert found.interval.high > 0.95
    assert isnan(found.prediction.low)
    assert found.notes[0].startswith("Two sites: tau is read from one difference")


def test_fewer_than_eight_sites_are_called_unreliable_and_eight_are_not() -> None:
    assert "fewer than 8" in pool_sites(aucs(*AUCS[:7])).notes[0]
    assert pool_sites(aucs(*AUCS[:8])).notes == ()


def test_no_site_gives_no_figure_and_a_sentence() -> None:
    found = pool_sites(site_effects("roc_auc", {"a": Estimate(nan)}))
    assert found.sites == 0
    assert isnan(found.mean)
    assert found.left_out[0].reason == "there is no value"
    assert "No site has an effect" in str(found)


def test_a_prior_for_tau_is_the_published_one_stretched_to_the_logit_scale() -> None:
    mean, sd = TauPrior().log_moments(Scale.LOGIT, 0.8)
    drawn = stats.lognorm(s=sd, scale=np.exp(mean))
    assert drawn.mean() == pytest.approx(0.055 / 0.16, rel=1e-9)
    assert drawn.std() == pytest.approx(0.015 / 0.16, rel=1e-9)


def test_with_a_prior_one_site_has_a_prediction_by_integration() -> None:
    found = pool_sites(aucs(0.8), PoolOptions(prior=TauPrior()))
    centre, sd = TauPrior().log_moments(Scale.LOGIT, 0.8)
    own = (0.01 * 6.25) ** 2

    def below(effect: float) -> float:
        def part(log_tau: float) -> float:
            # This site is tau from the mean, and so is the new one.
            spread = sqrt(own + 2.0 * np.exp(2.0 * log_tau))
            density = stats.norm.pdf(log_tau, centre, sd)
            return float(density * stats.norm.cdf((effect - np.log(4.0)) / spread))

        return float(integrate.quad(part, centre - 8 * sd, centre + 8 * sd)[0])

    for end, wanted in zip(found.prediction, (0.025, 0.975), strict=True):
        assert below(np.log(end / (1.0 - end))) == pytest.approx(wanted, abs=1e-5)
    assert "the intervals rest on it" in found.notes[0]


def test_a_prior_keeps_two_equal_sites_from_looking_like_all_sites() -> None:
    found = pool_sites(aucs(0.8, 0.8), PoolOptions(prior=TauPrior()))
    low, high = found.prediction
    # tau of 0.055 and no knowledge beyond: at least two of them to both sides (sim.70011).
    assert low < 0.8 - 0.09
    assert high > 0.8 + 0.07
    assert found.tau * 0.16 == pytest.approx(0.05, abs=0.01)


def test_many_sites_outweigh_a_prior() -> None:
    generator = np.random.default_rng(3)
    effects = 1.3 + 0.02 * generator.normal(size=200)
    values = 1.0 / (1.0 + np.exp(-effects))
    found = pool_sites(aucs(*values, sd=0.001), PoolOptions(prior=TauPrior()))
    assert found.tau == pytest.approx(effects.std(ddof=1), rel=0.1)


def test_a_prior_of_another_metric_is_refused() -> None:
    effects = site_effects("oe_ratio", {"a": Estimate(1.0, sampling_sd=0.1)})
    with pytest.raises(SettingInvalid, match="one of roc_auc for oe_ratio"):
        pool_sites(effects, PoolOptions(prior=TauPrior()))


def test_a_site_apart_is_outside_what_the_others_predict_and_its_own_error_counts() -> None:
    held = leave_one_out(aucs(*AUCS, 0.95))
    assert [each.effect.site for each in held if not each.inside] == ["9"]
    blurred = dict(zip(map(str, range(10)), (*AUCS, 0.95), strict=True))
    sds = dict.fromkeys(blurred, 0.01) | {"9": 0.05}
    found = {site: Estimate(auc, sampling_sd=sds[site]) for site, auc in blurred.items()}
    last = leave_one_out(site_effects("roc_auc", found))[-1]
    assert last.inside
    assert last.expected.high > last.others.prediction.high


def test_leaving_one_of_three_out_is_refused_with_the_remedy() -> None:
    with pytest.raises(SettingInvalid, match="at least four with an effect; found 3"):
        leave_one_out(aucs(0.7, 0.8, 0.75))


def test_chances_fall_with_what_is_wanted_and_end_beyond_the_scale() -> None:
    found = pool_sites(aucs(*AUCS))
    chances = [found.chance(wanted) for wanted in (0.0, 0.6, 0.75, 0.8, 0.9, 1.0)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == 1.0
    assert chances[-1] == 0.0
    low, high = found.prediction
    assert found.chance(low) == pytest.approx(0.975, abs=1e-9)
    assert found.chance(high) == pytest.approx(0.025, abs=1e-9)


def test_files_hold_the_named_figures_and_none_for_what_cannot_be_said() -> None:
    names = ["mean", "low", "high", "tau", "i2", "prediction_low", "prediction_high", "sites"]
    assert list(pool_sites(aucs(*AUCS)).to_json()) == names
    alone = pool_sites(aucs(0.8)).to_json()
    assert (alone["tau"], alone["prediction_low"], alone["sites"]) == (None, None, 1)


def test_what_is_not_effects_or_options_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="what is pooled must be a SiteEffects"):
        pool_sites({"a": 0.8})  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="Write PoolOptions"):
        pool_sites(aucs(0.8), "REML")  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match=r"TauEstimator\.REML"):
        PoolOptions(estimator="REML")  # type: ignore[arg-type]  # what a user may pass
    with pytest.raises(SettingInvalid, match="mean and an sd above 0"):
        TauPrior(mean=0.0)


def test_the_sentence_says_mean_new_site_and_spread() -> None:
    text = str(pool_sites(aucs(*AUCS)))
    assert text.startswith("roc_auc over 9 sites: mean 0.78")
    assert "; a new site 0.7" in text
    assert "(logit scale), I² " in text
    assert isinstance(pool_sites(aucs(*AUCS)), Heterogeneity)
