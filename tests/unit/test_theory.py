"""The paper's results as functions: balances, slopes, and constants that can be measured again."""

from math import e, isclose

import numpy as np
import pytest
from experiments.theory import constant
from hypothesis import given
from hypothesis import strategies as st

from fedassay import Privacy, ScoreHistogram
from fedassay.errors import SettingInvalid
from fedassay.planning import theory
from fedassay.planning.theory import Case, Constant

NOISY = (Privacy.DISTRIBUTED, Privacy.LOCAL)
# Errors fall with these powers of M, and of epsilon, for small rates (`tab:results`).
SLOPES = {
    ("given_classifier", Privacy.DISTRIBUTED): (-1.0, -1.0),
    ("given_classifier", Privacy.LOCAL): (-0.5, -1.0),
    ("threshold_metrics", Privacy.DISTRIBUTED): (-2 / 3, -2 / 3),
    ("threshold_metrics", Privacy.LOCAL): (-1 / 3, -2 / 3),
    ("auc", Privacy.LOCAL): (-0.5, -1.0),
    ("calibration_error", Privacy.SECURE): (-1 / 3, 0.0),
    ("calibration_error", Privacy.LOCAL): (-0.25, -0.5),
}


@pytest.mark.parametrize(("key", "powers"), SLOPES.items(), ids=str)
def test_rates_fall_as_the_table_says(
    key: tuple[str, Privacy], powers: tuple[float, float]
) -> None:
    rate = theory.RESULTS[key[0]]
    base = rate(Case(key[1], 10_000, 0.5))
    assert isclose(rate(Case(key[1], 80_000, 0.5)) / base, 8.0 ** powers[0])
    assert isclose(rate(Case(key[1], 10_000, 1.0)) / base, 2.0 ** powers[1])


def test_a_given_classifier_is_exact_under_secure_aggregation() -> None:
    assert theory.given_classifier(Case(Privacy.SECURE, 1000)) == 0.0


def test_distributed_area_error_has_two_parts() -> None:
    found = theory.auc(Case(Privacy.DISTRIBUTED, 1000, 0.5, buckets=10))
    assert found == pytest.approx(2.0 / 1000 + 1.0 / 10_000)


def test_distributed_calibration_adds_privacy_to_sampling() -> None:
    found = theory.calibration_error(Case(Privacy.DISTRIBUTED, 1_000_000, 0.5))
    assert found == pytest.approx(0.01 + 2.0 / 10_000)


@given(st.sampled_from(NOISY), st.integers(1000, 10**8), st.floats(0.2, 5.0))
def test_the_best_buckets_balance_width_and_noise(
    privacy: Privacy, clients: int, epsilon: float
) -> None:
    """1/B against sqrt(B)/(epsilon M), or sqrt(B)/(epsilon sqrt M), by trying every B."""
    case = Case(privacy, clients, epsilon)
    best = theory.threshold_buckets(case)
    scale = epsilon * (clients if privacy is Privacy.DISTRIBUTED else clients**0.5)
    near = np.unique(np.clip(np.array([best - 1, best, best + 1]), 1, None))
    gaps = np.abs(np.log(near**1.5 / scale))
    assert abs(int(near[np.argmin(gaps)]) - best) <= 1
    assert 1.0 / best == pytest.approx(theory.threshold_metrics(case), rel=0.6 / best + 1e-9)


@given(st.sampled_from(NOISY), st.integers(1000, 10**7), st.floats(0.2, 5.0))
def test_the_best_height_has_no_better_neighbour(
    privacy: Privacy, clients: int, epsilon: float
) -> None:
    best = theory.best_height(Case(privacy, clients, epsilon))
    own = theory.threshold_shift(Case(privacy, clients, epsilon, height=best))
    for other in (max(best - 1, 1), best + 1):
        assert theory.threshold_shift(Case(privacy, clients, epsilon, height=other)) >= own


