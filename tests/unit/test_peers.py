"""Comparators of `experiments.peers`, each against brute force and against the law of its noise."""

from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
from experiments.peers import bell, central, dp_ecdf, fedcurve
from experiments.peers.client_average import client_average
from experiments.peers.contests import CONTESTS, OURS, PRESET, Contest, Outcome, run_contest
from experiments.peers.dpauc import dpauc, quadruples
from experiments.peers.page import comparisons
from experiments.peers.roc import RocCurve, area_error
from experiments.peers.smooth_ece import smooth_ece
from experiments.resampled import SortedRows
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import PchipInterpolator
from sklearn.metrics import roc_auc_score, roc_curve

from fedassay.examples import Examples, FloatArray, IntArray

NEVER = 5.4
"""Standard deviations beyond which a normal draw lies with probability below 1e-7."""


def table(rows: int = 900, distinct: int = 60, seed: int = 3) -> Examples:
    generator = np.random.default_rng(seed)
    labels = generator.random(rows) < 0.4
    scores = np.clip(generator.normal(0.4 + 0.2 * labels, 0.2), 0.0, 1.0)
    return Examples(labels, np.round(scores * distinct) / distinct)


def counted(examples: Examples, cells: int) -> IntArray:
    rows = SortedRows.of(examples)
    return rows.on_grid(rows.counts(), np.linspace(0.0, 1.0, cells + 1))


def test_the_area_below_the_exact_curve_is_scikit_learns_ties_and_all() -> None:
    examples = table()
    curve = RocCurve.of_counts(SortedRows.of(examples).counts())
    assert curve.area == pytest.approx(roc_auc_score(examples.labels, examples.scores), abs=1e-12)


def test_the_area_between_curves_is_that_of_many_thin_strips() -> None:
    one, other = table(seed=3), table(seed=4)
    curves = [RocCurve.of_counts(SortedRows.of(each).counts()) for each in (one, other)]
    x = (np.arange(400_000) + 0.5) / 400_000
    heights = []
    for each in (one, other):
        fpr, tpr, _ = roc_curve(each.labels, each.scores, drop_intermediate=False)
        heights.append(np.interp(x, fpr, tpr))
    strips = np.abs(heights[0] - heights[1]).mean()
    assert area_error(*curves) == pytest.approx(strips, abs=1e-5)
    assert area_error(curves[0], curves[0]) == 0.0


def test_noisy_points_become_a_curve_that_rises_from_corner_to_corner() -> None:
    curve = RocCurve.through(np.array([0.5, -0.2, 1.3]), np.array([0.4, 0.6, 0.5]))
    assert curve.fpr.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert curve.tpr.tolist() == [0.0, 0.6, 0.6, 0.6, 1.0]


def test_dpauc_counts_at_every_threshold_and_splits_epsilon_over_all_statistics() -> None:
    examples = table(rows=300)
    rows = SortedRows.of(examples)
    sums = quadruples(rows.counts(), rows.distinct, 5)
    for place, threshold in enumerate((0.0, 0.25, 0.5, 0.75, 1.0)):
        above, positive = examples.scores >= threshold, examples.labels == 1
        expected = [
            (above & positive).sum(),
            (above & ~positive).sum(),
            (~above & ~positive).sum(),
            (~above & positive).sum(),
        ]
        assert sums[:, place].tolist() == expected

    class Recorded:
        def laplace(self, centre: float, scale: float, size: tuple[int, ...]) -> FloatArray:
            drawn.append((centre, scale, size))
            return np.zeros(size)

    drawn: list[tuple[float, float, tuple[int, ...]]] = []
    curve = dpauc(
        rows.counts(),
        rows.distinct,
        thresholds=61,
        epsilon=0.5,
        sites=7,
        generator=Recorded(),  # type: ignore[arg-type]  # a generator that remembers
    )
    assert drawn == [(0.0, 4 * 61 / 0.5, (7, 4, 61))]
    # A threshold at every distinct score leaves nothing out.
    assert curve.area == pytest.approx(roc_auc_score(examples.labels, examples.scores))


