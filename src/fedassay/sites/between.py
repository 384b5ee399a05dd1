"""The sites of an assessment: each by itself where it may be seen, and what differs between them.

Where every site may be seen there is a histogram of each (`SeenSites`); under exact secure sums
there may be sums of moments (`SummedSites`), which show no site. Both answer `heterogeneity`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedassay.checks import require_type, unknown
from fedassay.errors import SettingInvalid, TooFewReports
from fedassay.estimate import Estimate
from fedassay.histogram import ScoreHistogram, require_histogram
from fedassay.metrics.named import check_metric, named_metric
from fedassay.sites.displays import ForestDisplay
from fedassay.sites.effects import SiteEffects, histogram_effects, scale_of
from fedassay.sites.heterogeneity import Heterogeneity
from fedassay.sites.moments import from_moments
from fedassay.sites.random_effects import HeldOutSite, PoolOptions, leave_one_out, pool_sites
from fedassay.sites.recalibration_advice import RecalibrationAdvice, advise_recalibration

USUAL_METRICS = ("roc_auc", "oe_ratio", "calibration_slope", "calibration_in_the_large")
"""What is compared between sites without being asked for."""
_AT_EACH_SITE = ("brier", "prevalence")
_AT_EACH_THRESHOLD = ("precision", "recall", "specificity", "npv", "flagged", "net_benefit")


@dataclass(frozen=True, eq=False, repr=False)
class SeenSite:
    """One site's counts as they may be seen, and its metrics by name."""

    name: str
    histogram: ScoreHistogram

    @property
    def rows(self) -> float:
        """How many rows it counted; with noise of its own, about so many."""
        return self.histogram.total

    @property
    def events(self) -> float:
        """How many of them are positive."""
        return self.histogram.total_positives

    def __getitem__(self, metric: str) -> Estimate:
        """A metric of this site's rows; its interval covers new rows of this site."""
        return named_metric(self.histogram, metric)

    def __repr__(self) -> str:
        return f"<SeenSite {self.name}: {self.histogram}>"


@dataclass(frozen=True, eq=False, repr=False)
class SeenSites(Mapping[str, SeenSite]):
    """Every site by its name, and what differs between them.

    >>> rows = [0, 1] * 50, [i / 100 for i in range(100)]
    >>> sites = SeenSites({name: ScoreHistogram.from_scores(*rows) for name in ("a", "b", "c")})
    >>> round(sites["a"]["roc_auc"].value, 2), sites.heterogeneity("roc_auc").sites
    (0.51, 3)
    """

    histograms: Mapping[str, ScoreHistogram]

    def __post_init__(self) -> None:
        require_type(self.histograms, Mapping, "sites' histograms", "Write {site: histogram}.")
        for histogram in self.histograms.values():
            require_histogram(histogram)

    def __getitem__(self, site: str) -> SeenSite:
        if site not in self.histograms:
            raise SettingInvalid(unknown(site, self.histograms, "a site"))
        return SeenSite(site, self.histograms[site])

    def __iter__(self) -> Iterator[str]:
        return iter(self.histograms)

    def __len__(self) -> int:
        return len(self.histograms)

    def __repr__(self) -> str:
        return f"<SeenSites: {', '.join(self)}>"

    def effects(self, metric: str) -> SiteEffects:
        """A metric at every site, on the scale where sites differ normally."""
        check_metric(metric)
        if metric not in self._effects:
            self._effects[metric] = histogram_effects(metric, self.histograms)
        return self._effects[metric]

    @cached_property
    def _effects(self) -> dict[str, SiteEffects]:
        return {}

    def heterogeneity(self, metric: str, options: PoolOptions | None = None) -> Heterogeneity:
        """Mean, spread and the interval for a new site, by random effects."""
        return pool_sites(self.effects(metric), options)

    def leave_one_out(
        self, metric: str, options: PoolOptions | None = None
    ) -> tuple[HeldOutSite, ...]:
        """Every site against what the others predict; nothing where they are too few."""
        try:
            return leave_one_out(self.effects(metric), options)
        except SettingInvalid:
            return ()

    def recalibration(self) -> RecalibrationAdvice:
        """Whether scores should be recalibrated, for all sites or for each."""
        return advise_recalibration(self.histograms)

    def plot(self, metric: str = "roc_auc", *, ax: Any = None) -> ForestDisplay:
        """A forest plot of one metric."""
        return ForestDisplay.from_effects(self.effects(metric), ax=ax)

    def estimates(
        self, thresholds: Sequence[float] = (), more: Sequence[str] = ()
    ) -> dict[str, dict[str, Estimate]]:
        """The metrics of each site that are quickly found, and those that are asked for."""
        names = site_metrics(thresholds, more)
        return {site: {name: seen[name] for name in names} for site, seen in self.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedSites:
    """Sums of moments over sites that nobody sees.

    >>> from fedassay.sites import SiteEffect, site_moments
    >>> sums = sum(site_moments(SiteEffect("", 1.0 + 0.1 * i, 0.01), 63) for i in range(9))
    >>> sites = SummedSites(moments={"roc_auc": tuple(sums.tolist())}, most_sites=63)
    >>> round(sites.heterogeneity("roc_auc").mean, 2)
    0.8
    """

    moments: Mapping[str, tuple[int, ...]]
    """By metric: five words, added up over all sites."""
    most_sites: int
    colluders: int = 0

    def heterogeneity(self, metric: str, options: PoolOptions | None = None) -> Heterogeneity:
        """Mean, spread and the interval for a new site, from the sums; sites weigh the same.

        Where fewer sites have an effect than may be summed, there is a sentence and no figure.
        """
        if metric not in self.moments:
            raise SettingInvalid(unknown(metric, self.moments, "a metric whose moments were added"))
        chosen = PoolOptions() if options is None else options
        if chosen != PoolOptions(confidence=chosen.confidence):
            raise SettingInvalid(
                "from sums of moments there is one estimator and no prior; found other options. "
                "Leave them out, or let sites be seen."
            )
        words = self.moments[metric]
        try:
            return from_moments(
                words,
                metric,
                most_sites=self.most_sites,
                colluders=self.colluders,
                confidence=chosen.confidence,
            )
        except TooFewReports as error:
            return Heterogeneity(
                metric=metric, scale=scale_of(metric), sites=words[0], notes=(f"{error}",)
            )


BetweenSites = SeenSites | SummedSites


def site_metrics(thresholds: Sequence[float] = (), more: Sequence[str] = ()) -> tuple[str, ...]:
    """The metrics that are given for every single site.

    >>> site_metrics((), ["ks"])[-2:]
    ('prevalence', 'ks')
    """
    at = [f"{name}@{each!r}" for each in thresholds for name in _AT_EACH_THRESHOLD]
    return tuple(dict.fromkeys((*USUAL_METRICS, *_AT_EACH_SITE, *at, *more)))


def compared_metrics(sites: BetweenSites, more: Sequence[str] = ()) -> tuple[str, ...]:
    """The metrics that are compared between these sites; by sums only those that were added.

    >>> compared_metrics(SeenSites({}), ["ks"])[-1]
    'ks'
    """
    if isinstance(sites, SummedSites):
        return tuple(sites.moments)
    return tuple(dict.fromkeys((*USUAL_METRICS, *more)))
