"""Counters read through smooth log-odds, against derivatives, optimisers and draws of others."""

import numpy as np
import pytest
from scipy import optimize

import fedassay
from fedassay import Assessment
from fedassay.examples import FloatArray
from fedassay.reconcile import Observed
from fedassay.smooth_odds import Reading, SmoothOdds, table_covariance

LEAVES = 40
EDGES = np.arange(LEAVES + 1) / LEAVES
MIDDLE = 0.5 * (EDGES[1:] + EDGES[:-1])
POOLED = np.exp(-(((MIDDLE - 0.35) / 0.25) ** 2))
POOLED *= 10_000 / POOLED.sum()
TRUTH = POOLED * np.stack([1.0 - MIDDLE, MIDDLE])
"""Of a calibrated classifier."""


def family(*, total_is_known: bool = True, **more: object) -> SmoothOdds:
    return SmoothOdds.around(EDGES, TRUTH, total_is_known=total_is_known, **more)  # type: ignore[arg-type]


def cells(starts: list[int], counts: FloatArray = TRUTH, sd: float = 10.0) -> Observed:
    """Counters of cells that begin so, of both labels, each with the same noise."""
    row = np.zeros((len(starts), LEAVES))
    for place, (start, end) in enumerate(zip(starts, [*starts[1:], LEAVES], strict=True)):
        row[place, start:end] = 1.0
    rows = np.stack([row, row])
    values = np.einsum("lcn,ln->lc", rows, counts)
    return Observed(rows, values, np.full(values.shape, sd**2))


@pytest.mark.parametrize("total_is_known", [True, False])
@pytest.mark.parametrize("is_lumpy", [True, False])
def test_moves_are_the_derivatives_of_counts(total_is_known: bool, is_lumpy: bool) -> None:
    bent = family(total_is_known=total_is_known, is_lumpy=is_lumpy, towers=np.array([7]))
    at = 0.1 * np.random.default_rng(1).normal(size=len(bent.spreads))
    moves = bent.moves(bent.counts(at))
    step = 1e-6
    for place in range(len(at)):
        nudge = np.zeros_like(at)
        nudge[place] = step
        slope = (bent.counts(at + nudge) - bent.counts(at - nudge)) / (2 * step)
        np.testing.assert_allclose(moves[..., place], slope, atol=1e-4 * np.abs(slope).max() + 1e-6)


def test_a_known_total_stays_and_an_unknown_one_is_read() -> None:
    twice = cells([0, 10, 20, 30], 2.0 * TRUTH)
    assert family().likeliest(twice).counts.sum() == pytest.approx(10_000)
    read = family(total_is_known=False).likeliest(twice)
    assert read.counts.sum() == pytest.approx(20_000, rel=0.01)