def test_bells_pairs_from_exact_levels_are_all_pairs() -> None:
    examples = table(rows=200)
    leaves = counted(examples, 16)
    levels = [bell.nodes_of(leaves, level).astype(np.float64) for level in range(1, 5)]
    cell = np.clip(np.ceil(examples.scores * 16) - 1, 0, 15)
    pairs = sum(
        1.0 if a < b else 0.5 if a == b else 0.0
        for a, b in product(cell[examples.labels == 0], cell[examples.labels == 1])
    )
    assert bell.pairs(levels) == pytest.approx(pairs)


def test_bells_oracle_is_unbiased_with_the_variance_of_unary_encoding() -> None:
    generator = np.random.default_rng(5)
    counts = np.array([[400, 0], [50, 550]])
    drawn = np.array([bell.oracle(counts, 1.0, generator) for _ in range(4_000)])
    q = 1.0 / (exp(1.0) + 1.0)
    variance = (counts / 4.0 + (1_000 - counts) * q * (1.0 - q)) / (0.5 - q) ** 2
    z = (drawn.mean(axis=0) - counts) / np.sqrt(variance / 4_000)
    assert np.abs(z).max() < NEVER
    ratio = drawn.var(axis=0) / variance
    assert np.abs(ratio - 1.0).max() < NEVER * sqrt(2.0 / 4_000)


def test_bells_rows_each_go_to_one_group() -> None:
    leaves = np.array([[500, 0, 7], [90, 3_000, 1]])
    groups = bell.split_rows(leaves, 4, np.random.default_rng(1))
    assert sum(groups).tolist() == leaves.tolist()  # type: ignore[union-attr]  # the survey has one
    sd = sqrt(3_000 * 0.25 * 0.75)
    assert all(abs(group[1, 1] - 750) < NEVER * sd for group in groups)


@pytest.mark.parametrize("fanout", [2, 3])
def test_consistent_levels_are_those_of_least_squares(fanout: int) -> None:
    generator = np.random.default_rng(2)
    levels = [generator.integers(-9, 99, fanout**level) for level in (1, 2, 3)]
    leaves = np.eye(fanout**3)
    sums = [leaves.reshape(len(level), -1, fanout**3).sum(axis=1) for level in levels]
    expected, *_ = np.linalg.lstsq(np.vstack(sums), np.concatenate(levels), rcond=None)
    found = fedcurve.consistent(levels, fanout)
    assert found[-1] == pytest.approx(expected)
    assert found[0] == pytest.approx(expected.reshape(fanout, -1).sum(axis=1))


