"""Whether scores should be recalibrated, how much, and for all sites or each by itself.

Four changes, from the fewest degrees of freedom to the most: none, another intercept, intercept and
slope, a flexible map; first one map for all sites, then one for each. A change is advised when its
expected gain over the simpler one stands clear of its own error.

The gain is in Brier score, rows of all sites together. With rates r of buckets, their variances v
and predictions p by a map that did not see them, the expected square is (r - p)² - v, and a gain is
the difference of two of these, with standard deviation 2 |p - p'| sqrt(v). A map for all sites is
tried on sites that it was not fitted to; a site's own map on buckets that it was not fitted to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import sqrt

import numpy as np

from fedassay.calibration.auto import cross_fitted
from fedassay.calibration.calibrator import Calibrator
from fedassay.calibration.logit import expit, log_odds, off_ends
from fedassay.calibration.parametric import SIGMOID, curve, parametric_from
from fedassay.calibration.rates import BucketRates, bucket_rates
from fedassay.calibration.smooth import smooth_from
from fedassay.checks import require_type
from fedassay.errors import SettingInvalid, SingleClass
from fedassay.estimate import Estimate
from fedassay.examples import FloatArray
from fedassay.extras import needed_for
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.sites.effects import SiteLeftOut
from fedassay.sites.pooling import pooled_histogram

CLEAR = 2.0
"""A gain must be this many of its standard deviations: its 95 % interval holds no loss. A shift
that is z standard deviations from none gains about z / 2 of its own."""
_BUCKETS = 100
_PIECES = 4
_FOLDS = 5
_FARTHEST = 30.0


class Change(Enum):
    """What is done to the scores."""

    NONE = "none"
    INTERCEPT = "intercept only"
    SLOPE = "intercept and slope"
    FLEXIBLE = "flexible map"


class Scope(Enum):
    """Whose scores are changed alike."""

    ALL_SITES = "all sites"
    EACH_SITE = "each site"


Option = tuple[Scope, Change]


@dataclass(frozen=True, slots=True)
class SiteAdvice:
    """What one site alone would gain by a map of its own."""

    change: Change
    gain: Estimate
    """In Brier score at this site, over the scores as they are."""


@dataclass(frozen=True, slots=True)
class RecalibrationAdvice:
    """The change that is advised, what it gains, and what each site would gain alone."""

    change: Change
    scope: Scope
    gain: Estimate
    """In Brier score over rows of all sites; 0 where nothing is advised."""
    tried: Mapping[Option, Estimate]
    """The gain of everything that was tried, over the scores as they are."""
    sites: Mapping[str, SiteAdvice]
    left_out: tuple[SiteLeftOut, ...]

    def __str__(self) -> str:
        if self.change is Change.NONE:
            best = max(self.tried.values(), key=lambda gain: gain.value)
            return (
                "Leave the scores as they are: no change stands clear of its own error; the best "
                f"would gain {_shown(best)} in Brier score."
            )
        who = "one for all sites" if self.scope is Scope.ALL_SITES else "one for each site"
        return (
            f"Recalibrate by {self.change.value}, {who}: it is expected to gain "
            f"{_shown(self.gain)} in Brier score."
        )


def fit_intercept(rates: BucketRates) -> Calibrator:
    """The map that moves all log-odds by one number, so that predictions add up to positives.

    >>> h = ScoreHistogram.from_scores([0, 1] * 500, [0.2] * 1000)
    >>> round(float(fit_intercept(bucket_rates(h)).predict([0.2])[0]), 2)
    0.5
    """
    with needed_for("calibration"):
        from scipy.optimize import brentq

    odds = log_odds(off_ends(rates.piece_scores))
    weights = rates.effective

    def excess(intercept: float) -> float:
        return float(weights @ (rates.averaged(expit(odds + intercept)) - rates.rates))

    if not excess(-_FARTHEST) < 0.0 < excess(_FARTHEST):
        raise SettingInvalid(
            "an intercept needs positives and negatives clear of the noise; these counts lack one. "
            "Leave the scores as they are."
        )
    intercept = float(brentq(excess, -_FARTHEST, _FARTHEST, xtol=1e-10))
    return curve(SIGMOID, np.array([1.0, intercept]))


_CHANGES = (Change.INTERCEPT, Change.SLOPE, Change.FLEXIBLE)
_FITS: Mapping[Change, Callable[[BucketRates], Calibrator]] = {
    Change.NONE: lambda _: Calibrator.identity(),
    Change.INTERCEPT: fit_intercept,
    Change.SLOPE: lambda rates: parametric_from(rates, SIGMOID),
    Change.FLEXIBLE: lambda rates: smooth_from(rates).calibrator,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """A site's rates, and what maps predict for them."""

    name: str
    histogram: ScoreHistogram
    rates: BucketRates
    predicted: dict[Option, FloatArray]
    squares: dict[Option, FloatArray]
    """Expected squared distances of predictions and true rates."""

    def keep(self, option: Option, predicted: FloatArray) -> None:
        """Predictions by a map that saw nothing of this site."""
        self.predicted[option] = predicted
        self.squares[option] = (self.rates.rates - predicted) ** 2 - self.rates.variance


