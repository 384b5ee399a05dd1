"""Sites in words and tables, for a terminal of 80 columns and a notebook."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from fedassay.errors import SettingInvalid
from fedassay.estimate import Estimate, Interval
from fedassay.files import parse_fraction
from fedassay.metrics.named import check_metric, metric_at
from fedassay.sites.between import BetweenSites, SeenSites, compared_metrics
from fedassay.sites.heterogeneity import Heterogeneity
from fedassay.sites.predictive import TauPrior
from fedassay.sites.random_effects import PoolOptions
from fedassay.sites.recalibration_advice import Change, RecalibrationAdvice

SITE_HEADER = ("site", "rows", "events", "roc_auc", "oe_ratio")
BETWEEN_HEADER = ("metric", "mean over sites", "a new site", "tau", "I²")
_LONGEST_NAME = 18
_MOST_NAMES = 8


def site_rows(sites: SeenSites) -> list[list[str]]:
    """Every site with its rows, its positives, ROC AUC and O/E, each with its 95 % interval.

    >>> from fedassay import ScoreHistogram
    >>> one = ScoreHistogram.from_scores([0, 1] * 50, [i / 100 for i in range(100)])
    >>> site_rows(SeenSites({"north": one}))[0][:4]
    ['north', '100', '50', '0.510 [0.397, 0.622]']
    """
    rows = []
    for name, site in sites.items():
        small = name in {left.site for left in sites.effects("roc_auc").left_out}
        figures = (
            ["too small", ""]
            if small
            else [_of_site(site["roc_auc"], 3), _of_site(site["oe_ratio"], 2)]
        )
        rows.append([_short(name), f"{site.rows:,.0f}", f"{site.events:,.0f}", *figures])
    return rows


def between_rows(found: Sequence[Heterogeneity]) -> list[list[str]]:
    """Every metric with its mean over sites, what a new site may show, tau and I².

    >>> from fedassay.sites import site_effects, pool_sites
    >>> aucs = {f"{i}": Estimate(0.7 + i / 100, sampling_sd=0.01) for i in range(9)}
    >>> between_rows([pool_sites(site_effects("roc_auc", aucs))])[0]
    ['roc_auc', '0.740 [0.719, 0.761]', '0.672 to 0.799', '0.133', '87 %']
    """
    return [
        [
            each.metric,
            "-" if isnan(each.effect) else f"{each.mean:.3f} {_brackets(each.interval, 3)}",
            "-" if isnan(each.prediction.low) else "{:.3f} to {:.3f}".format(*each.prediction),
            "-" if isnan(each.tau) else f"{each.tau:.3f}",
            "-" if isnan(each.i2) else f"{100 * each.i2:.0f} %",
        ]
        for each in found
    ]


def between_lines(
    sites: BetweenSites, found: Sequence[Heterogeneity], wanted: Mapping[str, float]
) -> list[str]:
    """What is to be said below the table: how many sites, chances, who lies apart, who is small.

    >>> nobody = SeenSites({})
    >>> between_lines(nobody, [nobody.heterogeneity("roc_auc")], {"roc_auc": 0.8})[1]
    'roc_auc: the chance that a new site reaches 0.8 is not known.'
    """
    counts = {each.metric: each.sites for each in found}
    most = max(counts.values(), default=0)
    fewer = ", ".join(f"{name}: {count}" for name, count in counts.items() if 0 < count < most)
    lines = [
        f"Of {most} sites with an effect{f' ({fewer})' if fewer else ''}; tau of roc_auc is on the "
        "logit scale, of oe_ratio on that of logarithms."
    ]
    by_metric = {each.metric: each for each in found}
    for metric, value in wanted.items():
        chance = by_metric[metric].chance(value)
        shown = "not known" if isnan(chance) else f"{100.0 * chance:.0f} %"
        lines.append(f"{metric}: the chance that a new site reaches {value:g} is {shown}.")
    notes = dict.fromkeys(note for each in found for note in each.notes)
    lines += notes
    if isinstance(sites, SeenSites):
        lines += _left_out_one_by_one(sites) + _too_small(sites)
    return lines


def covered(sites: BetweenSites | None) -> str:
    """What the intervals of pooled figures cover, in the words that stand below their table.

    >>> covered(None)
    'The 95 % intervals cover new rows of these clients, not a new site.'
    """
    if sites is None:
        return "The 95 % intervals cover new rows of these clients, not a new site."
    return (
        "The 95 % intervals above cover new rows of these sites; what a new site may show stands "
        "below."
    )


SITES_ABOVE = "Sites, each with 95 % intervals of new rows of its own:"
BETWEEN_ABOVE = "Between sites: the mean, and the true value at a new site, 95 % each:"
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def sites_parts(
    sites: BetweenSites | None,
    more: Sequence[str] = (),
    wanted: Mapping[str, float] | None = None,
    priors: Mapping[str, TauPrior] | None = None,
) -> list[str | Table]:
    """All that is printed about sites below a table of pooled figures, from top to bottom.

    >>> sites_parts(None)
    ['The 95 % intervals cover new rows of these clients, not a new site.']
    """
    parts: list[str | Table] = [covered(sites)]
    if sites is None:
        return parts
    if isinstance(sites, SeenSites):
        parts += [SITES_ABOVE, (SITE_HEADER, site_rows(sites))]
    goals = wanted or {}
    found = _pooled(sites, (*more, *goals), priors or {})
    below = between_lines(sites, found, goals)
    return [*parts, BETWEEN_ABOVE, (BETWEEN_HEADER, between_rows(found)), "\n".join(below)]


def wanted_values(texts: Sequence[str], thresholds: Sequence[float] = ()) -> dict[str, float]:
    """Read metrics with the values that a new site should reach, such as roc_auc=0.8.

    >>> wanted_values(["roc_auc=0.8", "recall@specificity=0.9=0.4"])
    {'roc_auc': 0.8, 'recall@specificity=0.9': 0.4}
    """
    wanted = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise SettingInvalid(
                "a wanted value is a metric, an equals sign and a number, such as roc_auc=0.8; "
                f"found {text[:40]!r}."
            )
        metric = metric_at(name, thresholds)
        check_metric(metric)
        wanted[metric] = float(parse_fraction(value, "a wanted value"))
    return wanted


def tau_priors(texts: Sequence[str]) -> dict[str, TauPrior]:
    """Read priors for tau, such as roc_auc=0.055,0.015: mean and sd on the metric's own scale.

    >>> tau_priors(["roc_auc=0.055,0.015"])
    {'roc_auc': TauPrior(mean=0.055, sd=0.015, metric='roc_auc')}
    """
    priors = {}
    for text in texts:
        metric, _, numbers = text.rpartition("=")
        mean, comma, sd = numbers.partition(",")
        if not metric or not comma:
            raise SettingInvalid(
                "a prior for tau is a metric, its mean and its sd, such as roc_auc=0.055,0.015; "
                f"found {text[:40]!r}."
            )
        check_metric(metric)
        first, second = (parse_fraction(each, "a prior for tau") for each in (mean, sd))
        priors[metric] = TauPrior(float(first), float(second), metric)
    return priors


def _pooled(
    sites: BetweenSites, more: Sequence[str], priors: Mapping[str, TauPrior]
) -> list[Heterogeneity]:
    """What differs between sites by metric, with the priors that were given."""
    return [
        sites.heterogeneity(metric, PoolOptions(prior=priors[metric]) if metric in priors else None)
        for metric in compared_metrics(sites, (*more, *priors))
    ]


def heterogeneity_json(
    sites: BetweenSites,
    more: Sequence[str] = (),
    wanted: Mapping[str, float] | None = None,
    priors: Mapping[str, TauPrior] | None = None,
) -> dict[str, dict[str, Any]]:
    """What differs between sites by metric, with what must be said of it.

    >>> heterogeneity_json(SeenSites({}))["roc_auc"]["notes"]
    ['No site has an effect: there is nothing to pool.']
    """
    goals = wanted or {}
    content = {}
    for found in _pooled(sites, (*more, *goals), priors or {}):
        metric = found.metric
        content[metric] = {
            **found.to_json(),
            "notes": list(found.notes),
            "left_out": {left.site: left.reason for left in found.left_out},
        }
        if metric in goals:
            chance = found.chance(goals[metric])
            content[metric] |= {
                "wanted": goals[metric],
                "chance": None if isnan(chance) else chance,
            }
    return content


def advice_lines(advice: RecalibrationAdvice) -> list[str]:
    """Whether to recalibrate, with what it gains, and which sites would gain by maps of their own.

    >>> from fedassay import ScoreHistogram
    >>> from fedassay.sites import advise_recalibration
    >>> one = ScoreHistogram.from_scores([0, 1] * 500, [0.2, 0.4] * 500)
    >>> advice_lines(advise_recalibration({"north": one}))[0][:40]
    'Recalibrate by flexible map, one for all'
    """
    lines = [str(advice)]
    gains = {site: own for site, own in advice.sites.items() if own.change is not Change.NONE}
    if len(advice.sites) > 1 and gains:
        listed = [
            f"{_short(site)} ({own.change.value}, {own.gain.value:.2g})"
            for site, own in list(gains.items())[:_MOST_NAMES]
        ]
        more = len(gains) - _MOST_NAMES
        lines.append(
            f"By maps of their own, {len(gains)} of {len(advice.sites)} sites would gain: "
            f"{', '.join(listed)}{f' and {more} more' if more > 0 else ''}."
        )
    return lines


def advice_json(advice: RecalibrationAdvice) -> dict[str, Any]:
    """The advice in JSON's terms: change, for whom, gain in Brier score, and by site.

    >>> from fedassay import ScoreHistogram
    >>> from fedassay.sites import advise_recalibration
    >>> one = ScoreHistogram.from_scores([0, 1] * 500, [0.2, 0.4] * 500)
    >>> advice_json(advise_recalibration({"north": one}))["scope"]
    'all sites'
    """
    return {
        "change": advice.change.value,
        "scope": advice.scope.value,
        "gain": advice.gain.value,
        "gain_sd": advice.gain.sampling_sd,
        "sites": {
            site: {
                "change": own.change.value,
                "gain": own.gain.value,
                "gain_sd": own.gain.sampling_sd,
            }
            for site, own in advice.sites.items()
        },
    }


def _left_out_one_by_one(sites: SeenSites) -> list[str]:
    held = sites.leave_one_out("roc_auc")
    if not held:
        return []
    outside = [each.effect.site for each in held if not each.inside]
    apart = f"; outside: {_listed(outside)}" if outside else ""
    return [
        f"Left out one at a time, {len(held) - len(outside)} of {len(held)} sites have the ROC AUC "
        f"that the others predict{apart}."
    ]


def _too_small(sites: SeenSites) -> list[str]:
    left = sites.effects("roc_auc").left_out
    if not left:
        return []
    more = len(left) - _MOST_NAMES
    return [
        "Listed and not compared:",
        # What would help stands behind the first sentence, and is in the JSON.
        *(
            f"  {_short(each.site)}: {each.reason.partition('. ')[0]}"
            for each in left[:_MOST_NAMES]
        ),
        *([f"  and {more} more"] if more > 0 else []),
    ]


def _of_site(estimate: Estimate, digits: int) -> str:
    if not estimate.is_available:
        return "-"
    return f"{estimate.value:.{digits}f} {_brackets(estimate.interval(), digits)}"


def _brackets(interval: Interval, digits: int) -> str:
    low, high = interval
    return "" if isnan(low) else f"[{low:.{digits}f}, {high:.{digits}f}]"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(_short, names[:_MOST_NAMES]))
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
