"""A metric at every site, on the scale where sites differ normally.

Snell et al. (2018) found differences between sites to be near normal for the logit of the
c-statistic, the logarithm of observed over expected, and the calibration slope as it is. Other
shares of rows are compared by their logits too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import exp, isfinite, log

import numpy as np

from fedassay.checks import require_type, require_whole
from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, Interval, NotEnoughData, normal_quantile
from fedassay.examples import FloatArray
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.named import named_metric

FEWEST_OF_A_CLASS = 10
"""With fewer rows of a class, a site's own variance is a guess: it is listed, not pooled."""


class Scale(Enum):
    """What is done to a metric before sites are compared, and undone afterwards."""

    IDENTITY = "identity"
    LOG = "log"
    LOGIT = "logit"

    def forward(self, value: float) -> float:
        """A metric's value on the scale; NaN where it has none.

        >>> round(Scale.LOGIT.forward(0.8), 4), Scale.LOG.forward(-1.0)
        (1.3863, nan)
        """
        match self:
            case Scale.IDENTITY:
                return value
            case Scale.LOG:
                return log(value) if value > 0.0 else float("nan")
            case Scale.LOGIT:
                return log(value / (1.0 - value)) if 0.0 < value < 1.0 else float("nan")

    def back(self, effect: float) -> float:
        """From the scale to the metric's own values.

        >>> round(Scale.LOGIT.back(1.3863), 4)
        0.8
        """
        match self:
            case Scale.IDENTITY:
                return effect
            case Scale.LOG:
                return exp(min(effect, 700.0))
            case Scale.LOGIT:
                if effect < 0.0:
                    return exp(max(effect, -700.0)) / (1.0 + exp(max(effect, -700.0)))
                return 1.0 / (1.0 + exp(-effect))

    def slope(self, value: float) -> float:
        """How fast the scale moves with the metric at a value: 1, 1/x or 1/(x (1 - x)).

        >>> round(Scale.LOGIT.slope(0.8), 4)
        6.25
        """
        match self:
            case Scale.IDENTITY:
                return 1.0
            case Scale.LOG:
                return 1.0 / value
            case Scale.LOGIT:
                return 1.0 / (value * (1.0 - value))


_LOGS = frozenset({"oe_ratio", "lr_plus", "lr_minus", "lift", "flagged"})
_LOGITS = frozenset(
    {
        "roc_auc",
        "average_precision",
        "prevalence",
        "precision",
        "recall",
        "accuracy",
        "f1",
        "specificity",
        "balanced_accuracy",
        "npv",
        "gain",
    }
)


def scale_of(metric: str) -> Scale:
    """The scale of a metric by its name, such as roc_auc or recall@0.5.

    >>> scale_of("roc_auc"), scale_of("oe_ratio"), scale_of("calibration_slope")
    (<Scale.LOGIT: 'logit'>, <Scale.LOG: 'log'>, <Scale.IDENTITY: 'identity'>)
    """
    require_type(metric, str, "a metric's name", "Write it as in roc_auc or recall@0.5.")
    name = metric.partition("@")[0]
    if name in _LOGS:
        return Scale.LOG
    return Scale.LOGIT if name in _LOGITS else Scale.IDENTITY


@dataclass(frozen=True, slots=True)
class SiteEffect:
    """One site's metric on the scale, with the variance of its error."""

    site: str
    value: float
    variance: float
    """Of sampling, privacy noise and binning together."""


@dataclass(frozen=True, slots=True)
class SiteLeftOut:
    """A site that is listed and not pooled, and why."""

    site: str
    reason: str


@dataclass(frozen=True, slots=True)
class SiteEffects:
    """A metric's effects at all sites that have one; the others with their reasons."""

    metric: str
    scale: Scale
    effects: tuple[SiteEffect, ...]
    left_out: tuple[SiteLeftOut, ...] = ()

    def __post_init__(self) -> None:
        names = [each.site for each in self.effects] + [each.site for each in self.left_out]
        if len(set(names)) < len(names):
            raise SettingInvalid(
                "a site must stand once among the effects; found a name twice. Name sites apart, "
                "or add up a site's reports first."
            )

    def __len__(self) -> int:
        return len(self.effects)

    @property
    def values(self) -> FloatArray:
        """Effects on the scale, in the order of the sites."""
        return np.array([each.value for each in self.effects])

    @property
    def variances(self) -> FloatArray:
        """The effects' variances, in the same order."""
        return np.array([each.variance for each in self.effects])

    def interval(self, effect: SiteEffect, confidence: float = 0.95) -> Interval:
        """What covers a site's own value: new rows of this site.

        >>> three = site_effects("roc_auc", {"a": Estimate(0.8, sampling_sd=0.01)})
        >>> [round(end, 3) for end in three.interval(three.effects[0])]
        [0.78, 0.819]
        """
        half = normal_quantile(0.5 + confidence / 2.0) * effect.variance**0.5
        return Interval(self.scale.back(effect.value - half), self.scale.back(effect.value + half))

    def without(self, site: str) -> "SiteEffects":
        """The same without one site, as if it had never taken part.

        >>> both = site_effects("ks", {s: Estimate(0.5, sampling_sd=0.1) for s in "ab"})
        >>> [each.site for each in both.without("a").effects]
        ['b']
        """
        kept = tuple(each for each in self.effects if each.site != site)
        if len(kept) == len(self.effects):
            raise SettingInvalid(
                f"only a site that has an effect can be left out; found {site!r}. There are: "
                f"{', '.join(each.site for each in self.effects)}."
            )
        return replace(self, effects=kept)


