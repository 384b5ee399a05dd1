"""Averaged smooth curves, and what they are fitted to."""

import json
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from fedassay import Grid, ScoreHistogram, SurveyRequest
from fedassay.calibration import Calibrator, Method, fit, fit_beta, fit_isotonic, fit_smooth
from fedassay.calibration.gap_intervals import SumOfSizes
from fedassay.calibration.rates import bucket_rates, misplaced
from fedassay.calibration.smooth import examples_at, smooth_from
from fedassay.draws import draw_tally
from fedassay.examples import Examples, ScoredClients
from fedassay.hierarchy import Hierarchy
from fedassay.mechanisms import Privacy
from fedassay.noise import TreeNoise
from fedassay.planning.search import design_survey
from fedassay.randomness import SimulatedRandomness
from fedassay.simulation.simulate import tally_clients

Floats = npt.NDArray[np.float64]
MODELS = (
    (Privacy.SECURE, None),
    (Privacy.DISTRIBUTED, Fraction(1)),
    (Privacy.LOCAL, Fraction(2)),
)


def bent(scores: Floats) -> Floats:
    return np.asarray(np.clip(scores + 0.1 * np.sin(2.0 * np.pi * scores), 0.0, 1.0))


def drawn(rows: int, *, seed: int = 0, calibrated: bool = False) -> tuple[Floats, Floats]:
    generator = np.random.default_rng(seed)
    scores = generator.beta(1.2, 1.8, rows)
    truth = scores if calibrated else bent(scores)
    return (generator.random(rows) < truth).astype(np.float64), scores


def test_a_bend_that_no_parametric_curve_has_is_found() -> None:
    labels, scores = drawn(100_000)
    histogram = ScoreHistogram.from_scores(labels, scores)
    asked = np.linspace(0.02, 0.95, 60)
    smooth = np.sqrt(np.mean((fit_smooth(histogram).predict(asked) - bent(asked)) ** 2))
    beta = np.sqrt(np.mean((fit_beta(histogram).predict(asked) - bent(asked)) ** 2))
    assert smooth < 0.006
    assert smooth < 0.3 * beta


def v_shaped(scores: Floats) -> Floats:
    return np.abs(scores - 0.4) * 1.6 + 0.04


def dip(scores: Floats) -> Floats:
    return np.where(scores < 0.47, 0.9 - 1.8 * scores, scores)


def low_end(scores: Floats) -> Floats:
    return np.where(scores < 0.1, 0.9 - 8.0 * scores, scores)


def u_shaped(scores: Floats) -> Floats:
    return np.asarray(0.05 + 3.4 * (scores - 0.5) ** 2)


def high_end(scores: Floats) -> Floats:
    return np.where(scores > 0.7, 0.84 - 0.6 * scores, scores)


def falling(scores: Floats) -> Floats:
    return 1.0 - scores


@pytest.mark.parametrize("noise_sd", [0.0, 8.0])
@pytest.mark.parametrize("truth", [v_shaped, dip, low_end, u_shaped, high_end, falling])
def test_where_rates_fall_smooth_is_no_worse_than_isotonic_than_a_constant_or_than_the_raw_score(
    truth: Callable[[Floats], Floats], noise_sd: float
) -> None:
    """Judged by the Brier score over the population, by quadrature over Beta(1.2, 1.8)."""
    generator = np.random.default_rng(11)
    scores = generator.beta(1.2, 1.8, 4_000)
    labels = (generator.random(4_000) < truth(scores)).astype(np.float64)
    histogram = ScoreHistogram.from_scores(labels, scores)
    if noise_sd:
        exact = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(32))
        model = TreeNoise(Hierarchy.flat(32), (np.full((2, 32), noise_sd**2),))
        noise = generator.normal(0.0, noise_sd, (2, 32))
        histogram = ScoreHistogram(exact.edges, exact.counts + noise, model)
    at = (np.arange(20_000) + 0.5) / 20_000
    mass = stats.beta(1.2, 1.8).pdf(at) / 20_000
    true = truth(at)

    def excess(predicted: Floats) -> float:
        """Brier score beyond the truth's own."""
        return float(mass @ (predicted - true) ** 2)

    smooth = fit_smooth(histogram)
    assert smooth.is_monotone
    assert "rates fall" in smooth.reason
    rivals = {
        "isotonic": fit_isotonic(histogram).predict(at),
        "constant": np.full_like(at, mass @ true),
        "raw": at,
    }
    for name, predicted in rivals.items():
        # A projection that forgets where the examples lie is worse by 0.003 to 0.04.
        assert excess(smooth.predict(at)) < excess(predicted) + 0.001, name


