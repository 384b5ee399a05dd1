"""What is said of sites, in one line, in a notebook, and where nearly nothing is known."""

import pytest
from scipy import stats

from fedassay import ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate
from fedassay.sites import SeenSites, pool_sites, site_effects
from fedassay.sites.between import SeenSite
from fedassay.sites.pooling import pooled_histogram
from fedassay.sites.predictive import Student


def test_a_line_says_as_much_as_so_many_sites_tell() -> None:
    found = {f"{i}": Estimate(0.8, sampling_sd=0.01) for i in range(3)}
    three = str(pool_sites(site_effects("roc_auc", found)))
    assert three.startswith("roc_auc over 3 sites: mean 0.8 [")
    assert "; tau 0 (logit scale), I² 0%." in three
    one = pool_sites(site_effects("roc_auc", {"0": Estimate(0.8, sampling_sd=0.01)}))
    assert str(one).startswith("roc_auc over 1 sites: mean 0.8.")
    assert repr(one) == f"<Heterogeneity {one}>"
    assert "roc_auc over 1 sites" in one._repr_html_()


def test_sites_are_called_by_their_names() -> None:
    histogram = ScoreHistogram.from_scores([0, 1], [0.2, 0.7])
    sites = SeenSites({"north": histogram, "south": histogram})
    assert repr(sites) == "<SeenSites: north, south>"
    assert repr(sites["north"]).startswith("<SeenSite north: ")
    assert isinstance(sites["north"], SeenSite)


def test_there_must_be_a_site_to_pool() -> None:
    with pytest.raises(SettingInvalid, match=r"a site to pool; found none"):
        pooled_histogram([])


@pytest.mark.parametrize(("value", "chance"), [(0.4, 1.0), (0.5, 1.0), (0.6, 0.0)])
def test_where_sites_do_not_differ_a_new_one_is_known(value: float, chance: float) -> None:
    assert Student(0.5, 0.0, 4).above(value) == chance


def test_a_new_site_is_observed_with_its_own_error_on_top() -> None:
    observed = Student(0.5, 0.3, 4).with_error(0.16)
    assert observed.above(0.7) == pytest.approx(stats.t.sf((0.7 - 0.5) / 0.5, 4))
