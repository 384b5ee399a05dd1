"""tau² by every estimator, against published figures and other ways to compute them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from fedassay.sites.tau import TauEstimator, cochran_q, estimate_tau2, typical_variance
from tests import published
from tests.published import Studies


def log_likelihood(tau2: float, studies: Studies) -> float:
    """Of k - 1 contrasts that know nothing of the mean: what REML means, with a matrix."""
    k = len(studies.values)
    contrasts = np.linalg.svd(np.eye(k) - 1.0 / k)[0][:, : k - 1].T
    covariance = contrasts @ np.diag(studies.variances + tau2) @ contrasts.T
    return float(stats.multivariate_normal.logpdf(contrasts @ studies.values, cov=covariance))


def test_reml_of_the_bcg_trials_is_metafors() -> None:
    studies = published.bcg()
    tau2 = estimate_tau2(studies.values, studies.variances)
    assert tau2 == pytest.approx(published.BCG_REML["tau2"], abs=1e-6)


def test_paule_mandel_of_kackers_data_is_metafors() -> None:
    studies = published.KACKER
    tau2 = estimate_tau2(studies.values, studies.variances, TauEstimator.PAULE_MANDEL)
    assert tau2 == pytest.approx(published.KACKER_PAULE_MANDEL["tau2"], abs=1e-10)


def test_dersimonian_laird_is_metafors() -> None:
    studies = published.KACKER
    tau2 = estimate_tau2(studies.values, studies.variances, TauEstimator.DERSIMONIAN_LAIRD)
    assert tau2 == pytest.approx(published.KACKER_DERSIMONIAN_LAIRD["tau2"], abs=1e-10)
    studies = published.bcg()
    tau2 = estimate_tau2(studies.values, studies.variances, TauEstimator.DERSIMONIAN_LAIRD)
    assert tau2 == pytest.approx(published.BCG_DERSIMONIAN_LAIRD["tau2"], abs=1e-6)


def test_hedges_olkin_is_metafors() -> None:
    studies = published.bcg()
    tau2 = estimate_tau2(studies.values, studies.variances, TauEstimator.HEDGES_OLKIN)
    assert tau2 == pytest.approx(published.BCG_HEDGES_OLKIN, abs=1e-6)


@pytest.mark.parametrize("estimator", TauEstimator)
def test_every_estimator_of_the_clasp_trials_is_the_papers(estimator: TauEstimator) -> None:
    studies = published.clasp()
    tau, mean = published.CLASP_TABLE[estimator.value]
    tau2 = estimate_tau2(studies.values, studies.variances, estimator)
    assert np.sqrt(tau2) == pytest.approx(tau, abs=6e-5)
    weights = 1.0 / (studies.variances + tau2)
    assert weights @ studies.values / weights.sum() == pytest.approx(mean, abs=6e-5)


@pytest.mark.parametrize("studies", [published.bcg(), published.KACKER, published.clasp()])
def test_reml_is_the_maximum_of_the_likelihood_of_contrasts(studies: Studies) -> None:
    best = optimize.minimize_scalar(
        lambda tau2: -log_likelihood(tau2, studies),
        bounds=(0.0, 4.0 * studies.values.var()),
        method="bounded",
        options={"xatol": 1e-9},
    )
    tau2 = estimate_tau2(studies.values, studies.variances)
    assert tau2 == pytest.approx(best.x, abs=1e-6)


@given(
    st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=9),
    st.lists(st.floats(0.001, 4.0), min_size=9, max_size=9),
)
def test_no_tau_has_a_larger_restricted_likelihood_than_reml(
    values: list[float], variances: list[float]
) -> None:
    studies = Studies(np.array(values), np.array(variances[: len(values)]))
    found = estimate_tau2(studies.values, studies.variances)
    best = log_likelihood(found, studies)
    for other in (0.0, 0.5 * found, 0.99 * found, 1.01 * found, 2.0 * found + 0.01, 9.0):
        assert log_likelihood(other, studies) <= best + 1e-9


@given(
    st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=9),
    st.lists(st.floats(0.001, 4.0), min_size=9, max_size=9),
)
def test_at_paule_mandels_tau_q_is_what_is_expected_or_tau_is_none(
    values: list[float], variances: list[float]
) -> None:
    effects, errors = np.array(values), np.array(variances[: len(values)])
    tau2 = estimate_tau2(effects, errors, TauEstimator.PAULE_MANDEL)
    (q,) = cochran_q(effects, errors, np.array([tau2]))
    if tau2 > 0.0:
        assert q == pytest.approx(len(values) - 1, rel=1e-6)
    else:
        assert q <= len(values) - 1 + 1e-12


def test_equal_sites_do_not_differ() -> None:
    for estimator in TauEstimator:
        assert estimate_tau2(np.full(5, 1.3), np.linspace(0.1, 0.5, 5), estimator) == 0.0


def test_a_typical_variance_of_equal_ones_is_theirs() -> None:
    assert typical_variance(np.full(7, 0.03)) == pytest.approx(0.03)
    # Two sites: the harmonic mean of both, by hand 1 (1/a + 1/b) / (2/(ab)).
    assert typical_variance(np.array([0.1, 0.4])) == pytest.approx((0.1 + 0.4) / 2.0)