def test_quantiles_are_the_leaves_of_the_sorted_rows() -> None:
    examples = table(rows=500, distinct=10_000)
    leaves = counted(examples, 64)[1]
    levels = [leaves.reshape(2**level, -1).sum(axis=1).astype(float) for level in range(1, 7)]
    own = np.sort(examples.scores[examples.labels == 1])
    fractions = np.linspace(0.0, 1.0, 41)
    rank = np.maximum(np.ceil(fractions * len(own)).astype(int) - 1, 0)
    leaf = np.maximum(np.ceil(own[rank] * 64) - 1, 0)
    below = np.array([0, *((own <= place / 64).sum() for place in range(1, 65))])
    for fraction, place, edge in zip(
        fractions, leaf, fedcurve.quantile_edges(levels, fractions), strict=True
    ):
        # From the top: the left edge of the first node above the leaf at which the rows between
        # it and the fraction are fewer than half of a leaf's even share.
        lefts = [int(place) // 2**up * 2**up for up in range(5, -1, -1)]
        rests = [fraction * len(own) - below[left] for left in lefts]
        near = [left for left, rest in zip(lefts, rests, strict=True) if rest < len(own) / 128]
        assert edge * 64 == (near[0] if near else place)


def test_quantiles_that_coincide_are_a_step_and_others_a_cubic_of_their_own() -> None:
    edges = np.array([0.1, 0.2, 0.4, 0.4, 0.4, 0.7, 0.9])
    fractions = np.linspace(0.0, 1.0, 7)
    at = np.array([0.0, 0.3, 0.4 - 1e-12, 0.4, 0.8, 0.9, 1.0])
    low = PchipInterpolator(edges[:3], fractions[:3])
    high = PchipInterpolator(edges[4:], fractions[4:])
    expected = [0.0, float(low(0.3)), 2 / 6, 4 / 6, float(high(0.8)), 1.0, 1.0]
    assert fedcurve.distribution(edges, fractions, at) == pytest.approx(expected)
    one_value = fedcurve.distribution(np.full(3, 0.5), np.linspace(0, 1, 3), np.array([0.4, 0.5]))
    assert one_value.tolist() == [0.0, 1.0]


def test_fedcurve_without_noise_is_close_and_its_noise_is_discrete_laplace() -> None:
    examples = table(rows=20_000, distinct=1_000_000)
    exact = RocCurve.of_counts(SortedRows.of(examples).counts())
    size = 2 ** fedcurve.height_of(128, 2)
    found = fedcurve.fedcurve(
        counted(examples, size),
        quantiles=128,
        fanout=2,
        epsilon=1e3,
        generator=np.random.default_rng(1),
    )
    assert area_error(found, exact) < 0.003
    drawn = fedcurve.discrete_laplace(0.7, 200_000, np.random.default_rng(2))
    ratio = exp(-0.7)
    law = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-5, 6)]
    observed = [(drawn == k).sum() for k in range(-5, 6)]
    rest = len(drawn) - sum(observed)
    statistic = stats.chisquare([*observed, rest], 200_000 * np.array([*law, 1 - sum(law)]))
    assert statistic.pvalue > 1e-7


def test_an_ecdfs_noise_is_shared_by_blocks_of_every_size() -> None:
    class Ones:
        def laplace(self, centre: float, scale: float, size: int) -> FloatArray:
            scales.append(scale)
            return np.arange(1.0, size + 1.0) * 10.0 ** len(scales)

    scales: list[float] = []
    noise = dp_ecdf.tree_noise(6, 2.0, Ones())  # type: ignore[arg-type]  # a generator of ones
    blocks = [10.0 * (i + 1) + 100.0 * (i // 2 + 1) + 1e3 * (i // 4 + 1) + 1e4 for i in range(6)]
    assert noise.tolist() == blocks
    assert scales == [4 / 2.0] * 4, "epsilon is split over the levels"


def test_an_ecdf_without_noise_is_the_curve_of_its_cells() -> None:
    cells = counted(table(), 32)
    found = dp_ecdf.dp_ecdf(cells, epsilon=1e9, generator=np.random.default_rng(1))
    assert area_error(found, RocCurve.of_counts(cells)) < 1e-6


def test_no_row_moves_roc_auc_by_more_than_its_sensitivity() -> None:
    generator = np.random.default_rng(6)
    for _ in range(30):
        labels = np.array([0, 0, 1, 1, *generator.integers(0, 2, 6)])
        scores = generator.integers(0, 5, 10) / 4
        whole = roc_auc_score(labels, scores)
        smaller = min(labels.sum(), len(labels) - labels.sum())
        for row in range(10):
            kept = np.arange(10) != row
            moved = abs(roc_auc_score(labels[kept], scores[kept]) - whole)
            assert moved <= 1.0 / max(smaller - 1, 1) + 1e-12


def test_the_smooth_bound_is_above_the_sensitivity_and_moves_slowly() -> None:
    beta = 0.1
    bounds = [central.smooth_bound(m, beta) for m in range(1, 400)]
    for m in (5, 40, 399):
        brute = max(exp(-beta * k) / max(m - 1 - k, 1) for k in range(m))
        assert bounds[m - 1] == pytest.approx(brute)
        assert bounds[m - 1] >= 1.0 / (m - 1)
    ratios = np.array(bounds[1:]) / np.array(bounds[:-1])
    assert np.abs(np.log(ratios)).max() <= beta + 1e-12


def test_heavy_tailed_noise_has_its_law() -> None:
    generator = np.random.default_rng(4)
    drawn = [central.heavy_tailed(generator) for _ in range(20_000)]
    whole, _ = quad(lambda z: 1.0 / (1.0 + z**4), -np.inf, np.inf)
    places = np.linspace(-60.0, 60.0, 4_001)
    density = 1.0 / (1.0 + places**4) / whole
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * 0.03)])
    assert stats.kstest(drawn, lambda z: np.interp(z, places, below)).pvalue > 1e-7


