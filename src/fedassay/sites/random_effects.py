"""The mean over sites, how much sites differ, and what to expect of a new one.

REML or Paule-Mandel for tau², the interval of Hartung, Knapp, Sidik and Jonkman for the mean, and a
prediction interval for a new site; every site in turn against what the others predict.
"""

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from math import sqrt

import numpy as np

from fedassay.checks import require_member, require_type
from fedassay.errors import SettingInvalid
from fedassay.estimate import Interval, check_confidence
from fedassay.sites.effects import SiteEffect, SiteEffects
from fedassay.sites.heterogeneity import Heterogeneity, ends_of, few_sites
from fedassay.sites.predictive import (
    Predictive,
    Student,
    TauDistribution,
    TauPrior,
    confidence_distribution,
    posterior,
)
from fedassay.sites.tau import (
    TauEstimator,
    cochran_q,
    estimate_tau2,
    typical_variance,
    weighted_mean,
)


class PredictionRule(Enum):
    """How the prediction interval for a new site is made."""

    CONFIDENCE = "confidence distribution of tau"
    """Integrates over what Q leaves open about tau; covers as promised from 8 sites."""
    STUDENT = "t with k - 2 degrees"
    """Partlett and Riley (2017), as metamisc and pimeta print it: takes tau for known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How sites are pooled; the defaults are for those who have no reason to change them."""

    estimator: TauEstimator = TauEstimator.REML
    rule: PredictionRule = PredictionRule.CONFIDENCE
    prior: TauPrior | None = None
    """Off unless given: with few sites, what other models teach about tau."""
    never_narrower: bool = False
    """Whether the mean's interval is at least as wide as with tau known: max(1, q)."""
    confidence: float = 0.95

    def __post_init__(self) -> None:
        require_member(self.estimator, TauEstimator, "the estimator of tau")
        require_member(self.rule, PredictionRule, "the rule of the prediction interval")
        require_type(self.never_narrower, bool, "never_narrower", "Pass True or False.")
        check_confidence(self.confidence)
        if self.prior is not None:
            require_type(self.prior, TauPrior, "the prior for tau", "Write TauPrior().")


def pool_sites(effects: SiteEffects, options: PoolOptions | None = None) -> Heterogeneity:
    """Random effects over sites: mean, tau, I² and the prediction interval.

    The mean is sum(w y) / sum(w) with w = 1 / (v + tau²); its interval is t with k - 1 degrees
    times sqrt(q / sum(w)), where q = sum(w (y - mean)²) / (k - 1).

    >>> from fedassay.estimate import Estimate
    >>> from fedassay.sites.effects import site_effects
    >>> aucs = [0.74, 0.76, 0.77, 0.78, 0.78, 0.79, 0.80, 0.81, 0.83]
    >>> found = {f"{i}": Estimate(auc, sampling_sd=0.01) for i, auc in enumerate(aucs)}
    >>> print(pool_sites(site_effects("roc_auc", found)))
    roc_auc over 9 sites: mean 0.7849 [0.7633, 0.805]; a new site 0.7152 to 0.8417; ...
    """
    require_type(effects, SiteEffects, "what is pooled", "Use histogram_effects or site_effects.")
    chosen = PoolOptions() if options is None else options
    require_type(chosen, PoolOptions, "the options", "Write PoolOptions(...).")
    if chosen.prior is not None and chosen.prior.metric != effects.metric:
        raise SettingInvalid(
            f"a prior for tau belongs to one metric; found one of {chosen.prior.metric} for "
            f"{effects.metric}. Write TauPrior(mean, sd, {effects.metric!r}) with its own figures."
        )
    if len(effects) == 0:
        return Heterogeneity(
            metric=effects.metric,
            scale=effects.scale,
            sites=0,
            left_out=effects.left_out,
            notes=("No site has an effect: there is nothing to pool.",),
        )
    if chosen.prior is not None:
        return _with_prior(effects, chosen, chosen.prior)
    return _alone(effects, chosen) if len(effects) == 1 else _several(effects, chosen)


def _alone(effects: SiteEffects, options: PoolOptions) -> Heterogeneity:
    (only,) = effects.effects
    return Heterogeneity(
        metric=effects.metric,
        scale=effects.scale,
        sites=1,
        effect=only.value,
        interval=effects.interval(only, options.confidence),
        how="one site",
        left_out=effects.left_out,
        notes=(
            "One site: the interval is of new rows of this site; how sites differ cannot be seen "
            "from it. A prior for tau would give a prediction interval.",
        ),
    )


