"""How much sites differ: estimators of tau², the variance of true effects between sites.

The model: a site's effect y_i is normal around theta_i with known variance v_i, and theta_i is
normal around the mean mu with variance tau². Weights are w_i = 1 / (v_i + tau²).
"""

from enum import Enum

import numpy as np

from fedassay.examples import FloatArray
from fedassay.extras import needed_for

_TRIED = 200


class TauEstimator(Enum):
    """How tau² is estimated."""

    REML = "REML"
    """Restricted maximum likelihood; the default."""
    PAULE_MANDEL = "Paule-Mandel"
    """tau² at which Q is what it is expected to be, k - 1."""
    DERSIMONIAN_LAIRD = "DerSimonian-Laird"
    """One step from the weights without tau²; too small where sites differ much."""
    HEDGES_OLKIN = "Hedges-Olkin"
    """The sample variance less the mean variance: all that sums of moments allow."""


def weighted_mean(
    values: FloatArray, variances: FloatArray, tau2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The weighted mean and its variance 1 / sum(w), for each of several tau².

    >>> mean, variance = weighted_mean(np.array([0.0, 1.0]), np.ones(2), np.array([0.0, 1.0]))
    >>> mean.tolist(), variance.tolist()
    ([0.5, 0.5], [0.5, 1.0])
    """
    weights = 1.0 / (variances + tau2[:, None])
    totals = weights.sum(axis=1)
    return (weights * values).sum(axis=1) / totals, 1.0 / totals


def cochran_q(values: FloatArray, variances: FloatArray, tau2: FloatArray) -> FloatArray:
    """Q(tau²) = sum of w_i (y_i - mean)²; at the true tau² it is chi-square with k - 1.

    >>> cochran_q(np.array([0.0, 2.0]), np.ones(2), np.array([0.0])).tolist()
    [2.0]
    """
    mean, _ = weighted_mean(values, variances, tau2)
    q: FloatArray = ((values - mean[:, None]) ** 2 / (variances + tau2[:, None])).sum(axis=1)
    return q


def typical_variance(variances: FloatArray) -> float:
    """The within-site variance that I² compares tau² with (Higgins and Thompson 2002).

    (k - 1) sum(w) / (sum(w)² - sum(w²)) with w = 1 / v.

    >>> round(typical_variance(np.array([0.1, 0.1, 0.1])), 6)
    0.1
    """
    weights = 1.0 / variances
    total = weights.sum()
    return float((len(variances) - 1) * total / (total**2 - (weights**2).sum()))


def estimate_tau2(
    values: FloatArray, variances: FloatArray, estimator: TauEstimator = TauEstimator.REML
) -> float:
    """tau² of two or more sites, never below 0.

    >>> sites = np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.1)
    >>> [round(estimate_tau2(*sites, each), 4) for each in TauEstimator]
    [1.5667, 1.5667, 1.5667, 1.5667]
    """
    match estimator:
        case TauEstimator.REML:
            return _reml(values, variances)
        case TauEstimator.PAULE_MANDEL:
            return _paule_mandel(values, variances)
        case TauEstimator.DERSIMONIAN_LAIRD:
            weights = 1.0 / variances
            excess = float(cochran_q(values, variances, np.zeros(1))[0]) - (len(values) - 1)
            return max(excess / float(weights.sum() - (weights**2).sum() / weights.sum()), 0.0)
        case TauEstimator.HEDGES_OLKIN:
            return max(float(values.var(ddof=1) - variances.mean()), 0.0)


def restricted_log_likelihood(
    values: FloatArray, variances: FloatArray, tau2: FloatArray
) -> FloatArray:
    """-1/2 [sum log(v + tau²) + log sum(w) + Q], up to a constant: mu integrated out.

    >>> sites = np.array([0.0, 1.0]), np.full(2, 0.1)
    >>> restricted_log_likelihood(*sites, np.array([0.4])).round(4).tolist()
    [-0.5]
    """
    spread = variances + tau2[:, None]
    logs = np.log(spread).sum(axis=1) + np.log((1.0 / spread).sum(axis=1))
    likelihood: FloatArray = -0.5 * (logs + cochran_q(values, variances, tau2))
    return likelihood


def _reml(values: FloatArray, variances: FloatArray) -> float:
    """The best of a grid, then the root of the score beside it: several maxima do no harm."""
    with needed_for("random effects"):
        from scipy.optimize import brentq

    tried = _grid(values, variances)
    best = int(np.argmax(restricted_log_likelihood(values, variances, tried)))
    low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    if _reml_score(low, values, variances) <= 0.0:
        return float(low)
    if _reml_score(high, values, variances) >= 0.0:
        return float(high)
    root = brentq(_reml_score, low, high, args=(values, variances), xtol=1e-15, rtol=1e-13)
    return float(root)


def _reml_score(tau2: float, values: FloatArray, variances: FloatArray) -> float:
    """Twice the slope of the restricted log likelihood in tau²."""
    weights = 1.0 / (variances + tau2)
    total = weights.sum()
    mean = (weights * values).sum() / total
    residual = (weights**2 * (values - mean) ** 2).sum()
    return float(residual - total + (weights**2).sum() / total)


def _paule_mandel(values: FloatArray, variances: FloatArray) -> float:
    with needed_for("random effects"):
        from scipy.optimize import brentq

    wanted = len(values) - 1

    def excess(tau2: float) -> float:
        return float(cochran_q(values, variances, np.array([tau2]))[0]) - wanted

    if excess(0.0) <= 0.0:
        return 0.0
    # Q is at most the sum of squares over tau².
    most = float(((values - values.mean()) ** 2).sum()) / wanted
    return float(brentq(excess, 0.0, most, xtol=1e-15, rtol=1e-13))


def _grid(values: FloatArray, variances: FloatArray) -> FloatArray:
    """0, and rising values up to where no likelihood can still grow."""
    most = float(((values - values.mean()) ** 2).sum()) + float(variances.max())
    least = 1e-6 * float(variances.min())
    return np.concatenate([[0.0], np.geomspace(least, most, _TRIED)])
