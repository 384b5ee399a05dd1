"""What is advised is the simplest change that stands clear, on sites made to need just that."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from fedassay import Grid, ScoreHistogram
from fedassay.calibration.rates import bucket_rates
from fedassay.errors import SettingInvalid
from fedassay.noise import NoNoise
from fedassay.sites.recalibration_advice import (
    Change,
    Scope,
    advise_recalibration,
    fit_intercept,
)

GRID = Grid.uniform(128)
ROWS = 12_000


def site(
    seed: int, intercept: float = 0.0, slope: float = 1.0, *, bend: float = 0.0, rows: int = ROWS
) -> ScoreHistogram:
    """Scores whose true log-odds are intercept + slope x, and a bend in the middle."""
    generator = np.random.default_rng(seed)
    scores = generator.beta(2.0, 3.0, rows)
    x = logit(scores)
    truth = expit(intercept + slope * x + bend * np.cos(2.0 * x))
    labels = (generator.random(rows) < truth).astype(int)
    return ScoreHistogram.from_scores(labels, scores, grid=GRID)


def brier_gain(intercept: float, slope: float, seed: int = 99) -> float:
    """The gain of the true map over the score, of a great many rows."""
    scores = np.random.default_rng(seed).beta(2.0, 3.0, 1_000_000)
    truth = expit(intercept + slope * logit(scores))
    return float(((truth - scores) ** 2).mean())


def test_calibrated_sites_are_left_alone() -> None:
    advice = advise_recalibration({f"{i}": site(i) for i in range(4)})
    assert advice.change is Change.NONE
    assert advice.gain.value == 0.0
    assert {each.change for each in advice.sites.values()} == {Change.NONE}
    assert str(advice).startswith("Leave the scores as they are")


def test_sites_with_one_shift_need_one_intercept() -> None:
    advice = advise_recalibration({f"{i}": site(i, 0.4) for i in range(4)})
    assert (advice.change, advice.scope) == (Change.INTERCEPT, Scope.ALL_SITES)
    assert advice.gain.value == pytest.approx(brier_gain(0.4, 1.0), rel=0.2)
    assert advice.gain.value > 2.0 * advice.gain.sampling_sd
    assert "intercept only, one for all sites" in str(advice)


def test_overconfident_scores_need_intercept_and_slope() -> None:
    advice = advise_recalibration({f"{i}": site(i, 0.3, 0.5) for i in range(4)})
    assert (advice.change, advice.scope) == (Change.SLOPE, Scope.ALL_SITES)
    assert advice.gain.value == pytest.approx(brier_gain(0.3, 0.5), rel=0.2)


def test_a_bend_needs_a_flexible_map() -> None:
    advice = advise_recalibration({f"{i}": site(i, bend=0.8) for i in range(4)})
    assert (advice.change, advice.scope) == (Change.FLEXIBLE, Scope.ALL_SITES)


def test_sites_that_differ_need_a_map_each() -> None:
    shifts = {"low": -0.5, "middle": 0.0, "high": 0.5, "higher": 0.6}
    sites = {name: site(i, shift) for i, (name, shift) in enumerate(shifts.items())}
    advice = advise_recalibration(sites)
    assert (advice.change, advice.scope) == (Change.INTERCEPT, Scope.EACH_SITE)
    expected = np.mean([brier_gain(shift, 1.0) for shift in shifts.values()])
    assert advice.gain.value == pytest.approx(expected, rel=0.2)
    assert {name: each.change for name, each in advice.sites.items()} == {
        "low": Change.INTERCEPT,
        "middle": Change.NONE,
        "high": Change.INTERCEPT,
        "higher": Change.INTERCEPT,
    }


def test_a_shift_that_few_rows_cannot_show_is_no_reason_to_change() -> None:
    advice = advise_recalibration({f"{i}": site(i, 0.1, rows=150) for i in range(3)})
    assert advice.change is Change.NONE
    best = max(advice.tried.values(), key=lambda gain: gain.value)
    assert best.value <= 2.0 * best.sampling_sd


def test_seldom_is_a_change_advised_where_none_is_needed() -> None:
    """Twenty calibrated sites: false alarms of one in a hundred would give 0.2 of them."""
    found = [advise_recalibration({"a": site(100 + i, rows=3000)}).change for i in range(20)]
    assert sum(change is not Change.NONE for change in found) <= 3


def test_one_site_is_advised_for_itself() -> None:
    advice = advise_recalibration({"only": site(1, 0.4)})
    assert (advice.change, advice.scope) == (Change.INTERCEPT, Scope.ALL_SITES)
    assert advice.sites["only"].change is Change.INTERCEPT


def test_a_gain_is_as_uncertain_as_it_says() -> None:
    """Two-sided: over 24 draws the spread of gains is that of their errors, to a half."""
    gains = [
        advise_recalibration({"a": site(500 + i, 0.4, rows=3000)}).tried[
            Scope.ALL_SITES, Change.INTERCEPT
        ]
        for i in range(24)
    ]
    spread = np.std([gain.value for gain in gains])
    said = np.mean([gain.sampling_sd for gain in gains])
    assert 0.6 < spread / said < 1.6


class LaplaceNoise(NoNoise):
    """Every count with a variance of its own."""

    @property
    def is_zero(self) -> bool:
        return False

    def variance(self, weights: np.ndarray) -> float:
        return float(1600.0 * (weights**2).sum())


def test_noise_makes_an_advice_more_careful() -> None:
    exact = site(3, 0.15)
    noise = 40.0 * np.random.default_rng(8).normal(size=exact.counts.shape)
    noisy = ScoreHistogram(exact.edges, exact.counts + noise, LaplaceNoise())
    clean, blurred = advise_recalibration({"a": exact}), advise_recalibration({"a": noisy})
    assert clean.change is Change.INTERCEPT
    assert blurred.change is Change.NONE


def test_a_site_of_one_class_is_listed_and_the_others_answered() -> None:
    generator = np.random.default_rng(4)
    empty = ScoreHistogram.from_scores([0] * 100, generator.random(100), grid=GRID)
    advice = advise_recalibration({"a": site(1, 0.4), "b": site(2, 0.4), "empty": empty})
    assert advice.change is Change.INTERCEPT
    assert [each.site for each in advice.left_out] == ["empty"]
    assert "positives" in advice.left_out[0].reason
    with pytest.raises(SettingInvalid, match="a site with positives and negatives; found none"):
        advise_recalibration({"empty": empty})


def test_an_intercept_makes_predictions_add_up_to_positives() -> None:
    histogram = site(7, 0.7)
    rates = bucket_rates(histogram)
    calibrated = rates.averaged(fit_intercept(rates).predict(rates.piece_scores))
    assert rates.totals @ calibrated == pytest.approx(histogram.total_positives, rel=1e-3)


def test_sites_that_counted_in_other_cells_are_refused() -> None:
    other = ScoreHistogram.from_scores([0, 1] * 50, np.linspace(0, 1, 100), grid=Grid.uniform(9))
    with pytest.raises(SettingInvalid, match="the same cells"):
        advise_recalibration({"a": site(1), "b": site(2), "c": other})


def test_an_intercept_needs_both_classes() -> None:
    rates = bucket_rates(site(1, rows=500))
    for rate in (0.0, 1.0):
        with pytest.raises(SettingInvalid, match=r"these counts lack one\. Leave the scores"):
            fit_intercept(replace(rates, positives=rate * rates.totals))


def test_a_map_that_runs_off_leaves_scores_as_they_are() -> None:
    """Scores of 0.3 and 0.7 that are never wrong have no steepest curve."""
    perfect = ScoreHistogram.from_scores([0, 1] * 50, [0.3, 0.7] * 50)
    tried = advise_recalibration({"a": perfect, "b": perfect}).tried
    assert tried[Scope.ALL_SITES, Change.SLOPE].value == 0.0
    assert tried[Scope.ALL_SITES, Change.FLEXIBLE].value > 0.0
