"""What a validation study needs, against published formulas written out and scipy."""

from math import asinh, ceil, log

import numpy as np
import pytest
from scipy import stats

import fedassay
from fedassay.errors import SettingInvalid
from fedassay.planning.request import SurveyRequest
from fedassay.planning.validation import parse_widths, validation_needs
from fedassay.sites import IntervalWidths

TWELVE = SurveyRequest(clients=12, examples=6000, auc=0.8, positive_rate=0.3)


def test_rows_for_observed_over_expected_follow_the_published_formula() -> None:
    needs = validation_needs(TWELVE, widths=IntervalWidths(oe=0.3))
    sd = asinh(0.3 / 2.0) / 1.96
    assert needs.rows["oe_ratio"] == ceil(0.7 / (0.3 * sd**2))
    assert needs.widths["oe_ratio"] == 0.3


def test_the_study_needs_the_most_of_all_criteria() -> None:
    needs = validation_needs(TWELVE, threshold=0.5)
    assert list(needs.rows) == ["oe_ratio", "calibration_slope", "roc_auc", "net_benefit@0.5"]
    assert needs.most_rows == max(needs.rows.values()) == needs.rows["calibration_slope"]
    assert "enough for all" in needs.sentence()
    few = validation_needs(SurveyRequest(clients=12, examples=1200, auc=0.8, positive_rate=0.3))
    assert few.sentence().endswith("1,200 are expected, fewer.")


def test_the_chance_to_see_a_spread_is_that_of_drawn_sites() -> None:
    needs = validation_needs(TWELVE, tau=0.2)
    assert needs.sites is not None
    assert (needs.sites.sites, needs.sites.rows_per_site) == (12, 500)
    # Newcombe's standard error of a c-statistic, on the logit scale.
    n, c, p = 500, 0.8, 0.3
    inside = 1 + (n / 2 - 1) * (1 - c) / (2 - c) + (n / 2 - 1) * c / (1 + c)
    sd = (c * (1 - c) * inside / (p * (1 - p))) ** 0.5 / n / (c * (1 - c))
    generator = np.random.default_rng(1)
    effects = generator.normal(log(4), (0.2**2 + sd**2) ** 0.5, (20_000, 12))
    q = ((effects - effects.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / sd**2
    seen = (q > stats.chi2.ppf(0.95, 11)).mean()
    assert needs.sites.chance_to_see == pytest.approx(seen, abs=0.02)


def test_tau_of_other_models_is_taken_where_none_is_given_and_said() -> None:
    sites = validation_needs(TWELVE).sites
    assert sites is not None
    # 0.055 on the ROC AUC's own scale, by the slope of the logit at 0.8.
    assert sites.tau == pytest.approx(0.055 / (0.8 * 0.2), rel=1e-3)
    assert sites.is_assumed
    assert "as between validations of other models" in str(sites)


def test_clients_with_a_row_each_are_no_sites() -> None:
    assert validation_needs(SurveyRequest(clients=20_000)).sites is None


def test_a_plan_says_what_a_study_needs_under_the_names_of_the_door() -> None:
    made = fedassay.plan(
        clients=12, examples=6000, auc=0.8, widths=IntervalWidths(c_statistic=0.05), tau=0.2
    )
    written = made.to_json()["validation"]
    assert written["widths"]["roc_auc"] == 0.05
    assert written["rows"] == dict(made.needs.rows)
    assert written["sites"]["tau"] == 0.2
    assert not written["sites"]["tau_assumed"]


def test_widths_are_read_by_their_names_in_python() -> None:
    assert parse_widths("oe=0.5, c_statistic=1/20") == IntervalWidths(oe=0.5, c_statistic=0.05)
    for wrong in ("auc=0.1", "oe", "oe=0", "oe=x"):
        with pytest.raises(SettingInvalid):
            parse_widths(wrong)


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="tau must be above 0"):
        fedassay.plan(clients=12, examples=6000, tau=0.0)


def test_two_sites_see_no_spread_and_foretell_nothing() -> None:
    needs = validation_needs(SurveyRequest(clients=2, examples=1000, auc=0.8), tau=1e-6)
    assert needs.sites is not None
    assert (needs.sites.to_see, needs.sites.prediction) == (None, None)
    assert "no number of sites would show it" in str(needs.sites)
    assert "A new site" not in str(needs.sites)
    assert "A new site" in str(validation_needs(TWELVE).sites)


def test_a_width_that_no_number_of_rows_reaches_is_told() -> None:
    needs = validation_needs(TWELVE, widths=IntervalWidths(c_statistic=1e-9))
    assert needs.rows == {}
    assert needs.obstacle != ""
