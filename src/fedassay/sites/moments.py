"""Secure moments: how much sites differ, from sums that show no site's figure.

Under exact secure sums every site adds five small integers to the vector that is summed: a one,
its effect, the effect's square, its variance, and the variance's square. From the sums follow the
unweighted mean, the Hedges-Olkin tau² = s² - mean(v), I² and a prediction interval. What follows
from no sums of this kind: REML and Paule-Mandel, weights by precision (a small site counts as much
as a large one), Cochran's Q, any site's own interval, and which site lies apart.

Guarantee: whoever sees the sums learns five numbers about the sites together. Two honest sites
could be solved for, and three leave a circle; so sums of fewer than five honest sites are refused
(`FEWEST_HONEST`), and a site asks for as many in its survey before it adds anything, since whoever
adds up sees the sums before this refusal. No site lies further from the mean than
s (k - 1) / sqrt(k): a sum of squares says that much. There is no differential privacy here.

Fixed point: where n sites at most take part, and n < 2^b, a word is at most 2^(31 - b) in size, so
that no sum reaches 2^31. Effects lie within -8 and 8, variances are at most 4; what lies beyond is
clipped at the site itself. Steps are 2^-22 for effects and 2^-19 for squares among 63 sites, and
sixteen times as large among 1,023.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid, TooFewReports
from fedassay.estimate import check_confidence
from fedassay.examples import FloatArray, IntArray
from fedassay.sites.effects import SiteEffect, scale_of
from fedassay.sites.heterogeneity import Heterogeneity, ends_of, few_sites
from fedassay.sites.predictive import (
    NormalMixture,
    Student,
    chi2_above,
    distribution_of,
)
from fedassay.survey_moments import FEWEST_HONEST, MOST_SITES, WORDS

LARGEST_EFFECT = 8.0
"""On the scale: a ROC AUC of 0.9997, an observed/expected of 2,981."""
LARGEST_VARIANCE = 4.0
"""A site that knows its effect to two units of the scale adds nothing to know."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """How real numbers become words whose sums over so many sites stay below 2^31.

    >>> coarse, fine = FixedPoint(1023), FixedPoint(63)
    >>> coarse.steps, fine.steps
    ((262144, 32768, 524288, 131072), (4194304, 524288, 8388608, 2097152))
    """

    most_sites: int
    """All that may take part; fewer give finer steps."""

    def __post_init__(self) -> None:
        require_whole(self.most_sites, "the most sites of moments", FEWEST_HONEST, MOST_SITES)

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """Steps to a unit of effects, squares, variances and their squares: powers of 2."""
        bits = 31 - self.most_sites.bit_length()
        return 2 ** (bits - 3), 2 ** (bits - 6), 2 ** (bits - 2), 2 ** (bits - 4)


def site_moments(effect: SiteEffect | None, most_sites: int) -> IntArray:
    """The words that one site adds; zeros where it has no effect, so that nobody can tell.

    A value beyond its range is clipped here, at the site: what is sent cannot overflow a sum. The
    square is that of the clipped effect.

    >>> site_moments(SiteEffect("north", 1.5, 0.25), 63).tolist()
    [1, 6291456, 1179648, 2097152, 131072]
    >>> site_moments(None, 63).tolist()
    [0, 0, 0, 0, 0]
    """
    steps = FixedPoint(most_sites).steps
    if effect is None:
        return np.zeros(WORDS, dtype=np.int64)
    require_type(effect, SiteEffect, "a site's effect", "Use site_effects(...).effects.")
    if not (isfinite(effect.value) and isfinite(effect.variance) and effect.variance >= 0.0):
        # The value itself is the site's secret.
        raise SettingInvalid(
            "a site's effect must be a number with a variance of 0 or more; this one is not "
            "(value withheld). Leave the site out: pass None."
        )
    value = min(max(effect.value, -LARGEST_EFFECT), LARGEST_EFFECT)
    variance = min(effect.variance, LARGEST_VARIANCE)
    figures = (value, value**2, variance, variance**2)
    words = [round(figure * step) for figure, step in zip(figures, steps, strict=True)]
    return np.array([1, *words], dtype=np.int64)


def require_honest(sites: int, colluders: int) -> None:
    """Raise unless enough sites would be honest; a site asks before it adds anything.

    >>> require_honest(7, 2)
    >>> require_honest(6, 2)
    Traceback (most recent call last):
    fedassay.errors.TooFewReports: secure moments need at least 5 honest sites with an effect; ...
    """
    require_whole(sites, "sites with an effect", 0)
    require_whole(colluders, "colluders", 0)
    if sites - colluders < FEWEST_HONEST:
        raise TooFewReports(
            f"secure moments need at least {FEWEST_HONEST} honest sites with an effect; found "
            f"{sites}, of which {colluders} may collude: their effects could be solved for. Add "
            "sites, or let sites be seen with noise of their own."
        )


def from_moments(
    sums: Sequence[int] | IntArray,
    metric: str,
    *,
    most_sites: int,
    colluders: int = 0,
    confidence: float = 0.95,
) -> Heterogeneity:
    """Mean, tau, I² and prediction interval from the sums of all sites' words.

    The mean is unweighted, with t of k - 1 degrees times s / sqrt(k), and tau² = s² - mean(v). The
    prediction interval integrates over tau²: (f s²) / (tau² + mean(v)) is about chi-square, with
    Satterthwaite's degrees f for variances that differ.

    >>> sites = [SiteEffect(f"{i}", 1.0 + 0.1 * i, 0.01) for i in range(9)]
    >>> sums = sum(site_moments(each, 63) for each in sites)
    >>> print(from_moments(sums, "roc_auc", most_sites=63))
    roc_auc over 9 sites: mean 0.8022 [0.7667, 0.8335]; a new site 0.6817 to 0.8848; ...
    """
    check_confidence(confidence)
    steps = FixedPoint(most_sites).steps
    k, total, squares, variances, variance_squares = _read(sums, steps, most_sites)
    require_honest(k, colluders)
    mean, variance = total / k, max(variances / k, 0.5 / steps[2])
    # Rounding may leave a sum of squares a step below what the other sums allow, and of a small
    # variance nothing: then it is taken for half a step.
    s2 = max((squares - total**2 / k) / (k - 1), 0.0)
    moments = MomentSummary(k, s2, variance, max(variance_squares, k * variance**2))
    tau2 = max(s2 - variance, 0.0)
    scale = scale_of(metric)
    new_site = moments.new_site(mean)
    return Heterogeneity(
        metric=metric,
        scale=scale,
        sites=k,
        effect=mean,
        interval=ends_of(scale, Student(mean, sqrt(s2 / k), k - 1), confidence),
        tau=sqrt(tau2),
        i2=tau2 / (tau2 + variance),
        prediction=ends_of(scale, new_site, confidence),
        how="secure moments: unweighted mean, Hedges-Olkin, confidence distribution of tau",
        notes=few_sites(k),
        new_site=new_site,
    )


@dataclass(frozen=True, slots=True)
class MomentSummary:
    """What is left of the sites in the sums."""

    k: int
    s2: float
    """The sample variance of the effects."""
    variance: float
    """The mean of the variances."""
    variance_squares: float
    """Their sum of squares."""

    def degrees(self, tau2: FloatArray) -> FloatArray:
        """Satterthwaite's: twice the squared mean of s² over its variance, at each tau²."""
        k, total = self.k, tau2 + self.variance
        fourth = k * tau2**2 + 2.0 * tau2 * k * self.variance + self.variance_squares
        found: FloatArray = ((k - 1) * total) ** 2 / (fourth * (1.0 - 2.0 / k) + total**2)
        return found

    def below(self, tau2: FloatArray) -> FloatArray:
        """The confidence that the true tau² is at most this."""
        degrees = self.degrees(tau2)
        return chi2_above(degrees * self.s2 / (tau2 + self.variance), degrees)

    def new_site(self, mean: float) -> NormalMixture:
        """A new site's true effect."""
        squares = self.s2 * (self.k - 1)
        tau = distribution_of(self.below, squares, self.variance, self.k - 1)
        spread = tau.tau2 + (tau.tau2 + self.variance) / self.k
        return NormalMixture(np.full_like(tau.tau2, mean), np.sqrt(spread), tau.weights)


