from math import exp, inf, isnan, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from fedassay import Estimate, NotEnoughData, TooCoarse
from fedassay.estimate import Shape, as_far_as_possible, unless_too_coarse

Z2 = norm.ppf(0.975) ** 2

confidences = st.sampled_from([0.5, 0.8, 0.95, 0.999])


@given(st.integers(1, 10_000), st.data(), confidences)
def test_a_score_interval_is_wilsons(trials: int, data: st.DataObject, confidence: float) -> None:
    hits = data.draw(st.integers(0, trials))
    estimate = Estimate(hits / trials, shape=Shape.SCORE, trials=trials)
    wilson = binomtest(hits, trials).proportion_ci(confidence, method="wilson")
    low, high = estimate.interval(confidence)
    assert low == pytest.approx(wilson.low, abs=1e-9)
    assert high == pytest.approx(wilson.high, abs=1e-9)


@given(st.floats(-1.0, 2.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), confidences)
def test_a_plain_interval_is_symmetric_and_joins_all_errors(
    value: float, noise: float, sampling: float, confidence: float
) -> None:
    low, high = Estimate(value, noise_sd=noise, sampling_sd=sampling).interval(confidence)
    half = norm.ppf(0.5 + confidence / 2) * sqrt(noise**2 + sampling**2)
    assert low == pytest.approx(value - half)
    assert high == pytest.approx(value + half)


@given(st.floats(0.0001, 0.9999), st.floats(0.0, 2.0), confidences)
def test_a_logit_interval_stays_inside_zero_to_one_and_holds_its_value(
    value: float, sd: float, confidence: float
) -> None:
    low, high = Estimate(value, sampling_sd=sd, shape=Shape.LOGIT).interval(confidence)
    assert 0.0 <= low <= value * (1 + 1e-12)
    assert value * (1 - 1e-12) <= high <= 1.0


@given(st.floats(0.05, 0.95), st.sampled_from(list(Shape)))
def test_a_small_error_gives_about_the_same_interval_in_every_shape(
    value: float, shape: Shape
) -> None:
    trials = 1e8
    sd = sqrt(value * (1 - value) / trials)
    low, high = Estimate(value, sampling_sd=sd, shape=shape, trials=trials).interval(0.95)
    assert (high - low) == pytest.approx(2 * 1.959964 * sd, rel=1e-3)


@given(st.sampled_from(list(Shape)), st.floats(0.01, 0.2))
def test_the_value_of_these_very_rows_is_free_of_sampling_error(shape: Shape, noise: float) -> None:
    estimate = Estimate(0.4, noise_sd=noise, sampling_sd=9.0, shape=shape, trials=10)
    low, high = estimate.interval(0.95, population=False)
    if shape is Shape.LOG:  # symmetric there, as a ratio is, while it is clear of 0
        low, high = 0.4 + 0.4 * log(low / 0.4), 0.4 + 0.4 * log(high / 0.4)
    assert (low + high) / 2 == pytest.approx(0.4)
    assert high - low == pytest.approx(2 * 1.959964 * noise, rel=1e-5)


@given(st.sampled_from(list(Shape)), st.floats(0.0, 0.2), st.floats(0.01, 0.2))
def test_noise_only_ever_widens(shape: Shape, noise: float, more: float) -> None:
    def width(noise_sd: float) -> float:
        estimate = Estimate(0.4, noise_sd=noise_sd, sampling_sd=0.01, shape=shape, trials=2000)
        low, high = estimate.interval()
        return high - low

    assert width(noise + more) > width(noise)


def test_noisy_values_are_not_clipped() -> None:
    assert Estimate(1.03, noise_sd=0.1).interval().high > 1.2
    assert Estimate(1.03, noise_sd=0.1, shape=Shape.LOGIT).interval().high > 1.2


def test_without_data_everything_is_possible() -> None:
    nothing = NotEnoughData(reason="no rows")
    assert not nothing.is_available
    assert isnan(nothing.value)
    assert nothing.interval() == (-inf, inf)
    assert 0.3 in nothing.interval()