def test_heights_lie_where_the_paper_expects_them() -> None:
    for clients in (10_000, 100_000, 1_000_000):
        assert 8 <= theory.best_height(Case(Privacy.DISTRIBUTED, clients)) <= 20
        assert 4 <= theory.best_height(Case(Privacy.LOCAL, clients)) <= 10


@given(st.floats(0.0, 1.0), st.floats(0.0, 0.5), st.floats(0.0, 0.5), st.booleans(), st.booleans())
def test_no_ratio_is_further_off_than_its_bound(
    ratio: float, above: float, below: float, up: bool, down: bool
) -> None:
    """At the corners of the errors, where a ratio is most off."""
    found = (ratio + (above if up else -above)) / (1.0 + (below if down else -below))
    bound = theory.ratio_bound(ratio, above=above, below=below)
    assert abs(found - ratio) <= bound + 1e-12


def test_the_product_of_two_dice_varies_as_the_formula_says() -> None:
    x, y = np.arange(1.0, 7.0), np.array([0.0, 3.0])
    products = np.outer(x, y).ravel()
    found = theory.product_variance(x.mean(), x.var(), y.mean(), y.var())
    assert found == pytest.approx(products.var())


def test_the_worst_case_of_the_area_is_reached_by_mixed_buckets() -> None:
    buckets = 20
    edges = np.arange(buckets + 1) / buckets
    mixed = ScoreHistogram(edges, np.full((2, buckets), 50.0), smooth=False)
    pairs = float((mixed.positives * mixed.negatives).sum())
    widest = 0.5 * pairs / (mixed.total_positives * mixed.total_negatives)
    assert theory.auc_worst_case(buckets) == pytest.approx(widest)


def test_local_variance_and_its_buckets_follow_the_proof() -> None:
    case = Case(Privacy.LOCAL, 1_000_000, 1.0, height=10)
    variance = theory.local_variance(1.0, 10)
    assert variance == pytest.approx(100 * e / (e - 1) ** 2)
    assert theory.auc_buckets_local(case) == pytest.approx(np.sqrt(1e6 / variance))


def test_calibration_buckets_are_the_guideline() -> None:
    assert theory.calibration_buckets(Case(Privacy.SECURE, 1_000_000)) == 100
    assert theory.calibration_buckets(Case(Privacy.LOCAL, 1_000_000)) == 32


@pytest.mark.parametrize("call", [
    lambda: Case(Privacy.LOCAL, 0),
    lambda: Case(Privacy.LOCAL, 10, -1.0),
    lambda: Case(Privacy.SITE, 10).model,
    lambda: theory.threshold_buckets(Case(Privacy.SECURE, 10)),
    lambda: theory.best_height(Case(Privacy.SECURE, 10)),
    lambda: theory.auc_well_behaved(0),
    lambda: theory.ratio_bound(0.5, above=0.1, below=0.6),
    lambda: theory.measured("auc of everything", Privacy.LOCAL),
    lambda: theory.measured("given_classifier", Privacy.SECURE),
])  # fmt: skip
def test_what_the_theory_does_not_cover_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(SettingInvalid):
        call()


@pytest.mark.statistical
@pytest.mark.parametrize("result", ["given_classifier", "threshold_metrics", "auc"])
@pytest.mark.parametrize("privacy", NOISY)
def test_constants_can_be_measured_again(result: str, privacy: Privacy) -> None:
    """Over few trials; each averages over 9 cases and up to 30 figures, so a third is far off."""
    again = constant(result, privacy, trials=4)
    recorded = theory.measured(result, privacy)
    assert again.mean == pytest.approx(recorded.mean, rel=1 / 3)
    assert recorded.smallest <= recorded.mean <= recorded.largest


def test_every_row_of_the_table_has_its_constants() -> None:
    for result in theory.RESULTS:
        for privacy in theory.PAPER_MODELS:
            if (result, privacy) != ("given_classifier", Privacy.SECURE):
                assert isinstance(theory.measured(result, privacy), Constant)