def test_the_average_is_over_clients_with_both_classes_weighted_by_rows() -> None:
    labels = np.array([0, 1, 1, 0, 1, 0, 1, 1])
    scores = np.array([0.1, 0.4, 0.1, 0.2, 0.9, 0.3, 0.3, 0.6])
    clients = np.array([5, 5, 5, 5, 2, 2, 7, 7])
    average, held = client_average(Examples(labels, scores), clients)
    areas = [roc_auc_score(labels[clients == c], scores[clients == c]) for c in (5, 2)]
    assert average == pytest.approx(np.average(areas, weights=[4, 2]))
    assert held == 6 / 8


def test_smooth_ece_is_the_fixed_point_of_the_reflected_kernels_integral() -> None:
    generator = np.random.default_rng(9)
    scores = generator.random(80)
    labels = generator.random(80) < scores**2
    counts = np.stack([~labels, labels]).astype(np.float64)
    found = smooth_ece(counts, scores)
    t = (np.arange(2_000) + 0.5) / 2_000
    kernel = sum(
        stats.norm.pdf(t[:, None], sign * scores + shift, found)
        for shift in range(-4, 5, 2)
        for sign in (1.0, -1.0)
    )
    residual = np.abs(kernel @ (labels - scores)).mean() / 80
    assert residual == pytest.approx(found, abs=2e-3)


def test_calibrated_scores_have_a_smooth_ece_near_zero_and_shifted_ones_their_shift() -> None:
    scores = np.linspace(0.2, 0.8, 500)
    counts = 1e6 * np.stack([1.0 - scores, scores])
    assert smooth_ece(counts, scores) < 0.002
    shifted = 1e6 * np.stack([0.9 - scores, 0.1 + scores])
    assert smooth_ece(shifted, scores) == pytest.approx(0.1, abs=0.003)


@pytest.mark.parametrize("contest", CONTESTS, ids=lambda contest: contest.name)
def test_every_contest_has_an_outcome_of_every_entrant_however_loud_the_noise(
    contest: Contest,
) -> None:
    """A small table: under local privacy no class stands clear, which is no answer and no crash."""
    found = run_contest(contest, SortedRows.of(table(rows=2_000, distinct=1_000)), trials=2)
    assert found[0].entrant == OURS
    assert all(each.area.shape == each.curve.shape == (2,) for each in found)
    names = {each.entrant for each in found} - {OURS, PRESET}
    assert names == {name for name, _ in contest.entrants(SortedRows.of(table()), 1.0)}
    known = [each for each in comparisons(contest.name, "made", found) if each.theirs > 0.0]
    assert known


def test_the_better_of_two_is_named_only_beyond_the_measurements_luck() -> None:
    errors = np.array([1.0, 1.1, 0.9, 1.0])
    silent = np.full(4, np.nan)
    for factor, verdict in ((3.0, "ours"), (1.02, "alike"), (0.3, "**theirs**")):
        outcomes = [
            Outcome(OURS, "", errors, silent),
            Outcome("other", "worse", 10.0 * factor * errors, silent),
            Outcome("other", "best", factor * errors, silent),
        ]
        (found,) = comparisons("contest", "table", outcomes)
        assert (found.setting, found.verdict, found.measure) == ("best", verdict, "area")
        assert found.times[0] == pytest.approx(factor)
    refused = [Outcome(OURS, "", silent, silent), Outcome("other", "", errors, silent)]
    (found,) = comparisons("contest", "table", refused)
    assert found.verdict == "no answer"
