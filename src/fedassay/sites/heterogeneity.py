"""A metric over sites: what pooling them gives, however it was done.

Three intervals, three questions. A site's own covers new rows of that site. The mean's covers the
mean over sites like these. The prediction interval covers the true value at one new site, and it
alone answers whether a model may be taken elsewhere.
"""

from dataclasses import dataclass, field
from enum import Enum
from math import isnan, nan
from typing import Any

from fedassay.checks import require_number
from fedassay.estimate import Interval
from fedassay.presentation import html_text
from fedassay.sites.effects import Scale, SiteLeftOut
from fedassay.sites.predictive import Predictive


class Covers(Enum):
    """What an interval is about, in the words that stand beside it wherever it is printed."""

    THESE_ROWS = "the rows that were counted"
    NEW_ROWS = "new rows of these sites"
    MEAN = "the mean over sites like these"
    NEW_SITE = "the true value at a new site"


FEWEST_RELIABLE = 8
"""With fewer sites a prediction interval says so."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Heterogeneity:
    """A metric over sites: its mean, its spread, and what a new site may show.

    Values are the metric's own; `effect` and `tau` are on the scale, logit for a ROC AUC. What
    cannot be said is NaN, and a note says why.
    """

    metric: str
    scale: Scale
    sites: int
    effect: float = nan
    """The mean on the scale."""
    interval: Interval = Interval(nan, nan)
    """Of the mean over sites like these."""
    tau: float = nan
    i2: float = nan
    """The share of the spread that is not error: tau² over itself and a typical variance."""
    q: float = nan
    """Cochran's Q with weights 1 / v; NaN where only sums of moments are known."""
    prediction: Interval = Interval(nan, nan)
    """Of the true value at a new site."""
    how: str = ""
    """Which estimator and which rule."""
    notes: tuple[str, ...] = ()
    left_out: tuple[SiteLeftOut, ...] = ()
    new_site: Predictive | None = field(default=None, compare=False)
    """The distribution behind the prediction interval, on the scale."""

    @property
    def mean(self) -> float:
        """The mean over sites, on the metric's own scale."""
        return nan if isnan(self.effect) else self.scale.back(self.effect)

    def chance(self, wanted: float) -> float:
        """The chance that a new site's true value reaches a wanted one.

        >>> from fedassay.estimate import Estimate
        >>> from fedassay.sites import pool_sites, site_effects
        >>> aucs = [0.74, 0.76, 0.77, 0.78, 0.78, 0.79, 0.80, 0.81, 0.83]
        >>> found = {f"{i}": Estimate(auc, sampling_sd=0.01) for i, auc in enumerate(aucs)}
        >>> round(pool_sites(site_effects("roc_auc", found)).chance(0.75), 2)
        0.87
        """
        number = require_number(wanted, "the wanted value")
        if self.new_site is None:
            return nan
        effect = self.scale.forward(number)
        if isnan(effect):
            # Below all that the scale knows, or above.
            return 1.0 if number <= 0.0 else 0.0
        return self.new_site.above(effect)

    def to_json(self) -> dict[str, Any]:
        """The figures by their names in files; None for what cannot be said."""
        figures = {
            "mean": self.mean,
            "low": self.interval.low,
            "high": self.interval.high,
            "tau": self.tau,
            "i2": self.i2,
            "prediction_low": self.prediction.low,
            "prediction_high": self.prediction.high,
        }
        shown = {name: None if isnan(value) else value for name, value in figures.items()}
        return {**shown, "sites": self.sites}

    def __str__(self) -> str:
        if isnan(self.effect):
            return f"{self.metric}: {' '.join(self.notes)}"
        text = f"{self.metric} over {self.sites} sites: mean {self.mean:.4g}"
        if self.sites > 1 or not isnan(self.tau):
            text += " [{:.4g}, {:.4g}]".format(*self.interval)
        if not isnan(self.prediction.low):
            text += "; a new site {:.4g} to {:.4g}".format(*self.prediction)
        if not isnan(self.tau):
            text += f"; tau {self.tau:.3g} ({self.scale.value} scale), I² {self.i2:.0%}"
        return " ".join([f"{text}.", *self.notes])

    def __repr__(self) -> str:
        return f"<Heterogeneity {self}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))


def few_sites(k: int) -> tuple[str, ...]:
    """What must be said about an answer from so many sites.

    >>> few_sites(2)[0][:58], few_sites(8)
    ('Two sites: tau is read from one difference, and there is n', ())
    """
    if k == 2:
        return (
            "Two sites: tau is read from one difference, and there is no prediction interval "
            "without a prior for tau.",
        )
    if k < FEWEST_RELIABLE:
        return (
            f"{k} sites: fewer than {FEWEST_RELIABLE}, so that the prediction interval is "
            "unreliable.",
        )
    return ()


def ends_of(scale: Scale, what: Predictive | None, confidence: float) -> Interval:
    """The middle part of a distribution, on the metric's own scale.

    >>> from fedassay.sites.predictive import Student
    >>> [round(end, 3) for end in ends_of(Scale.LOG, Student(0.0, 0.1, 10), 0.95)]
    [0.8, 1.25]
    """
    if what is None:
        return Interval(nan, nan)
    tail = 0.5 - confidence / 2.0
    return Interval(scale.back(what.quantile(tail)), scale.back(what.quantile(1.0 - tail)))
