"""Two surveys read as one, against generalised least squares over all their counters."""

import json
from collections.abc import Callable
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from fedassay import DecodeOptions, Polya, ScoreHistogram, Survey, Tally
from fedassay.assessment import Assessment
from fedassay.cut_levels import CutLevels
from fedassay.decoding import decode, decode_counters
from fedassay.draws import draw_tally
from fedassay.errors import FedassayError
from fedassay.estimate import FINER, TooCoarse
from fedassay.examples import FloatArray, IntArray
from fedassay.mechanisms import RandomizedResponse
from fedassay.noise import DenseNoise
from fedassay.two_steps import by_cells, decode_two
from fedassay.two_steps import least_squares as fitted
from tests.steps import CUTS, WEIGHTS, first_local, first_shared, second_local, second_shared
from tests.surveys import small_survey

LEAVES = 6
TRUTH = np.array([[400, 300, 150, 60, 30, 20], [10, 20, 40, 90, 160, 200]])
OPTIONS = DecodeOptions()


def exact_tally(survey: Survey, counts: IntArray, reports: int) -> Tally:
    """The sums of so many reports of shared noise, had all the noise come out as nil."""
    sums = np.concatenate([level.ravel() for level in survey.hierarchy.climb(counts)])
    return Tally(survey.fingerprint, (reports,) * survey.hierarchy.levels, sums)


def noisy_tally(survey: Survey, counts: IntArray, reports: int, seed: int) -> Tally:
    off = np.random.default_rng(seed).integers(-50, 51, survey.hierarchy.width)
    tally = exact_tally(survey, counts, reports)
    return Tally(survey.fingerprint, tally.reports, tally.counters + off)


def read(first: Survey, one: Tally, second: Survey, other: Tally) -> ScoreHistogram:
    return decode_two(first, one, second, other, decode_options=OPTIONS)


def covariance_of(histogram: ScoreHistogram) -> FloatArray:
    assert isinstance(histogram.noise, DenseNoise)
    return histogram.noise.covariance


# --- the oracle: rows by loops, least squares by scipy ---------------------------------------


def row_of(survey: Survey, level: int, label: int, cell: int) -> FloatArray:
    """How one counter adds up the leaves of negatives, then of positives."""
    row = np.zeros((2, survey.grid.cells))
    levels = survey.hierarchy
    for leaf in range(survey.grid.cells):
        if not isinstance(levels, CutLevels):
            block = int(np.prod(levels.fanouts[level + 1 :]))  # type: ignore[union-attr]  # the survey has one
            row[label, leaf] = leaf // block == cell
        elif level == len(levels.cuts):
            assert levels.weights is not None
            row[label, leaf] = levels.weights[label][leaf]
        else:
            row[label, leaf] = sum(s <= leaf for s in levels.cuts[level][label]) - 1 == cell
    return row.ravel()


def rows_of(survey: Survey, level: int) -> FloatArray:
    cells = survey.hierarchy.cells_per_level[level]
    return np.array([row_of(survey, level, y, c) for y in (0, 1) for c in range(cells)])


