"""What is expected of the mean, and of a new site, when tau itself is not known.

With a few dozen sites tau is known to a fifth at best, and an interval that takes the estimate for
the truth covers a new site 82 to 90 times in a hundred where 95 are promised (docs/sites.md). So
tau² has a distribution here, a grid of values with weights, and what is asked about is a mixture
of normals over it. The distribution is the confidence distribution of Q (Viechtbauer 2007), as
Nagashima, Noma and Furukawa (2019) use it, or a posterior where the user gives a prior.
"""

from dataclasses import dataclass
from math import inf, log, pi, sqrt
from typing import Protocol

import numpy as np

from fedassay.errors import SettingInvalid
from fedassay.examples import FloatArray
from fedassay.extras import needed_for
from fedassay.sites.effects import Scale
from fedassay.sites.tau import cochran_q, restricted_log_likelihood, weighted_mean

_POINTS = 320
AT_ZERO = 0.75
"""How much of the confidence that tau² is at most 0 counts: `distribution_of` says why."""
_TAIL = 1e-7
_WIDE = 6.0
_MOST_STEPS = 500


class Predictive(Protocol):
    """A distribution on the scale of the effects."""

    def quantile(self, probability: float) -> float:
        """The value that is not passed with this probability."""
        ...

    def above(self, value: float) -> float:
        """The probability of this value or more."""
        ...

    def with_error(self, variance: float) -> "Predictive":
        """The same as it would be observed, with a site's own error on top."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class NormalMixture:
    """Normals with weights that add up to 1.

    >>> both = NormalMixture(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    >>> round(both.quantile(0.975), 4), both.above(0.0)
    (1.96, 0.5)
    """

    means: FloatArray
    sds: FloatArray
    weights: FloatArray

    def quantile(self, probability: float) -> float:
        """The value that is not passed with this probability."""
        # Newton's steps, halved into the bracket: scipy.optimize takes longer to load than a plan.
        reach = 40.0 * self.sds
        low, high = float((self.means - reach).min()), float((self.means + reach).max())
        value, near = float(self.weights @ self.means), 1e-12 * max(1.0, float(self.sds.min()))
        for _ in range(_MOST_STEPS):
            beyond = 1.0 - self.above(value) - probability
            low, high = (low, value) if beyond > 0.0 else (value, high)
            slope = self._density(value)
            following = value - beyond / slope if slope > 0.0 else low
            if not low < following < high:
                following = 0.5 * (low + high)
            if abs(following - value) <= near:
                return following
            value = following
        return value

    def _density(self, value: float) -> float:
        scores = (value - self.means) / self.sds
        return float(self.weights @ (np.exp(-0.5 * scores**2) / self.sds)) / sqrt(2.0 * pi)

    def above(self, value: float) -> float:
        """The probability of this value or more."""
        with needed_for("random effects"):
            from scipy.special import ndtr

        return float(self.weights @ ndtr((self.means - value) / self.sds))

    def with_error(self, variance: float) -> "NormalMixture":
        """The same as it would be observed, with a site's own error on top."""
        return NormalMixture(self.means, np.sqrt(self.sds**2 + variance), self.weights)


@dataclass(frozen=True, slots=True)
class Student:
    """A t distribution around a mean.

    >>> round(Student(0.0, 1.0, 6).quantile(0.975), 4)
    2.4469
    """

    mean: float
    sd: float
    degrees: int

    def quantile(self, probability: float) -> float:
        """The value that is not passed with this probability."""
        with needed_for("random effects"):
            from scipy.special import stdtrit

        return self.mean + self.sd * float(stdtrit(self.degrees, probability))

    def above(self, value: float) -> float:
        """The probability of this value or more."""
        with needed_for("random effects"):
            from scipy.special import stdtr

        if self.sd == 0.0:
            return 1.0 if self.mean >= value else 0.0
        return float(stdtr(self.degrees, (self.mean - value) / self.sd))

    def with_error(self, variance: float) -> "Student":
        """The same as it would be observed, with a site's own error on top."""
        return Student(self.mean, sqrt(self.sd**2 + variance), self.degrees)


@dataclass(frozen=True, slots=True)
class TauPrior:
    """What is known about tau before any site is seen: log-normal on the metric's own scale.

    The figures are those of 469 clinical prediction models with 1,603 external validations
    (van Leeuwen et al. 2025, Statistics in Medicine, sim.70011), for the ROC AUC.

    >>> TauPrior()
    TauPrior(mean=0.055, sd=0.015, metric='roc_auc')
    """

    mean: float = 0.055
    sd: float = 0.015
    metric: str = "roc_auc"

    def __post_init__(self) -> None:
        if not (0.0 < self.mean < inf and 0.0 < self.sd < inf):
            raise SettingInvalid(
                f"a prior for tau needs a mean and an sd above 0; found {self.mean} and {self.sd}. "
                "Usual for ROC AUC are 0.055 and 0.015."
            )

    def log_moments(self, scale: Scale, at: float) -> tuple[float, float]:
        """Mean and sd of log(tau) on the scale of effects, which stretches by g'(at) there.

        >>> [round(x, 4) for x in TauPrior().log_moments(Scale.LOGIT, 0.8)]
        [-1.1037, 0.2679]
        """
        spread = log(1.0 + (self.sd / self.mean) ** 2)
        return log(self.mean * scale.slope(at)) - 0.5 * spread, sqrt(spread)


@dataclass(frozen=True, slots=True, eq=False)
class TauDistribution:
    """Values of tau² with weights that add up to 1."""

    tau2: FloatArray
    weights: FloatArray

    def mean_of(self, values: FloatArray, variances: FloatArray) -> NormalMixture:
        """The mean over sites: normal with variance 1 / sum(w) at each tau².

        >>> one = TauDistribution(np.array([0.0]), np.array([1.0]))
        >>> one.mean_of(np.array([0.0, 1.0]), np.ones(2)).means.tolist()
        [0.5]
        """
        means, spread = weighted_mean(values, variances, self.tau2)
        return NormalMixture(means, np.sqrt(spread), self.weights)

    def new_site(self, values: FloatArray, variances: FloatArray) -> NormalMixture:
        """A new site's true effect: the mean's variance and tau² together.

        >>> one = TauDistribution(np.array([1.5]), np.array([1.0]))
        >>> one.new_site(np.array([0.0, 1.0]), np.full(2, 0.5)).sds.round(4).tolist()
        [1.5811]
        """
        means, spread = weighted_mean(values, variances, self.tau2)
        return NormalMixture(means, np.sqrt(spread + self.tau2), self.weights)


def confidence_distribution(values: FloatArray, variances: FloatArray) -> TauDistribution:
    """tau² by its confidence distribution P(chi-square with k - 1 degrees > Q(tau²)).

    Q falls as tau² grows, and at the true tau² it is chi-square whatever the variances are: the
    share of this distribution below the truth is then uniform, which is what makes intervals cover.

    >>> sites = np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.1)
    >>> found = confidence_distribution(*sites)
    >>> middle = found.tau2[np.searchsorted(np.cumsum(found.weights), 0.5)]
    >>> float(middle.round(1))  # 5 / 2.366 - 0.1, with the median of chi-square
    2.0
    """
    degrees = len(values) - 1

    def below(tau2: FloatArray) -> FloatArray:
        return chi2_above(cochran_q(values, variances, tau2), degrees)

    squares = float(((values - values.mean()) ** 2).sum())
    return distribution_of(below, squares, float(variances.min()), degrees)


def chi2_above(statistic: FloatArray, degrees: FloatArray | float) -> FloatArray:
    """The probability that a chi-square passes a statistic; degrees need not be whole.

    >>> chi2_above(np.array([3.841459]), 1.0).round(6).tolist()
    [0.05]
    """
    with needed_for("random effects"):
        from scipy.special import chdtrc

    probability: FloatArray = chdtrc(degrees, statistic)
    return probability


class Below(Protocol):
    """The confidence that tau² is at most a value."""

    def __call__(self, tau2: FloatArray, /) -> FloatArray:
        """For each of several values."""
        ...


def distribution_of(below: Below, squares: float, least: float, degrees: float) -> TauDistribution:
    """A confidence distribution on a grid; of what lies at or below 0 a part counts, at 0.

    A true tau is seldom exactly 0, so that all of that mass at 0 makes intervals a little narrow
    where sites differ moderately. Three quarters were measured to be best
    (docs/adr/0017-new-site.md). `squares` is the sum of squares around the mean: Q(tau²) is at most
    squares / tau², so that the upper end has next to nothing above it. `least` is the smallest
    variance that matters.

    >>> found = distribution_of(lambda t: np.minimum(0.5 + t, 1.0), 1.0, 0.1, 5)
    >>> float(found.tau2[0]), round(float(found.weights[0]), 3)  # 3/8 of 7/8
    (0.0, 0.429)
    """
    with needed_for("random effects"):
        from scipy.special import chdtri

    start = 1e-4 * least
    most = max(squares / float(chdtri(degrees, 1.0 - _TAIL)), 2.0 * start)
    edges = np.concatenate([[0.0], np.geomspace(start, most, _POINTS)])
    confidence = np.maximum.accumulate(below(edges))
    weights = np.concatenate([[AT_ZERO * confidence[0]], np.diff(confidence)])
    between = np.concatenate([[0.0, 0.5 * start], np.sqrt(edges[1:-1] * edges[2:])])
    kept = weights > 0.0
    return TauDistribution(between[kept], weights[kept] / weights[kept].sum())


def posterior(
    values: FloatArray, variances: FloatArray, log_mean: float, log_sd: float
) -> TauDistribution:
    """tau² given the sites and a log-normal prior for tau; a flat one for the mean.

    Numerical integration over log(tau), six prior standard deviations to both sides, and further to
    where the sites themselves put tau.

    >>> found = posterior(np.array([1.4]), np.array([0.01]), log(0.3), 0.25)
    >>> round(float(found.weights @ np.log(found.tau2) / 2.0), 4)  # one site says nothing of tau
    -1.204
    """
    low, high = log_mean - _WIDE * log_sd, log_mean + _WIDE * log_sd
    squares = float(((values - values.mean()) ** 2).sum())
    if squares > 0.0:
        seen = 0.5 * log(squares / (len(values) - 1))
        low, high = min(low, seen - _WIDE * log_sd), max(high, seen + _WIDE * log_sd)
    logs = np.linspace(low, high, _POINTS)
    tau2 = np.exp(2.0 * logs)
    prior = -0.5 * ((logs - log_mean) / log_sd) ** 2
    logs = restricted_log_likelihood(values, variances, tau2) + prior
    weights = np.exp(logs - logs.max())
    return TauDistribution(tau2, weights / weights.sum())