def test_smooth_says_nothing_where_rates_rise() -> None:
    labels, scores = drawn(5_000)
    assert fit_smooth(ScoreHistogram.from_scores(labels, scores)).reason == ""


def test_examples_at_points_have_the_same_mean_of_every_linear_map() -> None:
    labels, scores = drawn(500)
    rates = bucket_rates(ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(16)))
    points = np.array([0.0, 0.01, 0.3, 0.35, 0.9, 1.0])
    values = np.array([0.3, 0.1, 0.9, 0.2, 0.4, 0.0])
    shared = examples_at(rates, points)
    assert shared.sum() == pytest.approx(500.0)
    assert (shared >= 0.0).all()
    ends = [*rates.piece_starts[1:].tolist(), len(rates.piece_scores)]
    by_hand = 0.0
    for bucket, (first, last) in enumerate(zip(rates.piece_starts.tolist(), ends, strict=True)):
        for piece in range(first, last):
            size = rates.totals[bucket] * rates.piece_shares[piece]
            by_hand += size * float(np.interp(rates.piece_scores[piece], points, values))
    assert shared @ values == pytest.approx(by_hand)


def test_a_calibrated_score_probably_needs_no_map_and_a_bent_one_does() -> None:
    shares = []
    for calibrated in (True, False):
        labels, scores = drawn(20_000, calibrated=calibrated)
        histogram = ScoreHistogram.from_scores(labels, scores)
        shares.append(smooth_from(bucket_rates(histogram, most=400)).raw_share)
    assert shares[0] > 0.9
    assert shares[1] < 1e-9


def test_what_two_rows_say_leaves_the_raw_score_at_even_odds() -> None:
    """The raw score counts as much as all curves together, before anything is seen."""
    histogram = ScoreHistogram.from_scores([0, 1], [0.5, 0.5], grid=Grid.uniform(8))
    assert smooth_from(bucket_rates(histogram)).raw_share == pytest.approx(0.5, abs=0.05)


def test_noise_that_cancels_between_neighbours_hides_no_bend() -> None:
    """Noise whose sign alternates says much of each cell and little of a smooth curve."""
    labels, scores = drawn(5_000)
    exact = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(16))
    sign = np.where(np.arange(16) % 2, 1.0, -1.0)
    noisy = exact.counts + 100.0 * sign * np.array([[-1.0], [1.0]])
    noise = _Given(100.0**2 * np.outer(sign, sign))
    rates = bucket_rates(ScoreHistogram(exact.edges, noisy, noise))
    assert smooth_from(rates).raw_share < 0.01
    # Taken as independent, the same noise drowns it.
    assert smooth_from(replace(rates, noise_covariance=None)).raw_share > 0.5


class _Given:
    """Noise of positives with a given covariance, and its opposite for negatives."""

    is_zero = False
    local_epsilon = None

    def __init__(self, covariance: Floats) -> None:
        self.covariance = covariance

    def variance(self, weights: Floats) -> float:
        difference = weights[1] - weights[0]
        return float(difference @ self.covariance @ difference)

    def covariances(self, weights: Floats) -> Floats:
        difference = weights[:, 1] - weights[:, 0]
        table: Floats = difference @ self.covariance @ difference.T
        return table

    def reports_for(self, growth: float) -> float:
        return growth


def test_covariances_of_sums_equal_those_of_drawn_noise() -> None:
    hierarchy = Hierarchy.flat(6)
    variances = np.arange(1.0, 13.0).reshape(2, 6)
    weights = np.random.default_rng(1).normal(size=(4, 2, 6))
    found = TreeNoise(hierarchy, (variances,)).covariances(weights)
    flat = weights.reshape(4, -1)
    assert np.allclose(found, flat * variances.ravel() @ flat.T)


