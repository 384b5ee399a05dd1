"""Rows before a study: published worked examples, and simulated studies of that size."""

import numpy as np
import pytest
from scipy import optimize

from fedassay import Grid, ScoreHistogram
from fedassay.errors import SettingInvalid, TargetImpossible
from fedassay.sites.sample_size import (
    IntervalWidths,
    RiskDistribution,
    c_statistic_sd,
    rows_for_c_statistic,
    rows_for_net_benefit,
    rows_for_oe,
    rows_for_slope,
    smallest,
    validation_rows,
)

HEART_VALVES = RiskDistribution.normal(-5.0, 2.5)
"""Riley et al. (2021): failure of mechanical heart valves, prevalence 0.018, c-statistic 0.8."""
PUBLISHED = {"oe_ratio": 905, "calibration_slope": 4544, "roc_auc": 4252}
"""pmvalsampsize's documentation of that example, with an O/E width of 1: the Python package's page,
a million simulated log-odds; R's tests have 905 and 4252 too."""


def test_rows_for_heart_valves_are_those_of_pmvalsampsize() -> None:
    rows = validation_rows(0.8, 0.018, HEART_VALVES, widths=IntervalWidths(oe=1.0))
    assert rows["roc_auc"] == PUBLISHED["roc_auc"]
    # Its standard error of O/E rises in steps of 0.0001, and the last goes a little too far.
    assert rows["oe_ratio"] == PUBLISHED["oe_ratio"] + 1
    # Simulated there, integrated here.
    assert rows["calibration_slope"] == pytest.approx(PUBLISHED["calibration_slope"], rel=0.005)


def test_rows_for_a_slope_of_beta_risks_are_near_those_of_pmvalsampsize() -> None:
    # R's tests: 1641 with a thousand simulated risks, so to a few in a hundred.
    assert rows_for_slope(RiskDistribution.beta(0.5, 0.5)) == pytest.approx(1641, rel=0.08)


def test_rows_for_oe_are_the_fewest_whose_interval_is_narrow_enough() -> None:
    for prevalence, width, oe in ((0.018, 1.0, 1.0), (0.3, 0.2, 0.8), (0.43, 0.22, 1.1)):
        rows = rows_for_oe(prevalence, width=width, oe=oe)
        widths = []
        for n in (rows, rows - 1):
            sd = np.sqrt((1.0 - prevalence) / (prevalence * n))
            widths.append(oe * (np.exp(1.96 * sd) - np.exp(-1.96 * sd)))
        assert widths[0] <= width < widths[1]


def test_rows_for_a_c_statistic_are_the_fewest_by_newcombes_formula() -> None:
    rows = rows_for_c_statistic(0.7, 0.2, width=0.08)
    n = np.arange(2, 20_000)
    half = n / 2.0 - 1.0
    inside = 1.0 + half * 0.3 / 1.3 + half * 0.7 / 1.7
    sd = np.sqrt(0.7 * 0.3 * inside / (n**2 * 0.2 * 0.8))
    assert rows == n[np.argmax(3.92 * sd <= 0.08)]
    assert c_statistic_sd(0.7, 0.2, rows) == pytest.approx(sd[rows - 2])


def test_slopes_of_simulated_studies_spread_as_the_rows_were_chosen_for() -> None:
    risks = RiskDistribution.normal(-1.0, 1.2)
    rows = rows_for_slope(risks, width=0.3)
    generator = np.random.default_rng(2)
    slopes = []
    for _ in range(200):
        x = generator.normal(-1.0, 1.2, rows)
        y = generator.random(rows) < 1.0 / (1.0 + np.exp(-x))

        def loss(
            theta: np.ndarray, x: np.ndarray = x, y: np.ndarray = y
        ) -> tuple[float, np.ndarray]:
            odds = theta[0] + theta[1] * x
            p = 1.0 / (1.0 + np.exp(-odds))
            each = np.logaddexp(0.0, odds) - y * odds
            return float(each.sum()), np.array([(p - y).sum(), ((p - y) * x).sum()])

        slopes.append(optimize.minimize(loss, [0.0, 1.0], jac=True).x[1])
    # 200 draws: the standard deviation is known to 5 %; half or twice the rows are seen.
    assert 2.0 * 1.96 * np.std(slopes) == pytest.approx(0.3, rel=0.2)


