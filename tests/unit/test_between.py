"""Sites of an assessment: each site's own figures against scikit-learn on its own rows."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from fedassay import ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.sites import PoolOptions, SeenSites, SiteEffect, SummedSites, TauPrior, site_moments
from fedassay.sites.between import USUAL_METRICS, compared_metrics, site_metrics
from tests.tables import flights_by_carrier

ROWS = flights_by_carrier()
SITES = SeenSites({name: ScoreHistogram.from_scores(y, s) for name, (y, s) in ROWS.items()})


def test_a_sites_own_figures_are_scikit_learns_on_its_rows() -> None:
    for name, site in SITES.items():
        y, s = ROWS[name]
        assert (site.rows, site.events) == (len(y), y.sum())
        if 0 < y.sum() < len(y):
            assert site["roc_auc"].value == pytest.approx(roc_auc_score(y, s), abs=2e-4)
        assert site["brier"].value == pytest.approx(brier_score_loss(y, s), abs=1e-4)
        assert site["oe_ratio"].value == pytest.approx(y.sum() / s.sum(), rel=1e-3)


def test_each_site_has_the_usual_metrics_those_at_thresholds_and_what_is_asked_for() -> None:
    found = SITES.estimates((0.3,), ["ks"])
    assert set(found) == set(ROWS)
    assert tuple(found["UA"]) == site_metrics((0.3,), ["ks"])
    y, s = ROWS["UA"]
    assert found["UA"]["recall@0.3"].value == pytest.approx((s[y == 1] > 0.3).mean(), abs=2e-3)
    assert set(USUAL_METRICS) < set(found["UA"])


def test_every_site_is_compared_or_listed() -> None:
    found = SITES.heterogeneity("roc_auc")
    assert found.sites + len(found.left_out) == len(ROWS)
    small = {name for name, (y, _) in ROWS.items() if min(y.sum(), len(y) - y.sum()) < 10}
    assert {left.site for left in found.left_out} == small == {"HA", "OO"}


def test_no_site_one_and_two_give_a_sentence_and_what_can_be_said() -> None:
    few = {name: SITES.histograms[name] for name in ("UA", "DL")}
    nothing, one, two = (
        SeenSites(dict(list(few.items())[:count])).heterogeneity("roc_auc") for count in range(3)
    )
    assert nothing.notes[0].startswith("No site has an effect")
    assert one.notes[0].startswith("One site")
    assert one.interval.low < one.mean
    assert two.notes[0].startswith("Two sites")
    assert np.isnan(two.prediction.low)
    assert not np.isnan(two.interval.low)
    assert SeenSites(few).leave_one_out("roc_auc") == ()


def test_an_unknown_site_or_metric_is_refused_by_name() -> None:
    with pytest.raises(SettingInvalid, match="a site is one of"):
        SITES["XX"]
    with pytest.raises(SettingInvalid, match="auc"):
        SITES.heterogeneity("auc")


def summed(sites: int, colluders: int = 0) -> SummedSites:
    effects = [SiteEffect("", 1.0 + 0.1 * i, 0.01) for i in range(sites)]
    words = np.sum([site_moments(each, 63) for each in effects], axis=0)
    moments = {"roc_auc": tuple(words.tolist())}
    return SummedSites(moments=moments, most_sites=63, colluders=colluders)


def test_sums_of_moments_answer_as_the_sites_do_without_weights() -> None:
    found = summed(9).heterogeneity("roc_auc")
    values = 1.0 + 0.1 * np.arange(9)
    assert found.effect == pytest.approx(values.mean(), abs=1e-6)
    assert found.tau == pytest.approx((values.var(ddof=1) - 0.01) ** 0.5, abs=1e-5)


@pytest.mark.parametrize(("sites", "colluders"), [(4, 0), (6, 2)])
def test_sums_of_too_few_honest_sites_give_a_sentence_and_no_figure(
    sites: int, colluders: int
) -> None:
    found = summed(sites, colluders).heterogeneity("roc_auc")
    assert np.isnan(found.mean)
    assert np.isnan(found.tau)
    assert "at least 5 honest sites" in found.notes[0]


def test_sums_take_no_prior_and_know_only_what_was_added() -> None:
    with pytest.raises(SettingInvalid, match="no prior"):
        summed(9).heterogeneity("roc_auc", PoolOptions(prior=TauPrior()))
    with pytest.raises(SettingInvalid, match="whose moments were added"):
        summed(9).heterogeneity("oe_ratio")
    assert compared_metrics(summed(9), ["ks"]) == ("roc_auc",)
