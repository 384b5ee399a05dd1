"""Sites: how far they differ, and what a new one may show."""

from math import isnan

from fedassay.report.forest_figure import MOST_ROWS, forest_figure
from fedassay.report.markup import Markup, element, joined, named
from fedassay.report.material import Material
from fedassay.report.wording import LABELS, section, table
from fedassay.sites import Covers, Heterogeneity, SiteEffects, pool_sites
from fedassay.sites.between import SeenSites, SummedSites

_METRICS = ("roc_auc", "oe_ratio", "calibration_slope")
_SUMS = (
    "Each site added its effects to sums that alone are known: every site weighs the same, and "
    "none can be seen by itself."
)


def sites(material: Material) -> Markup | None:
    """Forest plots with the prediction interval, where sites may be seen; else sums, or nothing."""
    known = material.assessment.sites
    if known is None:
        return None
    if isinstance(known, SummedSites):
        found = [known.heterogeneity(metric) for metric in known.moments]
        return _section(found, element("p", _SUMS, class_="note"))
    effects = [known.effects(metric) for metric in _METRICS]
    found = [pool_sites(each) for each in effects]
    forests = [
        forest_figure(each, pooled)
        for each, pooled in zip(effects, found, strict=True)
        if len(each)
    ]
    return _section(
        found, _left_out(effects), element("div", *forests, class_="figures"), _every_site(known)
    )


def _section(found: list[Heterogeneity], *more: Markup | None) -> Markup:
    return section(
        "sites",
        "Sites",
        element("p", _sentence(found[0])),
        table(
            ["figure", "mean over sites", "a new site, 95 %", "τ", "I²"],
            [_row(each) for each in found],
            caption="Between sites",
        ),
        element("p", _covers(), class_="note"),
        *(element("p", note, class_="note") for note in dict.fromkeys(found[0].notes)),
        *more,
    )


def _sentence(area: Heterogeneity) -> str:
    """What a newcomer should take along."""
    if isnan(area.effect):
        return "No site has enough rows of both classes to stand by itself."
    words = f"Over {area.sites} sites the mean {_label(area.metric)} is {area.mean:.3f}"
    if isnan(area.prediction.low):
        return f"{words}; what a new site would show cannot be said."
    return words + "; at a new site like these it may be {:.3f} to {:.3f}.".format(*area.prediction)


def _label(metric: str) -> str:
    return LABELS.get(metric, metric)


def _covers() -> str:
    return (
        f"The mean's interval covers {Covers.MEAN.value}; that of a new site covers "
        f"{Covers.NEW_SITE.value}. τ of ROC AUC is on the logit scale, of observed / expected on "
        "that of logarithms. A line without a point leads out of the picture."
    )


def _row(found: Heterogeneity) -> Markup:
    missing = isnan(found.effect)
    mean = "–" if missing else "{:.3f} ({:.3f} to {:.3f})".format(found.mean, *found.interval)
    new = "–" if isnan(found.prediction.low) else "{:.3f} to {:.3f}".format(*found.prediction)
    return element(
        "tr",
        element("th", _label(found.metric), scope="row"),
        element("td", mean, class_="number"),
        element("td", new, class_="number"),
        element("td", "–" if isnan(found.tau) else f"{found.tau:.3f}", class_="number"),
        element("td", "–" if isnan(found.i2) else f"{100 * found.i2:.0f} %", class_="number"),
    )


def _left_out(effects: list[SiteEffects]) -> Markup | None:
    """Sites that are too small for some figure, each once, with the first reason."""
    reasons = {left.site: left.reason for each in reversed(effects) for left in each.left_out}
    if not reasons:
        return None
    return element(
        "ul",
        *(element("li", joined(named(site), f": {why}")) for site, why in reasons.items()),
        class_="missing",
    )


def _every_site(known: SeenSites) -> Markup:
    """Rows and events of each; of very many sites only the table has all."""
    rows = [
        element(
            "tr",
            element("th", named(name), scope="row"),
            element("td", f"{max(each.rows, 0.0):,.0f}", class_="number"),
            element("td", f"{max(each.events, 0.0):,.0f}", class_="number"),
        )
        for name, each in known.items()
    ]
    caption = f"All {len(known):,} sites, as counted; what noise put below 0 is 0 here"
    if len(known) > MOST_ROWS:
        caption += f"; plots show {MOST_ROWS}"
    return table(["site", "rows", "events"], rows, caption=caption)