def advise_recalibration(histograms: Mapping[str, ScoreHistogram]) -> RecalibrationAdvice:
    """The simplest change of the scores that stands clear, from every site's counts.

    >>> generator = np.random.default_rng(0)
    >>> scores = generator.beta(2, 4, (3, 4000))
    >>> labels = generator.random((3, 4000)) < scores
    >>> sites = {
    ...     f"{i}": ScoreHistogram.from_scores(labels[i].astype(int), scores[i]) for i in range(3)
    ... }
    >>> advise_recalibration(sites).change
    <Change.NONE: 'none'>
    """
    require_type(histograms, Mapping, "sites' histograms", "Write them as {site: histogram}.")
    sites, left_out = _sites(histograms)
    if not sites:
        raise SettingInvalid(
            "recalibration needs a site with positives and negatives; found none. "
            + " ".join(f"{each.site}: {each.reason}." for each in left_out)
        )
    _own_maps(sites)
    scopes = [Scope.ALL_SITES]
    if len(sites) > 1:
        _maps_for_all(sites)
        scopes.append(Scope.EACH_SITE)
    else:
        for change in Change:
            # What one site gains, all do.
            for kept in (sites[0].predicted, sites[0].squares):
                kept[Scope.ALL_SITES, change] = kept[Scope.EACH_SITE, change]
    raw: Option = (Scope.ALL_SITES, Change.NONE)
    options: list[Option] = [(scope, change) for scope in scopes for change in _CHANGES]
    chosen = _simplest(sites, raw, options)
    return RecalibrationAdvice(
        change=chosen[1],
        scope=chosen[0],
        gain=_gain(sites, raw, chosen),
        tried={option: _gain(sites, raw, option) for option in options},
        sites={site.name: _alone(site) for site in sites},
        left_out=left_out,
    )


def _sites(
    histograms: Mapping[str, ScoreHistogram],
) -> tuple[list[_Site], tuple[SiteLeftOut, ...]]:
    sites, left_out = [], []
    for name, histogram in histograms.items():
        require_histogram(histogram)
        try:
            rates = bucket_rates(histogram, most=_BUCKETS).in_pieces(_PIECES)
        except SingleClass as error:
            left_out.append(SiteLeftOut(name, str(error)))
            continue
        sites.append(_Site(name, histogram, rates, {}, {}))
    return sites, tuple(left_out)


def _own_maps(sites: list[_Site]) -> None:
    """Every site's own maps, each bucket predicted by one that did not see it."""
    for site in sites:
        raw = site.rates.averaged(site.rates.piece_scores)
        for change, fit in _FITS.items():
            option = Scope.EACH_SITE, change
            try:
                site.predicted[option], site.squares[option] = cross_fitted(site.rates, fit)
            except SettingInvalid:
                # Too few buckets for this change: the site keeps its scores.
                site.keep(option, raw)


def _maps_for_all(sites: list[_Site]) -> None:
    """Maps for all sites, each site predicted by one that was fitted to others."""
    folds = min(_FOLDS, len(sites))
    for fold in range(folds):
        seen = [site for place, site in enumerate(sites) if place % folds != fold]
        pooled = pooled_histogram(site.histogram for site in seen)
        rates = bucket_rates(pooled, most=_BUCKETS).in_pieces(_PIECES)
        for change, fit in _FITS.items():
            try:
                calibrator = fit(rates)
            except SettingInvalid:
                calibrator = Calibrator.identity()
            for site in sites[fold::folds]:
                shown = calibrator.predict(site.rates.piece_scores)
                site.keep((Scope.ALL_SITES, change), site.rates.averaged(shown))


def _simplest(
    sites: list[_Site],
    start: Option,
    options: list[Option],
) -> Option:
    """Go on to a richer option only where its gain over the last one stands clear."""
    chosen = start
    for option in options:
        gain = _gain(sites, chosen, option)
        if gain.value > CLEAR * gain.sampling_sd > 0.0:
            chosen = option
    return chosen


def _gain(sites: list[_Site], before: Option, after: Option) -> Estimate:
    """How much smaller the mean square becomes, and what sampling and noise do to that."""
    total = sum(float(site.rates.totals.sum()) for site in sites)
    gain = variance = 0.0
    for site in sites:
        shares = site.rates.totals / total
        gain += float(shares @ (site.squares[before] - site.squares[after]))
        apart = site.predicted[after] - site.predicted[before]
        variance += float((shares**2 * 4.0 * apart**2) @ site.rates.variance)
    return Estimate(gain, sampling_sd=sqrt(variance))


def _alone(site: _Site) -> SiteAdvice:
    raw: Option = (Scope.EACH_SITE, Change.NONE)
    options: list[Option] = [(Scope.EACH_SITE, change) for change in _CHANGES]
    chosen = _simplest([site], raw, options)
    return SiteAdvice(chosen[1], _gain([site], raw, chosen))


def _shown(gain: Estimate) -> str:
    return f"{gain.value:.2g} (standard deviation {gain.sampling_sd:.2g})"
