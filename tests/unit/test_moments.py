"""Sums of five words tell the mean and the spread of sites, and no site's figure."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedassay.errors import SettingInvalid, TooFewReports
from fedassay.sites import SiteEffect, from_moments, site_moments
from fedassay.sites.moments import FixedPoint, MomentSummary, require_honest
from tests import published

LARGEST_EFFECT = 8.0
LARGEST_VARIANCE = 4.0

IntArray = npt.NDArray[np.int64]


def sums_of(values: list[float], variances: list[float], most_sites: int = 63) -> IntArray:
    """What secure aggregation would hand over."""
    each = zip(values, variances, strict=True)
    words = [site_moments(SiteEffect("", y, v), most_sites) for y, v in each]
    sums: IntArray = np.sum(words, axis=0)
    return sums


def test_moments_of_the_bcg_trials_are_the_sample_variance_less_the_mean_variance() -> None:
    studies = published.bcg()
    sums = sums_of(studies.values.tolist(), studies.variances.tolist())
    found = from_moments(sums, "ks", most_sites=63)
    assert found.sites == 13
    assert found.mean == pytest.approx(studies.values.mean(), abs=1e-6)
    assert found.tau**2 == pytest.approx(published.BCG_HEDGES_OLKIN, abs=3e-6)
    tau2 = studies.values.var(ddof=1) - studies.variances.mean()
    assert found.i2 == pytest.approx(tau2 / studies.values.var(ddof=1), abs=1e-5)
    half = stats.t.ppf(0.975, 12) * studies.values.std(ddof=1) / np.sqrt(13)
    assert found.interval.high - found.mean == pytest.approx(half, abs=1e-5)


def test_with_exact_sites_a_prediction_is_the_normal_samples_own() -> None:
    values = [0.3, 0.9, 1.1, 1.2, 1.6, 1.9, 2.0, 2.8, 3.1, 4.0]
    found = from_moments(sums_of(values, [1e-6] * 10, 15), "ks", most_sites=15)
    half = stats.t.ppf(0.975, 9) * np.std(values, ddof=1) * np.sqrt(1.1)
    assert found.prediction.high - found.mean == pytest.approx(half, rel=2e-3)
    assert found.mean - found.prediction.low == pytest.approx(half, rel=2e-3)


@given(
    st.integers(5, 2**14),
    st.floats(-1e300, 1e300),
    st.floats(0.0, 1e300),
)
def test_no_sum_over_all_sites_reaches_two_to_the_thirty_first(
    most_sites: int, value: float, variance: float
) -> None:
    words = site_moments(SiteEffect("hostile", value, variance), most_sites)
    assert (np.abs(words) * most_sites < 2**31).all()


@given(st.integers(5, 1023), st.floats(-8.0, 8.0), st.floats(0.0, 4.0))
def test_words_are_within_half_a_step_of_their_values(
    most_sites: int, value: float, variance: float
) -> None:
    words = site_moments(SiteEffect("a", value, variance), most_sites)
    steps = FixedPoint(most_sites).steps
    figures = (value, value**2, variance, variance**2)
    assert words[0] == 1
    for word, step, figure in zip(words[1:].tolist(), steps, figures, strict=True):
        assert word / step == pytest.approx(figure, abs=0.5001 / step)
    # As the page says: 2^-18 and 2^-15 for effects and squares among 1,023 sites, or finer.
    assert steps[0] >= 2**18
    assert steps[1] >= 2**15


def test_values_beyond_the_range_are_clipped_at_the_site_square_and_all() -> None:
    assert site_moments(SiteEffect("a", 30.0, 9.0), 63).tolist() == (
        site_moments(SiteEffect("a", LARGEST_EFFECT, LARGEST_VARIANCE), 63).tolist()
    )
    assert site_moments(SiteEffect("a", -30.0, 9.0), 63).tolist() == (
        site_moments(SiteEffect("a", -LARGEST_EFFECT, LARGEST_VARIANCE), 63).tolist()
    )


def test_a_site_without_an_effect_adds_zeros() -> None:
    values, variances = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], [0.01] * 6
    sums = sums_of(values, variances)
    found = from_moments(sums + site_moments(None, 63), "roc_auc", most_sites=63)
    assert found.to_json() == from_moments(sums, "roc_auc", most_sites=63).to_json()
    assert found.sites == 6


@pytest.mark.parametrize(("sites", "colluders"), [(4, 0), (5, 1), (7, 3), (0, 0)])
def test_sums_of_fewer_than_five_honest_sites_are_refused(sites: int, colluders: int) -> None:
    sums = sums_of([1.0 + 0.1 * i for i in range(sites)], [0.01] * sites) if sites else [0] * 5
    with pytest.raises(TooFewReports, match="at least 5 honest sites with an effect"):
        from_moments(sums, "roc_auc", most_sites=63, colluders=colluders)
    with pytest.raises(TooFewReports):
        require_honest(sites, colluders)


def test_two_sites_could_be_solved_for() -> None:
    # Why sums of few are refused: a mean and a sum of squares are two equations.
    k, total, squares, _, _ = sums_of([1.25, 0.75], [0.01, 0.02])
    steps = FixedPoint(63).steps
    mean, square = total / steps[0] / k, squares / steps[1] / k
    apart = np.sqrt(square - mean**2)
    assert [mean - apart, mean + apart] == pytest.approx([0.75, 1.25], abs=1e-5)


def test_no_sum_depends_on_which_site_has_which_figure() -> None:
    values, variances = [1.0, 1.4, 0.8, 1.1, 1.3], [0.01, 0.02, 0.03, 0.01, 0.05]
    forth = sums_of(values, variances)
    back = sums_of(values[::-1], variances[::-1])
    assert forth.tolist() == back.tolist()


def test_sums_that_no_sites_within_their_ranges_can_make_are_refused() -> None:
    good = sums_of([1.0 + 0.1 * i for i in range(6)], [0.01] * 6).tolist()
    from_moments(good, "roc_auc", most_sites=63)
    steps = FixedPoint(63).steps
    bad = [
        [*good[:1], 49 * steps[0], *good[2:]],
        [*good[:2], 0, *good[3:]],
        [*good[:2], 385 * steps[1], *good[3:]],
        [*good[:3], -1, *good[4:]],
        [*good[:3], 25 * steps[2], *good[4:]],
        [*good[:4], -1],
        [*good[:4], 97 * steps[3]],
    ]
    for sums in bad:
        with pytest.raises(SettingInvalid, match="within their ranges"):
            from_moments(sums, "roc_auc", most_sites=63)
    with pytest.raises(SettingInvalid, match="between 0 and 63 sites"):
        from_moments([64, *good[1:]], "roc_auc", most_sites=63)
    with pytest.raises(SettingInvalid, match="5 words; found 4"):
        from_moments(good[:4], "roc_auc", most_sites=63)


def test_rounding_alone_never_makes_sums_look_hostile() -> None:
    for value in (-8.0, -0.3333333, 0.0, 1e-7, 2.7182818, 8.0):
        found = from_moments(sums_of([value] * 9, [1e-9] * 9), "ks", most_sites=63)
        assert found.tau == pytest.approx(0.0, abs=2e-3)
        assert found.mean == pytest.approx(value, abs=1e-6)


def test_an_effect_that_is_no_number_is_refused_and_withheld() -> None:
    for value, variance in ((float("nan"), 0.1), (float("inf"), 0.1), (1.2345, -0.1)):
        with pytest.raises(SettingInvalid, match="value withheld") as caught:
            site_moments(SiteEffect("a", value, variance), 63)
        assert "1.2345" not in str(caught.value)


def test_satterthwaites_degrees_are_those_of_simulated_sample_variances() -> None:
    variances = np.array([0.01, 0.01, 0.02, 0.05, 0.2, 0.4, 0.03, 0.01])
    moments = MomentSummary(8, 0.0, float(variances.mean()), float((variances**2).sum()))
    tau2 = 0.02
    drawn = np.random.default_rng(1).normal(size=(200_000, 8)) * np.sqrt(variances + tau2)
    squares = drawn.var(axis=1, ddof=1)
    (degrees,) = moments.degrees(np.array([tau2]))
    assert degrees == pytest.approx(2.0 * squares.mean() ** 2 / squares.var(), rel=0.03)
    # Equal variances have k - 1.
    (whole,) = MomentSummary(8, 0.0, 0.1, 8 * 0.01).degrees(np.array([0.5]))
    assert whole == pytest.approx(7.0)