def site_effects(metric: str, estimates: Mapping[str, Estimate]) -> SiteEffects:
    """Every site's estimate on the metric's scale, by the delta method.

    effect = g(value), variance = g'(value)^2 (sampling^2 + noise^2 + binning^2). A site without
    a value, or whose value has no logit or logarithm, is listed with the reason.

    >>> found = site_effects("roc_auc", {"north": Estimate(0.8, sampling_sd=0.01)})
    >>> round(found.effects[0].value, 4), round(found.effects[0].variance, 6)
    (1.3863, 0.003906)
    """
    scale = scale_of(metric)
    require_type(estimates, Mapping, "sites' estimates", "Write them as {site: estimate}.")
    effects, left_out = [], []
    for site, estimate in estimates.items():
        require_type(site, str, "a site's name", "Name sites by texts.")
        require_type(estimate, Estimate, "a site's figure", "Use the metrics of fedassay.metrics.")
        reason = _why_without_effect(estimate, scale)
        if reason:
            left_out.append(SiteLeftOut(site, reason))
            continue
        variance = estimate.sampling_sd**2 + estimate.noise_sd**2 + estimate.binning_sd**2
        slope = scale.slope(estimate.value)
        effects.append(SiteEffect(site, scale.forward(estimate.value), slope**2 * variance))
    return SiteEffects(metric, scale, tuple(effects), tuple(left_out))


def histogram_effects(
    metric: str,
    histograms: Mapping[str, ScoreHistogram],
    *,
    fewest: int = FEWEST_OF_A_CLASS,
    measure: Callable[[ScoreHistogram], Estimate] | None = None,
) -> SiteEffects:
    """The same from every site's histogram; sites with too few rows of a class are listed.

    `measure` takes the place of the metric of that name.

    >>> rows = [0, 1] * 50, [i / 100 for i in range(100)]
    >>> sites = {"a": ScoreHistogram.from_scores(*rows)}
    >>> sites["b"] = ScoreHistogram.from_scores([0] * 99 + [1], [i / 100 for i in range(100)])
    >>> found = histogram_effects("roc_auc", sites)
    >>> len(found), found.left_out[0].reason
    (1, 'it has 1 positives; at least 10 are needed for a variance that can be relied on')
    """
    require_type(histograms, Mapping, "sites' histograms", "Write them as {site: histogram}.")
    require_whole(fewest, "the fewest rows of a class", 1)
    estimates: dict[str, Estimate] = {}
    for site, histogram in histograms.items():
        require_histogram(histogram)
        counted = (
            ("negatives", histogram.total_negatives),
            ("positives", histogram.total_positives),
        )
        few = [f"{total:.0f} {name}" for name, total in counted if total < fewest]
        if few:
            estimates[site] = NotEnoughData(
                reason=f"it has {' and '.join(few)}; at least {fewest} are needed for a variance "
                "that can be relied on"
            )
        else:
            estimates[site] = measure(histogram) if measure else named_metric(histogram, metric)
    return site_effects(metric, estimates)


def _why_without_effect(estimate: Estimate, scale: Scale) -> str:
    """Why an estimate cannot be pooled, or nothing."""
    if isinstance(estimate, NotEnoughData) or not estimate.is_available:
        return getattr(estimate, "reason", "") or "there is no value"
    if not isfinite(scale.forward(estimate.value)):
        return f"its value {estimate.value:.4g} has no {scale.value}"
    errors = (estimate.sampling_sd, estimate.noise_sd, estimate.binning_sd)
    if not all(map(isfinite, errors)) or not any(errors):
        return "its error is not known"
    return ""