def _several(effects: SiteEffects, options: PoolOptions) -> Heterogeneity:
    values, variances, k = effects.values, effects.variances, len(effects)
    tau2 = estimate_tau2(values, variances, options.estimator)
    at = np.array([tau2])
    (mean,), (spread,) = weighted_mean(values, variances, at)
    inflation = float(cochran_q(values, variances, at)[0]) / (k - 1)
    if options.never_narrower:
        inflation = max(inflation, 1.0)
    mean_sd = sqrt(inflation * spread)
    new_site: Predictive | None = None
    if k > 2:
        match options.rule:
            case PredictionRule.CONFIDENCE:
                tau = confidence_distribution(values, variances)
                new_site = tau.new_site(values, variances)
            case PredictionRule.STUDENT:
                new_site = Student(float(mean), sqrt(tau2 + mean_sd**2), k - 2)
    floor = ", never narrower than with tau known" if options.never_narrower else ""
    return Heterogeneity(
        metric=effects.metric,
        scale=effects.scale,
        sites=k,
        effect=float(mean),
        interval=ends_of(effects.scale, Student(float(mean), mean_sd, k - 1), options.confidence),
        tau=sqrt(tau2),
        i2=tau2 / (tau2 + typical_variance(variances)),
        q=float(cochran_q(values, variances, np.zeros(1))[0]),
        prediction=ends_of(effects.scale, new_site, options.confidence),
        how=f"{options.estimator.value}, Hartung-Knapp-Sidik-Jonkman{floor}, {options.rule.value}",
        notes=few_sites(k),
        left_out=effects.left_out,
        new_site=new_site,
    )


def _with_prior(effects: SiteEffects, options: PoolOptions, prior: TauPrior) -> Heterogeneity:
    values, variances, k = effects.values, effects.variances, len(effects)
    start = _alone(effects, options) if k == 1 else _several(effects, options)
    tau = posterior(values, variances, *prior.log_moments(effects.scale, start.mean))
    mean, new_site = tau.mean_of(values, variances), tau.new_site(values, variances)
    typical = typical_variance(variances) if k > 1 else float(variances[0])
    return Heterogeneity(
        metric=effects.metric,
        scale=effects.scale,
        sites=k,
        effect=float(mean.weights @ mean.means),
        interval=ends_of(effects.scale, mean, options.confidence),
        tau=_middle(tau),
        i2=_middle(tau) ** 2 / (_middle(tau) ** 2 + typical),
        q=start.q,
        prediction=ends_of(effects.scale, new_site, options.confidence),
        how=f"prior for tau with mean {prior.mean:g} and sd {prior.sd:g}",
        notes=(
            f"A prior for tau (mean {prior.mean:g}, sd {prior.sd:g}, for {prior.metric}) was "
            f"switched on: with {k} {'site' if k == 1 else 'sites'} the intervals rest on it.",
        ),
        left_out=effects.left_out,
        new_site=new_site,
    )


@dataclass(frozen=True, slots=True)
class HeldOutSite:
    """One site against what the others say about a new one."""

    effect: SiteEffect
    others: Heterogeneity
    _: KW_ONLY
    expected: Interval
    """Of this site's figure as observed: the others' prediction and its own error."""
    inside: bool


def leave_one_out(
    effects: SiteEffects, options: PoolOptions | None = None
) -> tuple[HeldOutSite, ...]:
    """Every site in turn against a prediction from the others, at least three of them.

    >>> from fedassay.estimate import Estimate
    >>> from fedassay.sites.effects import site_effects
    >>> aucs = [0.74, 0.76, 0.77, 0.78, 0.78, 0.79, 0.80, 0.81, 0.95]
    >>> found = {f"{i}": Estimate(auc, sampling_sd=0.01) for i, auc in enumerate(aucs)}
    >>> [each.effect.site for each in leave_one_out(site_effects("roc_auc", found))
    ...  if not each.inside]
    ['8']
    """
    require_type(effects, SiteEffects, "what is pooled", "Use histogram_effects or site_effects.")
    chosen = PoolOptions() if options is None else options
    held = []
    for effect in effects.effects:
        others = pool_sites(effects.without(effect.site), chosen)
        if others.new_site is None:
            raise SettingInvalid(
                f"leaving one site out needs at least four with an effect; found {len(effects)}. "
                "Add sites, or give a prior for tau."
            )
        observed = others.new_site.with_error(effect.variance)
        expected = ends_of(effects.scale, observed, chosen.confidence)
        inside = effects.scale.back(effect.value) in expected
        held.append(HeldOutSite(effect, others, expected=expected, inside=inside))
    return tuple(held)


def _middle(tau: TauDistribution) -> float:
    """The mean of tau."""
    return float(tau.weights @ np.sqrt(tau.tau2))