def test_the_likeliest_counts_are_those_of_an_optimiser_that_knows_no_derivatives() -> None:
    """Five counters per label, far from the guess; scipy walks there by differences alone."""
    few = SmoothOdds.around(EDGES[::4], TRUTH.reshape(2, 10, 4).sum(axis=2), total_is_known=True)
    rows = np.zeros((2, 5, 10))
    rows[:, np.arange(10) // 2, np.arange(10)] = 1.0
    values = np.einsum("lcn,ln->lc", rows, TRUTH.reshape(2, 10, 4).sum(axis=2))
    values = values * np.array([[1.2, 0.8, 1.1, 0.9, 1.0], [0.7, 1.3, 1.0, 0.9, 1.2]])
    observed = Observed(rows, values, np.full((2, 5), 40.0**2))

    def badness(bends: FloatArray) -> float:
        missed = (values - np.einsum("lcn,ln->lc", rows, few.counts(bends))) ** 2 / 40.0**2
        return float(missed.sum() + ((bends / few.spreads) ** 2).sum())

    found = optimize.minimize(
        lambda at: badness(at * few.spreads),
        np.zeros(len(few.spreads)),
        method="BFGS",
        options={"gtol": 1e-6, "maxiter": 2000},
    )
    best = few.counts(found.x * few.spreads)
    mine = few.read(observed)
    wanted = np.einsum("lcn,ln->lc", rows, best)
    np.testing.assert_allclose(np.einsum("lcn,ln->lc", rows, mine.counts), wanted, atol=5.0)
    # The valley is flat along its floor: leaves move a little for next to nothing.
    assert badness(mine.bends) <= float(found.fun) + 0.02
    np.testing.assert_allclose(mine.counts, best, rtol=0.1, atol=2.0)


def test_inside_cells_a_calibrated_classifier_is_read_as_it_is() -> None:
    """Two cells: an even spread inside would put positives and negatives in the same places."""
    observed = cells([0, 16])
    read = family().likeliest(observed).counts
    for label in (0, 1):
        below, true = np.cumsum(read[label]), np.cumsum(TRUTH[label])
        assert np.abs(below - true).max() < 0.02 * true[-1]


def test_what_no_counter_tells_is_as_unsure_as_the_prior() -> None:
    inside = np.zeros((2, LEAVES))
    inside[1, :8], inside[1, 8:16] = 1.0, -1.0
    spread = []
    for starts in ([0, 16], [0, 8, 16]):
        reading = family().likeliest(cells(starts))
        covariance = table_covariance(reading, cells(starts), table=None)
        spread.append(float(inside.ravel() @ covariance @ inside.ravel()) ** 0.5)
    assert spread[0] > 2.0 * spread[1]
    assert spread[0] > 50.0


def test_a_rough_curve_is_found_to_be_rough() -> None:
    """Log-odds that go up and down by 3 between neighbouring cells need a rougher prior."""
    wild = np.where(np.arange(LEAVES) // 4 % 2 == 0, 0.1, 0.9)
    lumpy = POOLED * np.stack([1.0 - wild, wild])
    starts = list(range(0, LEAVES, 4))
    reading = family().likeliest(cells(starts, lumpy, sd=5.0))
    got = np.add.reduceat(reading.counts, starts, axis=1)
    # In the last two cells is less than one row in a hundred.
    np.testing.assert_allclose(got[:, :8], np.add.reduceat(lumpy, starts, axis=1)[:, :8], atol=25.0)


def test_a_tower_has_counts_and_odds_of_its_own() -> None:
    """Of 256 leaves, more than waves can follow; nobody would have guessed the tower."""
    middle = (np.arange(256) + 0.5) / 256
    smooth = 40.0 * np.stack([1.0 - middle, middle])
    towering = smooth.copy()
    towering[0, 131] += 2_000.0
    rows = np.stack([np.eye(256), np.eye(256)])
    every = Observed(rows, towering, np.full((2, 256), 100.0**2))
    guess = smooth * towering.sum() / smooth.sum()
    edges = np.arange(257) / 256
    alone = SmoothOdds.around(edges, guess, towers=np.array([131]), total_is_known=True)
    got = alone.likeliest(every).counts[:, 131]
    np.testing.assert_allclose(got, towering[:, 131], atol=150.0)
    without = SmoothOdds.around(edges, guess, total_is_known=True)
    assert without.likeliest(every).counts[0, 131] < 0.5 * towering[0, 131]


def test_errors_against_the_table_are_what_the_formula_says_by_brute_force() -> None:
    starts = [0, 8, 16, 30]
    observed = cells(starts, sd=60.0)
    reading: Reading = family().likeliest(observed)
    found = table_covariance(reading, observed, table=TRUTH)
    moves = reading.moves.reshape(2 * LEAVES, -1)
    rows = np.zeros((8, 2 * LEAVES))
    rows[:4, :LEAVES], rows[4:, LEAVES:] = observed.rows[0], observed.rows[1]
    after = moves @ reading.covariance @ moves.T
    gain = after @ rows.T @ np.diag(1.0 / observed.variances.ravel())
    flat = TRUTH.ravel()
    drawn = np.diag(flat) - np.outer(flat, flat) / flat.sum()
    both = gain @ rows @ drawn
    np.testing.assert_allclose(found, after - both - both.T + drawn, atol=1e-6 * flat.max())


def test_intervals_against_the_table_hold_it() -> None:
    """Tables drawn from a population, a tenth of each in one survey and the rest in another.

    400 draws; 95 % intervals hold fewer than 90 % of them with a chance below 1e-4 if they are
    right, and nearly none if what tables vary by is left out or counted twice.
    """
    generator, held = np.random.default_rng(4), 0
    half = np.zeros((2, LEAVES))
    half[1, 20:] = 1.0
    noise = 15.0
    for _ in range(400):
        table = generator.poisson(TRUTH).astype(np.float64)
        observed = cells([0, 10, 20, 30], table, sd=noise)
        values = observed.values + generator.normal(0.0, noise, observed.values.shape)
        drawn = np.einsum("lcn,ln->lc", observed.rows, TRUTH)
        seen = Observed(observed.rows, values, noise**2 + drawn * (1 - drawn / 10_000))
        reading = family(total_is_known=False).likeliest(seen)
        covariance = table_covariance(reading, seen, table=reading.counts)
        off = float((half * (reading.counts - table)).sum())
        held += abs(off) < 1.96 * float(half.ravel() @ covariance @ half.ravel()) ** 0.5
    assert held > 360


def test_leaves_between_neighbouring_numbers_have_log_odds() -> None:
    edges = np.array([0.0, 5e-324, 0.5, 1.0 - 2.0**-53, 1.0])
    bent = SmoothOdds.around(edges, np.ones((2, 4)), total_is_known=True)
    assert np.isfinite(bent.odds).all()
    assert np.isfinite(bent.counts(np.zeros(len(bent.spreads)))).all()


def test_a_tower_whose_positives_drowned_is_as_unsure_as_its_counters() -> None:
    """Half of the rows at exactly 0, one in ten of them positive: no score of 0 is believed."""
    heaped = TRUTH.copy()
    heaped[:, 0] = [4_500.0, 500.0]
    observed = cells([0, 1, 10, 20, 30], heaped, sd=800.0)
    at_zero = EDGES.copy()
    at_zero[1] = 2.0**-40
    silent = Observed(observed.rows, observed.values.copy(), observed.variances)
    silent.values[1, 0] = -100.0  # noise took more than there were
    guess = np.maximum(heaped, 1.0)
    guess[1, 0] = 1.0
    bent = SmoothOdds.around(at_zero, guess, towers=np.array([0]), total_is_known=True)
    reading = bent.likeliest(silent)
    covariance = table_covariance(reading, silent, table=None)
    assert covariance[LEAVES, LEAVES] ** 0.5 > 650.0
    assert abs(reading.counts[1, 0] - 500.0) < 1.96 * covariance[LEAVES, LEAVES] ** 0.5


def two_scores(seed: int) -> tuple[Assessment, float]:
    """A survey of 120,000 rows of a model with two scores, and their prevalence."""
    generator = np.random.default_rng(0)
    scores = generator.choice([0.002, 0.6], 120_000, p=[0.97, 0.03])
    labels = generator.random(120_000) < scores
    found = fedassay.simulate(
        labels, scores, privacy="local", epsilon=5, thresholds=[0.002, 0.1, 0.5], seed=seed
    )
    return found, float(labels.mean())


def test_two_scores_are_read_though_the_way_to_them_leads_out_of_sight() -> None:
    """From even counts a straight step to two towers makes others e^200 times as many, or none.

    False alarms: below 1e-6, if the prevalence errs by its deviation in three surveys.
    """
    for seed in (1, 2, 3):
        found, prevalence = two_scores(seed)
        assert found.histogram().counted is not None
        estimate = found["prevalence"]
        assert abs(estimate.value - prevalence) < 5.5 * estimate.noise_sd


def test_a_curve_that_its_counters_contradict_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit of one step is as far off as one that lost its way: cells are read."""
    monkeypatch.setattr("fedassay.smooth_odds._MOST_STEPS", 1)
    found, prevalence = two_scores(1)
    assert found.histogram().counted is None
    estimate = found["prevalence"]
    assert abs(estimate.value - prevalence) < 5.5 * estimate.noise_sd
