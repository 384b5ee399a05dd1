"""Sites before a study: simulated studies of that many sites show what was promised."""

import numpy as np
import pytest
from scipy import stats

from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.sites import Scale, SiteEffect, SiteEffects, pool_sites
from fedassay.sites.how_many_sites import (
    expected_prediction,
    power_to_see_heterogeneity,
    sites_for_prediction,
    sites_to_see_heterogeneity,
)


def test_power_is_how_often_q_is_seen_in_simulated_studies() -> None:
    generator = np.random.default_rng(6)
    k, tau, sd = 12, 0.1, 0.08
    effects = generator.normal(size=(20_000, k)) * np.sqrt(tau**2 + sd**2)
    q = (effects.var(axis=1, ddof=1) * (k - 1)) / sd**2
    seen = (q > stats.chi2.ppf(0.95, k - 1)).mean()
    assert power_to_see_heterogeneity(k, tau, sd) == pytest.approx(seen, abs=0.02)
    # Equal sites cry wolf as often as allowed.
    assert power_to_see_heterogeneity(k, 0.0, sd) == pytest.approx(0.05, abs=1e-9)


def test_the_fewest_sites_have_the_power_and_one_less_has_not() -> None:
    for tau, sd in ((0.1, 0.1), (0.2, 0.1), (0.05, 0.1)):
        k = sites_to_see_heterogeneity(tau, sd)
        assert power_to_see_heterogeneity(k, tau, sd) >= 0.8
        assert k == 2 or power_to_see_heterogeneity(k - 1, tau, sd) < 0.8


def test_an_expected_interval_is_the_middle_of_those_of_simulated_studies() -> None:
    generator = np.random.default_rng(7)
    k, tau, sd = 14, 0.12, 0.06
    low, high = expected_prediction(k, tau, sd, metric="roc_auc", value=0.8)
    widths = []
    for _ in range(150):
        values = np.log(4.0) + generator.normal(size=k) * np.sqrt(tau**2 + sd**2)
        sites = tuple(SiteEffect(f"{i}", float(y), sd**2) for i, y in enumerate(values))
        found = pool_sites(SiteEffects("roc_auc", Scale.LOGIT, sites))
        widths.append(found.prediction.high - found.prediction.low)
    assert high - low == pytest.approx(np.median(widths), rel=0.08)


def test_enough_sites_foretell_within_the_width_and_one_less_does_not() -> None:
    k = sites_for_prediction(0.085, 0.1, 0.1, metric="roc_auc", value=0.8)
    for sites, narrow in ((k, True), (k - 1, False)):
        low, high = expected_prediction(sites, 0.1, 0.1, metric="roc_auc", value=0.8)
        assert (high - low <= 0.085) is narrow


def test_no_number_of_sites_foretells_better_than_sites_differ() -> None:
    # 1.96 times 0.1 to both sides of a logit of log 4.
    ends = 1.0 / (1.0 + np.exp(-(np.log(4.0) + np.array([-0.196, 0.196]))))
    floor = ends[1] - ends[0]
    with pytest.raises(TargetImpossible, match=f"than {floor:.2g}: so far apart"):
        sites_for_prediction(0.999 * floor, 0.1, 0.1, metric="roc_auc", value=0.8)
    assert sites_for_prediction(1.05 * floor, 0.1, 0.1, metric="roc_auc", value=0.8) > 20


def test_spreads_and_counts_out_of_range_are_refused() -> None:
    with pytest.raises(SettingInvalid, match="tau must be above 0"):
        sites_to_see_heterogeneity(0.0, 0.1)
    with pytest.raises(SettingInvalid, match="tau must be 0 or more"):
        power_to_see_heterogeneity(8, -0.1, 0.1)
    with pytest.raises(SettingInvalid, match="sites must be at least 2"):
        power_to_see_heterogeneity(1, 0.1, 0.1)
    with pytest.raises(SettingInvalid, match="the power lies between 0 and 1"):
        sites_to_see_heterogeneity(0.1, 0.1, power=1.0)