def test_net_benefits_of_simulated_studies_spread_as_the_rows_were_chosen_for() -> None:
    prevalence, threshold, sensitivity, specificity = 0.2, 0.15, 0.8, 0.7
    rows = rows_for_net_benefit(
        prevalence, threshold, sensitivity=sensitivity, specificity=specificity, width=0.1
    )
    generator = np.random.default_rng(3)
    positives = generator.binomial(rows, prevalence, 4000)
    true = generator.binomial(positives, sensitivity)
    false = generator.binomial(rows - positives, 1.0 - specificity)
    odds = threshold / (1.0 - threshold)
    benefit = (true - odds * false) / positives
    assert 2.0 * 1.96 * benefit.std() == pytest.approx(0.1, rel=0.06)


def test_sensitivity_and_specificity_of_risks_are_those_of_drawn_rows() -> None:
    risks = RiskDistribution.beta(2.0, 5.0)
    generator = np.random.default_rng(4)
    p = generator.beta(2.0, 5.0, 400_000)
    y = generator.random(400_000) < p
    sensitivity, specificity = risks.at(0.3)
    assert sensitivity == pytest.approx((p[y] > 0.3).mean(), abs=0.005)
    assert specificity == pytest.approx((p[~y] <= 0.3).mean(), abs=0.005)
    assert risks.prevalence == pytest.approx(2.0 / 7.0, abs=1e-4)
    assert "net_benefit@0.3" in validation_rows(0.7, 0.28, risks, threshold=0.3)


def test_risks_of_an_earlier_survey_ask_for_the_rows_of_their_distribution() -> None:
    generator = np.random.default_rng(5)
    scores = 1.0 / (1.0 + np.exp(-generator.normal(-1.0, 1.2, 200_000)))
    labels = generator.random(200_000) < scores
    grid = Grid.uniform(400)
    histogram = ScoreHistogram.from_scores(labels.astype(int), scores, grid=grid)
    found = rows_for_slope(RiskDistribution.of_histogram(histogram))
    assert found == pytest.approx(rows_for_slope(RiskDistribution.normal(-1.0, 1.2)), rel=0.03)


def test_equal_risks_have_no_slope_and_that_is_said() -> None:
    with pytest.raises(TargetImpossible, match="needs risks that differ"):
        rows_for_slope(RiskDistribution(np.array([0.3]), np.array([1.0])))


def test_what_no_number_reaches_is_said() -> None:
    with pytest.raises(TargetImpossible, match="not even 64 would be enough"):
        smallest(lambda _: False, 2, 64)
    assert smallest(lambda n: n >= 33, 2, 64) == 33
    assert smallest(lambda n: n >= 2, 2, 64) == 2


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, float("nan"), "0.2"])
def test_a_share_outside_its_range_is_refused(bad: float) -> None:
    with pytest.raises(SettingInvalid, match="prevalence"):
        rows_for_oe(bad)
    with pytest.raises(SettingInvalid, match="prevalence"):
        rows_for_c_statistic(0.8, bad)
    with pytest.raises(SettingInvalid, match="threshold"):
        rows_for_net_benefit(0.2, bad, sensitivity=0.5, specificity=0.5)


def test_widths_and_sensitivities_out_of_range_are_refused() -> None:
    with pytest.raises(SettingInvalid, match="the width of O/E must be above 0"):
        rows_for_oe(0.2, width=0.0)
    with pytest.raises(SettingInvalid, match=r"sensitivity lies between 0 and 1; found 1\.2"):
        rows_for_net_benefit(0.2, 0.1, sensitivity=1.2, specificity=0.5)
    with pytest.raises(SettingInvalid, match=r"RiskDistribution\.normal"):
        rows_for_slope([0.1, 0.2])  # type: ignore[arg-type]  # what a user may pass