@pytest.mark.parametrize(("value", "hits"), [(0.0, 0), (1.0, 30)])
def test_an_area_at_the_very_end_has_wilsons_interval(value: float, hits: int) -> None:
    estimate = Estimate(value, shape=Shape.LOGIT, trials=30)
    wilson = binomtest(hits, 30).proportion_ci(0.95, method="wilson")
    low, high = estimate.interval(0.95)
    assert low == pytest.approx(wilson.low, abs=1e-9)
    assert high == pytest.approx(wilson.high, abs=1e-9)


def test_an_area_that_noise_pushed_past_an_end_reaches_back_below_it() -> None:
    """The smallest area that 1.01 would not refute, with noise and 30 rows, by bisection."""
    z = float(norm.ppf(0.975))
    expected = brentq(lambda p: (1.01 - p) ** 2 - z * z * (p * (1.0 - p) / 30 + 0.02**2), 0.5, 1.0)
    low, high = Estimate(1.01, noise_sd=0.02, shape=Shape.LOGIT, trials=30).interval(0.95)
    assert low == pytest.approx(expected)
    assert high >= 1.0


@given(st.floats(0.02, 0.98), st.floats(0.001, 0.3), st.floats(0.001, 0.3))
def test_each_end_of_an_area_moves_away_by_its_own_distance(
    value: float, noise: float, sampling: float
) -> None:
    """Squared distances from the value add up: that on log-odds from sampling, plain from noise."""
    z = float(norm.ppf(0.975))
    alone = Estimate(value, sampling_sd=sampling, shape=Shape.LOGIT).interval()
    low, high = Estimate(value, noise_sd=noise, sampling_sd=sampling, shape=Shape.LOGIT).interval()
    assert (value - low) ** 2 == pytest.approx((value - alone.low) ** 2 + (z * noise) ** 2)
    assert (high - value) ** 2 == pytest.approx((alone.high - value) ** 2 + (z * noise) ** 2)


def test_where_noise_is_half_as_large_a_finer_grid_would_not_help() -> None:
    binning = 0.4 / float(norm.ppf(0.975))
    assert unless_too_coarse(
        Estimate(0.5, binning_sd=binning, noise_sd=0.51 * binning), "recall", 1.0
    ).is_available
    assert not unless_too_coarse(
        Estimate(0.5, binning_sd=binning, noise_sd=0.49 * binning), "recall", 1.0
    ).is_available


@pytest.mark.parametrize(("half", "is_known"), [(0.333, True), (0.334, False)])
def test_what_buckets_hide_may_reach_over_half_of_the_possible(half: float, is_known: bool) -> None:
    estimate = Estimate(0.5, binning_sd=half / float(norm.ppf(0.975)), noise_sd=0.05)
    judged = unless_too_coarse(estimate, "recall", 1.0)
    assert judged.is_available == is_known
    assert isinstance(judged, TooCoarse) != is_known
    assert judged.noise_sd == 0.05
    if not is_known:
        assert str(judged).startswith("too coarse: the grid is too coarse for these scores: ")
        assert "Run a second step (--steps 2), or give a reference." in str(judged)
        assert judged.interval() == (-inf, inf)


@given(st.floats(0.01, 100.0), st.floats(0.001, 0.5), confidences)
def test_a_log_interval_is_symmetric_on_the_logarithmic_scale(
    value: float, relative: float, confidence: float
) -> None:
    estimate = Estimate(value, sampling_sd=relative * value, shape=Shape.LOG)
    low, high = estimate.interval(confidence)
    half = norm.ppf(0.5 + confidence / 2) * relative
    assert low == pytest.approx(value * exp(-half))
    assert high == pytest.approx(value * exp(half))