def _read(
    sums: Sequence[int] | IntArray, steps: tuple[int, int, int, int], most_sites: int
) -> tuple[int, float, float, float, float]:
    """The number of sites and four real sums, checked against what honest sites can add up to."""
    words = [int(word) for word in sums]
    if len(words) != WORDS:
        raise SettingInvalid(
            f"sums of moments are {WORDS} words; found {len(words)}. Pass those of site_moments."
        )
    k = words[0]
    if not 0 <= k <= most_sites:
        raise SettingInvalid(
            f"between 0 and {most_sites} sites may have an effect; found {k}. The words belong to "
            "another survey, or a site sent what it may not."
        )
    _, total, squares, variances, fourth = (
        word / step for word, step in zip(words, (1, *steps), strict=True)
    )
    # One step for every site, and the mean square is at least the squared mean.
    slack = 0.5 * k * (1.0 / steps[1] + 2.0 * LARGEST_EFFECT / steps[0] + 1.0 / steps[0] ** 2)
    hostile = (
        abs(total) > k * LARGEST_EFFECT
        or not 0 <= variances <= k * LARGEST_VARIANCE
        or not 0 <= fourth <= k * LARGEST_VARIANCE**2
        or not 0 <= squares <= k * LARGEST_EFFECT**2
        or (k > 0 and squares + slack < total**2 / k)
    )
    if hostile:
        raise SettingInvalid(
            "sums of moments must be what sites within their ranges can add up to; these are not. "
            "A site sent what it may not: leave the moments out."
        )
    return k, total, squares, variances, fourth
