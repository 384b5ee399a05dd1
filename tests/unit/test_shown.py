"""Sites in words: what a terminal of 80 columns shows of them."""

import json

import pytest

from fedassay import ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.presentation import aligned
from fedassay.sites import PoolOptions, SeenSites, TauPrior
from fedassay.sites.between import compared_metrics
from fedassay.sites.shown import (
    BETWEEN_HEADER,
    SITE_HEADER,
    between_lines,
    between_rows,
    covered,
    heterogeneity_json,
    site_rows,
    sites_parts,
    tau_priors,
    wanted_values,
)
from tests.tables import flights_by_carrier

SITES = SeenSites(
    {
        f"{name} airlines of the north": ScoreHistogram.from_scores(y, s)
        for name, (y, s) in flights_by_carrier().items()
    }
)
FOUND = [SITES.heterogeneity(metric) for metric in compared_metrics(SITES)]


def test_tables_fit_80_columns_and_list_every_site() -> None:
    rows = site_rows(SITES)
    assert len(rows) == len(SITES) == 16
    tables = aligned(SITE_HEADER, rows) + "\n" + aligned(BETWEEN_HEADER, between_rows(FOUND))
    assert max(map(len, tables.split("\n"))) <= 80


def test_a_site_that_is_too_small_is_listed_with_its_reason() -> None:
    shown = {row[0]: row[3] for row in site_rows(SITES)}
    assert [name[:2] for name, figure in shown.items() if figure == "too small"] == ["HA", "OO"]
    lines = between_lines(SITES, FOUND, {})
    listed = lines[lines.index("Listed and not compared:") + 1 :]
    assert [line.split()[0] for line in listed] == ["HA", "OO"]
    assert "7 positives" in listed[0]


def test_lines_say_the_chance_of_a_wanted_value_and_who_lies_apart() -> None:
    lines = between_lines(SITES, FOUND, {"roc_auc": 0.8})
    chance = FOUND[0].chance(0.8)
    assert f"reaches 0.8 is {100 * chance:.0f} %" in lines[1]
    assert any("13 of 14 sites" in line and "WN" in line for line in lines)


def test_an_interval_says_what_it_covers() -> None:
    assert "new rows of these clients" in covered(None)
    assert "new rows of these sites" in covered(SITES)
    assert "a new site" in covered(SITES)


def test_json_has_the_figures_by_their_names_and_what_must_be_said() -> None:
    content = heterogeneity_json(SITES, ["ks"], {"oe_ratio": 0.9})
    assert list(content) == [*compared_metrics(SITES), "ks"]
    assert {
        "mean", "low", "high", "tau", "i2", "prediction_low", "prediction_high", "sites",
    } < set(content["roc_auc"])  # fmt: skip
    assert content["oe_ratio"]["wanted"] == 0.9
    assert 0.9 < content["oe_ratio"]["chance"] < 1.0
    assert "chance" not in content["roc_auc"]
    json.dumps(content, allow_nan=False)
    one = heterogeneity_json(SeenSites(dict(list(SITES.histograms.items())[:1])))
    assert one["roc_auc"]["prediction_low"] is None
    assert one["roc_auc"]["notes"]


def test_a_prior_for_tau_is_that_of_python_and_narrows_two_sites() -> None:
    two = SeenSites(dict(list(SITES.histograms.items())[:2]))
    priors = tau_priors(["roc_auc=0.055,0.015"])
    assert priors == {"roc_auc": TauPrior()}
    assert heterogeneity_json(two)["roc_auc"]["prediction_low"] is None
    told = heterogeneity_json(two, priors=priors)
    mine = two.heterogeneity("roc_auc", PoolOptions(prior=TauPrior()))
    assert told["roc_auc"]["prediction_low"] == mine.prediction.low
    assert any("0.055" in note for note in told["roc_auc"]["notes"])
    assert told["oe_ratio"]["prediction_low"] is None
    assert any("A prior for tau" in str(part) for part in sites_parts(two, priors=priors))


@pytest.mark.parametrize(
    "wrong",
    ["roc_auc", "roc_auc=0.05", "=0.05,0.01", "auc=0.05,0.01", "roc_auc=0,1", "ks=a,b"],
)
def test_a_prior_needs_a_metric_a_mean_and_an_sd(wrong: str) -> None:
    with pytest.raises(SettingInvalid):
        tau_priors([wrong])


@pytest.mark.parametrize("wrong", ["roc_auc", "0.8", "=0.8", "auc=0.8", "roc_auc=high"])
def test_a_wanted_value_needs_a_metric_and_a_number(wrong: str) -> None:
    with pytest.raises(SettingInvalid):
        wanted_values([wrong])


def test_a_site_whose_scores_are_all_0_has_an_area_and_nothing_expected() -> None:
    nothing = ScoreHistogram.from_scores([0, 1] * 50, [0.0] * 100)
    assert site_rows(SeenSites({"north": nothing}))[0][3:] == ["0.500 [0.500, 0.500]", "-"]