@pytest.mark.parametrize("population", [False, True])
def test_a_ratio_that_noise_may_have_lifted_from_0_reaches_there(population: bool) -> None:
    lifted = Estimate(0.3, noise_sd=0.2, shape=Shape.LOG)
    assert lifted.interval(population=population).low == pytest.approx(0.3 - 1.959964 * 0.2)
    assert lifted.interval(population=population).high == pytest.approx(
        0.3 * exp(1.959964 * 0.2 / 0.3)
    )
    assert Estimate(0.4, noise_sd=0.2, shape=Shape.LOG).interval(population=population).low > 0.0
    # Where rows lie in their buckets makes no ratio 0.
    hidden = Estimate(0.4, binning_sd=9.0, shape=Shape.LOG)
    assert hidden.interval(population=population).low > 0.0


def test_a_ratio_of_0_has_a_plain_interval() -> None:
    low, high = Estimate(0.0, sampling_sd=0.5, shape=Shape.LOG).interval()
    assert (low, high) == pytest.approx((-0.979982, 0.979982))


@pytest.mark.parametrize("shape", list(Shape))
def test_exact_figures_reach_what_other_roundings_make_of_them(shape: Shape) -> None:
    """0.1 + 0.2 is 0.3 to one part in 2^52, and no further figure is let in."""
    exact = Estimate(0.1 + 0.2, shape=shape)
    assert exact.value != 0.3
    assert 0.3 in exact.interval(population=False)
    assert 0.3 * (1.0 + 1e-13) not in exact.interval(population=False)


@pytest.mark.parametrize("trials", [7.0, 1e3, 148_847.0, 148_855.0, 3e6, 1e9])
def test_an_interval_of_nobody_or_of_all_ends_at_0_or_1_itself(trials: float) -> None:
    """Wilson's interval of k = n ends at 1, by hand: (1 + r / 2 + r / 2) / (1 + r)."""
    nobody, everybody = (Estimate(v, shape=Shape.SCORE, trials=trials) for v in (0.0, 1.0))
    assert 0.0 in nobody.interval()
    assert 1.0 in everybody.interval()
    assert everybody.interval().high == pytest.approx(1.0, abs=1e-12)
    assert nobody.interval().high == pytest.approx(Z2 / (trials + Z2), rel=1e-6)


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("bound", [0.01, 0.2, 0.6])
def test_an_interval_that_ends_at_the_possible_holds_all_of_it(shape: Shape, bound: float) -> None:
    told = Estimate(0.7, binning_sd=5.0, binning_bound=bound, shape=shape, trials=1e4)
    low, high = as_far_as_possible(told).interval(population=False)
    assert low <= 0.7 - bound + 1e-12
    assert high >= 0.7 + bound - 1e-12
    assert low == pytest.approx(0.7 - bound)
    assert high == pytest.approx(0.7**2 / (0.7 - bound) if shape is Shape.LOG else 0.7 + bound)


def test_what_noise_may_have_hidden_of_the_possible_counts_too() -> None:
    told = as_far_as_possible(Estimate(0.7, binning_sd=0.3, binning_bound=0.0, noise_sd=0.1))
    assert told.interval(population=False).high == pytest.approx(0.7 + 1.959964 * 0.1 + 0.1)
    known = Estimate(0.7, binning_sd=0.05, binning_bound=0.2, noise_sd=0.1)
    assert as_far_as_possible(known).interval() == known.interval()


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("sampling_sd", [0.01, 0.1, 0.3])
def test_what_is_as_far_away_as_can_be_is_held_as_often_as_said(
    confidence: float, sampling_sd: float
) -> None:
    """All rows on one side of a threshold, and a normal error of sampling."""
    told = Estimate(0.5, binning_sd=1.0, binning_bound=0.2, sampling_sd=sampling_sd)
    low, high = as_far_as_possible(told).interval(confidence)
    missed = norm.cdf(low, 0.5 - 0.2, sampling_sd) + norm.sf(high, 0.5 - 0.2, sampling_sd)
    assert missed <= 1.0 - confidence
    assert high == pytest.approx(0.7 + norm.ppf(0.5 + confidence / 2) * sampling_sd)


def test_a_ratio_that_may_be_as_good_as_nothing_stays_as_it_is() -> None:
    told = Estimate(0.7, binning_sd=3.0, binning_bound=0.9, shape=Shape.LOG)
    assert as_far_as_possible(told).interval() == told.interval()