def least_squares(
    rows: FloatArray, values: FloatArray, covariance: FloatArray, total: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Generalised least squares; a known total is met by moving only along what keeps it."""
    start, free = np.zeros(rows.shape[1]), np.eye(rows.shape[1])
    if total is not None:
        start = np.full(rows.shape[1], total / rows.shape[1])
        free = linalg.null_space(np.ones((1, rows.shape[1])))
    weight = linalg.pinv(covariance)
    design = rows @ free
    spread = linalg.inv(design.T @ weight @ design)
    found = spread @ design.T @ weight @ (values - rows @ start)
    return start + free @ found, free @ spread @ free.T


def laplace_variance(step: float) -> float:
    """Of discrete Laplace noise, from its probabilities."""
    a = exp(-step)
    k = np.arange(1, int(60 / step))
    return float(2 * (k**2 * (1 - a) / (1 + a) * a**k).sum())


# --- shared noise ----------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.booleans(), st.sampled_from([4, 6, 10]))
def test_shared_noise_is_read_by_least_squares_over_all_counters_of_both(
    seed: int, weighted: bool, reports: int
) -> None:
    first = first_shared()
    second = second_shared(first, CutLevels(LEAVES, CUTS, WEIGHTS if weighted else None))
    one, other = (noisy_tally(survey, TRUTH, reports, seed) for survey in (first, second))
    rows, values, variances = [], [], []
    for survey, tally in ((first, one), (second, other)):
        for level, mechanism in enumerate(survey.mechanisms):
            assert isinstance(mechanism, Polya)
            rows.append(rows_of(survey, level))
            values.append(tally.per_level(survey)[level].ravel())
            # Four shares make a whole of the noise; more reports bring more.
            variance = laplace_variance(float(mechanism.step)) * reports / 4
            variances += [variance] * len(rows[-1])
    found, spread = least_squares(np.concatenate(rows), np.concatenate(values), np.diag(variances))
    histogram = read(first, one, second, other)
    np.testing.assert_allclose(histogram.counts.ravel(), found, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(covariance_of(histogram), spread, rtol=1e-6, atol=1e-6)
    for towards in np.random.default_rng(seed).normal(size=(3, 2, LEAVES)):
        wanted = float(towards.ravel() @ spread @ towards.ravel())
        assert histogram.noise.variance(towards) == pytest.approx(wanted, rel=1e-6)


def test_without_noise_the_leaves_come_out_as_they_are() -> None:
    """Least squares is linear and its rows are of full rank: it is unbiased whatever the cuts."""
    first = first_shared()
    for weights in (WEIGHTS, None):
        second = second_shared(first, CutLevels(LEAVES, CUTS, weights))
        tallies = [exact_tally(survey, TRUTH, 9) for survey in (first, second)]
        histogram = read(first, tallies[0], second, tallies[1])
        np.testing.assert_allclose(histogram.counts, TRUTH, rtol=1e-9)
        assert histogram.edges.tolist() == first.grid.edges.tolist()


def test_noise_in_counters_that_no_example_reaches_says_nothing() -> None:
    first = first_shared()
    second = second_shared(first)
    one, other = (exact_tally(survey, TRUTH, 9) for survey in (first, second))
    # Level 1 has cells (0, 2, 5) of negatives and (0, 3) of positives: the sixth is none.
    counters = other.counters.copy()
    assert counters[5] == 0
    counters[5] = 10_000
    odd = Tally(second.fingerprint, other.reports, counters)
    quiet = read(first, one, second, other).counts
    np.testing.assert_allclose(read(first, one, second, odd).counts, quiet, rtol=1e-12)


def test_both_surveys_together_know_more_than_the_first_of_everything() -> None:
    first = first_shared()
    second = second_shared(first)
    one, other = (exact_tally(survey, TRUTH, 9) for survey in (first, second))
    alone = decode(first, one, decode_options=OPTIONS).noise
    both = read(first, one, second, other).noise
    for towards in np.random.default_rng(5).normal(size=(50, 2, LEAVES)):
        assert both.variance(towards) < alone.variance(towards)
    # And of what the second counts with a weight, what it alone knows.
    weighted = np.array(WEIGHTS, dtype=np.float64)
    law = laplace_variance(float(Fraction(4, 15) / 7)) * 9 / 4
    assert both.variance(weighted) < 2 * law


def test_an_assessment_of_two_reads_them_together() -> None:
    first = first_shared()
    second = second_shared(first)
    one, other = (noisy_tally(survey, TRUTH, 9, 3) for survey in (first, second))
    joined = Assessment(second, other, OPTIONS, first=Assessment(first, one, OPTIONS))
    counts = read(first, one, second, other).counts
    assert joined.histogram().counts.tolist() == counts.tolist()


def test_the_first_survey_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(survey: Survey, tally: Tally, **options: DecodeOptions) -> ScoreHistogram:
        calls.append(survey)
        return decode_counters(survey, tally, **options)

    monkeypatch.setattr("fedassay.two_steps.decode_counters", counted)
    first = first_local(kinds="grr grr", leaves=LEAVES)
    second = second_local(first, kinds="grr grr")
    one, other = (expected_tally(each, TRUTH / TRUTH.sum(), 10**6)[0] for each in (first, second))
    read(first, one, second, other)
    assert calls == [first]


def test_after_two_steps_nobody_is_sent_to_a_second() -> None:
    """Six wide cells, hardly any noise: who of the last lies above 0.9 is not known."""
    first = first_shared(total=Fraction(40), epsilon=Fraction(20))
    second = second_shared(first)
    one, other = (exact_tally(survey, TRUTH * 1000, 9) for survey in (first, second))
    once = Assessment(first, one, OPTIONS)
    both = Assessment(second, other, OPTIONS, first=once)
    asked_once, asked_twice = (each["lr_plus@0.9"] for each in (once, both))
    assert isinstance(asked_once, TooCoarse)
    assert isinstance(asked_twice, TooCoarse)
    assert asked_once.reason.endswith("Run a second step (--steps 2), or give a reference.")
    assert asked_twice.reason.endswith(
        "Both steps were run: next time name 0.9 beforehand (--threshold), ask more clients, or "
        "spend a larger epsilon."
    )
    slope = both.said("calibration_slope", TooCoarse(reason=f"Cells hide it. {FINER}"))
    assert isinstance(slope, TooCoarse)
    assert slope.reason == (
        "Cells hide it. Both steps were run: next time ask more clients, or spend a larger epsilon."
    )


def saved_pair(path: Path) -> dict[str, Any]:
    """The file of an assessment of both."""
    first = first_shared()
    second = second_shared(first)
    one, other = (noisy_tally(survey, TRUTH, 9, 3) for survey in (first, second))
    Assessment(second, other, OPTIONS, first=Assessment(first, one, OPTIONS)).save(path)
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_an_assessment_of_two_survives_its_file(tmp_path: Path) -> None:
    content = saved_pair(tmp_path / "both.json")
    assert sorted(content["first"]) == ["counters", "reports", "survey"]
    again = Assessment.load(tmp_path / "both.json")
    assert again.first is not None
    assert again.first.survey == first_shared()
    assert again.to_json() == content


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda content: content.pop("first"), "read together with the first"),
        (lambda content: content["first"].pop("reports"), "is missing"),
        (lambda content: content["first"].update(surprise=1), "unknown field"),
        (lambda content: content["first"]["counters"].append(0), "at most 16"),
        (lambda content: content["first"].update(reports=[1, 1]), "at least 4 reports"),
        (lambda content: content["first"]["survey"].update(model_digest="ab" * 32), "this first"),
        (lambda content: content.update(first=None), "expected an object"),
    ],
)
def test_an_assessment_file_whose_first_does_not_fit_is_refused(
    change: Callable[[dict[str, Any]], object], says: str, tmp_path: Path
) -> None:
    content = saved_pair(tmp_path / "both.json")
    change(content)
    (tmp_path / "changed.json").write_text(json.dumps(content))
    with pytest.raises(FedassayError, match=says):
        Assessment.load(tmp_path / "changed.json")


# --- local privacy ---------------------------------------------------------------------------


def expected_tally(survey: Survey, shares: FloatArray, reports: int) -> tuple[Tally, FloatArray]:
    """Counters at their means, rounded, and the covariance of what they come from.

    Each report is a value drawn from a mixture: a multinomial count, whose covariance is
    m (diag(pi) - pi pi').
    """
    sums, spreads = [], []
    for level, mechanism in enumerate(survey.mechanisms):
        assert isinstance(mechanism, RandomizedResponse)
        p = mechanism.numerator / 2**64
        size = 2 * survey.hierarchy.cells_per_level[level]
        hit = rows_of(survey, level) @ shares.ravel()
        chances = (1 - p) / (size - 1) + hit * (p - (1 - p) / (size - 1))
        assert chances.sum() == pytest.approx(1.0)
        whole = np.rint(np.cumsum(chances) * reports).astype(np.int64)
        sums.append(np.diff(whole, prepend=0))
        spreads.append(reports * (np.diag(chances) - np.outer(chances, chances)))
    tally = Tally(survey.fingerprint, (reports,) * survey.hierarchy.levels, np.concatenate(sums))
    return tally, linalg.block_diag(*spreads)


def test_local_reports_are_read_by_least_squares_given_their_number() -> None:
    """Counters at their means of 10^8 reports: variances from them are exact to 1e-4."""
    first = first_local(kinds="grr grr", leaves=LEAVES)
    second = second_local(first, kinds="grr grr")
    shares = TRUTH / TRUTH.sum()
    many = 10**8
    one, spread_one = expected_tally(first, shares, many)
    other, spread_two = expected_tally(second, shares, many)
    # Two levels each: 4 x 10^8 clients in all, of which each counter hears a quarter.
    clients = 4.0 * many
    rows, values, gains = [], [], []
    for survey, tally in ((first, one), (second, other)):
        for level, mechanism in enumerate(survey.mechanisms):
            assert isinstance(mechanism, RandomizedResponse)
            p = mechanism.numerator / 2**64
            q = (1 - p) / (2 * survey.hierarchy.cells_per_level[level] - 1)
            rows.append(rows_of(survey, level))
            values.append((tally.per_level(survey)[level].ravel() - q * many) * 4 / (p - q))
            gains += [4 / (p - q)] * len(rows[-1])
    scale = np.array(gains)
    covariance = linalg.block_diag(spread_one, spread_two) * np.outer(scale, scale)
    found, spread = least_squares(
        np.concatenate(rows), np.concatenate(values), covariance / 1e12, total=clients
    )
    histogram, _ = fitted(first, one, second, other)
    assert histogram.counts.sum() == pytest.approx(clients, rel=1e-12)
    np.testing.assert_allclose(histogram.counts, shares * clients, rtol=1e-5)
    np.testing.assert_allclose(histogram.counts.ravel(), found, rtol=1e-5)
    size = np.sqrt(np.diag(spread))
    correlated = covariance_of(histogram) / 1e12 / np.outer(size, size)
    np.testing.assert_allclose(correlated, spread / np.outer(size, size), atol=2e-4)


def test_what_local_reports_tell_of_their_own_rows_leaves_out_what_rows_vary_by() -> None:
    first = first_local(kinds="grr grr", leaves=LEAVES)
    second = second_local(first, kinds="grr grr")
    shares = TRUTH / TRUTH.sum()
    one, other = (expected_tally(survey, shares, 10**6)[0] for survey in (first, second))
    histogram, _ = fitted(first, one, second, other)
    table = shares.ravel() * 4e6
    for towards in np.random.default_rng(2).normal(size=(5, 2, LEAVES)):
        g = towards.ravel()
        drawn = float(table @ g**2 - (table @ g) ** 2 / table.sum())
        wanted = float(g @ covariance_of(histogram) @ g) - drawn
        assert histogram.noise.variance(towards) == pytest.approx(wanted, rel=1e-3)
        assert wanted > 0.0


def test_a_class_that_drowned_in_noise_is_read_by_cells_and_others_through_smooth_odds() -> None:
    cuts = CutLevels(LEAVES, (((0, 2), (0, 2)), ((0, 5), (0, 5))))
    shares = TRUTH / TRUTH.sum()
    first = first_local(kinds="grr grr", leaves=LEAVES, epsilon=Fraction(1, 4))
    second = second_local(first, cuts, kinds="grr grr")
    one, other = (expected_tally(survey, shares, 100)[0] for survey in (first, second))
    histogram = read(first, one, second, other)
    assert histogram.edges.tolist() == first.grid.edges[[0, 2, 5, 6]].tolist()
    np.testing.assert_allclose(histogram.counts.sum(), 400.0)
    first = first_local(kinds="grr grr", leaves=LEAVES)
    second = second_local(first, cuts, kinds="grr grr")
    # So many reports on all four levels that leaves stand out of their noise, lumps and all.
    one, other = (expected_tally(survey, shares, 10**8)[0] for survey in (first, second))
    apart = read(first, one, second, other)
    assert apart.edges.tolist() == first.grid.edges.tolist()
    np.testing.assert_allclose(apart.counts, shares * 4e8, rtol=1e-3)


def test_what_is_read_smoothly_is_surer_than_least_squares_and_holds_the_truth() -> None:
    """Of 60 leaves and a few thousand reports: 200 draws, each leaf's share below 20 others."""
    first = first_local(kinds="grr grr", leaves=60)
    second = second_local(first, CutLevels(60, (((0, 25, 40), (0, 25, 40)),)), kinds="grr")
    middle = (np.arange(60) + 0.5) / 60
    pooled = np.exp(-(((middle - 0.4) / 0.25) ** 2))
    shares = pooled * np.stack([1 - middle, middle]) / pooled.sum()
    half = np.zeros((2, 60))
    half[1, :30] = 1.0
    generator, missed, surer = np.random.default_rng(8), [], []
    for _ in range(100):
        tallies = [
            draw_tally(
                each,
                generator.multinomial(reports, shares.ravel()).reshape(2, 60),
                clients=reports,
                generator=generator,
            )
            for each, reports in ((first, 40_000), (second, 160_000))
        ]
        smooth = read(first, tallies[0], second, tallies[1])
        raw, _ = fitted(first, tallies[0], second, tallies[1])
        off = float((half * (smooth.counts - shares * 200_000)).sum())
        missed.append(off / np.sqrt(smooth.noise.variance(half) + 200_000 * 0.1))
        surer.append(smooth.noise.variance(half) / raw.noise.variance(half))
    assert np.median(surer) < 0.8
    assert np.mean(np.abs(missed) < 1.96) > 0.85


def test_where_noise_is_shared_leaves_stay_and_cells_are_remembered() -> None:
    first = first_shared()
    second = second_shared(first, CutLevels(LEAVES, (((0, 2), (0, 2, 5)),), WEIGHTS))
    one, other = (exact_tally(survey, TRUTH, 9) for survey in (first, second))
    histogram = read(first, one, second, other)
    assert histogram.buckets == LEAVES
    assert histogram.by_cells().edges.tolist() == first.grid.edges[[0, 2, 5, 6]].tolist()


# --- cohorts that differ ---------------------------------------------------------------------


def test_the_firsts_counts_are_scaled_to_the_clients_of_the_second() -> None:
    first = first_shared()
    second = second_shared(first)
    for many, few in ((100, 80), (80, 100)):
        one = exact_tally(first, TRUTH * many, many)
        other = exact_tally(second, TRUTH * few, few)
        histogram = read(first, one, second, other)
        np.testing.assert_allclose(histogram.counts, TRUTH * few, rtol=1e-9)


def test_clients_in_one_survey_only_make_the_first_less_sure() -> None:
    first = first_shared()
    second = second_shared(first)
    within = np.zeros((2, LEAVES))
    within[0, 0], within[0, 1] = 1.0, -1.0  # Leaves of one cell: only the first tells them apart.
    told = []
    for heard in (100, 99, 90, 51):
        one = exact_tally(first, TRUTH * heard, heard)
        other = exact_tally(second, TRUTH * 100, 100)
        told.append(read(first, one, second, other).noise.variance(within))
    assert told == sorted(told)
    assert told[-1] > 100 * told[0]


# --- pairs -----------------------------------------------------------------------------------


def test_leaves_stay_where_the_second_survey_has_no_cells_of_its_own() -> None:
    leaves = ScoreHistogram(np.arange(LEAVES + 1) / LEAVES, np.ones((2, LEAVES)))
    assert by_cells(small_survey(LEAVES), leaves) is leaves


def test_local_cohorts_may_be_of_any_size() -> None:
    first = first_local(kinds="grr grr")
    second = second_local(first, kinds="grr grr")
    shares = TRUTH / TRUTH.sum()
    one, other = expected_tally(first, shares, 900)[0], expected_tally(second, shares, 90_000)[0]
    assert read(first, one, second, other).total == pytest.approx(2 * 90_900)
