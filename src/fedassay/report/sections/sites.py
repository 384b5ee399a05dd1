"""Sites: how far they differ, and what a new one may show."""

from math import isnan

from fedassay.histogram import ScoreHistogram
from fedassay.report.forest_figure import MOST_ROWS, forest_figure
from fedassay.report.markup import Markup, element, joined, named
from fedassay.report.material import Material
from fedassay.report.wording import LABELS, section, table
from fedassay.sites import Covers, Heterogeneity, SiteEffects, histogram_effects, pool_sites

_METRICS = ("roc_auc", "oe_ratio", "calibration_slope")


def sites(material: Material) -> Markup | None:
    """Forest plots with the prediction interval, where sites may be seen; else nothing."""
    histograms = material.assessment.site_histograms()
    if not histograms:
        return None
    effects = [histogram_effects(metric, histograms) for metric in _METRICS]
    found = [pool_sites(each) for each in effects]
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
        *(element("p", note, class_="note") for note in found[0].notes),
        _left_out(effects),
        element(
            "div",
            *(
                forest_figure(each, pooled)
                for each, pooled in zip(effects, found, strict=True)
                if len(each)
            ),
            class_="figures",
        ),
        _every_site(histograms),
    )


def _sentence(area: Heterogeneity) -> str:
    """What a newcomer should take along."""
    if isnan(area.effect):
        return "No site has enough rows of both classes to stand by itself."
    words = f"Over {area.sites} sites the mean ROC AUC is {area.mean:.3f}"
    if isnan(area.prediction.low):
        return f"{words}; what a new site would show cannot be said."
    return words + "; at a new site like these it may be {:.3f} to {:.3f}.".format(*area.prediction)


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
        element("th", LABELS[found.metric], scope="row"),
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


def _every_site(histograms: dict[str, ScoreHistogram]) -> Markup:
    """Rows and events of each; of very many sites only the table has all."""
    rows = [
        element(
            "tr",
            element("th", named(name), scope="row"),
            element("td", f"{max(each.total, 0.0):,.0f}", class_="number"),
            element("td", f"{max(each.total_positives, 0.0):,.0f}", class_="number"),
        )
        for name, each in histograms.items()
    ]
    caption = f"All {len(histograms):,} sites, as counted; what noise put below 0 is 0 here"
    if len(histograms) > MOST_ROWS:
        caption += f"; plots show {MOST_ROWS}"
    return table(["site", "rows", "events"], rows, caption=caption)