def test_fewer_pieces_keep_every_buckets_mean_score() -> None:
    labels, scores = drawn(5_000)
    rates = bucket_rates(ScoreHistogram.from_scores(labels, scores), most=50)
    fewer = rates.in_pieces(4)
    assert len(fewer.piece_scores) <= 4 * len(rates)
    assert np.allclose(fewer.scores, rates.scores)
    assert np.allclose(np.add.reduceat(fewer.piece_shares, fewer.piece_starts), 1.0)


def test_scores_are_misplaced_in_wide_cells_and_hardly_in_narrow_ones() -> None:
    labels, scores = drawn(50_000)
    for cells, most in ((4, 0.03), (64, 0.001)):
        histogram = ScoreHistogram.from_scores(labels, scores, grid=Grid.uniform(cells))
        totals = histogram.counts.sum(axis=0)
        sd = np.sqrt(misplaced(histogram)) / totals
        place = np.minimum((scores * cells).astype(np.int64), cells - 1)
        true = np.bincount(place, scores, cells) / totals
        told = bucket_rates(histogram).scores
        assert sd @ totals / totals.sum() < most
        assert (np.abs(told - true) < 4.0 * sd + 4.0 / cells / np.sqrt(totals)).all()


def test_the_smooth_map_rises_and_is_a_probability_on_hostile_counts() -> None:
    generator = np.random.default_rng(5)
    for cells in (3, 7, 40):
        counts = generator.normal(30.0, 60.0, (2, cells))
        counts[:, 0] = 400.0
        model = TreeNoise(Hierarchy.flat(cells), (np.full((2, cells), 60.0**2 / 40.0),))
        histogram = ScoreHistogram(np.linspace(0.0, 1.0, cells + 1), counts, model)
        found = fit_smooth(histogram)
        assert found.is_monotone
        assert np.isfinite(found.values).all()


def test_a_tally_of_counts_is_the_tally_of_their_rows() -> None:
    labels, scores = drawn(3_000)
    rows = Examples(labels, scores)
    for privacy, epsilon in MODELS:
        request = SurveyRequest(
            privacy=privacy, epsilon=epsilon, clients=3_000, dropouts=Fraction(0)
        )
        survey = design_survey(request).survey
        by_rows = tally_clients(
            survey, ScoredClients(rows, None, 3_000), randomness=SimulatedRandomness(4)
        )
        generator = SimulatedRandomness(4).generator
        counts = survey.grid.count(rows)
        by_counts = draw_tally(survey, counts, clients=3_000, generator=generator)
        assert (by_rows.counters == by_counts.counters).all()
        assert by_rows.reports == by_counts.reports


def test_an_interval_of_exact_gaps_is_their_sum() -> None:
    gaps = np.array([0.01, -0.02, 0.0])
    known = SumOfSizes(0.03, gaps=gaps, gap_noise=np.zeros((3, 3)), gap_sampling=np.full(3, 1e-6))
    assert known.interval(population=False) == pytest.approx((0.03, 0.03))
    low, high = known.interval()
    assert low < 0.03 < high


def applied_as_documented(content: dict[str, object], score: float) -> float:
    """docs/formats.md in a few lines that need nothing but JSON."""
    edges, values = content["edges"], content["values"]
    assert isinstance(edges, list)
    assert isinstance(values, list)
    if content["interpolation"] == "step":
        return float(values[max(bisect_left(edges, score) - 1, 0)])
    if score <= edges[0] or score >= edges[-1]:
        return float(values[0] if score <= edges[0] else values[-1])
    right = bisect_left(edges, score)
    part = (score - edges[right - 1]) / (edges[right] - edges[right - 1])
    return float(values[right - 1] + part * (values[right] - values[right - 1]))


@pytest.mark.parametrize("method", list(Method))
def test_the_file_can_be_applied_by_what_the_documentation_says(
    method: Method, tmp_path: Path
) -> None:
    labels, scores = drawn(2_000)
    found = fit(ScoreHistogram.from_scores(labels, scores), method)
    found.save(tmp_path / "calibrator.json")
    content = json.loads((tmp_path / "calibrator.json").read_text())
    asked = [0.0, 1.0, *found.edges.tolist(), *np.random.default_rng(2).random(300).tolist()]
    ours = Calibrator.load(tmp_path / "calibrator.json").predict(asked)
    theirs = [applied_as_documented(content, score) for score in asked]
    assert np.abs(ours - theirs).max() < 1e-12
